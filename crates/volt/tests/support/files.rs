//! Runs a test on every kind of runtime, each time in a fresh directory.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary includes this file and uses a part"
)]

#[path = "net.rs"]
pub mod net;

use std::future::Future;
use std::path::Path;

use net::{bounded, runtimes};

/// Runs `body` on a current-thread runtime, and with 1, 2 and 8 workers; in each case in the thread of
/// `block_on` and on a worker.
pub fn on_each<F>(body: impl Fn(Box<Path>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    for runtime in runtimes() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        runtime.block_on(bounded(body(one.path().into())));
        runtime.block_on(async { volt::spawn(bounded(body(two.path().into()))).await.unwrap() });
    }
}

pub fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8).collect()
}
