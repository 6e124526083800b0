//! What an operation that would block, or the caller, takes back of a descriptor's readiness, and what stays.
#![cfg(unix)]

#[path = "support/net.rs"]
mod support;

use std::io::Read;
use std::os::unix::net::UnixStream as StdStream;

use support::{bounded, each};
use volt::io::unix::AsyncFd;
use volt::io::{Interest, Ready};

const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// A descriptor, and its peer.
fn pair() -> (AsyncFd<StdStream>, StdStream) {
    let (a, b) = StdStream::pair().unwrap();
    a.set_nonblocking(true).unwrap();
    (AsyncFd::new(a).unwrap(), b)
}

/// Who has cleared it waits for an event that has come already.
#[test]
fn a_caller_does_not_clear_what_does_not_end() {
    each(|| async {
        let (mut fd, peer) = pair();
        drop(peer);
        for _ in 0..3 {
            let mut guard = bounded(fd.ready(BOTH)).await.unwrap();
            assert!(guard.ready().is_read_closed() && guard.ready().is_write_closed());
            guard.clear_ready_matching(Ready::READABLE);
            assert!(guard.ready().is_read_closed());
            guard.clear_ready_matching(guard.ready());
            assert!(guard.ready().is_empty());
            let mut guard = bounded(fd.readable_mut()).await.unwrap();
            guard.clear_ready_matching(Ready::ALL);
            let mut guard = bounded(fd.writable_mut()).await.unwrap();
            guard.clear_ready();
        }
        assert_eq!(fd.get_mut().read(&mut [0]).unwrap(), 0);
    });
}
