//! What a wait for a descriptor's readiness returns.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;
use std::io;
use std::os::fd::AsRawFd;

use super::AsyncFd;
use crate::io::Ready;
use crate::reactor::Event;

/// The descriptor is known to be ready, until this says otherwise.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// use volt::io::unix::{AsyncFd, AsyncFdReadyGuard};
/// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
/// reader.set_nonblocking(true)?;
/// let reader = AsyncFd::new(reader)?;
/// std::io::Write::write_all(&mut writer, b"hello")?;
/// let guard: AsyncFdReadyGuard<_> = reader.readable().await?;
/// assert!(guard.ready().is_readable());
/// # Ok(()) })
/// # }
/// ```
#[must_use = "clear the readiness when it is used up, or the next wait returns at once"]
pub struct AsyncFdReadyGuard<'a, T: AsRawFd> {
    pub(super) fd: &'a AsyncFd<T>,
    /// What was found, and what of it is asked for and not cleared yet.
    pub(super) found: Option<(Event, Ready)>,
}

/// As [`AsyncFdReadyGuard`], with mutable access.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// use volt::io::unix::{AsyncFd, AsyncFdReadyMutGuard};
/// let (reader, mut writer) = std::os::unix::net::UnixStream::pair()?;
/// reader.set_nonblocking(true)?;
/// let mut reader = AsyncFd::new(reader)?;
/// std::io::Write::write_all(&mut writer, b"hello")?;
/// let mut guard: AsyncFdReadyMutGuard<_> = reader.readable_mut().await?;
/// let mut bytes = [0; 5];
/// std::io::Read::read_exact(guard.get_inner_mut(), &mut bytes)?;
/// assert_eq!(&bytes, b"hello");
/// # Ok(()) })
/// # }
/// ```
#[must_use = "clear the readiness when it is used up, or the next wait returns at once"]
pub struct AsyncFdReadyMutGuard<'a, T: AsRawFd> {
    pub(super) fd: &'a mut AsyncFd<T>,
    /// As in [`AsyncFdReadyGuard`].
    pub(super) found: Option<(Event, Ready)>,
}

/// The operation that was tried would have blocked.
///
/// ```
/// # volt::run(async {
/// let (reader, _writer) = std::os::unix::net::UnixStream::pair()?;
/// reader.set_nonblocking(true)?;
/// let reader = volt::io::unix::AsyncFd::new(reader)?;
/// let mut guard = reader.writable().await?;
/// let busy = guard.try_io(|_| Err::<(), _>(std::io::ErrorKind::WouldBlock.into()));
/// assert!(busy.is_err(), "this is the error: it says nothing more");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct TryIoError(());

/// What does not end, and what no second event tells of.
const CLOSED: Ready = Ready::from_bits(Ready::READ_CLOSED.bits() | Ready::WRITE_CLOSED.bits());

/// The methods that both guards have. `$shared` and `$inner` are shared references: what a shared guard
/// borrows outlives the guard, what an exclusive one has does not.
macro_rules! guard {
    ($type:ident, $argument:ty, $shared:ty, $inner:ty, |$guard:ident| $fd:expr) => {
        impl<'a, T: AsRawFd> $type<'a, T> {
            /// Says that the descriptor is not ready any more, unless an event has come since. The
            /// closed states stay, since they do not end.
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
            /// assert!(guard.ready().is_empty());
            /// # Ok(()) })
            /// # }
            /// ```
            pub fn clear_ready(&mut self) {
                self.clear(|_| CLOSED);
            }

            /// Clears all but what stays after the event.
            fn clear(&mut self, stays: impl FnOnce(Event) -> Ready) {
                if let Some((event, ready)) = self.found.take() {
                    self.fd.registration.clear(event, ready - stays(event));
                }
            }

            /// As [`clear_ready`](Self::clear_ready), but only for some kinds. May be called again
            /// for others. Of the closed states only the guard forgets that they were asked for.
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
            /// guard.clear_ready_matching(volt::io::Ready::READABLE);
            /// assert!(guard.ready().is_empty());
            /// # Ok(()) })
            /// # }
            /// ```
            pub fn clear_ready_matching(&mut self, ready: Ready) {
                if let Some((event, left)) = &mut self.found {
                    self.fd.registration.clear(*event, (*left & ready) - CLOSED);
                    *left = *left - ready;
                }
            }

            /// Says that the descriptor is still ready. That changes nothing: what this guard finds afterwards clears it as ever.
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
            /// guard.retain_ready();
            /// # Ok(()) })
            /// # }
            /// ```
            pub fn retain_ready(&mut self) {}

            /// What the descriptor is ready for.
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
            /// assert!(guard.ready().is_readable());
            /// # Ok(()) })
            /// # }
            /// ```
            #[must_use]
            pub fn ready(&self) -> Ready {
                self.found.map_or(Ready::EMPTY, |(_, ready)| ready)
            }

            /// Runs `io`; if it returns `WouldBlock`, clears the readiness.
            ///
            /// # Errors
            /// [`TryIoError`] if it did; the inner result is whatever else it returned.
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
            /// use std::io::Read;
            /// let mut buf = [0; 16];
            /// let count = guard.try_io(|fd| fd.get_ref().read(&mut buf)).expect("it is ready")?;
            /// assert_eq!(count, 5);
            /// # Ok(()) })
            /// # }
            /// ```
            pub fn try_io<R>(
                &mut self,
                io: impl FnOnce($argument) -> io::Result<R>,
            ) -> Result<io::Result<R>, TryIoError> {
                let $guard = self;
                let result = io($fd);
                if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                    // Also the end of writing, if an error looked like it: this has disproved that.
                    $guard.clear(|event| match event.ready().is_error() {
                        true => Ready::READ_CLOSED,
                        false => CLOSED,
                    });
                    return Err(TryIoError(()));
                }
                Ok(result)
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
            /// std::io::Write::write_all(&mut writer, b"hello")?;
            /// let mut guard = reader.readable_mut().await?;
            /// assert!(guard.get_inner().peer_addr()?.is_unnamed());
            /// # Ok(()) })
            /// # }
            /// ```
            #[must_use]
            pub fn get_inner(&self) -> $inner {
                self.fd.get_ref()
            }

            /// The descriptor.
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
            /// assert!(guard.get_ref().get_ref().peer_addr()?.is_unnamed());
            /// # Ok(()) })
            /// # }
            /// ```
            #[must_use]
            pub fn get_ref(&self) -> $shared {
                self.fd
            }
        }

        impl<T: AsRawFd + fmt::Debug> fmt::Debug for $type<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut debug = f.debug_struct(stringify!($type));
                debug.field("ready", &self.ready()).field("fd", &self.fd).finish()
            }
        }
    };
}

guard!(AsyncFdReadyGuard, &'a AsyncFd<T>, &'a AsyncFd<T>, &'a T, |guard| guard.fd);
guard!(AsyncFdReadyMutGuard, &mut AsyncFd<T>, &AsyncFd<T>, &T, |guard| guard.fd);

impl<T: AsRawFd> AsyncFdReadyMutGuard<'_, T> {
    /// The descriptor.
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
    /// assert!(guard.get_mut().get_mut().take_error()?.is_none());
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn get_mut(&mut self) -> &mut AsyncFd<T> {
        self.fd
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
    /// std::io::Write::write_all(&mut writer, b"hello")?;
    /// let mut guard = reader.readable_mut().await?;
    /// assert!(guard.get_inner_mut().take_error()?.is_none());
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn get_inner_mut(&mut self) -> &mut T {
        self.fd.get_mut()
    }
}

impl fmt::Display for TryIoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the operation would block")
    }
}

impl Error for TryIoError {}
