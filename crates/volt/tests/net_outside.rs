//! Outside of a runtime: whatever needs one panics, and the message names the call that was made.
#![cfg(unix)]

#[path = "support/places.rs"]
mod places;
#[path = "support/net.rs"]
mod support;

use std::future::Future;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Waker};

use places::Places;
use volt::io::unix::AsyncFd;
use volt::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt, Interest};
use volt::net::unix::pipe::{self, OpenOptions, Receiver, Sender};
use volt::net::{
    TcpListener, TcpSocket, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixSocket,
    UnixStream, lookup_host,
};

/// Runs `call`, and demands that it panics, names `name` first, and says what to do.
fn demand<R>(name: &str, call: impl FnOnce() -> R) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(call)) else {
        panic!("`{name}` works outside of a runtime");
    };
    let message = panic.downcast_ref::<String>().expect("a formatted message");
    let start = format!("`{name}` needs a Volt runtime: ");
    assert!(message.starts_with(&start), "`{name}`: {message}");
    assert!(message.contains("block_on"), "{message}");
}

/// As [`demand`], for the first poll of a future.
fn demand_poll<F: Future>(name: &str, future: F) {
    demand(name, || {
        let mut future = pin!(future);
        future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    });
}

/// The port 0 of this machine, by a name that has to be looked up.
const NAME: &str = "localhost:0";

#[test]
fn tcp() {
    let at = "127.0.0.1:0".parse().unwrap();
    for address in [NAME, "127.0.0.1:1"] {
        demand_poll("TcpStream::connect", TcpStream::connect(address));
        demand_poll("TcpListener::bind", TcpListener::bind(address.replace(":1", ":0")));
    }
    demand_poll("TcpStream::connect", TcpStream::connect(("localhost", 1)));
    demand_poll("TcpStream::connect", TcpStream::connect(("localhost".to_owned(), 1)));
    demand_poll("TcpStream::connect", TcpStream::connect(&NAME.to_owned()));
    demand_poll("TcpSocket::connect", TcpSocket::new_v4().unwrap().connect(at));
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(at).unwrap();
    demand("TcpSocket::listen", || socket.listen(1));
    let listener = std::net::TcpListener::bind(at).unwrap();
    let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    listener.set_nonblocking(true).unwrap();
    stream.set_nonblocking(true).unwrap();
    demand("TcpStream::from_std", || TcpStream::from_std(stream));
    demand("TcpListener::from_std", || TcpListener::from_std(listener));
}

#[test]
fn names_and_udp() {
    demand_poll("lookup_host", lookup_host(NAME));
    demand_poll("lookup_host", lookup_host(("localhost", 1)));
    demand_poll("UdpSocket::bind", UdpSocket::bind(NAME));
    demand_poll("UdpSocket::bind", UdpSocket::bind("127.0.0.1:0"));
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    demand("UdpSocket::from_std", || UdpSocket::from_std(socket));
    // A socket of a runtime, used outside of it: names cannot be looked up here.
    let runtime = volt::runtime::Runtime::new().unwrap();
    let socket = runtime.block_on(UdpSocket::bind("127.0.0.1:0")).unwrap();
    demand_poll("UdpSocket::connect", socket.connect(NAME));
    demand_poll("UdpSocket::send_to", socket.send_to(b"x", NAME));
}

#[test]
fn unix_sockets() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    demand("UnixListener::bind", || UnixListener::bind(path("a")));
    let address = std::os::unix::net::SocketAddr::from_pathname(path("b")).unwrap().into();
    demand("UnixListener::bind_addr", || UnixListener::bind_addr(&address));
    let listener = std::os::unix::net::UnixListener::bind(path("listener")).unwrap();
    demand_poll("UnixStream::connect", UnixStream::connect(path("listener")));
    let address = listener.local_addr().unwrap().into();
    demand_poll("UnixStream::connect_addr", UnixStream::connect_addr(&address));
    let socket = UnixSocket::new_stream().unwrap();
    demand_poll("UnixSocket::connect", socket.connect(path("listener")));
    let socket = UnixSocket::new_stream().unwrap();
    socket.bind(path("c")).unwrap();
    demand("UnixSocket::listen", || socket.listen(1));
    demand("UnixSocket::datagram", || UnixSocket::new_datagram().unwrap().datagram());
    listener.set_nonblocking(true).unwrap();
    demand("UnixListener::from_std", || UnixListener::from_std(listener));

    demand("UnixStream::pair", UnixStream::pair);
    let (stream, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    stream.set_nonblocking(true).unwrap();
    demand("UnixStream::from_std", || UnixStream::from_std(stream));
    demand("UnixDatagram::bind", || UnixDatagram::bind(path("d")));
    demand("UnixDatagram::pair", UnixDatagram::pair);
    demand("UnixDatagram::unbound", UnixDatagram::unbound);
    let (socket, _other) = std::os::unix::net::UnixDatagram::pair().unwrap();
    socket.set_nonblocking(true).unwrap();
    demand("UnixDatagram::from_std", || UnixDatagram::from_std(socket));
}

/// An accept that is polled outside of every runtime cannot register the connection.
#[test]
fn accepts() {
    let runtime = volt::runtime::Runtime::new().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("listener");
    let tcp = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = tcp.local_addr().unwrap();
    let unix = runtime.block_on(async { UnixListener::bind(&path) }).unwrap();
    // Two connections each, before the first accept: it does not have to wait.
    let _clients: Vec<_> = (0..2).map(|_| std::net::TcpStream::connect(address)).collect();
    let connect = || std::os::unix::net::UnixStream::connect(&path);
    let _others: Vec<_> = (0..2).map(|_| connect()).collect();
    runtime.block_on(async {
        for _ in 0..2 {
            volt::task::yield_now().await;
        }
    });
    demand_poll("TcpListener::accept", tcp.accept());
    demand_poll("TcpListener::poll_accept", std::future::poll_fn(|cx| tcp.poll_accept(cx)));
    demand_poll("UnixListener::accept", unix.accept());
    demand_poll("UnixListener::poll_accept", std::future::poll_fn(|cx| unix.poll_accept(cx)));
}

#[test]
fn pipes() {
    demand("pipe::pipe", pipe::pipe);
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut both = std::fs::File::options();
    both.read(true).write(true);
    let file = || both.open(&fifo).unwrap();
    let fd = || OwnedFd::from(file());
    let _keeps_it_open = file();
    let options = OpenOptions::new();
    demand("pipe::OpenOptions::open_receiver", || options.open_receiver(&fifo));
    demand("pipe::OpenOptions::open_sender", || options.open_sender(&fifo));
    demand("pipe::Receiver::from_file", || Receiver::from_file(file()));
    demand("pipe::Receiver::from_file_unchecked", || Receiver::from_file_unchecked(file()));
    demand("pipe::Receiver::from_owned_fd", || Receiver::from_owned_fd(fd()));
    demand("pipe::Receiver::from_owned_fd_unchecked", || Receiver::from_owned_fd_unchecked(fd()));
    demand("pipe::Sender::from_file", || Sender::from_file(file()));
    demand("pipe::Sender::from_file_unchecked", || Sender::from_file_unchecked(file()));
    demand("pipe::Sender::from_owned_fd", || Sender::from_owned_fd(fd()));
    demand("pipe::Sender::from_owned_fd_unchecked", || Sender::from_owned_fd_unchecked(fd()));
}

#[test]
fn async_fds() {
    let (a, _b) = std::os::unix::net::UnixStream::pair().unwrap();
    let fd = || a.as_fd();
    let reading = Interest::READABLE;
    demand("AsyncFd::new", || AsyncFd::new(fd()));
    demand("AsyncFd::with_interest", || AsyncFd::with_interest(fd(), reading));
    demand("AsyncFd::try_new", || AsyncFd::try_new(fd()));
    demand("AsyncFd::try_with_interest", || AsyncFd::try_with_interest(fd(), reading));
    // SAFETY: the descriptor stays open, and the same.
    demand("AsyncFd::register", || unsafe { AsyncFd::register(fd()) });
    demand("AsyncFd::register_with_interest", || {
        // SAFETY: the descriptor stays open, and the same.
        unsafe { AsyncFd::register_with_interest(fd(), reading) }
    });
}

/// What is read and written on the blocking pool. The file is none the worse for it.
#[test]
fn files_and_standard_streams() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"abc").unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    let mut file = volt::fs::File::from_std(file);
    demand_poll("File::read", file.read(&mut [0; 8]));
    demand_poll("File::write", file.write(b"x"));
    demand_poll("File::seek", file.seek(std::io::SeekFrom::Start(1)));
    demand_poll("Stdin::read", volt::io::stdin().read(&mut [0; 8]));
    demand_poll("Stdout::write", volt::io::stdout().write(b"x"));
    demand_poll("Stderr::write", volt::io::stderr().write(b"x"));
    for runtime in support::runtimes() {
        let mut all = String::new();
        runtime.block_on(file.read_to_string(&mut all)).unwrap();
        assert_eq!(all, "abc", "the writes above have written nothing");
        runtime.block_on(file.rewind()).unwrap();
        all.clear();
        // What is read ahead is not lost either: a read of more is dropped, and then one of less.
        let mut room = [0; 8];
        while runtime.block_on(async { futures::poll!(pin!(file.read(&mut room))).is_ready() }) {
            runtime.block_on(file.rewind()).unwrap();
        }
        runtime.block_on(file.read_exact(&mut room[..1])).unwrap();
        demand_poll("File::seek", file.seek(std::io::SeekFrom::Start(0)));
        runtime.block_on(file.read_to_string(&mut all)).unwrap();
        assert_eq!(all, "bc");
        runtime.block_on(file.rewind()).unwrap();
    }
}

/// The message points at the caller's line where the language allows it: in what is no `async fn`.
#[test]
#[allow(clippy::redundant_closure, reason = "the closure is what has a place")]
fn the_place_is_the_callers() {
    let places = Places::record();
    let (stream, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    stream.set_nonblocking(true).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_nonblocking(true).unwrap();
    listener.set_nonblocking(true).unwrap();
    demand("AsyncFd::new", || AsyncFd::new(stream.as_fd()));
    demand("AsyncFd::with_interest", || AsyncFd::with_interest(stream.as_fd(), Interest::READABLE));
    demand("TcpStream::from_std", || TcpStream::from_std(client));
    demand("TcpListener::from_std", || TcpListener::from_std(listener));
    demand("UnixStream::from_std", || UnixStream::from_std(stream));
    demand("UnixStream::pair", || UnixStream::pair());
    demand("UnixDatagram::unbound", || UnixDatagram::unbound());
    demand("pipe::pipe", || pipe::pipe());
    let places = places.take();
    assert_eq!(places.len(), 8);
    assert!(places.iter().all(|place| place == file!()), "{places:?}");
}
