//! The load generator: one thread, one epoll loop, one request under way on each connection.

use std::future::poll_fn;
use std::io::{Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::pin::Pin;
use std::task::{Poll, ready};

use hyper::rt::{Read as _, ReadBuf, Write as _};

use super::HELLO;
use crate::bare;
use crate::bench::Bench;
use crate::epoll::Epoll;

const REQUEST: &[u8] = b"GET /hello HTTP/1.1\r\nHost: localhost\r\nUser-Agent: volt-bench\r\n\r\n";

struct Connection {
    stream: TcpStream,
    left: u64,
    received: Vec<u8>,
}

pub(super) struct Load {
    epoll: Epoll,
    connections: Vec<Connection>,
    /// Bytes of one response, learned from the first.
    length: usize,
}

impl Load {
    pub(super) fn connect(address: SocketAddr, connections: usize) -> Self {
        let epoll = Epoll::new().expect("epoll");
        let connect = |number| {
            let stream = TcpStream::connect(address).expect("connect");
            stream.set_nodelay(true).expect("nodelay");
            epoll.add(&stream, number as u64).expect("add");
            Connection { stream, left: 0, received: Vec::with_capacity(4096) }
        };
        let connections = (0..connections).map(connect).collect();
        Load { epoll, connections, length: 0 }
    }

    /// Each connection sends `n` requests, each after the answer to the one before.
    pub(super) fn run(&mut self, n: u64) {
        for connection in &mut self.connections {
            connection.left = n;
            connection.stream.write_all(REQUEST).expect("write");
        }
        let mut open = self.connections.len();
        let mut ready = Vec::new();
        while open > 0 {
            self.epoll.wait(&mut ready).expect("wait");
            assert!(!ready.is_empty(), "the server has been silent for a second");
            for &number in &ready {
                let connection =
                    &mut self.connections[usize::try_from(number).expect("a small number")];
                if connection.answered(&mut self.length) {
                    connection.left -= 1;
                    if connection.left > 0 {
                        connection.stream.write_all(REQUEST).expect("write");
                    } else {
                        open -= 1;
                    }
                }
            }
        }
    }
}

impl Connection {
    /// Reads what is there; whether the response is whole (and right).
    fn answered(&mut self, length: &mut usize) -> bool {
        let mut buffer = [0_u8; 2048];
        let read = self.stream.read(&mut buffer).expect("read");
        assert!(read > 0, "the server closed a connection");
        self.received.extend_from_slice(&buffer[..read]);
        if *length == 0 {
            *length = whole(&self.received).unwrap_or(0);
        }
        if *length == 0 || self.received.len() < *length {
            return false;
        }
        assert_eq!(self.received.len(), *length, "every response has the same length");
        assert!(self.received.starts_with(b"HTTP/1.1 200 OK\r\n"), "status");
        assert!(self.received.ends_with(HELLO), "body");
        self.received.clear();
        true
    }
}

/// The length of the first response, once its header is there.
fn whole(received: &[u8]) -> Option<usize> {
    let head = received.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    Some(head + HELLO.len())
}

/// As long as hyper's.
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 13\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\nHello, World!";

/// Answers fixed bytes to whatever is read from a connection: two system calls for each event.
pub(super) fn fixed(mut io: bare::Io) -> impl Future<Output = ()> {
    poll_fn(move |context| {
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut buffer = ReadBuf::uninit(&mut buffer);
        let read = ready!(Pin::new(&mut io).poll_read(context, buffer.unfilled()));
        if read.is_err() || buffer.filled().is_empty() {
            return Poll::Ready(());
        }
        let written = ready!(Pin::new(&mut io).poll_write(context, RESPONSE));
        assert_eq!(written.expect("write"), RESPONSE.len());
        Poll::Pending
    })
}

/// A thread that answers fixed bytes to whatever is readable.
pub(super) fn floor<const CONNECTIONS: usize>(b: &mut Bench) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("bound");
    let server = std::thread::Builder::new().name("server".to_owned()).spawn(move || {
        let epoll = Epoll::new().expect("epoll");
        let accept = |number| {
            let (stream, _) = listener.accept().expect("accept");
            stream.set_nodelay(true).expect("nodelay");
            epoll.add(&stream, number as u64).expect("add");
            stream
        };
        let mut streams: Vec<TcpStream> = (0..CONNECTIONS).map(accept).collect();
        let (mut ready, mut buffer) = (Vec::new(), [0_u8; 1024]);
        loop {
            epoll.wait(&mut ready).expect("wait");
            for &number in &ready {
                let stream = &mut streams[usize::try_from(number).expect("a small number")];
                match stream.read(&mut buffer).expect("read") {
                    0 => return,
                    n => assert_eq!(&buffer[..n], REQUEST),
                }
                stream.write_all(RESPONSE).expect("write");
            }
        }
    });
    let mut load = Load::connect(address, CONNECTIONS);
    b.iter_ops(CONNECTIONS as u64, |n| load.run(n));
    drop(load);
    server.expect("a thread can be started").join().expect("the server ends well");
}
