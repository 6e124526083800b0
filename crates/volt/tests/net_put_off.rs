//! A read that usually finds nothing is put off; what lies in the socket is found all the same.

#[path = "support/net.rs"]
mod support;

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt;
use futures::executor::block_on;
use support::{bounded, each, udp_pair};
use volt::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use volt::net::{TcpStream, UdpSocket, UnixStream};
use volt::runtime::{Builder, Runtime};
use volt::time::Instant;

/// More exchanges than have to go by before reads are put off.
const TRAINING: usize = 100;

async fn tcp_pair() -> (TcpStream, TcpStream) {
    let (client, server) = support::tcp_pair().await;
    client.set_nodelay(true).unwrap();
    (client, server)
}

/// Receives a datagram that `send` sends once `socket` waits for it.
async fn waits_for(socket: &UdpSocket, buf: &mut [u8], send: impl FnOnce()) -> usize {
    let (mut receive, mut send) = (std::pin::pin!(socket.recv(buf)), Some(send));
    let received = poll_fn(|cx| {
        let received = receive.as_mut().poll(cx);
        if let Some(send) = send.take() {
            assert!(received.is_pending());
            send();
        }
        received
    });
    received.await.unwrap()
}

/// Has `reader` wait for a message of 8 bytes each time, so that its next read is put off.
async fn train(
    writer: &mut (impl AsyncWrite + Unpin),
    reader: &mut (impl AsyncRead + Send + Unpin),
) {
    for round in 0..TRAINING as u64 {
        let mut message = [0; 8];
        let mut read = std::pin::pin!(reader.read_exact(&mut message));
        let mut written = false;
        poll_fn(|cx| {
            let read = read.as_mut().poll(cx);
            if !std::mem::replace(&mut written, true) {
                assert!(read.is_pending());
                let write = Pin::new(&mut *writer).poll_write(cx, &round.to_le_bytes());
                assert!(matches!(write, Poll::Ready(Ok(8))));
            }
            read
        })
        .await
        .unwrap();
        assert_eq!(message, round.to_le_bytes());
    }
}

async fn two_messages_at_once(
    mut writer: impl AsyncWrite + Send + Unpin + 'static,
    mut reader: impl AsyncRead + Send + Unpin + 'static,
) {
    for _ in 0..3 {
        train(&mut writer, &mut reader).await;
        writer.write_all(b"onetwothree.").await.unwrap();
        for expected in [b"onet", b"woth", b"ree."] {
            // Each read by another task, so that it may be on another thread.
            let mut message = [0; 4];
            let back = volt::spawn(async move {
                reader.read_exact(&mut message).await.unwrap();
                (reader, message)
            });
            (reader, message) = back.await.unwrap();
            assert_eq!(&message, expected);
        }
    }
    drop(writer);
    assert_eq!(reader.read(&mut [0]).await.unwrap(), 0);
}

#[test]
fn messages_that_came_together_are_all_read() {
    each(|| async {
        let (client, server) = tcp_pair().await;
        two_messages_at_once(client, server).await;
        let (a, b) = UnixStream::pair().unwrap();
        two_messages_at_once(a, b).await;
        let (sender, receiver) = volt::net::unix::pipe::pipe().unwrap();
        two_messages_at_once(sender, receiver).await;
    });
}

#[test]
fn datagrams_that_came_together_are_all_received() {
    each(|| async {
        let (a, b) = udp_pair().await;
        let mut buf = [0; 16];
        for round in 0..3 * TRAINING as u32 {
            let count = if round % TRAINING as u32 == 99 { 3 } else { 1 };
            let mut first = [0; 16];
            let received = waits_for(&b, &mut first, || {
                for number in 0..count {
                    a.try_send(&(round + number).to_le_bytes()).unwrap();
                }
            });
            assert_eq!(received.await, 4);
            for number in 1..count {
                assert_eq!(b.recv(&mut buf).await.unwrap(), 4);
                assert_eq!(buf[..4], (round + number).to_le_bytes());
            }
        }
    });
}

/// A poll of a read that is then given up.
async fn poll_once(stream: &TcpStream) {
    let mut room = [0; 4];
    poll_fn(|cx| {
        let _ = stream.poll_peek(cx, &mut ReadBuf::new(&mut room));
        Poll::Ready(())
    })
    .await;
}

#[test]
fn a_read_that_was_put_off_and_given_up_hides_nothing_from_others() {
    each(|| async {
        let (mut client, mut server) = tcp_pair().await;
        for give_up in 0..4 {
            train(&mut client, &mut server).await;
            client.write_all(b"onetwo").await.unwrap();
            server.read_exact(&mut [0; 3]).await.unwrap();
            poll_once(&server).await;
            let mut rest = [0; 3];
            match give_up {
                0 => assert_eq!(server.try_read(&mut rest).unwrap(), 3),
                1 => {
                    server.readable().await.unwrap();
                    assert_eq!(server.try_read(&mut rest).unwrap(), 3);
                }
                2 => {
                    // Several tasks wait; the reminder wakes them all.
                    let (one, other) = volt::join!(server.readable(), server.peek(&mut rest));
                    one.unwrap();
                    assert_eq!(other.unwrap(), 3);
                    server.read_exact(&mut rest).await.unwrap();
                }
                _ => {
                    let mut std = server.into_std().unwrap();
                    std::io::Read::read_exact(&mut std, &mut rest).unwrap();
                    assert_eq!(&rest, b"two");
                    return;
                }
            }
            assert_eq!(&rest, b"two");
        }
    });
}

/// Two messages came together, one is read.
async fn one_of_two() -> (UnixStream, UnixStream) {
    let (mut client, mut server) = UnixStream::pair().unwrap();
    train(&mut client, &mut server).await;
    client.write_all(b"onetwo").await.unwrap();
    server.read_exact(&mut [0; 3]).await.unwrap();
    (client, server)
}

async fn reads_the_other(mut server: UnixStream) {
    let mut rest = [0; 3];
    let read = volt::time::timeout(Duration::from_secs(20), server.read_exact(&mut rest)).await;
    read.expect("does not hang").unwrap();
    assert_eq!(&rest, b"two");
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Nobody turns the reactor any more, or would have to.
#[test]
fn a_socket_of_a_runtime_that_rests_is_read_in_another() {
    let (one, two) = (current_thread(), current_thread());
    let (_client, server) = one.block_on(one_of_two());
    two.block_on(reads_the_other(server));
    // The same if the read was put off while the first one ran.
    let (_client, server) = one.block_on(async {
        // On a machine that takes the processor away, a look may be due before: then it is made at once.
        for _ in 0..1000 {
            let (client, mut server) = one_of_two().await;
            let put_off = poll_fn(|cx| {
                let mut rest = [0; 3];
                let read = Pin::new(&mut server).poll_read(cx, &mut ReadBuf::new(&mut rest));
                Poll::Ready(read.is_pending())
            });
            if put_off.await {
                return (client, server);
            }
        }
        panic!("no read was put off");
    });
    two.block_on(async {
        let readable = volt::time::timeout(Duration::from_secs(20), server.readable()).await;
        readable.expect("does not hang").unwrap();
        reads_the_other(server).await;
    });
}

#[test]
fn a_socket_is_read_elsewhere_while_the_only_worker_waits_for_that() {
    let one = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (done, is_done) = std::sync::mpsc::channel();
    drop(one.spawn(async move {
        let (_client, server) = one_of_two().await;
        std::thread::scope(|scope| {
            scope.spawn(|| current_thread().block_on(reads_the_other(server)));
        });
        done.send(()).unwrap();
    }));
    is_done.recv().unwrap();
}

/// Runs `test` in `block_on` and in a task, where nobody else can turn the reactor.
fn alone<F>(test: fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let one_worker = || Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    for (runtime, spawned) in [
        (current_thread(), false),
        (current_thread(), true),
        (one_worker(), false),
        (one_worker(), true),
    ] {
        let (done, is_done) = std::sync::mpsc::channel();
        let run = move || {
            if spawned {
                runtime.block_on(async { volt::spawn(test()).await.unwrap() });
            } else {
                runtime.block_on(test());
            }
            done.send(()).unwrap();
        };
        // Not joined: it may hang.
        std::thread::Builder::new().spawn(run).unwrap();
        is_done.recv_timeout(Duration::from_secs(30)).expect("does not hang");
    }
}

/// While a task waits in another executor, its thread turns no reactor.
#[test]
fn another_executor_inside_a_task_finds_what_is_there() {
    alone(|| async {
        let (_client, mut server) = one_of_two().await;
        let mut rest = [0; 3];
        block_on(server.read_exact(&mut rest)).unwrap();
        assert_eq!(&rest, b"two");
    });
}

#[test]
fn a_single_poll_that_cannot_wake_anybody_finds_what_is_there() {
    alone(|| async {
        let (_client, mut server) = one_of_two().await;
        let mut rest = [0; 3];
        server.read_exact(&mut rest).now_or_never().expect("is there").unwrap();
        assert_eq!(&rest, b"two");
    });
}

#[test]
fn another_executor_inside_a_task_receives_what_is_there() {
    alone(|| async {
        let (a, b) = udp_pair().await;
        let mut buf = [0; 4];
        for _ in 0..TRAINING {
            waits_for(&b, &mut buf, || _ = a.try_send(b"one").unwrap()).await;
        }
        let both = || [b"one", b"two"].iter().for_each(|m| _ = a.try_send(*m).unwrap());
        waits_for(&b, &mut buf, both).await;
        assert_eq!(block_on(b.recv(&mut buf)).unwrap(), 3);
        assert_eq!(&buf[..3], b"two");
    });
}

#[test]
fn local_tasks_in_another_executor_find_what_is_there() {
    alone(|| async {
        let (_client, mut server) = one_of_two().await;
        let set = volt::task::LocalSet::new();
        let task = set.spawn_local(async move {
            let mut rest = [0; 3];
            server.read_exact(&mut rest).await.unwrap();
            rest
        });
        assert_eq!(&block_on(set.run_until(task)).unwrap(), b"two");
    });
}

/// The parts of a task that this crate polls are polled with the task's waker.
#[test]
fn a_read_is_put_off_in_parts_of_a_task_as_well() {
    async fn puts_off() {
        // On a busy machine, polls may take as long as those among which no read is put off.
        for _ in 0..100 {
            let (_client, mut server) = one_of_two().await;
            let read = poll_fn(|cx| {
                Poll::Ready(Pin::new(&mut server).poll_read(cx, &mut ReadBuf::new(&mut [0; 3])))
            });
            if read.await.is_pending() {
                return;
            }
        }
        panic!("no read was put off");
    }
    current_thread().block_on(async {
        volt::spawn(puts_off()).await.unwrap();
        volt::join!(puts_off(), puts_off());
        volt::select! {
            () = puts_off() => (),
            () = std::future::pending() => (),
        }
        volt::time::timeout(Duration::from_secs(60), puts_off()).await.unwrap();
        let set = volt::task::LocalSet::new();
        set.run_until(async {
            puts_off().await;
            volt::task::spawn_local(puts_off()).await.unwrap();
        })
        .await;
    });
}

/// A client that throws late answers away before each question. (On one thread: on several, the event
/// of an answer may come before anybody asks again, as if somebody had waited for it.)
#[test]
fn who_does_not_wait_gets_what_is_there() {
    current_thread().block_on(async {
        let (a, b) = udp_pair().await;
        let mut late = 0;
        for round in 0..3 * TRAINING as u32 {
            let mut buf = [0; 16];
            poll_fn(|cx| {
                while std::pin::pin!(b.recv(&mut buf)).poll(cx).is_ready() {
                    late += 1;
                }
                Poll::Ready(())
            })
            .await;
            assert_eq!(late, round / 97, "round {round}");
            a.send(&round.to_le_bytes()).await.unwrap();
            if round % 97 == 96 {
                a.send(b"duplicate").await.unwrap();
            }
            assert_eq!(b.recv(&mut buf).await.unwrap(), 4);
            assert_eq!(buf[..4], round.to_le_bytes());
        }
    });
}

/// A paused clock moves on only when nothing is left to read.
#[test]
fn a_paused_clock_does_not_overtake_what_is_in_the_socket() {
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (mut client, mut server) = UnixStream::pair().unwrap();
        train(&mut client, &mut server).await;
        client.write_all(b"onetwo").await.unwrap();
        let start = Instant::now();
        for expected in [b"one", b"two"] {
            let mut message = [0; 3];
            let read = server.read_exact(&mut message);
            volt::time::timeout(Duration::from_secs(3600), read).await.unwrap().unwrap();
            assert_eq!(&message, expected);
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
    });
}

/// A member that has only put reads off looks for events as it is, without parking first.
#[test]
fn messages_between_two_tasks_of_a_thread_park_nobody() {
    let runtime = current_thread();
    runtime.block_on(async {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        drop(volt::spawn(async move {
            let mut message = [0; 8];
            while theirs.read_exact(&mut message).await.is_ok() {
                theirs.write_all(&message).await.unwrap();
            }
        }));
        let mut parks = 0;
        for round in 0..10 * TRAINING as u64 {
            let mut back = [0; 8];
            ours.write_all(&round.to_le_bytes()).await.unwrap();
            ours.read_exact(&mut back).await.unwrap();
            assert_eq!(back, round.to_le_bytes());
            if round == TRAINING as u64 {
                parks = runtime.metrics().parks_count();
            }
        }
        parks = runtime.metrics().parks_count() - parks;
        // Two messages a round; if a read is made that finds nothing, both sides learn anew.
        assert!(parks < 9 * TRAINING as u64, "{parks} parks");
    });
}

/// Messages that come in pairs to a runtime that always has something to run: each pair makes one event, and
/// for each message that is read another pair comes. The reader may not fall behind by ever more of them.
#[test]
fn messages_in_pairs_do_not_pile_up_beside_a_busy_task() {
    use std::io::Write;
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    const PAIRS: usize = 300;
    current_thread().block_on(async {
        let (mut ours, mut server) = UnixStream::pair().unwrap();
        train(&mut ours, &mut server).await;
        let mut writer = ours.into_std().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let received = Arc::new(AtomicUsize::new(0));
        let (stop, count) = (over.clone(), received.clone());
        let busy = volt::spawn(async move {
            while !stop.load(Relaxed) {
                volt::task::yield_now().await;
            }
        });
        let reader = volt::spawn(async move {
            let mut message = [0; 8];
            for _ in 0..2 * PAIRS {
                server.read_exact(&mut message).await.unwrap();
                count.fetch_add(1, Relaxed);
            }
        });
        let mut most = 0;
        let mut slowest = Duration::ZERO;
        for pair in 1..=PAIRS {
            let (before, start) = (received.load(Relaxed), Instant::now());
            writer.write_all(&[0; 16]).unwrap();
            while received.load(Relaxed) == before {
                volt::task::yield_now().await;
            }
            slowest = slowest.max(start.elapsed());
            most = most.max(2 * pair - received.load(Relaxed));
        }
        over.store(true, Relaxed);
        busy.await.unwrap();
        volt::time::timeout(Duration::from_secs(20), reader).await.unwrap().unwrap();
        assert!(most < 100, "{most} messages of {} wait in the socket ({slowest:?})", 2 * PAIRS);
    });
}

/// Two datagrams come in each poll of a task that computes, and a look at the driver follows each: the
/// receiver keeps up, and none is lost because nobody takes them out.
#[test]
fn datagrams_in_pairs_do_not_wait_beside_a_task_that_computes() {
    const PAIRS: usize = 500;
    current_thread().block_on(async {
        let (a, b) = udp_pair().await;
        let mut buf = [0; 16];
        for _ in 0..TRAINING {
            waits_for(&b, &mut buf, || assert_eq!(a.try_send(&[0; 8]).unwrap(), 8)).await;
        }
        let a = a.into_std().unwrap();
        let start = Instant::now();
        let busy = volt::spawn(async move {
            for _ in 0..PAIRS {
                let poll = Instant::now();
                for _ in 0..2 {
                    a.send(&(start.elapsed().as_nanos() as u64).to_le_bytes()).unwrap();
                }
                while poll.elapsed() < Duration::from_micros(300) {
                    std::hint::spin_loop();
                }
                volt::task::yield_now().await;
            }
        });
        let (mut received, mut slowest) = (0, Duration::ZERO);
        while received < 2 * PAIRS {
            let receive = volt::time::timeout(Duration::from_secs(1), b.recv(&mut buf));
            let Ok(length) = receive.await else { break };
            assert_eq!(length.unwrap(), 8);
            received += 1;
            let sent = u64::from_le_bytes(buf[..8].try_into().unwrap());
            slowest = slowest.max(start.elapsed().saturating_sub(Duration::from_nanos(sent)));
        }
        busy.await.unwrap();
        assert_eq!(received, 2 * PAIRS, "the slowest came after {slowest:?}");
    });
}

/// A sequence of numbers that looks random (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Both sides know the sizes. Mostly one message is under way, now and then several at once, and
/// each has to arrive before the next ones are sent.
async fn exchange(
    mut a: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    mut b: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    seed: u64,
) {
    const ROUNDS: u32 = 1500;
    let sizes = |numbers: &mut Numbers| {
        let together = if numbers.below(90) == 0 { 1 + numbers.below(4) } else { 1 };
        (0..together).map(|_| 1 + numbers.below(40) as usize).collect::<Vec<_>>()
    };
    let echo = volt::spawn(async move {
        let mut numbers = Numbers(seed);
        for _ in 0..ROUNDS {
            let mut all = Vec::new();
            for size in sizes(&mut numbers) {
                let start = all.len();
                all.resize(start + size, 0);
                b.read_exact(&mut all[start..]).await.unwrap();
            }
            b.write_all(&all).await.unwrap();
        }
    });
    let mut numbers = Numbers(seed);
    for round in 0..ROUNDS {
        let sizes = sizes(&mut numbers);
        let sent: Vec<u8> =
            (0..sizes.iter().sum()).map(|i: usize| (i as u32 * 31 + round) as u8).collect();
        a.write_all(&sent).await.unwrap();
        let mut back = vec![0; sent.len()];
        let mut rest = &mut back[..];
        for size in sizes {
            let (message, more) = rest.split_at_mut(size);
            a.read_exact(message).await.unwrap();
            rest = more;
        }
        assert_eq!(back, sent);
    }
    echo.await.unwrap();
}

#[test]
fn every_byte_arrives_whatever_comes_together() {
    each(|| async {
        let mut all = Vec::new();
        for seed in 1..5 {
            let (client, server) = tcp_pair().await;
            all.push(volt::spawn(bounded(exchange(client, server, seed * 0x9e37))));
            let (one, other) = UnixStream::pair().unwrap();
            all.push(volt::spawn(bounded(exchange(one, other, seed * 0x7f4b))));
        }
        for one in all {
            one.await.unwrap();
        }
    });
}
