//! `Stream` for receivers and `Sink` for senders (feature `futures`).
//!
//! A handle is not pinned, so what it waits with lies in a box, made at the first wait: one
//! allocation a handle, none a message.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::stream::{FusedStream, Stream};
use futures_sink::Sink;

use super::{Flavor, Receiver, SendError, Sender};
use crate::channel::waiter::{State, Waiter};

/// What a [`Sender`] keeps between `poll_ready` and `start_send`.
#[derive(Debug, Default)]
pub(super) struct SinkState {
    waiter: Option<Pin<Box<Waiter>>>,
    /// A place is reserved.
    ready: bool,
}

/// Ends when the channel is closed and empty. The first wait of a handle allocates.
///
/// ```
/// # volt_doctest::run(|| async {
/// use futures::StreamExt;
/// let (tx, rx) = volt_sync::mpmc::bounded(2);
/// tx.try_send(1).unwrap();
/// tx.try_send(2).unwrap();
/// drop(tx);
/// assert_eq!(rx.collect::<Vec<_>>().await, [1, 2]);
/// # });
/// ```
impl<T> Stream for Receiver<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.get_mut();
        let waiter = this.stream.get_or_insert_with(|| Box::pin(Waiter::new(1)));
        // Not at the end of the poll before, which a waker's panic may have cut short.
        if waiter.state() == State::Done {
            waiter.set_state(State::Idle);
        }
        match this.channel.recv_if_plain(waiter) {
            Some(value) => Poll::Ready(Some(value)),
            None => this.channel.poll_recv(waiter.as_mut(), cx).map(Result::ok),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // Other receivers may take what is there.
        (0, None)
    }
}

impl<T> FusedStream for Receiver<T> {
    fn is_terminated(&self) -> bool {
        self.channel.has_ended()
    }
}

impl<T> Receiver<T> {
    pub(super) fn release_stream(&mut self) {
        if let Some(mut waiter) = self.stream.take() {
            if waiter.is_engaged() {
                self.channel.cancel_recv(waiter.as_mut());
            }
        }
    }
}

/// `poll_ready` reserves a place, which `start_send` uses. `poll_close` gives a reserved place
/// back; the channel closes when its last sender is dropped. The first wait of a handle allocates.
///
/// ```
/// # volt_doctest::run(|| async {
/// use futures::SinkExt;
/// let (mut tx, rx) = volt_sync::mpmc::bounded(2);
/// SinkExt::send(&mut tx, 1).await.unwrap();
/// assert_eq!(rx.recv().await, Some(1));
/// # });
/// ```
impl<T> Sink<T> for Sender<T> {
    type Error = SendError<()>;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError<()>>> {
        let this = self.get_mut();
        match &this.channel.flavor {
            Flavor::Unbounded(channel) if channel.is_closed() => {
                return Poll::Ready(Err(SendError(())));
            }
            Flavor::Bounded(channel) if !this.sink.ready => {
                let waiter = this.sink.waiter.get_or_insert_with(|| Box::pin(Waiter::new(1)));
                let reserved = ready!(channel.poll_reserve(waiter.as_mut(), cx));
                waiter.set_state(State::Idle);
                if reserved.is_err() {
                    return Poll::Ready(Err(SendError(())));
                }
                this.sink.ready = true;
            }
            _ => {}
        }
        Poll::Ready(Ok(()))
    }

    fn start_send(self: Pin<&mut Self>, value: T) -> Result<(), SendError<()>> {
        let this = self.get_mut();
        match &this.channel.flavor {
            Flavor::Unbounded(channel) => channel.send(value).map_err(|_| SendError(())),
            Flavor::Bounded(channel) => {
                assert!(this.sink.ready, "`start_send` without a successful `poll_ready`");
                this.sink.ready = false;
                channel.send_reserved(value);
                Ok(())
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), SendError<()>>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), SendError<()>>> {
        self.get_mut().release_sink();
        Poll::Ready(Ok(()))
    }
}

impl<T> Sender<T> {
    pub(super) fn release_sink(&mut self) {
        if let Flavor::Bounded(channel) = &self.channel.flavor {
            if std::mem::take(&mut self.sink.ready) {
                channel.unreserve(1);
            }
            if let Some(mut waiter) = self.sink.waiter.take() {
                if waiter.is_engaged() {
                    channel.cancel_sender(waiter.as_mut());
                }
            }
        }
    }
}
