//! TCP and unix streams and listeners through the public API, on every kind of runtime.

#[path = "support/net.rs"]
mod support;

use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use support::{bounded, each, stays_pending, tcp_pair};
use volt::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest, ReadBuf};
use volt::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixSocket, UnixStream};

/// Echoes until the end of the stream.
async fn echo(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut buf = vec![0; 8192];
    loop {
        match stream.read(&mut buf).await.unwrap() {
            0 => break,
            count => stream.write_all(&buf[..count]).await.unwrap(),
        }
    }
    stream.shutdown().await.unwrap();
}

/// Sends `size` bytes through an echo and checks that they come back.
async fn round_trip(stream: impl AsyncRead + AsyncWrite + Send + 'static, size: usize) {
    let data: Vec<u8> = (0..size).map(|i| (i * 31 % 251) as u8).collect();
    let (mut reader, mut writer) = volt::io::split(stream);
    let sent = data.clone();
    let writing = volt::spawn(async move {
        writer.write_all(&sent).await.unwrap();
        writer.shutdown().await.unwrap();
    });
    let mut back = Vec::new();
    reader.read_to_end(&mut back).await.unwrap();
    writing.await.unwrap();
    assert!(back == data, "{} bytes came back of {size}", back.len());
}

#[test]
fn an_echo_returns_megabytes_in_order() {
    // Where each access is looked at, each byte takes longer.
    const BYTES: usize = if cfg!(volt_tsan) { 1_000_000 } else { 3_000_000 };
    each(|| async {
        let (client, server) = tcp_pair().await;
        let server = volt::spawn(echo(server));
        round_trip(client, BYTES).await;
        server.await.unwrap();
        let (a, b) = UnixStream::pair().unwrap();
        let server = volt::spawn(echo(b));
        round_trip(a, BYTES).await;
        server.await.unwrap();
    });
}

#[test]
fn many_connections_at_once() {
    each(|| async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = volt::spawn(async move {
            for _ in 0..64 {
                let (stream, _) = listener.accept().await.unwrap();
                drop(volt::spawn(echo(stream)));
            }
        });
        let clients: Vec<_> = (0..64)
            .map(|i| {
                volt::spawn(async move {
                    round_trip(TcpStream::connect(address).await.unwrap(), 1000 * i).await;
                })
            })
            .collect();
        for client in clients {
            client.await.unwrap();
        }
        server.await.unwrap();
    });
}

#[test]
fn the_end_of_one_direction_leaves_the_other() {
    each(|| async {
        let (mut client, mut server) = tcp_pair().await;
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        client.shutdown().await.unwrap();
        let mut all = String::new();
        server.read_to_string(&mut all).await.unwrap();
        assert_eq!(all, "question");
        server.write_all(b"answer").await.unwrap();
        drop(server);
        all.clear();
        client.read_to_string(&mut all).await.unwrap();
        assert_eq!(all, "answer");
        assert_eq!(client.write(b"x").await.map_err(|e| e.kind()).unwrap_or(0), 0);
    });
}

#[test]
fn owned_halves_close_write_and_reunite() {
    each(|| async {
        let (client, server) = tcp_pair().await;
        let ((mut reader, writer), (other_reader, mut other_writer)) =
            (client.into_split(), server.into_split());
        other_writer.write_all(b"hello").await.unwrap();
        drop(other_writer);
        let mut all = Vec::new();
        reader.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, b"hello");
        let error = reader.reunite(UnmatchedWriter::make().await).unwrap_err();
        assert_eq!(error.to_string(), "tried to reunite halves that are not from the same socket");
        let client = error.0.reunite(writer).unwrap();
        assert_eq!(client.peer_addr().unwrap(), other_reader.local_addr().unwrap());
        let (_, writer) = client.into_split();
        writer.forget();
    });
}

struct UnmatchedWriter;

impl UnmatchedWriter {
    async fn make() -> volt::net::tcp::OwnedWriteHalf {
        tcp_pair().await.0.into_split().1
    }
}

#[test]
fn borrowed_halves_work_at_the_same_time() {
    each(|| async {
        let (mut client, server) = tcp_pair().await;
        let server = volt::spawn(echo(server));
        let data = vec![7; 2_000_000];
        let (mut reader, mut writer) = client.split();
        let mut back = Vec::new();
        let write = async {
            writer.write_all(&data).await.unwrap();
            writer.shutdown().await.unwrap();
        };
        let read = async { reader.read_to_end(&mut back).await.unwrap() };
        futures::join!(write, read);
        assert!(back == data);
        server.await.unwrap();
    });
}

#[test]
fn peek_leaves_the_data() {
    each(|| async {
        let (mut client, mut server) = tcp_pair().await;
        let mut buf = [0; 8];
        assert!(stays_pending(server.peek(&mut buf)).await);
        client.write_all(b"abc").await.unwrap();
        assert_eq!(server.peek(&mut buf[..2]).await.unwrap(), 2);
        assert_eq!(server.peek(&mut buf).await.unwrap(), 3);
        let mut room = [std::mem::MaybeUninit::uninit(); 8];
        let mut room = ReadBuf::uninit(&mut room);
        let count = std::future::poll_fn(|cx| server.poll_peek(cx, &mut room)).await.unwrap();
        assert_eq!((count, room.filled()), (3, &b"abc"[..]));
        assert_eq!(server.read(&mut buf).await.unwrap(), 3);
        drop(client);
        assert_eq!(server.peek(&mut buf).await.unwrap(), 0);
    });
}

#[test]
fn try_operations_and_readiness_agree() {
    each(|| async {
        let (a, b) = tcp_pair().await;
        let mut buf = [0; 8];
        assert_eq!(a.try_read(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(stays_pending(a.readable()).await, "nothing to read, and nobody said so");
        // Fill the buffers.
        let chunk = vec![1; 65536];
        let mut sent = 0;
        loop {
            b.writable().await.unwrap();
            match b.try_write(&chunk) {
                Ok(count) => sent += count,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    if stays_pending(b.writable()).await {
                        break;
                    }
                }
            }
        }
        let (mut received, mut room) = (0, Vec::with_capacity(65536));
        while received < sent {
            a.readable().await.unwrap();
            match a.try_read_buf(&mut room) {
                Ok(count) => received += count,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            room.clear();
        }
        assert_eq!(received, sent);
        b.writable().await.unwrap();
        assert_eq!(b.try_write_vectored(&[IoSlice::new(b"ab"), IoSlice::new(b"c")]).unwrap(), 3);
        let ready = a.ready(Interest::READABLE | Interest::WRITABLE).await.unwrap();
        assert!(ready.is_writable());
        a.readable().await.unwrap();
        let (mut first, mut rest) = ([0; 2], [0; 8]);
        let mut slices = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut rest)];
        assert_eq!(a.try_read_vectored(&mut slices).unwrap(), 3);
        assert_eq!((&first, rest[0]), (b"ab", b'c'));
        drop(b);
        a.readable().await.unwrap();
        let outcome = a.try_io(Interest::READABLE, || -> std::io::Result<()> {
            Err(ErrorKind::WouldBlock.into())
        });
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::WouldBlock);
    });
}

/// Small buffers are written as one, large ones as they are: the bytes and the counts are the same.
#[test]
fn vectored_writes_of_all_sizes_arrive_in_order() {
    async fn check<S: AsyncRead + AsyncWrite + Unpin>((mut a, mut b): (S, S)) {
        let sizes: [&[usize]; 9] = [
            &[],
            &[0, 0],
            &[1],
            &[84, 13],
            &[0, 5, 0, 7],
            &[2047, 1],
            &[2047, 2],
            &[1, 2048],
            &[9000, 1, 100],
        ];
        for sizes in sizes {
            let bufs: Vec<Vec<u8>> =
                sizes.iter().zip(1..).map(|(&size, byte)| vec![byte; size]).collect();
            let slices: Vec<_> = bufs.iter().map(|buf| IoSlice::new(buf)).collect();
            let all = bufs.concat();
            assert_eq!(a.write_vectored(&slices).await.unwrap(), all.len(), "{sizes:?}");
            let mut received = vec![0; all.len()];
            b.read_exact(&mut received).await.unwrap();
            assert_eq!(received, all, "{sizes:?}");
        }
        drop(a);
        assert_eq!(b.read(&mut [0; 8]).await.unwrap(), 0, "nothing was written twice");
    }
    each(|| async {
        check(tcp_pair().await).await;
        check(UnixStream::pair().unwrap()).await;
    });
}

/// A write that has filled the send buffer is woken when the peer reads: the interest in writing is
/// registered only then.
#[test]
fn a_full_send_buffer_wakes_its_writer() {
    each(|| async {
        for size in [1 << 16, 1 << 23] {
            let (a, b) = UnixStream::pair().unwrap();
            let data = vec![5; size];
            let writer = volt::spawn(async move {
                let mut a = a;
                a.write_all(&data).await.unwrap();
            });
            volt::time::sleep(Duration::from_millis(5)).await;
            let mut all = Vec::new();
            let mut b = b;
            b.read_to_end(&mut all).await.unwrap();
            assert_eq!(all.len(), size);
            writer.await.unwrap();
        }
    });
}

/// Sends urgent data in the middle of other, and reads what that is, into `buf`.
#[cfg(target_os = "linux")]
async fn send_urgent_data_and_read_all<A: AsFd>(
    client: A,
    server: &mut (impl AsyncRead + Unpin),
    buf: &mut [u8],
) {
    let socket = socket2::SockRef::from(&client);
    let mut all = Vec::new();
    for round in 0..20 {
        let _ = socket.send(b"abc").unwrap();
        let _ = socket.send_out_of_band(b"!").unwrap();
        let _ = socket.send(b"def").unwrap();
        if round % 2 == 0 {
            volt::time::sleep(Duration::from_millis(1)).await;
        }
        while all.len() < (round + 1) * 6 {
            let count = bounded(server.read(buf)).await.unwrap();
            all.extend_from_slice(&buf[..count]);
        }
    }
    assert_eq!(all, b"abcdef".repeat(20));
}

/// A short read means "empty" unless urgent data cut it: what is behind must still be read.
#[cfg(target_os = "linux")]
#[test]
fn urgent_data_does_not_hide_what_follows() {
    each(|| async {
        let (client, mut server) = tcp_pair().await;
        send_urgent_data_and_read_all(client, &mut server, &mut [0; 64]).await;
    });
}

/// The same for a unix stream. The reads are large: small ones prove nothing in any case.
#[cfg(target_os = "linux")]
#[test]
fn urgent_data_on_a_unix_stream_does_not_hide_what_follows() {
    let (a, _b) = std::os::unix::net::UnixStream::pair().unwrap();
    if let Err(error) = socket2::SockRef::from(&a).send_out_of_band(b"!") {
        eprintln!("skipped: this kernel has no urgent data on unix sockets: {error}");
        return;
    }
    each(|| async {
        let (a, mut b) = UnixStream::pair().unwrap();
        send_urgent_data_and_read_all(a, &mut b, &mut [0; 1024]).await;
    });
}

/// A read of a unix stream stops where a descriptor comes with the data; more may follow it.
#[cfg(target_os = "linux")]
#[test]
fn a_passed_descriptor_does_not_hide_what_follows() {
    each(|| async {
        let (a, mut b) = UnixStream::pair().unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(send_with_descriptor(&a, b"abc", file.as_raw_fd()), 3);
        a.try_write(b"def").unwrap();
        let mut buf = [0; 64];
        let mut count = 0;
        while count < 6 {
            count += bounded(b.read(&mut buf[count..])).await.unwrap();
        }
        assert_eq!(&buf[..6], b"abcdef");
    });
}

#[cfg(target_os = "linux")]
fn send_with_descriptor(socket: &impl AsRawFd, data: &[u8], fd: i32) -> isize {
    let mut part = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
    let mut control = [0_u64; 8];
    // SAFETY: zeros are a valid message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    // SAFETY: computes a number.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(4) } as usize;
    // SAFETY: the control buffer has room for one header.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    // SAFETY: the header is in the control buffer; the length is computed from a constant.
    let length = unsafe { libc::CMSG_LEN(4) } as usize;
    let value = libc::cmsghdr {
        cmsg_len: length,
        cmsg_level: libc::SOL_SOCKET,
        cmsg_type: libc::SCM_RIGHTS,
    };
    // SAFETY: in the control buffer, and aligned as it.
    unsafe { header.write(value) };
    // SAFETY: the header is valid.
    let content = unsafe { libc::CMSG_DATA(header) };
    // SAFETY: the control buffer has room for four bytes after the header.
    unsafe { content.cast::<i32>().write_unaligned(fd) };
    // SAFETY: the message and all that it names live until the call returns.
    unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, 0) }
}

#[test]
fn a_dropped_wait_loses_nothing() {
    each(|| async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        for _ in 0..20 {
            assert!(futures::poll!(pin!(listener.accept())).is_pending());
        }
        assert!(stays_pending(listener.accept()).await);
        let mut client = TcpStream::connect(address).await.unwrap();
        // A wait that has been woken, but is dropped before it takes the connection.
        let mut wait = Box::pin(listener.accept());
        let _ = futures::poll!(&mut wait);
        volt::time::sleep(Duration::from_millis(2)).await;
        drop(wait);
        let mut server = match futures::poll!(pin!(listener.accept())) {
            Poll::Ready(accepted) => accepted.unwrap().0,
            // The dropped one may have taken the first.
            Poll::Pending => {
                client = TcpStream::connect(address).await.unwrap();
                listener.accept().await.unwrap().0
            }
        };
        let mut buf = [0; 8];
        for _ in 0..20 {
            assert!(futures::poll!(pin!(server.readable())).is_pending());
            assert!(futures::poll!(pin!(server.peek(&mut buf))).is_pending());
            assert!(futures::poll!(pin!(server.read(&mut buf))).is_pending());
        }
        let mut wait = Box::pin(server.readable());
        assert!(futures::poll!(&mut wait).is_pending());
        client.write_all(b"abc").await.unwrap();
        volt::time::sleep(Duration::from_millis(2)).await;
        drop(wait);
        assert_eq!(server.read(&mut buf).await.unwrap(), 3);
        drop(Box::pin(TcpStream::connect(address)));
        let mut connect = Box::pin(TcpStream::connect(address));
        let _ = futures::poll!(&mut connect);
        drop(connect);
    });
}

#[test]
fn several_tasks_wait_for_one_stream() {
    each(|| async {
        let (client, server) = tcp_pair().await;
        let server = std::sync::Arc::new(server);
        let waits: Vec<_> = (0..40)
            .map(|_| {
                let server = server.clone();
                volt::spawn(async move { server.readable().await.unwrap() })
            })
            .collect();
        volt::time::sleep(Duration::from_millis(2)).await;
        client.try_write(b"x").unwrap();
        for wait in waits {
            wait.await.unwrap();
        }
    });
}

#[test]
fn refused_unreachable_and_malformed_addresses_are_errors() {
    each(|| async {
        let unused = {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            listener.local_addr().unwrap()
        };
        let error = TcpStream::connect(unused).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(
            TcpSocket::new_v4().unwrap().connect(unused).await.unwrap_err().kind(),
            ErrorKind::ConnectionRefused
        );
        let nothing: &[std::net::SocketAddr] = &[];
        assert_eq!(TcpStream::connect(nothing).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        assert!(TcpStream::connect("no port").await.is_err());
        assert!(TcpListener::bind("127.0.0.1:notaport").await.is_err());
        assert!(UnixStream::connect("/nonexistent/volt").await.is_err());
        let both = [unused, TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()];
        assert!(TcpStream::connect(&both[..1]).await.is_err());
        assert!(volt::net::lookup_host("localhost:1").await.unwrap().all(|a| a.port() == 1));
        assert!(volt::net::lookup_host(("localhost", 1)).await.is_ok());
    });
}

#[test]
fn the_first_address_that_accepts_is_taken() {
    each(|| async {
        let unused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let good = listener.local_addr().unwrap();
        let stream = TcpStream::connect(&[unused, good][..]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), good);
    });
}

#[test]
fn std_sockets_go_in_and_out() {
    each(|| async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let error = TcpListener::from_std(listener.try_clone().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        listener.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(TcpStream::from_std(client.try_clone().unwrap()).is_err());
        let (server, _) = listener.accept().await.unwrap();
        client.write_all(b"abc").unwrap();
        server.readable().await.unwrap();
        let mut server = server.into_std().unwrap();
        server.set_nonblocking(false).unwrap();
        let mut buf = [0; 3];
        server.read_exact(&mut buf).unwrap();
        server.set_nonblocking(true).unwrap();
        // A second life in the reactor.
        let mut server = TcpStream::from_std(server).unwrap();
        client.write_all(b"def").unwrap();
        server.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"def");
        let listener = listener.into_std().unwrap();
        assert!(matches!(listener.accept(), Err(error) if error.kind() == ErrorKind::WouldBlock));
    });
}

/// The descriptor is closed, or is no socket: an error value, nothing else.
#[test]
fn an_invalid_descriptor_is_an_error() {
    each(|| async {
        let file = std::fs::File::open("/dev/null").unwrap();
        // SAFETY: the descriptor is open and owned; that it is no socket is what is tested.
        let stream = unsafe { std::net::TcpStream::from_raw_fd(file.into_raw_fd()) };
        assert!(TcpStream::from_std(stream).is_err());
    });
}

#[test]
fn socket_options_are_set_and_read() {
    each(|| async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.set_reuseport(true).unwrap();
        socket.set_keepalive(true).unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_recv_buffer_size(100_000).unwrap();
        socket.set_send_buffer_size(100_000).unwrap();
        assert!(socket.reuseaddr().unwrap() && socket.reuseport().unwrap());
        assert!(socket.keepalive().unwrap() && socket.nodelay().unwrap());
        assert!(socket.recv_buffer_size().unwrap() >= 100_000);
        assert!(socket.send_buffer_size().unwrap() >= 100_000);
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(16).unwrap();
        assert!(listener.ttl().unwrap() > 0);
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        client.set_ttl(50).unwrap();
        client.set_linger(Some(Duration::from_secs(1))).unwrap();
        assert_eq!(client.ttl().unwrap(), 50);
        assert_eq!(client.linger().unwrap(), Some(Duration::from_secs(1)));
        assert!(client.take_error().unwrap().is_none());
        let (server, _) = listener.accept().await.unwrap();
        client.set_zero_linger().unwrap();
        drop(client);
        let reset = server.readable().await.and_then(|()| server.try_read(&mut [0; 8]));
        assert_eq!(reset.unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn unix_listeners_accept_by_path_and_by_abstract_name() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;
    static COUNT: volt::sync::internal::primitive::Mutex<u32> =
        volt::sync::internal::primitive::Mutex::new(0);
    each(|| async {
        let number = {
            let mut count = COUNT.lock().unwrap();
            *count += 1;
            *count
        };
        let name = format!("volt-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(&name);
        let listener = UnixListener::bind(&path).unwrap();
        assert_eq!(UnixListener::bind(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
        let server = volt::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            echo(stream).await;
        });
        let client = UnixStream::connect(&path).await.unwrap();
        assert_eq!(client.peer_addr().unwrap().as_pathname(), Some(path.as_path()));
        assert_eq!(client.peer_cred().unwrap().pid(), Some(std::process::id() as i32));
        round_trip(client, 100_000).await;
        server.await.unwrap();
        std::fs::remove_file(&path).unwrap();

        let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap().into();
        let listener = UnixListener::bind_addr(&address).unwrap();
        assert_eq!(listener.local_addr().unwrap().as_abstract_name(), Some(name.as_bytes()));
        let client = UnixStream::connect_addr(&address).await.unwrap();
        let (server, _) = std::future::poll_fn(|cx| listener.poll_accept(cx)).await.unwrap();
        let ((mut reader, _keep), (_, mut writer)) = (client.into_split(), server.into_split());
        writer.write_all(b"hello").await.unwrap();
        drop(writer);
        let mut all = Vec::new();
        reader.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, b"hello");

        // A path that begins with a NUL is such a name, for these as for a `UnixSocket`.
        let path = format!("\0{name}-path");
        let listener = UnixListener::bind(&path).unwrap();
        assert_eq!(listener.local_addr().unwrap().as_abstract_name(), Some(&path.as_bytes()[1..]));
        let client = UnixStream::connect(&path).await.unwrap();
        let other = UnixSocket::new_stream().unwrap().connect(&path).await.unwrap();
        assert_eq!(other.peer_addr().unwrap().as_abstract_name(), Some(&path.as_bytes()[1..]));
        drop((client, other, listener));
        assert_eq!(UnixListener::bind("a\0b").unwrap_err().kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn a_runtime_that_ends_ends_the_waits_of_its_sockets() {
    for runtime in support::runtimes() {
        let (client, server) = runtime.block_on(tcp_pair());
        drop(runtime);
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(Err(error)) = pin!(client.readable()).poll(&mut cx) else {
            panic!("the wait should fail");
        };
        assert!(error.to_string().contains("shut down"), "{error}");
        let mut server = server;
        assert!(matches!(pin!(server.read(&mut [0; 8])).poll(&mut cx), Poll::Ready(Err(_))));
        drop(client);
    }
}

#[test]
fn a_socket_outside_a_runtime_panics_with_the_name_of_the_call() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let panic = std::panic::catch_unwind(|| TcpListener::from_std(listener)).unwrap_err();
    let message = panic.downcast_ref::<String>().expect("a formatted message");
    assert!(message.contains("TcpListener::from_std"), "{message}");
}

/// A task that always finds its socket ready lets others run.
#[test]
fn a_busy_stream_lets_other_tasks_run() {
    let runtime = volt::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(bounded(async {
        let (client, server) = tcp_pair().await;
        client.try_write(b"x").unwrap();
        let busy = volt::spawn(async move {
            loop {
                server.peek(&mut [0; 1]).await.unwrap();
            }
        });
        volt::time::sleep(Duration::from_millis(5)).await;
        busy.abort();
        assert!(busy.await.unwrap_err().is_cancelled());
    }));
}

/// `Debug` shows what the standard library shows, and not how the socket is kept.
#[test]
fn debug_shows_the_socket() {
    each(|| async {
        let std = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        std.set_nonblocking(true).unwrap();
        let shown = format!("{std:?}");
        assert!(shown.starts_with("TcpListener { addr: 127.0.0.1:"), "{shown}");
        assert_eq!(format!("{:?}", TcpListener::from_std(std).unwrap()), shown);

        let (mut a, b) = tcp_pair().await;
        let shown = format!("{a:?}");
        assert!(shown.starts_with("TcpStream { addr: 127.0.0.1:"), "{shown}");
        let (reader, writer) = a.split();
        assert_eq!(format!("{reader:?}"), format!("ReadHalf({shown})"));
        assert_eq!(format!("{writer:?}"), format!("WriteHalf({shown})"));
        let shown = format!("{b:?}");
        let (reader, writer) = b.into_split();
        assert_eq!(format!("{reader:?}"), format!("OwnedReadHalf({shown})"));
        assert_eq!(format!("{writer:?}"), format!("OwnedWriteHalf({shown})"));

        let udp = volt::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (unix, _other) = UnixStream::pair().unwrap();
        let (sender, receiver) = volt::net::unix::pipe::pipe().unwrap();
        for (shown, start) in [
            (format!("{udp:?}"), "UdpSocket { addr: "),
            (format!("{unix:?}"), "UnixStream { fd: "),
            (format!("{sender:?}"), "Sender {"),
            (format!("{receiver:?}"), "Receiver {"),
        ] {
            assert!(shown.starts_with(start), "{shown}");
            assert!(!shown.contains("Some"), "{shown}");
        }
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_stream_that_connects_when_it_is_taken_over_is_not_writable_yet() {
    each(|| async {
        let domain = socket2::Domain::IPV4;
        let listener = socket2::Socket::new(domain, socket2::Type::STREAM, None).unwrap();
        listener.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        // Nobody accepts, so only the first ones get there.
        let clients: Vec<_> = (0..4)
            .map(|_| {
                let client = socket2::Socket::new(domain, socket2::Type::STREAM, None).unwrap();
                client.set_nonblocking(true).unwrap();
                let _in_progress = client.connect(&address);
                client
            })
            .collect();
        let mut waited = 0;
        for client in clients {
            let connects = client.peer_addr().is_err();
            let client = volt::net::TcpStream::from_std(client.into()).unwrap();
            assert_eq!(stays_pending(client.writable()).await, connects);
            waited += usize::from(connects);
        }
        assert!(waited > 0, "the listener's queue is short");
    });
}
