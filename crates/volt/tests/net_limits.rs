//! The process runs out of descriptors. In a test binary of its own, since the limit is the
//! process's.

#[path = "support/net.rs"]
mod support;

use std::time::Duration;

use support::{bounded, runtimes};
use volt::net::{TcpListener, TcpStream};

/// Sets the number of descriptors that the process may have, and returns what it was.
fn limit(count: libc::rlim_t) -> libc::rlim_t {
    let mut old = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes the limits to a variable of ours.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut old) }, 0);
    let new = libc::rlimit { rlim_cur: count, rlim_max: old.rlim_max };
    // SAFETY: reads the limits from a variable of ours.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const new) }, 0);
    old.rlim_cur
}

#[test]
fn accept_without_descriptors_is_an_error_and_the_connection_is_not_lost() {
    for runtime in runtimes() {
        runtime.block_on(bounded(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let client = TcpStream::connect(address).await.unwrap();
            let highest = std::fs::read_dir("/proc/self/fd")
                .unwrap()
                .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<u64>().ok())
                .max()
                .unwrap();
            let old = limit(0);
            for _ in 0..3 {
                let error = listener.accept().await.unwrap_err();
                assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
            }
            let error = TcpStream::connect(address).await.unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
            limit(old.max(highest + 1));
            // No event comes for the connection that waits: it must be found without one.
            let (server, from) = listener.accept().await.unwrap();
            assert_eq!(from, client.local_addr().unwrap());
            client.try_write(b"x").unwrap();
            server.readable().await.unwrap();
            let wait = volt::time::timeout(Duration::from_millis(20), listener.accept()).await;
            assert!(wait.is_err(), "nothing else to accept");
        }));
    }
}
