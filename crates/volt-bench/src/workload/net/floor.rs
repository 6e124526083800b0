//! The same with raw epoll loops, and with threads.
#![forbid(unsafe_code)]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use crate::bench::Bench;
use crate::epoll::Epoll;

/// Client and server in one loop on one thread: no scheduler, no wake-up between threads.
pub(super) fn epoll_ping_pong(b: &mut Bench) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let mut ours = TcpStream::connect(listener.local_addr().expect("bound")).expect("connect");
    let (mut theirs, _) = listener.accept().expect("accept");
    let epoll = Epoll::new().expect("epoll");
    for (number, stream) in [(0, &ours), (1, &theirs)] {
        stream.set_nodelay(true).expect("nodelay");
        stream.set_nonblocking(true).expect("nonblocking");
        epoll.add(stream, number).expect("add");
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
