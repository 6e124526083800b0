use std::sync::mpsc;
use std::time::Duration;

/// Calls `work` on a thread of its own, and fails if it does not return.
pub(crate) fn in_time<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || send.send(work()).unwrap());
    receive.recv_timeout(Duration::from_secs(20)).expect("it returns")
}
