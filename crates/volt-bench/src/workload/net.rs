//! Sockets on the loopback device.

mod floor;

use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use crate::bench::Bench;
use crate::kind::Sockets;
use crate::on_tokio;
use crate::on_volt;
use crate::peers::smol;
use crate::registry::Row;

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new("net/tcp_ping_pong", "TCP: 64 bytes there and back")
            .headline()
            .volt("volt", tcp_ping_pong::<on_volt::Multi>)
            .peer("tokio", tcp_ping_pong::<on_tokio::Multi>)
            .peer("async-io", tcp_ping_pong::<smol::Multi>)
            .floor("raw epoll", floor::epoll_ping_pong::<TcpStream>)
            .floor("threads", floor::threads_ping_pong::<TcpStream>),
        Row::new("net/tcp_echo_64", "TCP echo, 64 connections, 1 KB (per echo)")
            .headline()
            .volt("volt", tcp_echo::<on_volt::Multi, 64>)
            .peer("tokio", tcp_echo::<on_tokio::Multi, 64>)
            .peer("async-io", tcp_echo::<smol::Multi, 64>)
            .floor("2 epolls", floor::echo_on_two_threads::<64>),
        Row::new("net/tcp_echo_2", "TCP echo, 2 connections, 1 KB (per echo)")
            .volt("volt", tcp_echo::<on_volt::Multi, 2>)
            .peer("tokio", tcp_echo::<on_tokio::Multi, 2>)
            .peer("async-io", tcp_echo::<smol::Multi, 2>),
        Row::new("net/accept", "TCP: connect, accept, close")
            .headline()
            .volt("volt", accept::<on_volt::Multi>)
            .peer("tokio", accept::<on_tokio::Multi>)
            .peer("async-io", accept::<smol::Multi>)
            .floor("threads", floor::accept_threads),
        Row::new("net/udp_ping_pong", "UDP: 64 bytes there and back")
            .headline()
            .volt("volt", udp_ping_pong::<on_volt::Multi>)
            .peer("tokio", udp_ping_pong::<on_tokio::Multi>)
            .peer("async-io", udp_ping_pong::<smol::Multi>)
            .floor("raw epoll", floor::epoll_ping_pong::<floor::Datagrams>)
            .floor("threads", floor::threads_ping_pong::<floor::Datagrams>),
        Row::new("net/unix_ping_pong", "Unix stream: 64 bytes there and back")
            .headline()
            .why(
                "almost all of a round trip is the kernel's; what differs is whether both tasks stay on one worker or \
                 each message wakes the other one",
            )
            .volt("volt", unix_ping_pong::<on_volt::Multi>)
            .peer("tokio", unix_ping_pong::<on_tokio::Multi>)
            .peer("async-io", unix_ping_pong::<smol::Multi>)
            .floor("raw epoll", floor::epoll_ping_pong::<UnixStream>)
            .floor("threads", floor::threads_ping_pong::<UnixStream>),
    ]
}

pub(crate) fn tcp_ping_pong<R: Sockets>(b: &mut Bench) {
    let runtime = R::start();
    b.iter(|n| {
        runtime.run_task(async move {
            let (mut listener, address) = R::listen().await;
            let server = R::spawn(async move {
                let mut stream = R::accept(&mut listener).await;
                let mut buffer = [0_u8; 64];
                while R::read(&mut stream, &mut buffer).await {
                    R::write(&mut stream, &buffer).await;
                }
            });
            let mut stream = R::connect(address).await;
            let mut buffer = [0_u8; 64];
            for i in 0..n {
                R::write(&mut stream, &message(i)).await;
                assert!(R::read(&mut stream, &mut buffer).await, "open");
                assert_eq!(buffer, message(i));
            }
            drop(stream);
            server.await;
        });
    });
}

/// 64 bytes that tell their number.
fn message(i: u64) -> [u8; 64] {
    let mut message = [0x5a; 64];
    message[..8].copy_from_slice(&i.to_le_bytes());
    message
}

/// The connections stay open from run to run.
pub(crate) fn tcp_echo<R: Sockets, const CONNECTIONS: u8>(b: &mut Bench) {
    let runtime = R::start();
    let mut streams = runtime.run_task(async {
        let (mut listener, address) = R::listen().await;
        let mut streams = Vec::new();
        for _ in 0..CONNECTIONS {
            streams.push(R::connect(address).await);
            let mut stream = R::accept(&mut listener).await;
            R::detach(R::spawn(async move {
                let mut buffer = vec![0_u8; 1024];
                while R::read(&mut stream, &mut buffer).await {
                    R::write(&mut stream, &buffer).await;
                }
            }));
        }
        streams
    });
    b.iter_ops(u64::from(CONNECTIONS), |n| {
        let clients = (0..CONNECTIONS).zip(streams.drain(..));
        let clients: Vec<_> = clients
            .map(|(number, stream)| runtime.spawn_outside(echo_client::<R>(stream, n, number)))
            .collect();
        streams = runtime.block_on(async {
            let mut streams = Vec::with_capacity(clients.len());
            for client in clients {
                streams.push(client.await);
            }
            streams
        });
    });
}

async fn echo_client<R: Sockets>(mut stream: R::Stream, n: u64, number: u8) -> R::Stream {
    let sent = vec![number; 1024];
    let mut received = vec![!number; 1024];
    for _ in 0..n {
        R::write(&mut stream, &sent).await;
        received[1023] = !number;
        assert!(R::read(&mut stream, &mut received).await, "open");
        assert_eq!(received[1023], number);
    }
    assert_eq!(received, sent);
    stream
}

pub(crate) fn accept<R: Sockets>(b: &mut Bench) {
    let runtime = R::start();
    b.iter(|n| {
        runtime.run_task(async move {
            let (mut listener, address) = R::listen().await;
            let server = R::spawn(async move {
                for _ in 0..n {
                    let mut stream = R::accept(&mut listener).await;
                    R::write(&mut stream, &[1]).await;
                }
            });
            for _ in 0..n {
                let mut stream = R::connect(address).await;
                let mut byte = [0];
                assert!(R::read(&mut stream, &mut byte).await, "open");
                assert_eq!(byte, [1]);
            }
            server.await;
        });
    });
}

pub(crate) fn udp_ping_pong<R: Sockets>(b: &mut Bench) {
    let runtime = R::start();
    b.iter(|n| {
        runtime.run_task(async move {
            let (ours, theirs) = R::datagrams().await;
            let server = R::spawn(async move {
                let mut buffer = [0_u8; 64];
                for _ in 0..n {
                    let length = R::recv(&theirs, &mut buffer).await;
                    R::send(&theirs, &buffer[..length]).await;
                }
            });
            let mut buffer = [0_u8; 64];
            for i in 0..n {
                R::send(&ours, &message(i)).await;
                assert_eq!(R::recv(&ours, &mut buffer).await, 64);
                assert_eq!(buffer, message(i));
            }
            server.await;
        });
    });
}

pub(crate) fn unix_ping_pong<R: Sockets>(b: &mut Bench) {
    let runtime = R::start();
    b.iter(|n| {
        runtime.run_task(async move {
            let (mut ours, mut theirs) = R::unix_pair().await;
            let server = R::spawn(async move {
                let mut buffer = [0_u8; 64];
                while R::unix_read(&mut theirs, &mut buffer).await {
                    R::unix_write(&mut theirs, &buffer).await;
                }
            });
            let mut buffer = [0_u8; 64];
            for i in 0..n {
                R::unix_write(&mut ours, &message(i)).await;
                assert!(R::unix_read(&mut ours, &mut buffer).await, "open");
                assert_eq!(buffer, message(i));
            }
            drop(ours);
            server.await;
        });
    });
}
