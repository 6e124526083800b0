//! All kinds of sockets at once, with waits that are dropped, tasks that are aborted, and ends that
//! close in the middle. What must hold: nothing is lost, doubled or out of order, and nobody sleeps
//! for ever.
//!
//! `VOLT_STRESS` (a number, 1 by default) multiplies the rounds.
#![cfg(target_os = "linux")]

#[path = "support/net.rs"]
mod support;

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use support::{bounded, each, stress, tcp_pair, udp_pair};
use volt::io::unix::AsyncFd;
use volt::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest};
use volt::net::unix::pipe;
use volt::net::{TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixStream};
use volt::sync::oneshot;
use volt::task::{JoinHandle, JoinSet};

/// A generator of the numbers that decide what happens (xorshift); the same for the same seed.
struct Dice(u64);

impl Dice {
    fn new(seed: usize) -> Self {
        Self(seed as u64 * 2 + 0x9E37_79B9_7F4A_7C15)
    }

    /// A number below `end`.
    fn roll(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    /// A size from 1 to 2^`bits`; all magnitudes are equally likely.
    fn size(&mut self, bits: u64) -> usize {
        let magnitude = 1 + self.roll(bits);
        1 + self.roll(1 << magnitude) as usize
    }
}

/// Waits a little, or not at all: another turn, or a time.
async fn dawdle(dice: &mut Dice) {
    match dice.roll(8) {
        0 => volt::time::sleep(Duration::from_micros(dice.roll(200))).await,
        1 | 2 => volt::task::yield_now().await,
        _ => {}
    }
}

/// Polls `future` `polls` times at most; if it is pending still, it is dropped.
async fn give_up<F: Future>(polls: u64, future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    let mut left = polls;
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await
}

/// The byte at a place of a stream.
fn at(place: usize) -> u8 {
    (place * 31 % 251) as u8
}

/// Writes `size` bytes in pieces of all sizes; a write that is pending may be dropped and begun anew.
/// Closes when the reader has `got` them all: no end of the stream wakes one that has been forgotten.
async fn send_stream(
    mut writer: impl AsyncWrite + Unpin,
    size: usize,
    mut dice: Dice,
    got: oneshot::Receiver<()>,
) {
    let mut sent = 0;
    while sent < size {
        let length = dice.size(14).min(size - sent);
        let piece: Vec<u8> = (sent..sent + length).map(at).collect();
        let result = match dice.roll(4) {
            0 => give_up(dice.roll(3), writer.write(&piece)).await,
            _ => Some(writer.write(&piece).await),
        };
        sent += result.map_or(0, Result::unwrap);
        dawdle(&mut dice).await;
    }
    got.await.unwrap();
    writer.shutdown().await.unwrap();
}

/// Reads to the end in pieces of all sizes, some of them dropped while they are pending. Says when it
/// has `got` all bytes.
async fn receive_stream(
    mut reader: impl AsyncRead + Unpin,
    size: usize,
    mut dice: Dice,
    got: oneshot::Sender<()>,
) {
    let (mut place, mut room, mut got) = (0, vec![0; 1 << 14], Some(got));
    loop {
        if let Some(got) = got.take_if(|_| place == size) {
            got.send(()).unwrap();
        }
        let length = dice.size(13);
        let read = reader.read(&mut room[..length]);
        let result = match dice.roll(4) {
            0 => give_up(dice.roll(3), read).await,
            _ => Some(read.await),
        };
        match result.map(Result::unwrap) {
            None => {}
            Some(0) => break,
            Some(count) => {
                for (i, byte) in room[..count].iter().enumerate() {
                    assert_eq!(*byte, at(place + i), "at {}", place + i);
                }
                place += count;
            }
        }
        dawdle(&mut dice).await;
    }
    assert_eq!(place, size);
}

/// Both directions of a pair of streams, each end in a task of its own.
fn both_ways(
    tasks: &mut JoinSet<()>,
    a: impl AsyncRead + AsyncWrite + Send + 'static,
    b: impl AsyncRead + AsyncWrite + Send + 'static,
    seed: usize,
) {
    let ((a_reader, a_writer), (b_reader, b_writer)) = (volt::io::split(a), volt::io::split(b));
    let size = 20_000 + seed % 40 * 977;
    one_way(tasks, a_writer, b_reader, size, seed);
    one_way(tasks, b_writer, a_reader, size, seed + 2);
}

/// `size` bytes from one task to another.
fn one_way(
    tasks: &mut JoinSet<()>,
    writer: impl AsyncWrite + Unpin + Send + 'static,
    reader: impl AsyncRead + Unpin + Send + 'static,
    size: usize,
    seed: usize,
) {
    let (sender, receiver) = oneshot::channel();
    tasks.spawn(send_stream(writer, size, Dice::new(seed), receiver));
    tasks.spawn(receive_stream(reader, size, Dice::new(seed + 1), sender));
}

async fn all_of(mut tasks: JoinSet<()>) {
    while let Some(done) = bounded(tasks.join_next()).await {
        done.unwrap();
    }
}

#[test]
fn streams_carry_all_bytes_in_order() {
    each(|| async {
        for round in 0..stress(3) {
            let mut tasks = JoinSet::new();
            for i in 0..4 {
                let seed = (round * 4 + i) * 10;
                let (a, b) = tcp_pair().await;
                both_ways(&mut tasks, a, b, seed);
                let (a, b) = UnixStream::pair().unwrap();
                both_ways(&mut tasks, a, b, seed + 5);
                let (sender, receiver) = pipe::pipe().unwrap();
                one_way(&mut tasks, sender, receiver, 50_000 + seed % 1000, seed + 6);
            }
            all_of(tasks).await;
        }
    });
}

/// Datagrams from one end of a unix socket to the other: each exactly once, whoever takes it, although
/// many a wait for one is dropped.
#[test]
fn datagrams_arrive_once() {
    const COUNT: u32 = 400;
    each(|| async {
        for round in 0..stress(3) {
            let (a, b) = UnixDatagram::pair().unwrap();
            let (a, b) = (Arc::new(a), Arc::new(b));
            let receivers: Vec<JoinHandle<Vec<u32>>> = (0..3)
                .map(|i| {
                    let (b, mut dice) = (b.clone(), Dice::new(round * 3 + i));
                    volt::spawn(async move {
                        let (mut got, mut buf) = (Vec::new(), [0; 4]);
                        loop {
                            let received = match dice.roll(3) {
                                0 => give_up(dice.roll(3), b.recv(&mut buf)).await,
                                _ => Some(b.recv(&mut buf).await),
                            };
                            match received.map(Result::unwrap) {
                                None => {}
                                Some(0) => return got,
                                Some(count) => {
                                    assert_eq!(count, 4);
                                    got.push(u32::from_le_bytes(buf));
                                }
                            }
                            dawdle(&mut dice).await;
                        }
                    })
                })
                .collect();
            let mut dice = Dice::new(round);
            let mut number = 0_u32;
            while number < COUNT {
                let bytes = number.to_le_bytes();
                let sent = match dice.roll(3) {
                    0 => give_up(dice.roll(3), a.send(&bytes)).await,
                    _ => Some(bounded(a.send(&bytes)).await),
                };
                number += u32::from(sent.map(Result::unwrap).is_some());
            }
            for _ in &receivers {
                bounded(a.send(b"")).await.unwrap();
            }
            let mut all = Vec::new();
            for receiver in receivers {
                all.extend(bounded(receiver).await.unwrap());
            }
            all.sort_unstable();
            assert_eq!(all, (0..COUNT).collect::<Vec<_>>());
        }
    });
}

/// Questions and answers by UDP on the loopback interface, with one under way in each pair, so that
/// none finds the buffer full.
#[test]
fn udp_answers_come_to_who_asked() {
    async fn answer(socket: UdpSocket, count: u32, mut dice: Dice) {
        let mut buf = [0; 8];
        for _ in 0..count {
            let length = loop {
                match dice.roll(3) {
                    0 => match give_up(dice.roll(3), socket.recv(&mut buf)).await {
                        Some(length) => break length.unwrap(),
                        None => dawdle(&mut dice).await,
                    },
                    1 => {
                        socket.readable().await.unwrap();
                        match socket.try_recv(&mut buf) {
                            Ok(length) => break length,
                            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                        }
                    }
                    _ => break socket.recv(&mut buf).await.unwrap(),
                }
            };
            dawdle(&mut dice).await;
            assert_eq!(socket.send(&buf[..length]).await.unwrap(), length);
        }
    }
    async fn ask(socket: UdpSocket, count: u32) {
        let mut buf = [0; 8];
        for number in 0..count {
            assert_eq!(socket.send(&number.to_le_bytes()).await.unwrap(), 4);
            assert_eq!(socket.recv(&mut buf).await.unwrap(), 4);
            assert_eq!(buf[..4], number.to_le_bytes());
        }
    }
    each(|| async {
        let mut tasks = JoinSet::new();
        let count = stress(100) as u32;
        for i in 0..4 {
            let (a, b) = udp_pair().await;
            tasks.spawn(answer(a, count, Dice::new(i)));
            tasks.spawn(ask(b, count));
        }
        all_of(tasks).await;
    });
}

/// `AsyncFd`s whose other ends a thread serves, which is no member of the runtime.
#[test]
fn async_fds_beside_a_foreign_thread() {
    async fn ask(fd: AsyncFd<StdStream>, count: u32, mut dice: Dice) {
        for number in 0..count {
            let bytes = number.to_le_bytes();
            let sent = fd.async_io(Interest::WRITABLE, |mut socket| socket.write(&bytes)).await;
            assert_eq!(sent.unwrap(), 4);
            let (mut answer, mut have) = ([0; 4], 0);
            while have < 4 {
                let room = &mut answer[have..];
                have += match dice.roll(2) {
                    0 => {
                        let read = fd.async_io(Interest::READABLE, |mut socket| socket.read(room));
                        give_up(dice.roll(3), read).await.map_or(0, Result::unwrap)
                    }
                    _ => {
                        let mut guard = fd.readable().await.unwrap();
                        let read = guard.try_io(|fd| fd.get_ref().read(room));
                        read.map_or(0, Result::unwrap)
                    }
                };
            }
            assert_eq!(answer, bytes);
        }
    }
    each(|| async {
        let (mut tasks, mut threads) = (JoinSet::new(), Vec::new());
        let count = stress(60) as u32;
        for i in 0..3 {
            let (a, mut b) = StdStream::pair().unwrap();
            a.set_nonblocking(true).unwrap();
            tasks.spawn(ask(AsyncFd::new(a).unwrap(), count, Dice::new(i)));
            let serve = move || {
                let mut bytes = [0; 4];
                while b.read_exact(&mut bytes).is_ok() {
                    b.write_all(&bytes).unwrap();
                }
            };
            threads.push(std::thread::Builder::new().spawn(serve).unwrap());
        }
        all_of(tasks).await;
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// Clients that come and go: some are aborted while they connect or wait, some close at once, and the
/// server's tasks see an end or a reset. The listener serves whoever comes after them.
#[test]
fn connections_that_end_in_the_middle() {
    async fn client(address: std::net::SocketAddr, mut dice: Dice) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        dawdle(&mut dice).await;
        if dice.roll(3) == 0 {
            stream.set_zero_linger().unwrap();
            return;
        }
        stream.write_all(b"question").await.unwrap();
        stream.read_u8().await.map(drop).unwrap_or_default();
        dawdle(&mut dice).await;
    }
    async fn serve(mut stream: TcpStream) {
        let mut buf = [0; 64];
        // An end or a reset is all the same here.
        while let Ok(count @ 1..) = stream.read(&mut buf).await {
            if stream.write_all(&buf[..count]).await.is_err() {
                break;
            }
        }
    }
    each(|| async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = volt::spawn(async move {
            let mut tasks = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tasks.spawn(serve(stream));
                while tasks.try_join_next().is_some() {}
            }
        });
        let mut dice = Dice::new(7);
        for round in 0..stress(8) {
            let clients: Vec<_> =
                (0..12).map(|i| volt::spawn(client(address, Dice::new(round * 12 + i)))).collect();
            for client in &clients {
                if dice.roll(3) == 0 {
                    client.abort();
                }
                dawdle(&mut dice).await;
            }
            for client in clients {
                match bounded(client).await {
                    Ok(()) => {}
                    Err(error) => assert!(error.is_cancelled(), "{error}"),
                }
            }
        }
        // Everything works as before.
        let mut stream = bounded(TcpStream::connect(address)).await.unwrap();
        stream.write_all(b"still here?").await.unwrap();
        let mut back = [0; 11];
        bounded(stream.read_exact(&mut back)).await.unwrap();
        assert_eq!(&back, b"still here?");
        server.abort();
        assert!(server.await.unwrap_err().is_cancelled());
    });
}
