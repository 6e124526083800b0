//! What an operation that would block, or the caller, takes back of a descriptor's readiness, and what stays.
#![cfg(unix)]

#[path = "support/net.rs"]
mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream as StdStream;
use std::time::Duration;

use support::{bounded, each, stays_pending};
use volt::io::unix::AsyncFd;
use volt::io::{Interest, Ready};
use volt::time::timeout;

const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);
const MOMENT: Duration = Duration::from_millis(10);

/// Two ends, of which the first does not block. What happens before it is registered comes as one event.
fn pair() -> (StdStream, StdStream) {
    let (a, b) = StdStream::pair().unwrap();
    a.set_nonblocking(true).unwrap();
    (a, b)
}

/// Who has cleared it waits for an event that has come already.
#[test]
fn a_caller_does_not_clear_what_does_not_end() {
    each(|| async {
        let (socket, peer) = pair();
        drop(peer);
        let mut fd = AsyncFd::new(socket).unwrap();
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

/// Fills the peer's room, and has the peer end its own writing.
fn full_and_half_closed() -> (AsyncFd<StdStream>, StdStream) {
    let (mut socket, mut peer) = pair();
    while socket.write(&[0; 4096]).is_ok() {}
    peer.write_all(b"bye").unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    (AsyncFd::new(socket).unwrap(), peer)
}

/// Takes what is there, and returns it.
fn take(fd: &AsyncFd<StdStream>) -> Vec<u8> {
    let mut all = Vec::new();
    assert_eq!(fd.get_ref().read_to_end(&mut all).unwrap(), all.len());
    all
}

/// Nor does the operation go round and round, which would keep the timeout from its turn.
#[test]
fn a_write_that_would_block_says_nothing_of_the_end_of_reading() {
    each(|| async {
        let (fd, peer) = full_and_half_closed();
        // The event is there before the timeout begins, and so the first attempt comes in time.
        bounded(fd.ready(BOTH)).await.unwrap().retain_ready();
        let mut attempts = 0;
        let write = fd.async_io(BOTH, |mut socket| {
            attempts += 1;
            socket.write(b"x")
        });
        assert!(timeout(MOMENT, write).await.is_err());
        assert!((1..10).contains(&attempts), "{attempts} attempts");
        let guard = bounded(fd.readable()).await.unwrap();
        assert!(guard.ready().is_read_closed());
        assert_eq!(take(&fd), b"bye");
        drop(peer);
    });
}

/// It is not done with an end that it has seen and that did not help.
#[test]
fn a_write_with_both_interests_ends_when_there_is_room() {
    each(|| async {
        let (fd, mut peer) = full_and_half_closed();
        let write = fd.async_io(BOTH, |mut socket| socket.write(b"x"));
        let room = async {
            volt::time::sleep(MOMENT).await;
            peer.set_nonblocking(true).unwrap();
            while peer.read(&mut [0; 4096]).is_ok() {}
        };
        assert_eq!(bounded(futures::future::join(write, room)).await.0.unwrap(), 1);
    });
}

#[test]
fn one_attempt_that_would_block_says_nothing_of_the_end_of_reading() {
    each(|| async {
        let (fd, peer) = full_and_half_closed();
        bounded(fd.ready(BOTH)).await.unwrap().retain_ready();
        let write = fd.try_io(BOTH, |mut socket| socket.write(b"x"));
        assert_eq!(write.unwrap_err().kind(), ErrorKind::WouldBlock);
        bounded(fd.readable()).await.unwrap().retain_ready();
        assert_eq!(take(&fd), b"bye");
        drop(peer);
    });
}

/// A read that would block, though, proves that reading has not ended, whatever an earlier event said.
#[test]
fn a_read_that_would_block_takes_back_that_reading_has_ended() {
    each(|| async {
        let (fd, peer) = full_and_half_closed();
        let busy = || Err::<(), _>(ErrorKind::WouldBlock.into());
        bounded(fd.readable()).await.unwrap().retain_ready();
        // An event may be on its way.
        for _ in 0..100 {
            if fd.try_io(Interest::READABLE, |_| busy()).is_err()
                && stays_pending(fd.readable()).await
            {
                drop(peer);
                return;
            }
        }
        panic!("still readable");
    });
}

/// Though a plain read does not find it: the caller knows what to do.
#[cfg(target_os = "linux")]
#[test]
fn urgent_data_is_readable_where_it_is_of_interest() {
    each(|| async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let interest = Interest::READABLE | Interest::PRIORITY;
        let fd = AsyncFd::with_interest(socket, interest).unwrap();
        let send = async {
            volt::time::sleep(MOMENT).await;
            socket2::SockRef::from(&peer).send_out_of_band(b"!").unwrap()
        };
        let (guard, _) = bounded(futures::future::join(fd.readable(), send)).await;
        drop(guard.unwrap());
        let guard = bounded(fd.ready(interest)).await.unwrap();
        assert!(guard.ready().is_readable() && guard.ready().is_priority());
        let mut byte = [std::mem::MaybeUninit::uninit()];
        let received = fd.async_io(Interest::PRIORITY, |fd| {
            socket2::SockRef::from(fd).recv_out_of_band(&mut byte)
        });
        assert_eq!(bounded(received).await.unwrap(), 1);
    });
}

/// As in Tokio: it was ready when that was said, and may be used up by the time of the next look.
#[test]
fn who_has_retained_what_is_ready_may_find_that_it_is_not_any_more() {
    each(|| async {
        let (socket, mut peer) = pair();
        peer.write_all(b"x").unwrap();
        let fd = AsyncFd::new(socket).unwrap();
        let mut guard = bounded(fd.readable()).await.unwrap();
        guard.retain_ready();
        assert!(guard.ready().is_readable());
        let mut read = || guard.try_io(|fd| fd.get_ref().read(&mut [0]));
        assert_eq!(read().unwrap().unwrap(), 1);
        assert!(read().is_err());
        assert!(guard.ready().is_empty());
        assert!(stays_pending(fd.readable()).await);
    });
}
