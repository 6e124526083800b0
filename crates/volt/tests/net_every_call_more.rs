//! Every call of datagram sockets and of `AsyncFd` that other tests do not make.

#[path = "support/net.rs"]
mod support;

use std::future::poll_fn;
use std::io::{ErrorKind, Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdStream;
use std::pin::pin;
use std::time::Duration;

use futures::poll;
use support::{bounded, each, udp_pair};
use volt::io::unix::AsyncFd;
use volt::io::{Interest, ReadBuf};
use volt::net::{UdpSocket, UnixDatagram};

const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// `async_io`, `try_io` and the polls, which both kinds of datagram sockets have.
macro_rules! datagrams {
    ($a:expr, $b:expr) => {{
        let (a, b) = (&$a, &$b);
        let mut buf = [0; 8];
        assert!(poll!(poll_fn(|cx| a.poll_recv_ready(cx))).is_pending());
        bounded(poll_fn(|cx| b.poll_send_ready(cx))).await.unwrap();
        bounded(b.writable()).await.unwrap();
        assert_eq!(bounded(poll_fn(|cx| b.poll_send(cx, b"one"))).await.unwrap(), 3);
        bounded(poll_fn(|cx| a.poll_recv_ready(cx))).await.unwrap();
        let ready = bounded(a.ready(Interest::READABLE)).await.unwrap();
        assert!(ready.is_readable() && !ready.is_writable(), "{ready:?}");
        assert_eq!((a.try_recv(&mut buf).unwrap(), &buf[..3]), (3, &b"one"[..]));
        assert!(bounded(a.ready(BOTH)).await.unwrap().is_writable());
        let socket = socket2::SockRef::from(a);
        let wait = a.async_io(Interest::READABLE, || (&*socket).read(&mut buf));
        let later = async {
            volt::time::sleep(Duration::from_millis(2)).await;
            b.try_send(b"three").unwrap()
        };
        let (count, sent) = bounded(futures::future::join(wait, later)).await;
        assert_eq!((count.unwrap(), sent, &buf[..5]), (5, 5, &b"three"[..]));
        let send = || (&*socket).write(b"back");
        assert_eq!(bounded(a.async_io(Interest::WRITABLE, send)).await.unwrap(), 4);
        bounded(b.readable()).await.unwrap();
        let mut room = Vec::with_capacity(8);
        let (count, _) = b.try_recv_buf_from(&mut room).unwrap();
        assert_eq!((count, &*room), (4, &b"back"[..]));
        let busy = || Err::<(), _>(ErrorKind::WouldBlock.into());
        // What says that it blocks takes the readiness back; an event may have been on its way.
        let mut attempts = 0..100;
        let refused = loop {
            assert!(b.try_io(Interest::READABLE, busy).is_err());
            let wait = poll_fn(|cx| b.poll_recv_ready(cx));
            if attempts.next().is_none() || poll!(wait).is_pending() {
                break attempts;
            }
        };
        assert!(!refused.is_empty(), "ready again and again");
        // A send of nothing is a datagram, too.
        assert_eq!(a.send(b"").await.unwrap(), 0);
        assert_eq!(bounded(b.recv(&mut buf)).await.unwrap(), 0);
    }};
}

#[test]
fn polls_and_own_operations() {
    each(|| async {
        let (a, b) = udp_pair().await;
        datagrams!(a, b);
        let (a, b) = UnixDatagram::pair().unwrap();
        datagrams!(a, b);
    });
}

/// All that look at a UDP socket's next datagram leave it there.
#[test]
fn udp_peeks() {
    each(|| async {
        let (a, b) = udp_pair().await;
        let from = b.local_addr().unwrap();
        let mut buf = [0; 8];
        let blocked = |error: std::io::Error| error.kind() == ErrorKind::WouldBlock;
        assert!(blocked(a.try_peek(&mut buf).unwrap_err()));
        assert!(blocked(a.try_peek_from(&mut buf).unwrap_err()));
        assert!(blocked(a.try_peek_sender().unwrap_err()));
        assert!(poll!(poll_fn(|cx| a.poll_peek_sender(cx))).is_pending());
        let wait = poll_fn(|cx| a.poll_peek_sender(cx));
        let later = async {
            volt::time::sleep(Duration::from_millis(2)).await;
            b.send(b"abc").await.unwrap();
        };
        assert_eq!(bounded(futures::future::join(wait, later)).await.0.unwrap(), from);
        assert_eq!(a.try_peek_sender().unwrap(), from);
        assert_eq!(a.try_peek_from(&mut buf).unwrap(), (3, from));
        assert_eq!(a.try_peek(&mut buf[..2]).unwrap(), 2);
        assert_eq!(bounded(a.peek(&mut buf)).await.unwrap(), 3);
        let mut room = [0; 8];
        let mut room = ReadBuf::new(&mut room);
        let sender = bounded(poll_fn(|cx| a.poll_peek_from(cx, &mut room))).await.unwrap();
        assert_eq!((sender, room.filled()), (from, &b"abc"[..]));
        bounded(poll_fn(|cx| a.poll_peek(cx, &mut room))).await.unwrap();
        assert_eq!(room.filled(), b"abcabc");
        assert_eq!(bounded(a.recv_from(&mut buf)).await.unwrap(), (3, from));
        assert!(blocked(a.try_peek_sender().unwrap_err()));
    });
}

#[test]
fn udp_multicast() {
    each(|| async {
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        let (group, here) = (Ipv4Addr::new(239, 255, 23, 7), Ipv4Addr::LOCALHOST);
        socket.set_multicast_ttl_v4(3).unwrap();
        assert_eq!(socket.multicast_ttl_v4().unwrap(), 3);
        assert!(socket.leave_multicast_v4(group, here).is_err(), "not joined yet");
        socket.join_multicast_v4(group, here).unwrap();
        assert!(socket.join_multicast_v4(group, here).is_err(), "joined already");
        socket.leave_multicast_v4(group, here).unwrap();
        assert!(socket.leave_multicast_v4(group, here).is_err(), "left already");
        let Ok(socket) = UdpSocket::bind("[::1]:0").await else {
            return; // A machine without IPv6.
        };
        socket.set_multicast_loop_v6(false).unwrap();
        assert!(!socket.multicast_loop_v6().unwrap());
        let group = "ff02::1234".parse().unwrap();
        assert!(socket.leave_multicast_v6(&group, 1).is_err(), "not joined yet");
        // The loopback interface is number 1; whether it takes multicasts is the machine's affair.
        if socket.join_multicast_v6(&group, 1).is_ok() {
            assert!(socket.join_multicast_v6(&group, 1).is_err(), "joined already");
            socket.leave_multicast_v6(&group, 1).unwrap();
        }
    });
}

#[test]
fn unix_datagrams_of_std_go_in_and_out() {
    each(|| async {
        let (a, b) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let error = UnixDatagram::from_std(a.try_clone().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        a.set_nonblocking(true).unwrap();
        let a = UnixDatagram::from_std(a).unwrap();
        b.send(b"abc").unwrap();
        let mut buf = [0; 8];
        assert_eq!(bounded(a.recv(&mut buf)).await.unwrap(), 3);
        assert!(a.local_addr().unwrap().is_unnamed() && a.peer_addr().unwrap().is_unnamed());
        let a = a.into_std().unwrap();
        assert_eq!(a.recv(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
        let a = UnixDatagram::try_from(a).unwrap();
        b.send(b"defg").unwrap();
        assert_eq!(bounded(a.recv(&mut buf)).await.unwrap(), 4);
    });
}

/// Two ends, of which the first does not block.
fn std_pair() -> (StdStream, StdStream) {
    let (a, b) = StdStream::pair().unwrap();
    a.set_nonblocking(true).unwrap();
    (a, b)
}

/// Each constructor registers for what it says: a descriptor that is registered for one direction is
/// never ready in the other.
#[test]
fn every_way_to_make_an_async_fd() {
    each(|| async {
        let (a, mut b) = std_pair();
        b.write_all(b"x").unwrap();
        let fd = || a.as_fd();
        for writes in [true, false] {
            let interest = if writes { Interest::WRITABLE } else { Interest::READABLE };
            // SAFETY: the descriptor stays open, and the same.
            let registered = || unsafe { AsyncFd::register_with_interest(fd(), interest) };
            for make in [
                &|| AsyncFd::with_interest(fd(), interest).unwrap(),
                &|| AsyncFd::try_with_interest(fd(), interest).unwrap(),
                &|| registered().unwrap(),
            ] as [&(dyn Fn() -> AsyncFd<_> + Sync); 3]
            {
                let made = make();
                bounded(made.ready(interest)).await.unwrap().retain_ready();
                if writes {
                    assert!(poll!(pin!(made.readable())).is_pending());
                }
            }
        }
        // SAFETY: the descriptor stays open, and the same.
        let registered = || unsafe { AsyncFd::register(fd()) };
        for make in [&|| AsyncFd::new(fd()).unwrap(), &|| AsyncFd::try_new(fd()).unwrap(), &|| {
            registered().unwrap()
        }] as [&(dyn Fn() -> AsyncFd<_> + Sync); 3]
        {
            let made = make();
            bounded(made.readable()).await.unwrap().retain_ready();
            bounded(made.writable()).await.unwrap().retain_ready();
        }
    });
}

#[test]
fn every_way_to_wait_for_an_async_fd() {
    each(|| async {
        let (a, mut b) = std_pair();
        let mut fd = AsyncFd::new(a).unwrap();
        assert!(poll!(poll_fn(|cx| fd.poll_read_ready(cx).map_ok(drop))).is_pending());
        assert!(poll!(poll_fn(|cx| fd.poll_read_ready_mut(cx).map_ok(drop))).is_pending());
        assert!(poll!(pin!(fd.ready_mut(Interest::READABLE))).is_pending());
        drop(bounded(poll_fn(|cx| fd.poll_write_ready(cx))).await.unwrap());
        bounded(poll_fn(|cx| fd.poll_write_ready_mut(cx).map_ok(drop))).await.unwrap();
        bounded(fd.writable_mut()).await.unwrap().retain_ready();
        let mut guard = bounded(fd.ready_mut(BOTH)).await.unwrap();
        assert!(guard.ready().is_writable() && !guard.ready().is_readable());
        guard.retain_ready();

        b.write_all(b"abc").unwrap();
        let guard = bounded(poll_fn(|cx| fd.poll_read_ready(cx))).await.unwrap();
        // What a shared guard lends outlives the guard.
        let (descriptor, socket) = (guard.get_ref(), guard.get_inner());
        drop(guard);
        assert!(std::ptr::eq(descriptor.get_ref(), socket));
        let mut buf = [0; 8];
        assert_eq!((&*socket).read(&mut buf[..1]).unwrap(), 1);
        let mut guard = bounded(fd.ready_mut(Interest::READABLE)).await.unwrap();
        assert_eq!(guard.get_inner_mut().read(&mut buf[1..2]).unwrap(), 1);
        assert_eq!(guard.try_io(|fd| fd.get_mut().read(&mut buf[2..])).unwrap().unwrap(), 1);
        assert_eq!(&buf[..3], b"abc");
        assert!(guard.try_io(|fd| fd.get_mut().read(&mut buf)).is_err(), "nothing more");
        assert!(poll!(poll_fn(|cx| fd.poll_read_ready_mut(cx).map_ok(drop))).is_pending());

        let wait = fd.async_io_mut(Interest::READABLE, |socket| socket.read(&mut buf));
        let later = async {
            volt::time::sleep(Duration::from_millis(2)).await;
            b.write_all(b"later").unwrap();
        };
        let (count, ()) = bounded(futures::future::join(wait, later)).await;
        assert_eq!((count.unwrap(), &buf[..5]), (5, &b"later"[..]));
        let write = fd.async_io_mut(Interest::WRITABLE, |socket| socket.write(b"back"));
        assert_eq!(bounded(write).await.unwrap(), 4);
        assert_eq!(b.read(&mut buf).unwrap(), 4);
        let none = fd.try_io(Interest::READABLE, |mut socket| socket.read(&mut buf));
        assert_eq!(none.unwrap_err().kind(), ErrorKind::WouldBlock);
    });
}
