//! The same with raw epoll loops, and with threads that block.
#![forbid(unsafe_code)]

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use crate::bench::Bench;
use crate::epoll::Epoll;

/// One end of something connected.
pub(super) trait End: Read + Write + AsRawFd + Send + Sized + 'static {
    fn pair() -> (Self, Self);
    fn nonblocking(&self) -> io::Result<()>;
}

impl End for TcpStream {
    fn pair() -> (Self, Self) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let ours = TcpStream::connect(listener.local_addr().expect("bound")).expect("connect");
        let (theirs, _) = listener.accept().expect("accept");
        for stream in [&ours, &theirs] {
            stream.set_nodelay(true).expect("nodelay");
        }
        (ours, theirs)
    }

    fn nonblocking(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

impl End for UnixStream {
    fn pair() -> (Self, Self) {
        UnixStream::pair().expect("pair")
    }

    fn nonblocking(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

/// A connected UDP socket; each write is a datagram.
pub(super) struct Datagrams(UdpSocket);

impl Read for Datagrams {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.recv(buffer)
    }
}

impl Write for Datagrams {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.send(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsRawFd for Datagrams {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl End for Datagrams {
    fn pair() -> (Self, Self) {
        let [a, b] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("bind"));
        a.connect(b.local_addr().expect("bound")).expect("connect");
        b.connect(a.local_addr().expect("bound")).expect("connect");
        (Datagrams(a), Datagrams(b))
    }

    fn nonblocking(&self) -> io::Result<()> {
        self.0.set_nonblocking(true)
    }
}

/// Client and server in one loop on one thread: no scheduler, no wake-up between threads.
pub(super) fn epoll_ping_pong<E: End>(b: &mut Bench) {
    let (mut ours, mut theirs) = E::pair();
    let epoll = Epoll::new().expect("epoll");
    for (number, end) in [(0, &ours), (1, &theirs)] {
        end.nonblocking().expect("nonblocking");
        epoll.add(end, number).expect("add");
    }
    b.iter(|n| {
        let (mut done, mut buffer, mut ready) = (0, [0_u8; 64], Vec::new());
        ours.write_all(&super::message(0)).expect("write");
        while done < n {
            epoll.wait(&mut ready).expect("wait");
            for &number in &ready {
                if number == 1 {
                    theirs.read_exact(&mut buffer).expect("read");
                    theirs.write_all(&buffer).expect("write");
                } else {
                    ours.read_exact(&mut buffer).expect("read");
                    assert_eq!(buffer, super::message(done));
                    done += 1;
                    if done < n {
                        ours.write_all(&super::message(done)).expect("write");
                    }
                }
            }
        }
    });
}

/// Two threads, each with a loop of its own, that have both ends of half of the connections: no message goes from one
/// to the other.
pub(super) fn echo_on_two_threads<const CONNECTIONS: u8>(b: &mut Bench) {
    let mut halves = [(); 2].map(|()| Echoes::new(CONNECTIONS / 2));
    b.iter_ops(u64::from(CONNECTIONS), |n| {
        std::thread::scope(|scope| {
            for half in &mut halves {
                scope.spawn(|| half.run(n));
            }
        });
    });
}

/// Connections, both ends of each, and what has been received.
struct Echoes {
    epoll: Epoll,
    ends: Vec<TcpStream>,
    buffers: Vec<[u8; 1024]>,
}

impl Echoes {
    fn new(connections: u8) -> Self {
        let epoll = Epoll::new().expect("epoll");
        let pairs = (0..connections).map(|_| TcpStream::pair());
        let ends: Vec<_> = pairs.flat_map(|(ours, theirs)| [ours, theirs]).collect();
        for (number, end) in ends.iter().enumerate() {
            end.nonblocking().expect("nonblocking");
            epoll.add_edges(end, number as u64).expect("add");
        }
        let buffers = vec![[0; 1024]; ends.len()];
        Self { epoll, ends, buffers }
    }

    /// `n` echoes on each connection. The ends with even numbers ask.
    fn run(&mut self, n: u64) {
        let mut left = vec![n; self.ends.len()];
        let mut running = if n == 0 { 0 } else { self.ends.len() / 2 };
        for (number, end) in self.ends.iter_mut().enumerate().step_by(2) {
            if n > 0 {
                end.write_all(&[number as u8; 1024]).expect("write");
            }
        }
        let mut ready = Vec::new();
        while running > 0 {
            self.epoll.wait(&mut ready).expect("wait");
            for number in ready.iter().map(|&number| number as usize) {
                let (end, buffer) = (&mut self.ends[number], &mut self.buffers[number]);
                buffer[1023] = !(number as u8);
                end.read_exact(buffer).expect("read");
                let asks = number % 2 == 0;
                let sent = if asks { number } else { number - 1 };
                assert_eq!(buffer[1023], sent as u8);
                if asks {
                    left[number] -= 1;
                    running -= usize::from(left[number] == 0);
                }
                if !asks || left[number] > 0 {
                    end.write_all(buffer).expect("write");
                }
            }
        }
    }
}

/// Two threads in blocking calls.
pub(super) fn threads_ping_pong<E: End>(b: &mut Bench) {
    b.iter(|n| {
        let (mut ours, mut theirs) = E::pair();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut buffer = [0_u8; 64];
                for _ in 0..n {
                    theirs.read_exact(&mut buffer).expect("read");
                    theirs.write_all(&buffer).expect("write");
                }
            });
            let mut buffer = [0_u8; 64];
            for i in 0..n {
                ours.write_all(&super::message(i)).expect("write");
                ours.read_exact(&mut buffer).expect("read");
                assert_eq!(buffer, super::message(i));
            }
        });
    });
}

pub(super) fn accept_threads(b: &mut Bench) {
    b.iter(|n| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let address = listener.local_addr().expect("bound");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..n {
                    let (mut stream, _) = listener.accept().expect("accept");
                    stream.set_nodelay(true).expect("nodelay");
                    stream.write_all(&[1]).expect("write");
                }
            });
            for _ in 0..n {
                let mut stream = TcpStream::connect(address).expect("connect");
                stream.set_nodelay(true).expect("nodelay");
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("read");
                assert_eq!(byte, [1]);
            }
        });
    });
}
