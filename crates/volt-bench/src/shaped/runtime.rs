//! Tokio-shaped runtimes, compiled for each crate that has them.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::rt::{self, runtime, task, time};
use crate::kind::{Runtime, Timers, workers};

/// As many workers as the row asks for.
pub(crate) struct Multi(runtime::Runtime);

/// One thread: the one in `block_on`.
pub(crate) struct Current(runtime::Runtime);

/// A join handle whose failure is ours.
pub(crate) struct Join<T>(task::JoinHandle<T>);

impl<T> Future for Join<T> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        Pin::new(&mut self.0).poll(cx).map(|result| result.expect("the task ends well"))
    }
}

macro_rules! runtime {
    ($name:ident, $builder:expr) => {
        impl Runtime for $name {
            type Join<T: Send + 'static> = Join<T>;

            fn start() -> Self {
                let runtime = $builder.enable_all().build().expect("the runtime starts");
                super::started(&runtime);
                $name(runtime)
            }

            #[inline]
            fn block_on<F: Future>(&self, future: F) -> F::Output {
                self.0.block_on(future)
            }

            #[inline]
            fn spawn_outside<F>(&self, future: F) -> Join<F::Output>
            where
                F: Future<Output: Send + 'static> + Send + 'static,
            {
                Join(self.0.spawn(future))
            }

            #[inline]
            fn spawn<F>(future: F) -> Join<F::Output>
            where
                F: Future<Output: Send + 'static> + Send + 'static,
            {
                Join(rt::spawn(future))
            }

            #[inline]
            fn detach<T: Send + 'static>(join: Join<T>) {
                drop(join);
            }

            #[inline]
            async fn yield_now() {
                task::yield_now().await;
            }

            #[inline]
            fn spawn_blocking<T: Send + 'static>(
                work: impl FnOnce() -> T + Send + 'static,
            ) -> Join<T> {
                Join(task::spawn_blocking(work))
            }
        }
    };
}

runtime!(Multi, runtime::Builder::new_multi_thread().worker_threads(workers()));
runtime!(Current, runtime::Builder::new_current_thread());

impl Timers for Multi {
    type Interval = time::Interval;
    type Sleep = time::Sleep;

    #[inline]
    fn sleep(time: Duration) -> Self::Sleep {
        time::sleep(time)
    }

    #[inline]
    async fn timeout<F: Future<Output: Send> + Send>(
        time: Duration,
        future: F,
    ) -> Option<F::Output> {
        time::timeout(time, future).await.ok()
    }

    fn interval(period: Duration) -> Self::Interval {
        time::interval(period)
    }

    #[inline]
    async fn tick(interval: &mut Self::Interval) {
        interval.tick().await;
    }
}
