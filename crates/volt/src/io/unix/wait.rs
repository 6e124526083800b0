//! Waiting for a descriptor, and operations of the caller's own on it.
#![forbid(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;
use std::task::{Context, Poll, ready};

use super::{AsyncFd, AsyncFdReadyGuard, AsyncFdReadyMutGuard, present};
use crate::io::{Interest, Ready};
use crate::reactor::{Direction, Event, Registration};

/// Of the registration alone: a future that holds an `&AsyncFd<T>` is `Send` only if `T` is `Sync`.
async fn find(
    registration: &Registration,
    interest: Interest,
) -> io::Result<Option<(Event, Ready)>> {
    let event = registration.ready(interest).await?;
    Ok(Some((event, event.ready() & interest.mask())))
}

impl<T: AsRawFd> AsyncFd<T> {
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
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::Interest;
    /// use volt::io::unix::AsyncFd;
    /// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
    /// reader.set_nonblocking(true)?;
    /// let mut reader = AsyncFd::new(reader)?;
    /// std::io::Write::write_all(&mut writer, b"hello")?;
    /// let mut guard = reader.ready(Interest::READABLE).await?;
    /// assert!(guard.ready().is_readable());
    /// guard.retain_ready();
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn ready(&self, interest: Interest) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        let found = find(&self.registration, interest).await?;
        Ok(AsyncFdReadyGuard { fd: self, found })
    }

    /// As [`ready`](Self::ready), with mutable access.
    ///
    /// # Errors
    /// As `ready`.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::Interest;
    /// use volt::io::unix::AsyncFd;
    /// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
    /// reader.set_nonblocking(true)?;
    /// let mut reader = AsyncFd::new(reader)?;
    /// std::io::Write::write_all(&mut writer, b"hello")?;
    /// let mut guard = reader.ready_mut(Interest::READABLE).await?;
    /// assert!(guard.ready().is_readable());
    /// guard.retain_ready();
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn ready_mut(
        &mut self,
        interest: Interest,
    ) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        let found = find(&self.registration, interest).await?;
        Ok(AsyncFdReadyMutGuard { fd: self, found })
    }

    /// Waits until there is something to read, or the end.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::unix::AsyncFd;
    /// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
    /// reader.set_nonblocking(true)?;
    /// let mut reader = AsyncFd::new(reader)?;
    /// std::io::Write::write_all(&mut writer, b"hello")?;
    /// let mut guard = reader.readable().await?;
    /// guard.clear_ready();
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn readable(&self) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        self.ready(Interest::READABLE).await
    }

    /// As [`readable`](Self::readable), with mutable access.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::unix::AsyncFd;
    /// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
    /// reader.set_nonblocking(true)?;
    /// let mut reader = AsyncFd::new(reader)?;
    /// std::io::Write::write_all(&mut writer, b"hello")?;
    /// let mut guard = reader.readable_mut().await?;
    /// guard.clear_ready();
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn readable_mut(&mut self) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        self.ready_mut(Interest::READABLE).await
    }

    /// Waits until there is room to write.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::unix::AsyncFd;
    /// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
    /// reader.set_nonblocking(true)?;
    /// let mut reader = AsyncFd::new(reader)?;
    /// let mut guard = reader.writable().await?;
    /// guard.retain_ready();
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn writable(&self) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        self.ready(Interest::WRITABLE).await
    }

    /// As [`writable`](Self::writable), with mutable access.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::unix::AsyncFd;
    /// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
    /// reader.set_nonblocking(true)?;
    /// let mut reader = AsyncFd::new(reader)?;
    /// let mut guard = reader.writable_mut().await?;
    /// guard.retain_ready();
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn writable_mut(&mut self) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        self.ready_mut(Interest::WRITABLE).await
    }

    /// [`readable`](Self::readable) for hand-written futures; the last task to poll is woken.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::unix::AsyncFd;
    /// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
    /// reader.set_nonblocking(true)?;
    /// let mut reader = AsyncFd::new(reader)?;
    /// std::io::Write::write_all(&mut writer, b"hello")?;
    /// let ready = std::future::poll_fn(|cx| reader.poll_read_ready(cx).map_ok(|guard| guard.ready())).await?;
    /// assert!(ready.is_readable());
    /// # Ok(()) })
    /// # }
    /// ```
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
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::unix::AsyncFd;
    /// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
    /// reader.set_nonblocking(true)?;
    /// let mut reader = AsyncFd::new(reader)?;
    /// std::io::Write::write_all(&mut writer, b"hello")?;
    /// let ready = std::future::poll_fn(|cx| reader.poll_read_ready_mut(cx).map_ok(|guard| guard.ready())).await?;
    /// assert!(ready.is_readable());
    /// # Ok(()) })
    /// # }
    /// ```
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
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::unix::AsyncFd;
    /// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
    /// reader.set_nonblocking(true)?;
    /// let mut reader = AsyncFd::new(reader)?;
    /// let ready = std::future::poll_fn(|cx| reader.poll_write_ready(cx).map_ok(|guard| guard.ready())).await?;
    /// assert!(ready.is_writable());
    /// # Ok(()) })
    /// # }
    /// ```
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
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::unix::AsyncFd;
    /// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
    /// reader.set_nonblocking(true)?;
    /// let mut reader = AsyncFd::new(reader)?;
    /// let ready = std::future::poll_fn(|cx| reader.poll_write_ready_mut(cx).map_ok(|guard| guard.ready())).await?;
    /// assert!(ready.is_writable());
    /// # Ok(()) })
    /// # }
    /// ```
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
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::Interest;
    /// use volt::io::unix::AsyncFd;
    /// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
    /// reader.set_nonblocking(true)?;
    /// let mut reader = AsyncFd::new(reader)?;
    /// std::io::Write::write_all(&mut writer, b"hello")?;
    /// let mut buf = [0; 16];
    /// let read = |mut io: &std::os::unix::net::UnixStream| std::io::Read::read(&mut io, &mut buf);
    /// assert_eq!(reader.async_io(Interest::READABLE, read).await?, 5);
    /// # Ok(()) })
    /// # }
    /// ```
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
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::Interest;
    /// use volt::io::unix::AsyncFd;
    /// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
    /// reader.set_nonblocking(true)?;
    /// let mut reader = AsyncFd::new(reader)?;
    /// std::io::Write::write_all(&mut writer, b"hello")?;
    /// use std::io::Read;
    /// let mut buf = [0; 16];
    /// assert_eq!(reader.async_io_mut(Interest::READABLE, |io| io.read(&mut buf)).await?, 5);
    /// # Ok(()) })
    /// # }
    /// ```
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
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::Interest;
    /// use volt::io::unix::AsyncFd;
    /// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
    /// reader.set_nonblocking(true)?;
    /// let mut reader = AsyncFd::new(reader)?;
    /// let nothing = || std::io::Error::from(std::io::ErrorKind::WouldBlock);
    /// let error = reader.try_io(Interest::READABLE, |_| Err::<(), _>(nothing())).unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    /// # Ok(()) })
    /// # }
    /// ```
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
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::io::Interest;
    /// use volt::io::unix::AsyncFd;
    /// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
    /// reader.set_nonblocking(true)?;
    /// let mut reader = AsyncFd::new(reader)?;
    /// let nothing = || std::io::Error::from(std::io::ErrorKind::WouldBlock);
    /// let error = reader.try_io_mut(Interest::READABLE, |_| Err::<(), _>(nothing())).unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn try_io_mut<R>(
        &mut self,
        interest: Interest,
        io: impl FnOnce(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        let inner = present(self.inner.as_mut());
        self.registration.try_io(interest, || io(inner))
    }
}
