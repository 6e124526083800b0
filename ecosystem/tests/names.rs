//! That it is Volt, in Tokio's name.

use std::any::TypeId;
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};

#[test]
fn the_types_are_those_of_volt() {
    assert_eq!(TypeId::of::<tokio::net::TcpStream>(), TypeId::of::<volt::net::TcpStream>());
    assert_eq!(TypeId::of::<Handle>(), TypeId::of::<volt::runtime::Handle>());
    // `tokio-util`'s, so that of a crate that knows nothing of Volt.
    fn runtime_of(_: impl tokio_util::context::RuntimeExt) {}
    runtime_of(tokio::runtime::Runtime::new().unwrap());
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2, name = "numbers")]
async fn two_workers() -> (usize, RuntimeFlavor) {
    let handle = Handle::current();
    assert_eq!(handle.name(), Some("numbers"));

    (handle.metrics().num_workers(), handle.runtime_flavor())
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn an_hour() -> Duration {
    let start = tokio::time::Instant::now();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    start.elapsed()
}

#[tokio::main(flavor = "local")]
async fn not_send() -> u8 {
    let value = std::rc::Rc::new(7);
    tokio::task::spawn_local(async move { *value }).await.unwrap()
}

#[test]
fn the_attribute_builds_what_it_says() {
    assert_eq!(two_workers(), (2, RuntimeFlavor::MultiThread));
    assert_eq!(an_hour(), Duration::from_secs(3600));
    assert_eq!(not_send(), 7);
}

tokio::task_local! {
    static NUMBER: u32;
}

#[tokio::test]
async fn the_macros_find_the_runtime() {
    tokio::pin! {
        let never = std::future::pending::<u32>();
    }
    let first = tokio::select! {
        biased;
        value = &mut never => value,
        value = async { 1 } => value,
    };
    let (second, third) = tokio::join!(async { 2 }, NUMBER.scope(3, async { NUMBER.get() }));
    let sum = tokio::try_join!(async { Ok::<_, ()>(first) }, async { Ok(second + third) });
    assert_eq!(sum, Ok((1, 5)));
}

#[tokio::test]
async fn a_full_channel_ends_a_send_with_a_timeout() {
    use tokio::sync::mpsc::{self, error::SendTimeoutError};
    let (tx, mut rx) = mpsc::channel(1);
    let limit = Duration::from_millis(2);
    tx.send_timeout(1, limit).await.unwrap();
    assert_eq!(tx.send_timeout(2, limit).await, Err(SendTimeoutError::Timeout(2)));
    assert_eq!(rx.recv().await, Some(1));
}
