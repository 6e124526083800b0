//! UDP, unix datagrams and `AsyncFd` through the public API, on every kind of runtime.

#[path = "support/net.rs"]
mod support;

use std::io::{ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use support::{bounded, each, stays_pending, udp_pair};
use volt::io::unix::AsyncFd;
use volt::io::{Interest, ReadBuf, Ready};
use volt::net::{UdpSocket, UnixDatagram};

#[test]
fn udp_ping_pong() {
    each(|| async {
        let (a, b) = udp_pair().await;
        let other = volt::spawn(async move {
            let mut buf = [0; 64];
            for _ in 0..500 {
                let count = b.recv(&mut buf).await.unwrap();
                b.send(&buf[..count]).await.unwrap();
            }
        });
        let mut buf = [0; 64];
        for i in 0..500_u32 {
            a.send(&i.to_le_bytes()).await.unwrap();
            assert_eq!(a.recv(&mut buf).await.unwrap(), 4);
            assert_eq!(buf[..4], i.to_le_bytes());
        }
        other.await.unwrap();
    });
}

#[test]
fn udp_every_way_to_receive() {
    each(|| async {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (to, from) = (server.local_addr().unwrap(), client.local_addr().unwrap());
        let mut buf = [0; 16];
        assert_eq!(server.try_recv(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(stays_pending(server.readable()).await);
        for _ in 0..8 {
            client.send_to(b"ping", to).await.unwrap();
        }
        assert_eq!(client.try_send_to(b"ping", to).unwrap(), 4);
        std::future::poll_fn(|cx| client.poll_send_to(cx, b"ping", to)).await.unwrap();
        server.readable().await.unwrap();
        assert_eq!(server.peek_sender().await.unwrap(), from);
        assert_eq!(server.peek_from(&mut buf).await.unwrap(), (4, from));
        assert_eq!(server.try_peek(&mut buf).unwrap(), 4);
        assert_eq!(server.recv_from(&mut buf).await.unwrap(), (4, from));
        assert_eq!(server.try_recv_from(&mut buf).unwrap(), (4, from));
        assert_eq!(server.recv(&mut buf).await.unwrap(), 4);
        let mut room = Vec::with_capacity(16);
        assert_eq!(server.recv_buf(&mut room).await.unwrap(), 4);
        assert_eq!(server.recv_buf_from(&mut room).await.unwrap(), (4, from));
        assert_eq!(server.try_recv_buf(&mut room).unwrap(), 4);
        assert_eq!(room, b"pingpingping");
        let mut room = [MaybeUninit::uninit(); 16];
        let mut room = ReadBuf::uninit(&mut room);
        let sender = std::future::poll_fn(|cx| server.poll_recv_from(cx, &mut room)).await.unwrap();
        assert_eq!((sender, room.filled()), (from, &b"ping"[..]));
        std::future::poll_fn(|cx| server.poll_recv(cx, &mut room)).await.unwrap();
        assert_eq!(room.filled(), b"pingping");
        // A datagram is cut to the buffer.
        assert_eq!(server.recv(&mut buf[..2]).await.unwrap(), 2);
        let io = || server.try_io(Interest::READABLE, || Ok(1));
        assert_eq!(io().unwrap(), 1);
        assert_eq!(server.recv(&mut buf).await.unwrap(), 4);
        assert_eq!(server.try_recv(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(io().unwrap_err().kind(), ErrorKind::WouldBlock);
    });
}

/// The error of an earlier datagram wakes who waits for the answer.
#[test]
fn udp_a_refused_datagram_wakes_the_receiver() {
    each(|| async {
        let unused = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.connect(unused).await.unwrap();
        let socket = Arc::new(socket);
        let receiver = {
            let socket = socket.clone();
            volt::spawn(async move { socket.recv(&mut [0; 8]).await.unwrap_err().kind() })
        };
        volt::time::sleep(Duration::from_millis(2)).await;
        socket.send(b"anyone?").await.unwrap();
        assert_eq!(bounded(receiver).await.unwrap(), ErrorKind::ConnectionRefused);
        // And the socket is not stuck with it.
        assert!(stays_pending(socket.recv(&mut [0; 8])).await);
        // The system reports it as the end of a pipe, and Tokio passes that on. It ends no writing.
        let ready = bounded(socket.ready(Interest::WRITABLE)).await.unwrap();
        assert!(ready.is_write_closed(), "{ready:?}");
        let full = || Err::<(), _>(ErrorKind::WouldBlock.into());
        assert!(socket.try_io(Interest::WRITABLE, full).is_err());
        let ready = bounded(socket.ready(Interest::WRITABLE)).await.unwrap();
        assert!(!ready.is_write_closed(), "{ready:?}");
        assert_eq!(bounded(socket.send(b"anyone?")).await.unwrap(), 7);
    });
}

/// Asks the system to report the errors of a socket that is not connected, and to keep them in a queue.
#[cfg(target_os = "linux")]
fn queue_errors(socket: &UdpSocket) {
    use std::os::fd::AsRawFd;
    let on: libc::c_int = 1;
    // SAFETY: the system reads one `c_int` at the address given, which lives until the call returns, and keeps no pointer.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_RECVERR,
            std::ptr::from_ref(&on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Who waits to read is told of data, and who receives of errors as well.
#[cfg(target_os = "linux")]
#[test]
fn udp_an_error_is_nothing_to_read() {
    each(|| async {
        let unused = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let refused = async || {
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            queue_errors(&socket);
            assert_eq!(socket.send_to(b"anyone?", unused).await.unwrap(), 7);
            let seen = bounded(socket.ready(Interest::ERROR)).await.unwrap();
            assert!(seen.is_error() && !seen.is_readable(), "{seen:?}");
            socket
        };
        let socket = refused().await;
        assert!(stays_pending(socket.readable()).await);
        assert!(stays_pending(std::future::poll_fn(|cx| socket.poll_recv_ready(cx))).await);
        let kind = bounded(socket.recv_from(&mut [0; 8])).await.unwrap_err().kind();
        assert_eq!(kind, ErrorKind::ConnectionRefused);

        let (socket, mut room) = (refused().await, [0; 8]);
        let mut room = ReadBuf::new(&mut room);
        let received = std::future::poll_fn(|cx| socket.poll_recv(cx, &mut room));
        assert_eq!(bounded(received).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let socket = refused().await;
        let error = socket.try_recv(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let socket = refused().await;
        let error = bounded(socket.peek(&mut [0; 8])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        // Who only tries has not looked at the queue of errors, so that one stays.
        let tries: [fn(&UdpSocket) -> std::io::Result<()>; 4] = [
            |socket| socket.try_recv(&mut [0; 8]).map(drop),
            |socket| socket.try_recv_from(&mut [0; 8]).map(drop),
            |socket| socket.try_recv_buf(&mut Vec::with_capacity(8)).map(drop),
            |socket| socket.try_peek(&mut [0; 8]).map(drop),
        ];
        for receive in tries {
            let socket = refused().await;
            for expected in [ErrorKind::ConnectionRefused, ErrorKind::WouldBlock] {
                assert_eq!(receive(&socket).unwrap_err().kind(), expected);
            }
            let seen = bounded(socket.ready(Interest::ERROR)).await.unwrap();
            assert!(seen.is_error(), "{seen:?}");
        }
        let socket = refused().await;
        let error = bounded(socket.recv(&mut [0; 8])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        // And data that comes afterwards is received.
        assert!(stays_pending(socket.recv_from(&mut [0; 8])).await);
        let local = socket.local_addr().unwrap();
        assert_eq!(socket.send_to(b"hello", local).await.unwrap(), 5);
        assert_eq!(bounded(socket.recv_from(&mut [0; 8])).await.unwrap(), (5, local));

        // Neither for a descriptor.
        let socket = refused().await.into_std().unwrap();
        let socket = AsyncFd::new(socket).unwrap();
        assert!(stays_pending(socket.readable()).await);
        assert!(bounded(socket.ready(Interest::ERROR)).await.unwrap().ready().is_error());
    });
}

#[test]
fn udp_several_tasks_receive_each_datagram_once() {
    each(|| async {
        let server = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        client.connect(server.local_addr().unwrap()).await.unwrap();
        let receivers: Vec<_> = (0..4)
            .map(|_| {
                let server = server.clone();
                volt::spawn(async move {
                    let mut got = Vec::new();
                    let mut buf = [0; 4];
                    loop {
                        assert_eq!(server.recv(&mut buf).await.unwrap(), 4);
                        match u32::from_le_bytes(buf) {
                            u32::MAX => return got,
                            number => got.push(number),
                        }
                    }
                })
            })
            .collect();
        for i in 0..100_u32 {
            client.send(&i.to_le_bytes()).await.unwrap();
        }
        for _ in &receivers {
            client.send(&u32::MAX.to_le_bytes()).await.unwrap();
        }
        let mut all = Vec::new();
        for receiver in receivers {
            all.extend(receiver.await.unwrap());
        }
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
    });
}

#[test]
fn udp_options_and_std() {
    each(|| async {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.set_broadcast(true).unwrap();
        socket.set_ttl(33).unwrap();
        socket.set_multicast_loop_v4(false).unwrap();
        assert!(socket.broadcast().unwrap() && !socket.multicast_loop_v4().unwrap());
        assert_eq!(socket.ttl().unwrap(), 33);
        assert_eq!(socket.peer_addr().unwrap_err().kind(), ErrorKind::NotConnected);
        assert!(socket.take_error().unwrap().is_none());
        let socket = socket.into_std().unwrap();
        socket.set_nonblocking(false).unwrap();
        let error = UdpSocket::from_std(socket.try_clone().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        socket.set_nonblocking(true).unwrap();
        assert!(UdpSocket::from_std(socket).is_ok());
    });
}

#[test]
fn unix_datagrams_arrive_in_order_and_wait_for_room() {
    each(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        let sender = volt::spawn(async move {
            for i in 0..2000_u32 {
                a.send(&i.to_le_bytes()).await.unwrap();
            }
            a
        });
        let mut buf = [0; 8];
        for i in 0..2000_u32 {
            assert_eq!(b.recv(&mut buf).await.unwrap(), 4);
            assert_eq!(buf[..4], i.to_le_bytes());
        }
        let a = sender.await.unwrap();
        assert_eq!(a.try_send(b"x").unwrap(), 1);
        let mut room = Vec::with_capacity(8);
        assert_eq!(b.recv_buf(&mut room).await.unwrap(), 1);
        assert!(stays_pending(b.recv(&mut buf)).await);
        b.shutdown(std::net::Shutdown::Both).unwrap();
        assert_eq!(a.send(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn unix_datagrams_by_path() {
    static COUNT: volt::sync::internal::primitive::Mutex<u32> =
        volt::sync::internal::primitive::Mutex::new(0);
    each(|| async {
        let number = {
            let mut count = COUNT.lock().unwrap();
            *count += 1;
            *count
        };
        let path = std::env::temp_dir().join(format!("volt-dgram-{}-{number}", std::process::id()));
        let server = UnixDatagram::bind(&path).unwrap();
        let client = UnixDatagram::unbound().unwrap();
        client.send_to(b"hello", &path).await.unwrap();
        let mut buf = [0; 8];
        let (count, from) = server.recv_from(&mut buf).await.unwrap();
        assert!(count == 5 && from.is_unnamed());
        client.connect(&path).unwrap();
        client.send(b"again").await.unwrap();
        assert_eq!(server.try_recv_from(&mut buf).unwrap().0, 5);
        std::fs::remove_file(&path).unwrap();
    });
}

#[test]
fn an_async_fd_waits_until_its_readiness_is_cleared() {
    each(|| async {
        let (reader, mut writer) = std::os::unix::net::UnixStream::pair().unwrap();
        reader.set_nonblocking(true).unwrap();
        let mut fd = AsyncFd::new(reader).unwrap();
        let mut buf = [0; 8];
        assert!(stays_pending(fd.readable()).await);
        writer.write_all(b"ab").unwrap();
        {
            let mut guard = fd.readable().await.unwrap();
            assert!(guard.ready().is_readable());
            assert_eq!(guard.try_io(|fd| fd.get_ref().read(&mut buf)).unwrap().unwrap(), 2);
            assert!(guard.try_io(|fd| fd.get_ref().read(&mut buf)).is_err());
        }
        assert!(stays_pending(fd.readable()).await);
        writer.write_all(b"c").unwrap();
        let mut guard = fd.readable_mut().await.unwrap();
        guard.retain_ready();
        assert_eq!(guard.get_inner_mut().read(&mut buf).unwrap(), 1);
        let mut guard = fd.readable().await.unwrap();
        guard.clear_ready_matching(Ready::READABLE);
        assert!(guard.ready().is_empty());
        assert!(stays_pending(fd.readable()).await);
        // An event between the look and the clear is kept.
        let mut stale = fd.writable().await.unwrap();
        writer.write_all(b"d").unwrap();
        drop(fd.readable().await.unwrap());
        stale.clear_ready();
        assert!(!stays_pending(fd.writable()).await);
        let count = fd.async_io(Interest::READABLE, |mut fd| fd.read(&mut buf)).await.unwrap();
        assert_eq!(count, 1);
        assert_eq!(fd.try_io_mut(Interest::WRITABLE, |fd| fd.write(b"x")).unwrap(), 1);
        drop(writer);
        // Still readable, since nobody has said otherwise; the end stays whatever is cleared.
        fd.readable().await.unwrap().clear_ready();
        fd.readable().await.unwrap().clear_ready();
        assert!(fd.readable().await.unwrap().ready().is_read_closed());
        let _ = fd.into_inner();
    });
}

#[test]
fn an_async_fd_on_what_cannot_be_waited_for_is_an_error() {
    each(|| async {
        let file = std::fs::File::open("/proc/self/status").unwrap();
        let (mut file, error) = AsyncFd::try_new(file).unwrap_err().into_parts();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(file.read(&mut [0; 8]).unwrap() > 0);
        assert!(AsyncFd::new(-1).is_err());
        let (a, _b) = std::os::unix::net::UnixStream::pair().unwrap();
        let first = AsyncFd::with_interest(a.as_fd(), Interest::READABLE).unwrap();
        assert_eq!(AsyncFd::new(a.as_fd()).unwrap_err().kind(), ErrorKind::AlreadyExists);
        drop(first);
        assert!(AsyncFd::new(a.as_fd()).is_ok());
    });
}

/// The owner closes the descriptor behind the reactor's back while a duplicate keeps it alive in the
/// kernel: events for it are void, and its slot serves another socket.
#[test]
fn events_of_a_descriptor_that_was_closed_elsewhere_are_void() {
    each(|| async {
        let (a, mut b) = std::os::unix::net::UnixStream::pair().unwrap();
        let duplicate = a.try_clone().unwrap();
        let raw = std::os::fd::AsRawFd::as_raw_fd(&a);
        let fd = AsyncFd::new(raw).unwrap();
        drop(a);
        drop(fd);
        let (c, d) = UnixDatagram::pair().unwrap();
        let mut wait = pin!(c.readable());
        assert!(futures::poll!(&mut wait).is_pending());
        b.write_all(b"to the duplicate").unwrap();
        volt::time::sleep(Duration::from_millis(2)).await;
        d.send(b"x").await.unwrap();
        bounded(wait).await.unwrap();
        drop(duplicate);
    });
}

/// Nothing is left open.
#[test]
fn no_descriptor_leaks() {
    // But for pipes: a sanitizer that looks at a report has two, to who names its places.
    let is_ours = |path: &std::path::PathBuf| {
        let target = std::fs::read_link(path).unwrap_or_default();
        let target = target.to_string_lossy();
        ["socket:", "anon_inode:"].iter().any(|kind| target.starts_with(kind))
    };
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().map(|it| it.unwrap().path());
    let open = || descriptors().filter(is_ours).count();
    let child = std::env::var_os("VOLT_FD_TEST").is_some();
    if !child {
        // The other tests of this process open descriptors, too: count in a process of its own.
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["no_descriptor_leaks", "--exact", "--test-threads=1"])
            .env("VOLT_FD_TEST", "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let work = || {
        each(|| async {
            let pairs: Vec<_> = (0..100).map(|_| UnixDatagram::pair().unwrap()).collect();
            for (a, b) in &pairs {
                a.send(b"x").await.unwrap();
                b.recv(&mut [0; 1]).await.unwrap();
            }
        });
    };
    work();
    let before = open();
    let pair = std::os::unix::net::UnixDatagram::pair().unwrap();
    assert_eq!(open(), before + 2);
    drop(pair);
    work();
    // The last thread of a runtime may still be on its way out.
    let mut after = open();
    for _ in 0..500 {
        if after <= before {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        after = open();
    }
    assert!(after <= before, "{before} descriptors before, {after} after");
}

/// What looks like the end of writing is an error to be fetched: who tries in vain waits.
#[cfg(target_os = "linux")]
#[test]
fn a_try_that_would_block_disproves_the_end_of_writing() {
    each(|| async {
        let unused = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        socket.connect(unused).unwrap();
        assert_eq!(socket.send(b"anyone?").unwrap(), 7);
        let socket = AsyncFd::new(socket).unwrap();
        let mut guard = bounded(socket.writable()).await.unwrap();
        while !guard.ready().is_write_closed() {
            volt::time::sleep(Duration::from_millis(1)).await;
            guard = bounded(socket.writable()).await.unwrap();
        }
        assert!(guard.try_io(|_| Err::<(), _>(ErrorKind::WouldBlock.into())).is_err());
        assert!(stays_pending(socket.writable()).await);
        // The end of reading stays: nothing was said of that.
        let (a, b) = std::os::unix::net::UnixStream::pair().unwrap();
        a.set_nonblocking(true).unwrap();
        b.shutdown(std::net::Shutdown::Write).unwrap();
        let a = AsyncFd::new(a).unwrap();
        drop(bounded(a.readable()).await.unwrap());
        let mut guard = bounded(a.ready(Interest::READABLE | Interest::WRITABLE)).await.unwrap();
        assert!(guard.try_io(|_| Err::<(), _>(ErrorKind::WouldBlock.into())).is_err());
        assert!(bounded(a.readable()).await.unwrap().ready().is_read_closed());
    });
}
