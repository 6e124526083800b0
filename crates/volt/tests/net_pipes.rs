//! Pipes, FIFOs and the sockets that become something else, on every kind of runtime.
#![cfg(unix)]

#[path = "support/net.rs"]
mod support;

use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;

use support::{bounded, each, stays_pending};
use volt::io::unix::AsyncFd;
use volt::io::{AsyncReadExt, AsyncWriteExt, Interest};
use volt::net::unix::pipe::{self, OpenOptions, Receiver, Sender};
use volt::net::{TcpSocket, UdpSocket, UnixDatagram, UnixSocket, UnixStream};

/// More than a pipe holds, so that both ends wait.
#[test]
fn a_pipe_carries_bytes_in_order() {
    each(|| async {
        let (mut sender, mut receiver) = pipe::pipe().unwrap();
        let data: Vec<u8> = (0..1_000_000_u32).map(|i| (i % 251) as u8).collect();
        let expected = data.clone();
        let writer = volt::spawn(async move { sender.write_all(&data).await.unwrap() });
        let mut all = Vec::new();
        receiver.read_to_end(&mut all).await.unwrap();
        assert!(all == expected);
        writer.await.unwrap();
    });
}

#[test]
fn a_pipe_wakes_who_waits_and_reports_the_other_ends_close() {
    each(|| async {
        let (sender, receiver) = pipe::pipe().unwrap();
        assert_eq!(receiver.try_read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(stays_pending(receiver.readable()).await);
        let wait = volt::spawn(async move {
            receiver.readable().await.unwrap();
            assert_eq!(receiver.try_read(&mut [0; 8]).unwrap(), 1);
            receiver
        });
        sender.try_write(b"x").unwrap();
        let receiver = bounded(wait).await.unwrap();

        while sender.try_write(&[0; 4096]).is_ok() {}
        assert!(stays_pending(sender.writable()).await);
        drop(receiver);
        bounded(sender.writable()).await.unwrap();
        let ready = sender.ready(Interest::WRITABLE).await.unwrap();
        assert!(ready.is_writable() && ready.is_write_closed(), "{ready:?}");
        assert_eq!(sender.try_write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);

        let (sender, receiver) = pipe::pipe().unwrap();
        drop(sender);
        bounded(receiver.readable()).await.unwrap();
        assert_eq!(receiver.try_read(&mut [0; 8]).unwrap(), 0);
    });
}

/// Whoever clears what is ready, and waits anew, has no second event to wait for.
#[test]
fn who_waits_to_write_to_a_pipe_sees_that_the_receiver_has_gone() {
    each(|| async {
        for full in [false, true] {
            let (sender, receiver) = pipe::pipe().unwrap();
            while full && sender.try_write(&[0; 4096]).is_ok() {}
            let sender =
                AsyncFd::with_interest(sender.into_nonblocking_fd().unwrap(), Interest::WRITABLE)
                    .unwrap();
            let (tell, told) = volt::sync::oneshot::channel();
            let waits = volt::spawn(async move {
                if full {
                    assert!(stays_pending(sender.writable()).await);
                } else {
                    let mut guard = sender.writable().await.unwrap();
                    assert!(!guard.ready().is_write_closed());
                    guard.clear_ready();
                }
                tell.send(()).unwrap();
                let mut guard = sender.writable().await.unwrap();
                assert!(guard.ready().is_write_closed(), "{:?}", guard.ready());
                guard.clear_ready();
                assert!(sender.writable().await.unwrap().ready().is_write_closed(), "it lasts");
            });
            told.await.unwrap();
            drop(receiver);
            bounded(waits).await.unwrap();
        }
    });
}

/// In packet mode a read ends with its packet. What a runtime must not conclude from the short read
/// is that the pipe is empty: no event announces the packets that are there already.
#[cfg(target_os = "linux")]
#[test]
fn packets_behind_a_short_read_are_found() {
    each(|| async {
        let mut fds = [0; 2];
        // SAFETY: the call writes two descriptors to the array.
        let made = unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_DIRECT | libc::O_CLOEXEC) };
        assert_eq!(made, 0);
        // SAFETY: both are open and nobody else's.
        let [reader, writer] = fds.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        let mut receiver = Receiver::from_owned_fd(reader).unwrap();
        let sender = Sender::from_owned_fd(writer).unwrap();
        let waiting = volt::spawn(async move {
            let mut lengths = Vec::new();
            let mut buf = [0; 64];
            for _ in 0..4 {
                lengths.push(receiver.read(&mut buf).await.unwrap());
            }
            lengths
        });
        for packet in [&b"a"[..], b"bc", b"def", b"ghij"] {
            assert_eq!(sender.try_write(packet).unwrap(), packet.len());
        }
        assert_eq!(bounded(waiting).await.unwrap(), [1, 2, 3, 4]);
    });
}

#[test]
fn fifos_are_opened_by_path_and_nothing_else_is() {
    each(|| async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fifo");
        let made = volt::process::Command::new("mkfifo").arg(&path).status().await.unwrap();
        assert!(made.success());
        let options = OpenOptions::new();
        // Nobody reads yet.
        let error = options.open_sender(&path).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENXIO));
        let mut receiver = options.open_receiver(&path).unwrap();
        assert!(stays_pending(receiver.read_u8()).await, "there was no sender");
        let mut sender = options.open_sender(&path).unwrap();
        sender.write_all(b"hello").await.unwrap();
        drop(sender);
        let mut all = String::new();
        bounded(receiver.read_to_string(&mut all)).await.unwrap();
        assert_eq!(all, "hello");

        // The same for one that was opened elsewhere.
        let takers: [fn(std::fs::File) -> std::io::Result<Receiver>; 4] = [
            Receiver::from_file,
            Receiver::from_file_unchecked,
            |file| Receiver::from_owned_fd(file.into()),
            |file| Receiver::from_owned_fd_unchecked(file.into()),
        ];
        for take in takers {
            let mut how = std::fs::File::options();
            let file = how.read(true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
            let mut receiver = take(file).unwrap();
            let read = receiver.try_read(&mut [0; 8]);
            assert_eq!(read.unwrap_err().kind(), ErrorKind::WouldBlock);
            assert!(stays_pending(receiver.read_u8()).await, "there was no sender");
            let mut sender = options.open_sender(&path).unwrap();
            sender.write_all(b"x").await.unwrap();
            assert_eq!(bounded(receiver.read_u8()).await.unwrap(), b'x');
        }

        let file = directory.path().join("file");
        std::fs::write(&file, "no fifo").unwrap();
        assert_eq!(options.open_receiver(&file).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(options.open_sender(&file).unwrap_err().kind(), ErrorKind::InvalidInput);
        let nowhere = options.open_receiver(directory.path().join("nowhere")).unwrap_err();
        assert_eq!(nowhere.kind(), ErrorKind::NotFound);
    });
}

#[test]
fn an_end_of_a_pipe_cannot_be_taken_for_the_other() {
    each(|| async {
        let (sender, receiver) = pipe::pipe().unwrap();
        let writing = sender.into_blocking_fd().unwrap();
        let reading = receiver.into_nonblocking_fd().unwrap();
        let denied = Receiver::from_owned_fd(writing.try_clone().unwrap()).unwrap_err();
        assert_eq!(denied.kind(), ErrorKind::InvalidInput);
        let denied = Sender::from_owned_fd(reading.try_clone().unwrap()).unwrap_err();
        assert_eq!(denied.kind(), ErrorKind::InvalidInput);
        let mut sender = Sender::from_owned_fd(writing).unwrap();
        let mut receiver = Receiver::from_owned_fd_unchecked(reading).unwrap();
        sender.write_all(b"x").await.unwrap();
        assert_eq!(bounded(receiver.read_u8()).await.unwrap(), b'x');
    });
}

/// A child gets the blocking end; its output arrives through the other.
#[test]
fn a_pipe_is_a_childs_standard_output() {
    each(|| async {
        let (sender, mut receiver) = pipe::pipe().unwrap();
        let mut command = volt::process::Command::new("echo");
        command.arg("hello").stdout(Stdio::from(sender.into_blocking_fd().unwrap()));
        let mut child = command.spawn().unwrap();
        drop(command);
        let mut all = String::new();
        bounded(receiver.read_to_string(&mut all)).await.unwrap();
        assert_eq!(all, "hello\n");
        assert!(child.wait().await.unwrap().success());
    });
}

#[test]
fn unix_sockets_become_what_they_were_made_for() {
    each(|| async {
        let directory = tempfile::tempdir().unwrap();
        let (path, own) = (directory.path().join("server"), directory.path().join("client"));
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(&path).unwrap();
        let listener = socket.listen(4).unwrap();
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(&own).unwrap();
        let mut client = bounded(socket.connect(&path)).await.unwrap();
        let (mut server, from) = bounded(listener.accept()).await.unwrap();
        assert_eq!(from.as_pathname(), Some(own.as_path()));
        client.write_all(b"x").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'x');

        let gone = directory.path().join("gone");
        let error = UnixSocket::new_stream().unwrap().connect(&gone).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let in_use = UnixSocket::new_stream().unwrap().bind(&path).unwrap_err();
        assert_eq!(in_use.kind(), ErrorKind::AddrInUse);
        let long = "x".repeat(500);
        assert!(UnixSocket::new_stream().unwrap().bind(long).is_err());

        let stream = || UnixSocket::new_stream().unwrap();
        let datagram = || UnixSocket::new_datagram().unwrap();
        assert_eq!(stream().datagram().unwrap_err().kind(), ErrorKind::Other);
        assert_eq!(datagram().listen(1).unwrap_err().kind(), ErrorKind::Other);
        let refused = datagram().connect(&path).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Other);
        // There and back through a raw descriptor.
        let raw = datagram().into_raw_fd();
        // SAFETY: it is open, and nobody else's.
        let socket = unsafe { UnixSocket::from_raw_fd(raw) };
        assert_eq!((socket.as_raw_fd(), socket.as_fd().as_raw_fd()), (raw, raw));
        let shown = format!("{socket:?}");
        assert!(shown.contains(&raw.to_string()), "{shown}");
        let receiver = directory.path().join("receiver");
        socket.bind(&receiver).unwrap();
        let socket = socket.datagram().unwrap();
        UnixDatagram::unbound().unwrap().send_to(b"hello", &receiver).await.unwrap();
        assert_eq!(bounded(socket.recv(&mut [0; 16])).await.unwrap(), 5);
    });
}

/// Every kind of sender's address survives the way through a buffer that is not zeroed.
#[test]
fn unix_datagrams_tell_who_sent_them() {
    each(|| async {
        let directory = tempfile::tempdir().unwrap();
        let (path, own) = (directory.path().join("server"), directory.path().join("client"));
        let server = UnixDatagram::bind(&path).unwrap();
        let mut buf = Vec::with_capacity(64);

        UnixDatagram::bind(&own).unwrap().send_to(b"one", &path).await.unwrap();
        let (count, from) = bounded(server.recv_buf_from(&mut buf)).await.unwrap();
        assert_eq!((count, from.as_pathname()), (3, Some(own.as_path())));

        UnixDatagram::unbound().unwrap().send_to(b"two", &path).await.unwrap();
        server.readable().await.unwrap();
        let (count, from) = server.try_recv_buf_from(&mut buf).unwrap();
        assert!(count == 3 && from.is_unnamed());
        assert_eq!(buf, b"onetwo");

        #[cfg(target_os = "linux")]
        {
            use std::os::linux::net::SocketAddrExt;
            use std::os::unix::net::{SocketAddr, UnixDatagram as StdDatagram};

            let name = format!("volt-{}-{:p}", std::process::id(), &raw const buf);
            let address = SocketAddr::from_abstract_name(&name).unwrap();
            let client = StdDatagram::bind_addr(&address).unwrap();
            client.send_to(b"three", &path).unwrap();
            let (_, from) = bounded(server.recv_buf_from(&mut buf)).await.unwrap();
            assert_eq!(from.as_abstract_name(), Some(name.as_bytes()));
        }
    });
}

#[test]
fn credentials_are_those_of_this_process() {
    each(|| async {
        let (a, _b) = UnixStream::pair().unwrap();
        let credentials = a.peer_cred().unwrap();
        // SAFETY: the call cannot fail, and touches no memory.
        let user = unsafe { libc::geteuid() };
        // SAFETY: this call cannot fail either, and touches no memory.
        let group = unsafe { libc::getegid() };
        assert_eq!((credentials.uid(), credentials.gid()), (user, group));
        if cfg!(target_os = "linux") {
            assert_eq!(credentials.pid(), Some(std::process::id() as i32));
        }
    });
}

#[test]
fn options_are_what_they_were_set_to() {
    each(|| async {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.set_tos_v4(0x10).unwrap();
        assert_eq!(socket.tos_v4().unwrap(), 0x10);
        socket.set_ttl(9).unwrap();
        assert_eq!(socket.ttl().unwrap(), 9);
        #[cfg(target_os = "linux")]
        {
            assert_eq!(socket.device().unwrap(), None);
            let error = socket.bind_device(Some(b"no-such-device")).unwrap_err();
            assert!([Some(libc::ENODEV), Some(libc::EPERM)].contains(&error.raw_os_error()));
            let socket = TcpSocket::new_v6().unwrap();
            socket.set_tclass_v6(0x20).unwrap();
            assert_eq!(socket.tclass_v6().unwrap(), 0x20);
        }
    });
}

/// The system takes so many at once, which does not mean that there is no more room.
#[test]
fn more_slices_than_the_system_takes_at_once_are_no_short_write() {
    each(|| async {
        let (mut sender, receiver) = pipe::pipe().unwrap();
        let slices = vec![std::io::IoSlice::new(b"0123456789"); 2_000];
        for _ in 0..3 {
            assert_eq!(bounded(sender.write_vectored(&slices)).await.unwrap(), 10_240);
        }
        drop(receiver);
        let (mut a, b) = support::tcp_pair().await;
        let (mut c, d) = UnixStream::pair().unwrap();
        for _ in 0..4 {
            assert_eq!(bounded(a.write_vectored(&slices)).await.unwrap(), 10_240);
            assert_eq!(bounded(c.write_vectored(&slices)).await.unwrap(), 10_240);
        }
        drop((b, d));
    });
}

/// A waiter that was forgotten stays where it is, and is not waited for. (Not under the sanitizer that reports leaks: it makes one.)
#[test]
fn a_socket_is_dropped_beside_a_forgotten_waiter() {
    each(|| async {
        for _ in 0..2 {
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let mut waits = Box::pin(socket.readable());
            assert!(stays_pending(waits.as_mut()).await);
            std::mem::forget(waits);
            drop(socket);
        }
    });
}

/// With exclusive access nobody else looks at the `T`: it need not be `Sync` for a future that is `Send`, which `each`
/// demands when it is compiled.
#[test]
fn waits_with_mutable_access_take_what_is_not_sync() {
    /// `Send`, and not `Sync`.
    struct Own(std::os::unix::net::UnixStream, std::cell::Cell<u8>);

    impl AsRawFd for Own {
        fn as_raw_fd(&self) -> i32 {
            self.0.as_raw_fd()
        }
    }

    each(|| async {
        let (own, other) = std::os::unix::net::UnixStream::pair().unwrap();
        own.set_nonblocking(true).unwrap();
        let mut fd = AsyncFd::new(Own(own, Default::default())).unwrap();
        assert!(fd.writable_mut().await.unwrap().ready().is_writable());
        drop(other);
        assert!(fd.readable_mut().await.unwrap().ready().is_readable());
        let mut guard = fd.ready_mut(Interest::READABLE).await.unwrap();
        assert!(guard.ready().is_read_closed());
        guard.get_inner_mut().1.set(1);
    });
}
