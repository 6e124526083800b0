//! Runs a test on every kind of runtime, each time in a fresh directory.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary includes this file and uses a part"
)]

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use volt::runtime::Builder;

/// Runs `body` on a current-thread runtime, and with 1, 2 and 8 workers; in each case in the thread of
/// `block_on` and on a worker.
pub fn on_each<F>(body: impl Fn(Box<Path>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    for workers in [0, 1, 2, 8] {
        let mut builder = match workers {
            0 => Builder::new_current_thread(),
            _ => Builder::new_multi_thread(),
        };
        let runtime = builder.worker_threads(workers.max(1)).enable_all().build().unwrap();
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        runtime.block_on(bounded(body(one.path().into())));
        runtime.block_on(async { volt::spawn(bounded(body(two.path().into()))).await.unwrap() });
    }
}

async fn bounded(future: impl Future<Output = ()>) {
    volt::time::timeout(Duration::from_secs(60), future).await.expect("the test got stuck");
}

pub fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8).collect()
}

/// `count`, times what `VOLT_STRESS` says.
pub fn stress(count: usize) -> usize {
    count * std::env::var("VOLT_STRESS").map_or(1, |factor| factor.parse().unwrap_or(1))
}
