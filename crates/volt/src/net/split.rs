//! Halves of a stream, for reading and writing at the same time.
//!
//! [`tcp`](super::tcp) and [`unix`](super::unix) name them for their streams.
//!
//! # Examples
//! A function for the halves of all streams is best written for the traits:
//! ```
//! # volt::run(async {
//! use volt::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
//!
//! async fn echo(
//!     (mut reader, mut writer): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
//! ) -> std::io::Result<u64> {
//!     volt::io::copy(&mut reader, &mut writer).await
//! }
//!
//! let (mut a, mut b) = volt::net::UnixStream::pair()?;
//! b.write_all(b"hello").await?;
//! b.shutdown().await?;
//! assert_eq!(echo(a.split()).await?, 5);
//! let mut back = [0; 5];
//! b.read_exact(&mut back).await?;
//! assert_eq!(&back, b"hello");
//! # std::io::Result::Ok(())
//! # }).unwrap();
//! ```
#![forbid(unsafe_code)]
#![allow(private_bounds, reason = "the bound is sealed: TCP and unix streams")]

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::io::{Evented, RawStream};

/// A stream type of this crate.
pub(crate) trait Half: sealed::Reunites {
    type Io: RawStream;
    fn io(&self) -> &Evented<Self::Io>;
    fn unmatched(reader: OwnedReadHalf<Self>, writer: OwnedWriteHalf<Self>) -> Self::ReuniteError;
}

pub(super) mod sealed {
    /// Nobody else can name it, though public functions return what it names.
    #[doc(hidden)]
    #[allow(unreachable_pub, reason = "so a private trait could not")]
    pub trait Reunites: Sized {
        /// Of halves that are of different streams.
        type ReuniteError;
    }
}

/// The reading half that [`TcpStream::split`](super::TcpStream::split) borrows.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// use volt::io::{AsyncReadExt, AsyncWriteExt};
/// let (mut a, mut b) = volt::net::UnixStream::pair()?;
/// b.write_all(b"hi").await?;
/// let (mut reader, _writer) = a.split();
/// let mut bytes = [0; 2];
/// reader.read_exact(&mut bytes).await?;
/// assert_eq!(&bytes, b"hi");
/// # Ok(()) })
/// # }
/// ```
pub struct ReadHalf<'a, S>(pub(crate) &'a S);

/// The writing half that [`TcpStream::split`](super::TcpStream::split) borrows.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// use volt::io::{AsyncReadExt, AsyncWriteExt};
/// let (mut a, mut b) = volt::net::UnixStream::pair()?;
/// let (_reader, mut writer) = a.split();
/// writer.write_all(b"hi").await?;
/// let mut bytes = [0; 2];
/// b.read_exact(&mut bytes).await?;
/// assert_eq!(&bytes, b"hi");
/// # Ok(()) })
/// # }
/// ```
pub struct WriteHalf<'a, S>(pub(super) &'a S);

/// The reading half that [`TcpStream::into_split`](super::TcpStream::into_split) makes.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// use volt::io::{AsyncReadExt, AsyncWriteExt};
/// let (a, mut b) = volt::net::UnixStream::pair()?;
/// let (mut reader, _writer) = a.into_split();
/// let task = volt::spawn(async move { reader.read_u8().await });
/// b.write_u8(7).await?;
/// assert_eq!(task.await??, 7);
/// # Ok(()) })
/// # }
/// ```
pub struct OwnedReadHalf<S>(pub(crate) Arc<S>);

/// The writing half that [`TcpStream::into_split`](super::TcpStream::into_split) makes. Dropping it
/// shuts the stream down for writing.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// use volt::io::AsyncReadExt;
/// let (a, mut b) = volt::net::UnixStream::pair()?;
/// let (_reader, writer) = a.into_split();
/// drop(writer);
/// assert_eq!(b.read(&mut [0; 8]).await?, 0, "the end of the stream");
/// # Ok(()) })
/// # }
/// ```
pub struct OwnedWriteHalf<S: Half> {
    pub(super) stream: Arc<S>,
    shutdown_on_drop: bool,
}

pub(super) fn borrow<S: Half>(stream: &mut S) -> (ReadHalf<'_, S>, WriteHalf<'_, S>) {
    (ReadHalf(stream), WriteHalf(stream))
}

pub(super) fn own<S: Half>(stream: S) -> (OwnedReadHalf<S>, OwnedWriteHalf<S>) {
    let stream = Arc::new(stream);
    (OwnedReadHalf(stream.clone()), OwnedWriteHalf { stream, shutdown_on_drop: true })
}

/// `ReuniteError` of `$stream`, in a module of its own halves: no alias, as patterns name it.
macro_rules! reunite_error {
    ($stream:ty, $($example:literal)+) => {
        /// The two halves that were given to [`reunite`](crate::net::split::OwnedReadHalf::reunite) are of different
        /// streams: both of them.
        ///
        /// ```
        /// # volt::run(async {
        $(#[doc = $example])+
        /// # std::io::Result::Ok(())
        /// # }).unwrap();
        /// ```
        #[derive(Debug)]
        pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

        impl std::fmt::Display for ReuniteError {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("tried to reunite halves that are not from the same socket")
            }
        }

        impl std::error::Error for ReuniteError {}
    };
}
pub(super) use reunite_error;

/// A reading half: `$setup` makes `a`, a half of a stream whose other end is `b`.
macro_rules! read_half {
    ([$($generics:tt)*] $type:ty, $setup:literal) => {
        crate::net::share::ready!([$($generics)*] $type, |this| this.0.io(), $setup, "b.try_write(b\"hello\")?;\n", "READABLE");
        crate::net::share::reader!([$($generics)*] $type, |this| this.0.io(), $setup);
    };
}

/// A writing half; `$shut` shuts it down.
macro_rules! write_half {
    ([$($generics:tt)*] $type:ty, |$this:ident| $io:expr, |$half:ident| $shut:expr, $setup:literal) => {
        crate::net::share::ready!([$($generics)*] $type, |$this| $io, $setup, "", "WRITABLE");
        crate::net::share::writer!([$($generics)*] $type, |$this| $io, |$half| $shut, $setup);
    };
}

read_half!(
    ['a, S: Half] ReadHalf<'a, S>,
    "# let listener = volt::net::TcpListener::bind(\"127.0.0.1:0\").await?;
# let mut stream = volt::net::TcpStream::connect(listener.local_addr()?).await?;
# let (b, _) = listener.accept().await?;
let (a, _) = stream.split();
"
);
read_half!(
    [S: Half] OwnedReadHalf<S>,
    "# let listener = volt::net::TcpListener::bind(\"127.0.0.1:0\").await?;
# let stream = volt::net::TcpStream::connect(listener.local_addr()?).await?;
# let (b, _) = listener.accept().await?;
let (a, _writer) = stream.into_split();
"
);
write_half!(
    ['a, S: Half] WriteHalf<'a, S>,
    |this| this.0.io(),
    |half| half.0.io().shutdown_write(),
    "# let listener = volt::net::TcpListener::bind(\"127.0.0.1:0\").await?;
# let mut stream = volt::net::TcpStream::connect(listener.local_addr()?).await?;
# let (b, _) = listener.accept().await?;
let (_, a) = stream.split();
"
);
write_half!(
    [S: Half] OwnedWriteHalf<S>,
    |this| this.stream.io(),
    |half| half.shutdown(),
    "# let listener = volt::net::TcpListener::bind(\"127.0.0.1:0\").await?;
# let stream = volt::net::TcpStream::connect(listener.local_addr()?).await?;
# let (b, _) = listener.accept().await?;
let (_, a) = stream.into_split();
"
);

impl<S> AsRef<S> for ReadHalf<'_, S> {
    fn as_ref(&self) -> &S {
        self.0
    }
}

impl<S> AsRef<S> for WriteHalf<'_, S> {
    fn as_ref(&self) -> &S {
        self.0
    }
}

impl<S> AsRef<S> for OwnedReadHalf<S> {
    fn as_ref(&self) -> &S {
        &self.0
    }
}

impl<S: Half> AsRef<S> for OwnedWriteHalf<S> {
    fn as_ref(&self) -> &S {
        &self.stream
    }
}

impl<S: Half> OwnedReadHalf<S> {
    /// Puts the two halves of a stream together again.
    ///
    /// # Errors
    /// If they are of different streams: the error holds both.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let (a, _b) = volt::net::UnixStream::pair()?;
    /// let (reader, writer) = a.into_split();
    /// let a = reader.reunite(writer).expect("of one stream");
    /// # drop(a);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn reunite(self, other: OwnedWriteHalf<S>) -> Result<S, S::ReuniteError> {
        if !Arc::ptr_eq(&self.0, &other.stream) {
            return Err(S::unmatched(self, other));
        }
        other.forget();
        Ok(last(self.0))
    }
}

/// A stream has two halves, and the other one is gone.
fn last<S>(stream: Arc<S>) -> S {
    Arc::into_inner(stream).expect("only halves hold the stream")
}

impl<S: Half> OwnedWriteHalf<S> {
    /// Puts the two halves of a stream together again.
    ///
    /// # Errors
    /// If they are of different streams: the error holds both.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let (a, _b) = volt::net::UnixStream::pair()?;
    /// let (reader, writer) = a.into_split();
    /// let a = writer.reunite(reader).expect("of one stream");
    /// # drop(a);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn reunite(self, other: OwnedReadHalf<S>) -> Result<S, S::ReuniteError> {
        other.reunite(self)
    }

    /// Drops the half without shutting the stream down.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::{AsyncReadExt, AsyncWriteExt};
    /// let (a, mut b) = volt::net::UnixStream::pair()?;
    /// let (mut reader, writer) = a.into_split();
    /// writer.forget();
    /// b.write_u8(7).await?;
    /// assert_eq!(reader.read_u8().await?, 7);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn forget(mut self) {
        self.shutdown_on_drop = false;
    }

    /// Once is enough.
    fn shutdown(&mut self) -> io::Result<()> {
        self.stream.io().shutdown_write().inspect(|()| self.shutdown_on_drop = false)
    }
}

impl<S: Half> Drop for OwnedWriteHalf<S> {
    fn drop(&mut self) {
        if self.shutdown_on_drop {
            // A stream that cannot be shut down is not connected any more.
            let _ = self.stream.io().shutdown_write();
        }
    }
}

impl<S: Half> fmt::Debug for ReadHalf<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadHalf").field(&**self.0.io()).finish()
    }
}

impl<S: Half> fmt::Debug for WriteHalf<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteHalf").field(&**self.0.io()).finish()
    }
}

impl<S: Half> fmt::Debug for OwnedReadHalf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedReadHalf").field(&**self.0.io()).finish()
    }
}

impl<S: Half> fmt::Debug for OwnedWriteHalf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedWriteHalf").field(&**self.stream.io()).finish()
    }
}
