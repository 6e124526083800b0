//! Copies from a reader to a writer: those of the `tokio` crate, which take Volt's budget here.
//!
//! Both ends are counted, not the reader alone: a writer that takes a byte at a time would do as many
//! operations as there are bytes in the buffer for each read.
#![forbid(unsafe_code)]

use std::io::Result;

use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite};

use super::counted::Counted;

/// Copies everything from `reader` to `writer`, flushes it, and returns the number of bytes. Neither is shut
/// down.
///
/// Whenever the reader has nothing for the moment, the writer is flushed.
///
/// # Errors
/// The first error of either, but for [`ErrorKind::Interrupted`](std::io::ErrorKind::Interrupted), after which
/// the operation is repeated. [`ErrorKind::WriteZero`](std::io::ErrorKind::WriteZero) if the writer takes
/// nothing.
///
/// # Cancel safety
/// None: what has been read but not written yet is lost if the future is dropped.
///
/// # Cost
/// A buffer of 8 KiB is allocated. Each read and write takes a unit of the [budget](crate::task::coop), of
/// whatever types the two are: a copy without an end leaves the others their turns.
///
/// ```
/// use std::time::Duration;
/// use volt::io::{copy, repeat, sink};
///
/// volt::run(async {
///     let mut copied = Vec::new();
///     assert_eq!(copy(&mut &b"hello"[..], &mut copied).await?, 5);
///     assert_eq!(copied, b"hello");
///
///     let (mut endless, mut nowhere) = (repeat(1), sink());
///     let endless = copy(&mut endless, &mut nowhere);
///     assert!(volt::time::timeout(Duration::from_millis(5), endless).await.is_err());
///     std::io::Result::Ok(())
/// })
/// .unwrap();
/// ```
pub async fn copy<'a, R, W>(reader: &'a mut R, writer: &'a mut W) -> Result<u64>
where
    R: AsyncRead + Unpin + ?Sized,
    W: AsyncWrite + Unpin + ?Sized,
{
    tokio::io::copy(&mut Counted(reader), &mut Counted(writer)).await
}

/// As [`copy`], from the reader's own buffer.
///
/// # Errors
/// Those of [`copy`].
///
/// # Cancel safety
/// The reader has lost nothing that was not written, so the copy can go on with another call. How many bytes
/// were copied before is not known.
///
/// # Cost
/// No allocation. Each look at the reader's buffer and each write takes a unit of the
/// [budget](crate::task::coop).
///
/// ```
/// use volt::io::{BufReader, copy_buf};
///
/// volt::run(async {
///     let mut copied = Vec::new();
///     let mut reader = BufReader::with_capacity(2, &b"hello"[..]);
///     assert_eq!(copy_buf(&mut reader, &mut copied).await?, 5);
///     assert_eq!(copied, b"hello");
///     std::io::Result::Ok(())
/// })
/// .unwrap();
/// ```
pub async fn copy_buf<'a, R, W>(reader: &'a mut R, writer: &'a mut W) -> Result<u64>
where
    R: AsyncBufRead + Unpin + ?Sized,
    W: AsyncWrite + Unpin + ?Sized,
{
    tokio::io::copy_buf(&mut Counted(reader), &mut Counted(writer)).await
}

/// Copies in both directions at once, as a proxy does: what is read from `a` to `b`, and the other way round.
/// At the end of what the one has to say, the other is shut down. Returns the numbers of bytes from `a` to `b`
/// and from `b` to `a` when both directions have come to their ends.
///
/// # Errors
/// Those of [`copy`], and those of the shutdown, of whichever direction is first.
///
/// # Cancel safety
/// None, as [`copy`]. Nor is what is under way in the other direction written after an error.
///
/// # Cost
/// As [`copy`], for each direction.
///
/// ```
/// use volt::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional, duplex};
///
/// volt::run(async {
///     let (mut client, mut near) = duplex(64);
///     let (mut far, mut server) = duplex(64);
///     let proxy = volt::spawn(async move { copy_bidirectional(&mut near, &mut far).await });
///
///     client.write_all(b"question").await?;
///     client.shutdown().await?;
///     let mut text = String::new();
///     server.read_to_string(&mut text).await?;
///     server.write_all(b"answer").await?;
///     drop(server);
///     client.read_to_string(&mut text).await?;
///
///     assert_eq!(text, "questionanswer");
///     assert_eq!(proxy.await??, (8, 6));
///     std::io::Result::Ok(())
/// })
/// .unwrap();
/// ```
pub async fn copy_bidirectional<A, B>(a: &mut A, b: &mut B) -> Result<(u64, u64)>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    tokio::io::copy_bidirectional(&mut Counted(a), &mut Counted(b)).await
}

/// As [`copy_bidirectional`], with buffers of the sizes given, which are allocated.
///
/// # Errors
/// Those of [`copy_bidirectional`].
///
/// # Panics
/// If one of the sizes is 0.
///
/// # Cancel safety
/// None, as [`copy_bidirectional`].
///
/// ```
/// use volt::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional_with_sizes, duplex, empty};
///
/// volt::run(async {
///     let (mut client, mut near) = duplex(64);
///     client.write_all(b"hello").await?;
///     client.shutdown().await?;
///     let copied = copy_bidirectional_with_sizes(&mut near, &mut empty(), 4096, 512).await?;
///     assert_eq!(copied, (5, 0));
///     assert_eq!(client.read(&mut [0]).await?, 0);
///     std::io::Result::Ok(())
/// })
/// .unwrap();
/// ```
pub async fn copy_bidirectional_with_sizes<A, B>(
    a: &mut A,
    b: &mut B,
    a_to_b_buf_size: usize,
    b_to_a_buf_size: usize,
) -> Result<(u64, u64)>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    let (mut a, mut b) = (Counted(a), Counted(b));
    tokio::io::copy_bidirectional_with_sizes(&mut a, &mut b, a_to_b_buf_size, b_to_a_buf_size).await
}
