//! Spans of the `tracing` crate around tasks, with the feature of that name.
//!
//! The span is made where the task is spawned, before the scheduler hears of it, and lies in a future
//! around the task's: neither the scheduler nor the task knows of it, and no code of a subscriber runs
//! inside of them. The price is that the task's id, which is its allocation's, is not known to the
//! span before the first poll.
//!
//! Rejected: the span in the task's header (a word of every task, for those who ask).
#![forbid(unsafe_code)]

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tracing::Span;
use tracing::field::Empty;
use tracing::instrument::{Instrument, Instrumented};

use super::try_id;

/// The span of a task that is spawned at `place`. The names of the fields are Tokio's.
fn span(kind: &'static str, size: usize, place: &'static Location<'static>) -> Span {
    tracing::trace_span!(
        target: "volt::task",
        parent: None,
        "runtime.spawn",
        kind,
        task.id = Empty,
        size.bytes = size,
        loc.file = place.file(),
        loc.line = place.line(),
        loc.col = place.column(),
    )
}

/// Tells the span of the running task its id.
fn name(span: &Span) {
    if let Some(id) = try_id() {
        span.record("task.id", id.as_u64());
    }
}

/// `future`, of that size before it was boxed, in a span while it is polled and while it is dropped.
pub(crate) fn task<F: Future>(
    kind: &'static str,
    future: F,
    size: usize,
    place: &'static Location<'static>,
) -> impl Future<Output = F::Output> + use<F> {
    let span = span(kind, size, place);
    Traced { future: future.instrument(span), named: false }
}

/// `closure`, of that size, in a span while it runs.
pub(crate) fn blocking<F: FnOnce() -> R, R>(
    closure: F,
    size: usize,
    place: &'static Location<'static>,
) -> impl FnOnce() -> R + use<F, R> {
    let span = span("blocking", size, place);
    move || {
        name(&span);
        span.in_scope(closure)
    }
}

pin_project! {
    struct Traced<F> {
        #[pin]
        future: Instrumented<F>,
        named: bool,
    }
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if !std::mem::replace(this.named, true) {
            name(this.future.span());
        }
        this.future.poll(cx)
    }
}
