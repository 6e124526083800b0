//! Readiness of any descriptor.
//!
//! # Examples
//! A type that wraps a descriptor, with a function that waits:
//! ```
//! # volt::run(async {
//! use std::io::Read;
//! use std::os::unix::net::UnixStream;
//! use volt::io::Interest;
//! use volt::io::unix::AsyncFd;
//!
//! struct Doorbell(AsyncFd<UnixStream>);
//!
//! impl Doorbell {
//!     async fn rung(&self) -> std::io::Result<u8> {
//!         let mut who = [0];
//!         self.0.async_io(Interest::READABLE, |mut fd| fd.read_exact(&mut who)).await?;
//!         Ok(who[0])
//!     }
//! }
//!
//! let (inside, mut outside) = UnixStream::pair()?;
//! inside.set_nonblocking(true)?;
//! let doorbell = Doorbell(AsyncFd::new(inside)?);
//! let waiting = volt::spawn(async move { doorbell.rung().await });
//! std::io::Write::write_all(&mut outside, b"A")?;
//! assert_eq!(waiting.await??, b'A');
//! # std::io::Result::Ok(())
//! # }).unwrap();
//! ```

mod guard;
mod wait;

use std::error::Error;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use mio::unix::SourceFd;

pub use self::guard::{AsyncFdReadyGuard, AsyncFdReadyMutGuard, TryIoError};
use super::Interest;
use crate::reactor::{Handle, Registration, Start};

/// A descriptor whose readiness a task can wait for: a pipe, a device, a foreign library's socket.
///
/// The descriptor must be non-blocking, and stays what it is for as long as this lives: `T` must
/// return the same one from every call, and not close it before it is dropped. (If it does not, the
/// waits are wrong, nothing worse.)
///
/// Readiness stays until it is cleared. A caller that finds that an operation would block clears it,
/// by [`try_io`](AsyncFdReadyGuard::try_io) or [`clear_ready`](AsyncFdReadyGuard::clear_ready), or
/// else the next wait returns at once.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// use std::io::{Read, Write};
/// use volt::io::unix::AsyncFd;
///
/// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
/// reader.set_nonblocking(true)?;
/// let reader = AsyncFd::new(reader)?;
/// writer.write_all(b"hello")?;
///
/// let mut buf = [0; 16];
/// let count = loop {
///     let mut guard = reader.readable().await?;
///     match guard.try_io(|fd| fd.get_ref().read(&mut buf)) {
///         Ok(result) => break result?,
///         Err(_would_block) => continue,
///     }
/// };
/// assert_eq!(&buf[..count], b"hello");
/// # Ok(()) })
/// # }
/// ```
pub struct AsyncFd<T: AsRawFd> {
    /// `None` only while it is taken apart.
    inner: Option<T>,
    registration: Registration,
}

/// The former name.
///
/// # Examples
/// ```
/// # #![allow(deprecated)]
/// # volt::run(async {
/// use volt::io::unix::{AsyncFd, AsyncFdTryNewError};
/// let error: AsyncFdTryNewError<_> = AsyncFd::try_new(tempfile::tempfile()?).unwrap_err();
/// assert!(error.into_parts().0.metadata()?.is_file());
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[deprecated(note = "use `AsyncFdRegisterError` instead")]
pub type AsyncFdTryNewError<T> = AsyncFdRegisterError<T>;

/// A descriptor that could not be registered, and why.
///
/// # Examples
/// ```
/// # volt::run(async {
/// use volt::io::unix::AsyncFd;
/// let error = AsyncFd::try_new(tempfile::tempfile()?).unwrap_err();
/// let (file, cause) = error.into_parts();
/// assert!(file.metadata()?.is_file());
/// assert_eq!(cause.kind(), std::io::ErrorKind::PermissionDenied);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub struct AsyncFdRegisterError<T> {
    inner: T,
    cause: io::Error,
}

/// What a descriptor is registered for if nobody says otherwise.
const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// The object is there: only `into_inner` takes it, which takes the `AsyncFd`, too.
fn present<T>(inner: Option<T>) -> T {
    inner.expect("taken apart only by value")
}

impl<T: AsRawFd> AsyncFd<T> {
    /// Registers `inner` for reading and writing.
    ///
    /// # Errors
    /// If the descriptor is invalid, is registered already, or cannot be waited for (as a file
    /// cannot).
    ///
    /// # Panics
    /// Outside a runtime.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::unix::AsyncFd;
    /// let (socket, _other) = std::os::unix::net::UnixStream::pair()?;
    /// socket.set_nonblocking(true)?;
    /// let socket = AsyncFd::new(socket)?;
    /// assert!(AsyncFd::new(tempfile::tempfile()?).is_err(), "a file is always ready");
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub fn new(inner: T) -> io::Result<Self> {
        Self::registered("AsyncFd::new", inner, BOTH).map_err(Into::into)
    }

    /// Registers `inner` for `interest`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// Outside a runtime.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::unix::AsyncFd;
    /// let (socket, _other) = std::os::unix::net::UnixStream::pair()?;
    /// socket.set_nonblocking(true)?;
    /// let socket = AsyncFd::with_interest(socket, volt::io::Interest::WRITABLE)?;
    /// drop(socket.writable().await?);
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub fn with_interest(inner: T, interest: Interest) -> io::Result<Self> {
        Self::registered("AsyncFd::with_interest", inner, interest).map_err(Into::into)
    }

    /// As [`new`](Self::new), but returns `inner` with the error.
    ///
    /// # Errors
    /// As `new`.
    ///
    /// # Panics
    /// Outside a runtime.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::unix::AsyncFd;
    /// let (file, error) = AsyncFd::try_new(tempfile::tempfile()?).unwrap_err().into_parts();
    /// println!("{file:?}: {error}");
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub fn try_new(inner: T) -> Result<Self, AsyncFdRegisterError<T>> {
        Self::registered("AsyncFd::try_new", inner, BOTH)
    }

    /// As [`with_interest`](Self::with_interest), but returns `inner` with the error.
    ///
    /// # Errors
    /// As `new`.
    ///
    /// # Panics
    /// Outside a runtime.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::unix::AsyncFd;
    /// let (socket, _other) = std::os::unix::net::UnixStream::pair()?;
    /// socket.set_nonblocking(true)?;
    /// let socket = AsyncFd::try_with_interest(socket, volt::io::Interest::READABLE)?;
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub fn try_with_interest(
        inner: T,
        interest: Interest,
    ) -> Result<Self, AsyncFdRegisterError<T>> {
        Self::registered("AsyncFd::try_with_interest", inner, interest)
    }

    /// Registers `inner`, for the constructor `caller`.
    #[track_caller]
    fn registered(
        caller: &'static str,
        inner: T,
        interest: Interest,
    ) -> Result<Self, AsyncFdRegisterError<T>> {
        let (handle, fd) = (Handle::current(caller), inner.as_raw_fd());
        match Registration::new(handle, &mut SourceFd(&fd), fd, interest, Start::Unknown) {
            Ok(registration) => Ok(Self { inner: Some(inner), registration }),
            Err(cause) => Err(AsyncFdRegisterError { inner, cause }),
        }
    }

    /// As [`try_new`](Self::try_new).
    ///
    /// # Errors
    /// As `new`.
    ///
    /// # Panics
    /// Outside a runtime.
    ///
    /// # Safety
    /// Tokio asks that `inner` return the same open descriptor for as long as this lives. Here that
    /// is no matter of safety, and there are safe methods; the signature is Tokio's.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::unix::AsyncFd;
    /// let (socket, _other) = std::os::unix::net::UnixStream::pair()?;
    /// socket.set_nonblocking(true)?;
    /// // SAFETY: the socket stays open, and the same, until it is dropped.
    /// let socket = unsafe { AsyncFd::register(socket) }?;
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub unsafe fn register(inner: T) -> Result<Self, AsyncFdRegisterError<T>> {
        Self::registered("AsyncFd::register", inner, BOTH)
    }

    /// As [`try_with_interest`](Self::try_with_interest).
    ///
    /// # Errors
    /// As `new`.
    ///
    /// # Panics
    /// Outside a runtime.
    ///
    /// # Safety
    /// As [`register`](Self::register).
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::unix::AsyncFd;
    /// let (socket, _other) = std::os::unix::net::UnixStream::pair()?;
    /// socket.set_nonblocking(true)?;
    /// use volt::io::Interest;
    /// // SAFETY: the socket stays open, and the same, until it is dropped.
    /// let socket = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }?;
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub unsafe fn register_with_interest(
        inner: T,
        interest: Interest,
    ) -> Result<Self, AsyncFdRegisterError<T>> {
        Self::registered("AsyncFd::register_with_interest", inner, interest)
    }

    /// The wrapped object.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::unix::AsyncFd;
    /// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
    /// reader.set_nonblocking(true)?;
    /// let mut reader = AsyncFd::new(reader)?;
    /// assert!(reader.get_ref().peer_addr()?.is_unnamed());
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn get_ref(&self) -> &T {
        present(self.inner.as_ref())
    }

    /// The wrapped object.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::unix::AsyncFd;
    /// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
    /// reader.set_nonblocking(true)?;
    /// let mut reader = AsyncFd::new(reader)?;
    /// assert!(reader.get_mut().take_error()?.is_none());
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn get_mut(&mut self) -> &mut T {
        present(self.inner.as_mut())
    }

    /// Takes the object out of the reactor.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::unix::AsyncFd;
    /// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
    /// reader.set_nonblocking(true)?;
    /// let mut reader = AsyncFd::new(reader)?;
    /// let reader: std::os::unix::net::UnixStream = reader.into_inner();
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn into_inner(mut self) -> T {
        self.deregister();
        present(self.inner.take())
    }

    fn deregister(&self) {
        if let Some(inner) = &self.inner {
            // An error means that the descriptor is gone, and its registration with it.
            let _ = self.registration.deregister(&mut SourceFd(&inner.as_raw_fd()));
        }
    }
}

impl<T: AsRawFd> AsRawFd for AsyncFd<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.get_ref().as_raw_fd()
    }
}

impl<T: AsRawFd + AsFd> AsFd for AsyncFd<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.get_ref().as_fd()
    }
}

impl<T: AsRawFd> Drop for AsyncFd<T> {
    fn drop(&mut self) {
        self.deregister();
    }
}

impl<T: AsRawFd + fmt::Debug> fmt::Debug for AsyncFd<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncFd").field("inner", &self.inner).finish()
    }
}

impl<T> AsyncFdRegisterError<T> {
    /// The object and the error.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::unix::AsyncFd;
    /// let file = std::fs::File::open("/proc/self/stat")?;
    /// let error = AsyncFd::try_new(file).unwrap_err();
    /// let (file, cause) = error.into_parts();
    /// println!("{file:?} cannot be waited for: {cause}");
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn into_parts(self) -> (T, io::Error) {
        (self.inner, self.cause)
    }
}

impl<T> From<AsyncFdRegisterError<T>> for io::Error {
    fn from(error: AsyncFdRegisterError<T>) -> Self {
        error.cause
    }
}

impl<T> fmt::Debug for AsyncFdRegisterError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.cause, f)
    }
}

impl<T> fmt::Display for AsyncFdRegisterError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.cause, f)
    }
}

impl<T> Error for AsyncFdRegisterError<T> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}
