//! Streams without a system behind them: those of the `tokio` crate, which take Volt's budget here.
//!
//! How they read and write is in `counted.rs`.
#![forbid(unsafe_code)]

use std::fmt;

use super::{ReadHalf, WriteHalf};

/// A reader without data, and a writer that forgets; see [`empty`].
///
/// ```
/// let nothing: volt::io::Empty = volt::io::empty();
/// assert_eq!(format!("{nothing:?}"), "Empty { .. }");
/// ```
pub struct Empty(pub(super) tokio::io::Empty);

/// A reader of one byte again and again; see [`repeat`].
///
/// ```
/// let sevens: volt::io::Repeat = volt::io::repeat(7);
/// assert_eq!(format!("{sevens:?}"), "Repeat { byte: 7 }");
/// ```
pub struct Repeat(pub(super) tokio::io::Repeat);

/// A writer that forgets; see [`sink`].
///
/// ```
/// let sink: volt::io::Sink = volt::io::sink();
/// assert_eq!(format!("{sink:?}"), "Sink { .. }");
/// ```
pub struct Sink(pub(super) tokio::io::Sink);

/// One of the two ends of a [`duplex`] stream. Dropping it is the end of the data for the other one, whose
/// writes fail from then on with [`ErrorKind::BrokenPipe`](std::io::ErrorKind::BrokenPipe).
///
/// It is not the type of that name of the `tokio` crate, but wraps it, so that its operations take part in
/// the budget of Volt's tasks.
///
/// # Examples
/// ```
/// use volt::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
///
/// async fn greet(mut client: DuplexStream) -> std::io::Result<()> {
///     client.write_all(b"hello").await
/// }
///
/// volt::run(async {
///     let (client, mut server) = volt::io::duplex(3);
///     let client = volt::spawn(greet(client));
///     let mut text = String::new();
///     server.read_to_string(&mut text).await?;
///     assert_eq!(text, "hello");
///     client.await?
/// })
/// .unwrap();
/// ```
pub struct DuplexStream(pub(super) tokio::io::DuplexStream);

/// A buffer in memory: what is written to it is read from it, in the same order.
///
/// Mostly used in two halves, which [`simplex`] makes. It is not the type of that name of the `tokio`
/// crate, but wraps it; see [`DuplexStream`].
///
/// ```
/// use volt::io::{AsyncReadExt, AsyncWriteExt, SimplexStream};
///
/// volt::run(async {
///     let mut stream: SimplexStream = SimplexStream::new_unsplit(16);
///     stream.write_all(b"hello").await?;
///     stream.shutdown().await?;
///     let mut text = String::new();
///     stream.read_to_string(&mut text).await?;
///     assert_eq!(text, "hello");
///     std::io::Result::Ok(())
/// })
/// .unwrap();
/// ```
pub struct SimplexStream(pub(super) tokio::io::SimplexStream);

/// As the types that they wrap.
macro_rules! debug {
    ($($type:ty),*) => {$(
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

debug!(DuplexStream, Empty, Repeat, SimplexStream, Sink);

/// Makes a reader that is at its end, and a writer that takes everything and keeps nothing. A position that is
/// sought is always 0.
///
/// # Cancel safety
/// Nothing is lost with a read or write that is dropped.
///
/// # Cost
/// No allocation. Each operation takes a unit of the [budget](crate::task::coop).
///
/// ```
/// use volt::io::{AsyncReadExt, AsyncWriteExt};
///
/// volt::run(async {
///     let mut nothing = volt::io::empty();
///     nothing.write_all(b"forgotten").await?;
///     assert_eq!(nothing.read_to_end(&mut Vec::new()).await?, 0);
///     std::io::Result::Ok(())
/// })
/// .unwrap();
/// ```
#[must_use]
pub fn empty() -> Empty {
    Empty(tokio::io::empty())
}

/// Makes a reader that fills each buffer with `byte`, and has no end.
///
/// # Cancel safety
/// A read may be dropped: there is as much left as before.
///
/// # Cost
/// No allocation. Each read takes a unit of the [budget](crate::task::coop), whatever its size.
///
/// ```
/// use volt::io::AsyncReadExt;
///
/// volt::run(async {
///     let mut bytes = [0; 4];
///     volt::io::repeat(7).read_exact(&mut bytes).await?;
///     assert_eq!(bytes, [7; 4]);
///     std::io::Result::Ok(())
/// })
/// .unwrap();
/// ```
#[must_use]
pub fn repeat(byte: u8) -> Repeat {
    Repeat(tokio::io::repeat(byte))
}

/// Makes a writer that takes everything and keeps nothing.
///
/// # Cancel safety
/// A write may be dropped: nothing would have been kept.
///
/// # Cost
/// No allocation. Each write takes a unit of the [budget](crate::task::coop), and so do `flush` and `shutdown`.
///
/// ```
/// use volt::io::{AsyncReadExt, copy};
///
/// volt::run(async {
///     let mut zeros = volt::io::repeat(0).take(100_000);
///     assert_eq!(copy(&mut zeros, &mut volt::io::sink()).await?, 100_000);
///     std::io::Result::Ok(())
/// })
/// .unwrap();
/// ```
#[must_use]
pub fn sink() -> Sink {
    Sink(tokio::io::sink())
}

/// Makes two connected streams in memory, as a pair of sockets: what is written to one is read from the other.
/// In each direction a write waits while `max_buf_size` bytes have not been read yet.
///
/// # Panics
/// If `max_buf_size` is 0.
///
/// # Cancel safety
/// That of the sockets: a single `read` or `write` that is dropped has moved nothing; `write_all` and
/// `read_exact` may have moved a part.
///
/// # Cost
/// An allocation for each direction, and its buffer, which grows up to its limit. Each operation takes a
/// lock and, if it is ready, a unit of the [budget](crate::task::coop); the bytes are copied twice.
///
/// ```
/// use volt::io::{AsyncReadExt, AsyncWriteExt};
///
/// volt::run(async {
///     let (mut near, mut far) = volt::io::duplex(64);
///     near.write_all(b"ping").await?;
///     let mut word = [0; 4];
///     far.read_exact(&mut word).await?;
///     far.write_all(b"pong").await?;
///     near.read_exact(&mut word).await?;
///     assert_eq!(&word, b"pong");
///     std::io::Result::Ok(())
/// })
/// .unwrap();
/// ```
#[must_use]
#[track_caller]
pub fn duplex(max_buf_size: usize) -> (DuplexStream, DuplexStream) {
    check(max_buf_size);
    let (near, far) = tokio::io::duplex(max_buf_size);
    (DuplexStream(near), DuplexStream(far))
}

/// Makes a pipe in memory: what is written to the second half is read from the first. A write waits while
/// `max_buf_size` bytes have not been read yet.
///
/// Dropping one half tells the other nothing: `shutdown` of the writing half is the end of the data.
///
/// # Panics
/// If `max_buf_size` is 0.
///
/// # Cancel safety
/// As [`duplex`].
///
/// # Cost
/// One allocation, and the buffer, which grows up to its limit. Each operation as with [`duplex`].
///
/// ```
/// use volt::io::{AsyncReadExt, AsyncWriteExt};
///
/// volt::run(async {
///     let (mut reader, mut writer) = volt::io::simplex(64);
///     writer.write_all(b"hello").await?;
///     writer.shutdown().await?;
///     let mut text = String::new();
///     reader.read_to_string(&mut text).await?;
///     assert_eq!(text, "hello");
///     std::io::Result::Ok(())
/// })
/// .unwrap();
/// ```
#[must_use]
#[track_caller]
pub fn simplex(max_buf_size: usize) -> (ReadHalf<SimplexStream>, WriteHalf<SimplexStream>) {
    tokio::io::split(SimplexStream::new_unsplit(max_buf_size))
}

impl SimplexStream {
    /// Makes the buffer of [`simplex`], as one stream for both.
    ///
    /// # Panics
    /// If `max_buf_size` is 0.
    ///
    /// # Cancel safety
    /// As [`duplex`].
    ///
    /// # Cost
    /// No allocation until something is written.
    ///
    /// ```
    /// use volt::io::{AsyncReadExt, AsyncWriteExt, SimplexStream};
    ///
    /// volt::run(async {
    ///     let mut stream = SimplexStream::new_unsplit(16);
    ///     stream.write_u32(7).await?;
    ///     assert_eq!(stream.read_u32().await?, 7);
    ///     std::io::Result::Ok(())
    /// })
    /// .unwrap();
    /// ```
    #[must_use]
    #[track_caller]
    pub fn new_unsplit(max_buf_size: usize) -> SimplexStream {
        check(max_buf_size);
        SimplexStream(tokio::io::SimplexStream::new_unsplit(max_buf_size))
    }
}

/// The oldest `tokio` that will do makes streams that are full for ever.
#[track_caller]
fn check(max_buf_size: usize) {
    assert!(max_buf_size > 0, "`max_buf_size` is 0: nothing could ever be written");
}
