//! Letting the others go first.
#![forbid(unsafe_code)]

use std::future::poll_fn;
use std::task::Poll;

/// Goes to the back of the queue: all other runnable tasks of this worker run first.
///
/// On a current-thread runtime timers and sockets are looked at meanwhile, as between any two
/// tasks. Works in every executor, where it means "wake me at once".
///
/// # Cancel safety
/// Safe: nothing is left of it but the wake-up, after which the task is polled once more.
///
/// # Cost
/// Three atomic read-modify-writes and a pass through the queue.
///
/// # Examples
/// ```
/// volt::run(async {
///     volt::task::yield_now().await;
/// });
/// ```
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
