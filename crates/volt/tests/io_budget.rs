//! Streams in memory and copies take part in the budget, change no data, and allocate what Tokio's do.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::Future;
use std::io::{self, IoSlice, SeekFrom};
use std::pin::{Pin, pin};
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use volt::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeekExt, AsyncWrite,
    AsyncWriteExt, BufReader, ReadBuf, copy, copy_bidirectional, copy_bidirectional_with_sizes,
    copy_buf, duplex, empty, repeat, simplex, sink,
};
use volt::runtime::Builder;
use volt::sync::coop::with_budget;
use volt::sync::oneshot;

/// Always ready, knows no budget, and writes at most so many bytes at once.
struct Foreign(usize);

impl AsyncRead for Foreign {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        buf.initialize_unfilled();
        buf.set_filled(buf.capacity());
        Poll::Ready(Ok(()))
    }
}

impl AsyncBufRead for Foreign {
    fn poll_fill_buf(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        Poll::Ready(Ok(&[0; 8]))
    }

    fn consume(self: Pin<&mut Self>, _: usize) {}
}

impl AsyncWrite for Foreign {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len().min(self.0)))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Panics unless another task, and the future of `block_on`, run beside one that polls `busy` for ever.
fn lets_others_run<F>(what: &str, busy: impl Fn() -> F)
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    for workers in [None, Some(1)] {
        let mut builder = match workers {
            None => Builder::new_current_thread(),
            Some(_) => Builder::new_multi_thread(),
        };
        if let Some(workers) = workers {
            builder.worker_threads(workers);
        }
        let rt = builder.enable_all().build().unwrap();
        let busy = busy();
        let (finish, finished) = mpsc::channel();
        thread::spawn(move || {
            rt.block_on(async {
                let (start, started) = oneshot::channel();
                let busy = volt::spawn(async move {
                    start.send(()).unwrap();
                    busy.await
                });
                started.await.unwrap();
                volt::spawn(async {}).await.unwrap();
                busy.abort();
                assert!(busy.await.unwrap_err().is_cancelled());
            });
            finish.send(()).unwrap();
        });
        let finished = finished.recv_timeout(Duration::from_secs(20));
        finished.unwrap_or_else(|_| panic!("{what} starves the others, workers: {workers:?}"));
    }
}

/// [`lets_others_run`], with a loop over an expression.
macro_rules! loops {
    ($($(let $pattern:pat = $state:expr;)? loop $each:expr;)*) => {$(
        lets_others_run(stringify!($each), || async {
            $(let $pattern = $state;)?
            loop {
                $each;
            }
        });
    )*};
}

#[test]
fn streams_in_memory_let_others_run() {
    loops! {
        let (mut near, mut far) = duplex(8); loop {
            near.write_all(b"12345678").await?;
            far.read_exact(&mut [0; 8]).await?
        };
        let (mut near, _far) = duplex(8); loop near.flush().await?;
        let (mut near, _) = duplex(8); loop assert_eq!(near.read(&mut [0]).await?, 0);
        let (mut near, _) = duplex(8); loop assert!(near.write(&[0]).await.is_err());
        let (mut reader, mut writer) = simplex(8); loop {
            writer.write_all(b"12345678").await?;
            reader.read_exact(&mut [0; 8]).await?
        };
        let mut sink = sink(); loop sink.write_all(b"12345678").await?;
        let mut sink = sink(); loop {
            assert_eq!(sink.write_vectored(&[IoSlice::new(b"1")]).await?, 1)
        };
        let mut sink = sink(); loop sink.flush().await?;
        let mut sink = sink(); loop sink.shutdown().await?;
        let mut repeat = repeat(1); loop repeat.read_u8().await?;
        let mut repeat = BufReader::new(repeat(1)); loop repeat.read_u8().await?;
        let mut empty = empty(); loop assert_eq!(empty.read(&mut [0]).await?, 0);
        let mut empty = empty(); loop empty.fill_buf().await?;
        let mut empty = empty(); loop empty.write_all(b"1").await?;
        let mut empty = empty(); loop empty.seek(SeekFrom::Start(1)).await?;
    }
}

#[test]
fn copies_let_others_run() {
    loops! {
        loop copy(&mut repeat(1), &mut sink()).await?;
        loop copy(&mut repeat(1), &mut Foreign(9000)).await?;
        loop copy(&mut Foreign(0), &mut sink()).await?;
        loop copy(&mut Foreign(0), &mut Foreign(9000)).await?;
        loop copy(&mut Foreign(0), &mut Foreign(1)).await?;
        loop copy(&mut &b"12345678"[..], &mut Foreign(9000)).await?;
        loop copy_buf(&mut BufReader::new(repeat(1)), &mut sink()).await?;
        loop copy_buf(&mut Foreign(0), &mut Foreign(9000)).await?;
        loop copy_buf(&mut &b"12345678"[..], &mut Foreign(9000)).await?;
        loop copy_bidirectional(&mut Foreign(9000), &mut Foreign(1)).await?;
        loop copy_bidirectional(&mut Foreign(9000), &mut empty()).await?;
        loop copy_bidirectional(&mut empty(), &mut empty()).await?;
        loop copy_bidirectional_with_sizes(&mut Foreign(9), &mut Foreign(9), 1, 9).await?;
    }
}

#[test]
fn a_copy_without_end_can_time_out() {
    for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
        let rt = builder.enable_all().build().unwrap();
        rt.block_on(async {
            let limit = Duration::from_millis(20);
            for _ in 0..3 {
                let (mut from, mut to) = (repeat(1), sink());
                volt::time::timeout(limit, copy(&mut from, &mut to)).await.unwrap_err();
                let task =
                    async move { volt::time::timeout(limit, copy(&mut from, &mut to)).await };
                volt::spawn(task).await.unwrap().unwrap_err();
            }
        });
    }
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// How many units the future takes, which never waits for anything else.
fn units<F: Future>(future: impl Fn() -> F) -> u32 {
    let done = |units| with_budget(Some(units), || poll(pin!(future())).is_ready());
    (0..1000).find(|units| done(*units)).unwrap()
}

#[test]
fn each_operation_that_is_ready_takes_a_unit() {
    assert_eq!(units(|| async { sink().write(&[0]).await }), 1);
    assert_eq!(units(|| async { empty().write_vectored(&[IoSlice::new(b"1")]).await }), 1);
    assert_eq!(units(|| async { repeat(0).read_exact(&mut [0; 100]).await }), 1);
    let (mut near, mut far) = duplex(8);
    with_budget(Some(2), || {
        // What waits takes none.
        for _ in 0..5 {
            assert!(poll(pin!(far.read_u8())).is_pending());
        }
        assert!(poll(pin!(near.write_u8(7))).is_ready());
        assert!(matches!(poll(pin!(far.read_u8())), Poll::Ready(Ok(7))));
        assert!(poll(pin!(near.write_u8(8))).is_pending(), "refused");
    });
    assert!(poll(pin!(far.read_u8())).is_pending(), "what was refused was not written");
}

/// One of a stream that takes the unit itself costs no second one, in a copy.
#[test]
fn a_copied_operation_takes_one_unit() {
    // A read of the bytes, a write, a read of the end, a flush.
    let known = units(|| async { copy(&mut repeat(0).take(9), &mut sink()).await });
    let foreign = units(|| async { copy(&mut Foreign(0).take(9), &mut Foreign(9)).await });
    assert_eq!((known, foreign), (4, 4));
    let bytewise = units(|| async { copy(&mut Foreign(0).take(9), &mut Foreign(1)).await });
    assert_eq!(bytewise, 12);
}

fn pattern(seed: usize) -> Vec<u8> {
    (0..1_000_000_usize).map(|n| (n.wrapping_mul(seed) >> 3) as u8).collect()
}

async fn read_all(reader: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut all = Vec::new();
    reader.read_to_end(&mut all).await.unwrap();
    all
}

#[test]
fn bulk_data_goes_through_unchanged() {
    volt::run(async {
        let (there, back) = (pattern(7), pattern(31));
        // A client, a proxy, and a server, with little room between them.
        let (mut client, mut near) = duplex(1000);
        let (mut far, mut server) = duplex(77);
        let proxy = volt::spawn(async move { copy_bidirectional(&mut near, &mut far).await });
        let (said, answer) = (there.clone(), back.clone());
        let server = volt::spawn(async move {
            let heard = read_all(&mut server).await;
            assert!(heard == said);
            copy(&mut &answer[..], &mut server).await.unwrap()
        });
        assert_eq!(copy_buf(&mut &there[..], &mut client).await.unwrap(), 1_000_000);
        client.shutdown().await.unwrap();
        assert!(read_all(&mut client).await == back);
        assert_eq!(server.await.unwrap(), 1_000_000);
        assert_eq!(proxy.await.unwrap().unwrap(), (1_000_000, 1_000_000));

        let (mut reader, mut writer) = simplex(333);
        assert!(writer.is_write_vectored());
        let said = there.clone();
        let writer = volt::spawn(async move {
            let mut at = 0;
            while at < said.len() {
                let end = said.len().min(at + 100);
                let middle = (at + end) / 2;
                let parts = [IoSlice::new(&said[at..middle]), IoSlice::new(&said[middle..end])];
                at += writer.write_vectored(&parts).await.unwrap();
            }
            writer.shutdown().await.unwrap();
        });
        assert!(read_all(&mut reader).await == there);
        writer.await.unwrap();
    });
}

#[test]
fn vectored_writes_are_told_of() {
    assert!(duplex(1).0.is_write_vectored() && simplex(1).1.is_write_vectored());
    assert!(sink().is_write_vectored() && empty().is_write_vectored());
}

struct Counting;

std::thread_local! {
    /// Allocations of this thread.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: forwards to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's obligations.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's obligations.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The same calls of both crates, and their allocations.
macro_rules! allocations {
    ($io:path) => {{
        use $io as io;
        let before = ALLOCATIONS.get();
        let all = pin!(async {
            let (mut near, mut far) = io::duplex(64);
            near.write_all(&[1; 64]).await.unwrap();
            io::copy(&mut (&mut far).take(64), &mut io::sink()).await.unwrap();
            let (mut reader, mut writer) = io::simplex(64);
            writer.write_all(&[1; 64]).await.unwrap();
            io::copy_buf(&mut BufReader::new((&mut reader).take(64)), &mut io::sink())
                .await
                .unwrap();
            io::copy_bidirectional(&mut io::empty(), &mut io::empty()).await.unwrap();
            io::repeat(1).read_u64().await.unwrap()
        });
        assert!(poll(all).is_ready());
        ALLOCATIONS.get() - before
    }};
}

#[test]
fn nothing_more_is_allocated_than_by_tokio() {
    let on_tokio = allocations!(tokio::io);
    assert_eq!(allocations!(volt::io), on_tokio);
    assert!(on_tokio > 0);
}
