//! Every call of a kind on every type that has it: streams, their halves and pipes, by the same
//! macros. (Datagrams and `AsyncFd` are in `net_every_call_more.rs`.)

#[path = "support/net.rs"]
mod support;

use std::future::poll_fn;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::pin::pin;
use std::time::Duration;

use futures::poll;
use support::{bounded, each, tcp_pair};
use volt::io::{AsyncReadExt, AsyncWriteExt, Interest, ReadBuf};
use volt::net::unix::pipe;
use volt::net::{TcpSocket, TcpStream, UnixListener, UnixStream};

/// Waits by `$wait` and tries `$attempt` until it does not block: readiness is a hint.
macro_rules! when_ready {
    ($wait:expr, $attempt:expr) => {
        bounded(async {
            loop {
                $wait.await.unwrap();
                match $attempt {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    result => break result.unwrap(),
                }
            }
        })
        .await
    };
}

/// `$attempt` blocks, and then `$wait` is pending; an event that was on its way may come in between.
macro_rules! used_up {
    ($what:expr, $wait:expr, $attempt:expr) => {
        let mut attempts = 0;
        loop {
            let nothing = $attempt.map(drop).unwrap_err();
            assert_eq!(nothing.kind(), ErrorKind::WouldBlock, "{}", $what);
            if poll!(pin!($wait)).is_pending() {
                break;
            }
            attempts += 1;
            assert!(attempts < 100, "{}: ready again and again", $what);
        }
    };
}

/// The ways to read without waiting, of `$a`, to which `$b` writes. Nothing is left in between.
macro_rules! reads {
    ($what:literal, $a:expr, $b:expr) => {{
        let (what, a, b) = ($what, &$a, &$b);
        let mut buf = [0; 16];
        used_up!(what, a.readable(), a.try_read(&mut buf));
        used_up!(what, a.ready(Interest::READABLE), a.try_read(&mut buf));
        assert_eq!(b.try_write(b"hello").unwrap(), 5);
        let ready = bounded(a.ready(Interest::READABLE)).await.unwrap();
        assert!(ready.is_readable() && !ready.is_writable(), "{what}: {ready:?}");
        assert!(!ready.is_read_closed(), "{what}: {ready:?}");
        assert_eq!(when_ready!(a.readable(), a.try_read(&mut buf[..2])), 2, "{what}");
        let (mut first, mut second) = ([0; 1], [0; 8]);
        let mut bufs = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(a.try_read_vectored(&mut bufs).unwrap(), 3, "{what}");
        assert_eq!((&buf[..2], &first, &second[..3]), (&b"he"[..], b"l", &b"lo\0"[..]), "{what}");
        used_up!(what, a.readable(), a.try_read_vectored(&mut [IoSliceMut::new(&mut first)]));
        assert_eq!(b.try_write_vectored(&[IoSlice::new(b"ab"), IoSlice::new(b"c")]).unwrap(), 3);
        let mut room = Vec::with_capacity(16);
        assert_eq!(when_ready!(a.readable(), a.try_read_buf(&mut room)), 3, "{what}");
        used_up!(what, a.readable(), a.try_read_buf(&mut room));
        assert_eq!(room, b"abc", "{what}");
    }};
}

/// The ways to write without waiting, of `$a`, until there is no room; then `$b` reads it all.
macro_rules! writes {
    ($what:literal, $a:expr, $b:expr) => {{
        let (what, a, b) = ($what, &$a, &$b);
        bounded(a.writable()).await.unwrap();
        let ready = bounded(a.ready(Interest::WRITABLE)).await.unwrap();
        assert!(ready.is_writable() && !ready.is_readable(), "{what}: {ready:?}");
        let parts = [IoSlice::new(&[1; 3000]), IoSlice::new(&[2; 3000])];
        let mut sent = a.try_write_vectored(&parts).unwrap();
        assert_eq!(sent, 6000, "{what}");
        let full = loop {
            match a.try_write(&[3; 1 << 14]) {
                Ok(count) => sent += count,
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), ErrorKind::WouldBlock, "{what}");
        let mut all = Vec::with_capacity(sent);
        while all.len() < sent {
            let count = when_ready!(b.readable(), b.try_read_buf(&mut all));
            assert_ne!(count, 0, "{what}: an end");
        }
        let expected = [vec![1; 3000], vec![2; 3000], vec![3; sent - 6000]].concat();
        assert!(all == expected, "{what}");
        assert_eq!(when_ready!(a.writable(), a.try_write(b"x")), 1, "{what}");
        assert_eq!(when_ready!(b.readable(), b.try_read(&mut [0; 8])), 1, "{what}");
        used_up!(what, b.readable(), b.try_read(&mut [0; 8]));
    }};
}

#[test]
fn try_operations_and_readiness_of_tcp() {
    each(|| async {
        let (mut a, mut b) = tcp_pair().await;
        reads!("TcpStream", a, b);
        writes!("TcpStream", a, b);
        {
            let ((reader, writer), (other_reader, other_writer)) = (a.split(), b.split());
            reads!("tcp::ReadHalf", reader, other_writer);
            writes!("tcp::WriteHalf", writer, other_reader);
        }
        let ((reader, writer), (other_reader, other_writer)) = (a.into_split(), b.into_split());
        reads!("tcp::OwnedReadHalf", reader, other_writer);
        writes!("tcp::OwnedWriteHalf", writer, other_reader);
        drop(other_writer);
        let ready = bounded(reader.ready(Interest::READABLE)).await.unwrap();
        assert!(ready.is_read_closed(), "{ready:?}");
        assert_eq!(reader.try_read(&mut [0; 8]).unwrap(), 0);
    });
}

#[test]
fn try_operations_and_readiness_of_unix_streams() {
    each(|| async {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        reads!("UnixStream", a, b);
        writes!("UnixStream", a, b);
        {
            let ((reader, writer), (other_reader, other_writer)) = (a.split(), b.split());
            reads!("unix::ReadHalf", reader, other_writer);
            writes!("unix::WriteHalf", writer, other_reader);
        }
        let ((reader, writer), (other_reader, other_writer)) = (a.into_split(), b.into_split());
        reads!("unix::OwnedReadHalf", reader, other_writer);
        writes!("unix::OwnedWriteHalf", writer, other_reader);
        drop(other_writer);
        let ready = bounded(reader.ready(Interest::READABLE)).await.unwrap();
        assert!(ready.is_read_closed(), "{ready:?}");
        assert_eq!(reader.try_read(&mut [0; 8]).unwrap(), 0);
        let a = reader.reunite(writer).unwrap();
        assert_eq!(a.peer_cred().unwrap().pid(), Some(std::process::id() as i32));
    });
}

#[test]
fn try_operations_and_readiness_of_pipes() {
    each(|| async {
        let (sender, receiver) = pipe::pipe().unwrap();
        reads!("pipe::Receiver", receiver, sender);
        writes!("pipe::Sender", sender, receiver);
        bounded(poll_fn(|cx| sender.poll_write_ready(cx))).await.unwrap();
        let wait = || poll_fn(|cx| receiver.poll_read_ready(cx));
        used_up!("pipe::Receiver", wait(), receiver.try_read(&mut [0; 8]));
        let busy = receiver.try_io(|| Err::<(), _>(ErrorKind::WouldBlock.into())).unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::WouldBlock);
        sender.try_write(b"x").unwrap();
        bounded(poll_fn(|cx| receiver.poll_read_ready(cx))).await.unwrap();
        assert_eq!(receiver.try_io(|| Ok(7)).unwrap(), 7);
    });
}

/// Peeks of a stream and of its halves: what they find is there for the next one.
#[test]
fn peeks_of_tcp() {
    /// `$a` waits for what comes 2 ms later from `$b`.
    macro_rules! peeks {
        ($a:expr, $b:expr) => {{
            let (a, b) = (&mut $a, &mut $b);
            let mut buf = [0; 8];
            assert!(poll!(pin!(a.peek(&mut buf))).is_pending());
            let later = async {
                volt::time::sleep(Duration::from_millis(2)).await;
                b.write_all(b"abc").await.unwrap();
            };
            let (count, ()) = bounded(futures::future::join(a.peek(&mut buf), later)).await;
            assert_eq!((count.unwrap(), &buf[..3]), (3, &b"abc"[..]));
            let mut room = [MaybeUninit::uninit(); 2];
            let mut room = ReadBuf::uninit(&mut room);
            assert_eq!(bounded(poll_fn(|cx| a.poll_peek(cx, &mut room))).await.unwrap(), 2);
            assert_eq!(room.filled(), b"ab");
            assert_eq!(a.read(&mut buf).await.unwrap(), 3);
            assert!(poll!(pin!(a.peek(&mut buf))).is_pending());
        }};
    }
    each(|| async {
        let (mut a, mut b) = tcp_pair().await;
        peeks!(a, b);
        peeks!(a.split().0, b);
        let (mut reader, _writer) = a.into_split();
        peeks!(reader, b);
    });
}

/// `async_io` and `try_io` with a system call of the caller's own, and the polls of readiness.
#[test]
fn the_callers_own_operations_on_streams() {
    macro_rules! own {
        ($a:expr, $b:expr) => {{
            let (a, b) = (&$a, &$b);
            let (mut buf, socket) = ([0; 8], socket2::SockRef::from(a));
            let mut calls = 0;
            let wait = a.async_io(Interest::READABLE, || {
                calls += 1;
                (&*socket).read(&mut buf)
            });
            let later = async {
                volt::time::sleep(Duration::from_millis(2)).await;
                b.try_write(b"abc").unwrap()
            };
            let (count, sent) = bounded(futures::future::join(wait, later)).await;
            assert_eq!((count.unwrap(), sent, &buf[..3]), (3, 3, &b"abc"[..]));
            assert!(calls <= 2, "called when there was something: {calls}");
            let write = || (&*socket).write(b"de");
            assert_eq!(a.async_io(Interest::WRITABLE, write).await.unwrap(), 2);
            bounded(poll_fn(|cx| b.poll_read_ready(cx))).await.unwrap();
            bounded(poll_fn(|cx| b.poll_write_ready(cx))).await.unwrap();
            assert_eq!(b.try_io(Interest::READABLE, || Ok(1)).unwrap(), 1);
            // What says that it blocks takes the readiness back.
            let busy = || Err::<(), _>(ErrorKind::WouldBlock.into());
            let wait = || poll_fn(|cx| b.poll_read_ready(cx));
            used_up!("try_io", wait(), b.try_io(Interest::READABLE, busy));
            let failed = a.async_io(Interest::WRITABLE, || Err::<(), _>(ErrorKind::Other.into()));
            assert_eq!(failed.await.unwrap_err().kind(), ErrorKind::Other);
        }};
    }
    each(|| async {
        let (a, b) = tcp_pair().await;
        own!(a, b);
        let (a, b) = UnixStream::pair().unwrap();
        own!(a, b);
    });
}

#[test]
fn unix_sockets_of_std_go_in_and_out() {
    each(|| async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("listener");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let error = UnixListener::from_std(listener.try_clone().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        listener.set_nonblocking(true).unwrap();
        let listener = UnixListener::from_std(listener).unwrap();
        assert_eq!(listener.local_addr().unwrap().as_pathname(), Some(&*path));
        assert!(listener.take_error().unwrap().is_none());
        let mut client = std::os::unix::net::UnixStream::connect(&path).unwrap();
        assert!(UnixStream::from_std(client.try_clone().unwrap()).is_err());
        let (server, from) = bounded(listener.accept()).await.unwrap();
        assert!(from.is_unnamed());
        client.write_all(b"abc").unwrap();
        let mut server = server.into_std().unwrap();
        server.set_nonblocking(false).unwrap();
        let mut buf = [0; 3];
        server.read_exact(&mut buf).unwrap();
        server.set_nonblocking(true).unwrap();
        let mut server = UnixStream::try_from(server).unwrap();
        client.write_all(b"def").unwrap();
        bounded(server.read_exact(&mut buf)).await.unwrap();
        assert_eq!(&buf, b"def");
        let listener = listener.into_std().unwrap();
        assert!(matches!(listener.accept(), Err(error) if error.kind() == ErrorKind::WouldBlock));
        let listener = UnixListener::try_from(listener).unwrap();
        let _client = std::os::unix::net::UnixStream::connect(&path).unwrap();
        bounded(poll_fn(|cx| listener.poll_accept(cx))).await.unwrap();
    });
}

#[test]
fn sockets_that_become_tcp_streams_and_their_options() {
    each(|| async {
        // What std has made and not connected.
        let made = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = TcpSocket::from_std_stream(made.unwrap().into());
        socket.set_reuseaddr(true).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(8).unwrap();
        let made = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = TcpSocket::from_std_stream(made.unwrap().into());
        let client = bounded(socket.connect(listener.local_addr().unwrap())).await.unwrap();
        let (server, _) = bounded(listener.accept()).await.unwrap();
        assert_eq!(server.peer_addr().unwrap(), client.local_addr().unwrap());
        for yes in [true, false] {
            client.set_nodelay(yes).unwrap();
            assert_eq!(client.nodelay().unwrap(), yes);
            assert_eq!(socket2::SockRef::from(&client).tcp_nodelay().unwrap(), yes);
        }
        #[cfg(target_os = "linux")]
        for yes in [false, true] {
            client.set_quickack(yes).unwrap();
            assert_eq!(client.quickack().unwrap(), yes);
        }
        let duplicate: TcpStream = {
            let fd = client.as_fd().try_clone_to_owned().unwrap();
            std::net::TcpStream::from(fd).try_into().unwrap()
        };
        assert_eq!(duplicate.local_addr().unwrap(), client.local_addr().unwrap());
    });
}
