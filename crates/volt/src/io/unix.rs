//! Readiness of any descriptor.

mod guard;

use std::error::Error;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::task::{Context, Poll, ready};

use mio::unix::SourceFd;

pub use self::guard::{AsyncFdReadyGuard, AsyncFdReadyMutGuard, TryIoError};
use super::{Interest, Ready};
use crate::reactor::{Direction, Event, Handle, Registration, Start};

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
#[deprecated(note = "use `AsyncFdRegisterError` instead")]
pub type AsyncFdTryNewError<T> = AsyncFdRegisterError<T>;

/// A descriptor that could not be registered, and why.
///
/// # Examples
/// See [`AsyncFd::try_new`].
pub struct AsyncFdRegisterError<T> {
    inner: T,
    cause: io::Error,
}

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
    #[track_caller]
    pub fn new(inner: T) -> io::Result<Self> {
        Self::with_interest(inner, Interest::READABLE | Interest::WRITABLE)
    }

    /// Registers `inner` for `interest`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn with_interest(inner: T, interest: Interest) -> io::Result<Self> {
        Self::try_with_interest(inner, interest).map_err(Into::into)
    }

    /// As [`new`](Self::new), but returns `inner` with the error.
    ///
    /// # Errors
    /// As `new`.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn try_new(inner: T) -> Result<Self, AsyncFdRegisterError<T>> {
        Self::try_with_interest(inner, Interest::READABLE | Interest::WRITABLE)
    }

    /// As [`with_interest`](Self::with_interest), but returns `inner` with the error.
    ///
    /// # Errors
    /// As `new`.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn try_with_interest(
        inner: T,
        interest: Interest,
    ) -> Result<Self, AsyncFdRegisterError<T>> {
        let (handle, fd) = (Handle::current("AsyncFd::new"), inner.as_raw_fd());
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
    #[track_caller]
    pub unsafe fn register(inner: T) -> Result<Self, AsyncFdRegisterError<T>> {
        Self::try_new(inner)
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
    #[track_caller]
    pub unsafe fn register_with_interest(
        inner: T,
        interest: Interest,
    ) -> Result<Self, AsyncFdRegisterError<T>> {
        Self::try_with_interest(inner, interest)
    }

    /// The wrapped object.
    #[must_use]
    pub fn get_ref(&self) -> &T {
        present(self.inner.as_ref())
    }

    /// The wrapped object.
    pub fn get_mut(&mut self) -> &mut T {
        present(self.inner.as_mut())
    }

    /// Takes the object out of the reactor.
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

    async fn find(&self, interest: Interest) -> io::Result<Option<(Event, Ready)>> {
        let event = self.registration.ready(interest).await?;
        Ok(Some((event, event.ready() & interest.mask())))
    }

    fn poll_find(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<(Event, Ready)>>> {
        let event = ready!(self.registration.poll_ready(direction, cx))?;
        Poll::Ready(Ok(Some((event, event.ready() & direction.mask()))))
    }

    /// Waits until the descriptor is ready for some of `interest`, which should be among those that
    /// it was registered for.
    ///
    /// # Errors
    /// If the runtime has shut down.
    ///
    /// # Cancel safety
    /// Safe: readiness stays until it is cleared.
    pub async fn ready(&self, interest: Interest) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        let found = self.find(interest).await?;
        Ok(AsyncFdReadyGuard { fd: self, found })
    }

    /// As [`ready`](Self::ready), with mutable access.
    ///
    /// # Errors
    /// As `ready`.
    pub async fn ready_mut(
        &mut self,
        interest: Interest,
    ) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        let found = self.find(interest).await?;
        Ok(AsyncFdReadyMutGuard { fd: self, found })
    }

    /// Waits until there is something to read, or the end.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub async fn readable(&self) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        self.ready(Interest::READABLE).await
    }

    /// As [`readable`](Self::readable), with mutable access.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub async fn readable_mut(&mut self) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        self.ready_mut(Interest::READABLE).await
    }

    /// Waits until there is room to write.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub async fn writable(&self) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        self.ready(Interest::WRITABLE).await
    }

    /// As [`writable`](Self::writable), with mutable access.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub async fn writable_mut(&mut self) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        self.ready_mut(Interest::WRITABLE).await
    }

    /// [`readable`](Self::readable) for hand-written futures; the last task to poll is woken.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub fn poll_read_ready(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyGuard<'_, T>>> {
        let found = ready!(self.poll_find(Direction::Read, cx))?;
        Poll::Ready(Ok(AsyncFdReadyGuard { fd: self, found }))
    }

    /// As [`poll_read_ready`](Self::poll_read_ready), with mutable access.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub fn poll_read_ready_mut(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyMutGuard<'_, T>>> {
        let found = ready!(self.poll_find(Direction::Read, cx))?;
        Poll::Ready(Ok(AsyncFdReadyMutGuard { fd: self, found }))
    }

    /// [`writable`](Self::writable) for hand-written futures; the last task to poll is woken.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub fn poll_write_ready(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyGuard<'_, T>>> {
        let found = ready!(self.poll_find(Direction::Write, cx))?;
        Poll::Ready(Ok(AsyncFdReadyGuard { fd: self, found }))
    }

    /// As [`poll_write_ready`](Self::poll_write_ready), with mutable access.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub fn poll_write_ready_mut(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyMutGuard<'_, T>>> {
        let found = ready!(self.poll_find(Direction::Write, cx))?;
        Poll::Ready(Ok(AsyncFdReadyMutGuard { fd: self, found }))
    }

    /// Waits for `interest` and runs `io`, again as often as it returns `WouldBlock`.
    ///
    /// # Errors
    /// Whatever else `io` returns, or if the runtime has shut down.
    ///
    /// # Cancel safety
    /// Safe if `io` is: it never stops in the middle of a call.
    pub async fn async_io<R>(
        &self,
        interest: Interest,
        mut io: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration.async_io(interest, || io(self.get_ref())).await
    }

    /// As [`async_io`](Self::async_io), with mutable access.
    ///
    /// # Errors
    /// As `async_io`.
    pub async fn async_io_mut<R>(
        &mut self,
        interest: Interest,
        mut io: impl FnMut(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        let inner = present(self.inner.as_mut());
        self.registration.async_io(interest, || io(inner)).await
    }

    /// Runs `io` if the descriptor is ready for some of `interest`; a `WouldBlock` from it takes the
    /// readiness back.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if it is not; whatever `io` returns.
    pub fn try_io<R>(
        &self,
        interest: Interest,
        io: impl FnOnce(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration.try_io(interest, || io(self.get_ref()))
    }

    /// As [`try_io`](Self::try_io), with mutable access.
    ///
    /// # Errors
    /// As `try_io`.
    pub fn try_io_mut<R>(
        &mut self,
        interest: Interest,
        io: impl FnOnce(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        let inner = present(self.inner.as_mut());
        self.registration.try_io(interest, || io(inner))
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
