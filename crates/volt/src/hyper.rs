//! hyper 1.x on Volt: its `rt` traits for Volt's executor, timer and sockets. Feature `hyper`.
//!
//! [`TcpStream`] and [`UnixStream`] are hyper's `Read` and `Write` as they
//! are; [`VoltIo`] makes them of any other [`AsyncRead`] and [`AsyncWrite`], a TLS stream for one.
//!
//! # Examples
//! A server for one connection:
//! ```
//! use std::convert::Infallible;
//!
//! use hyper::body::Incoming;
//! use hyper::server::conn::http1;
//! use hyper::service::service_fn;
//! use hyper::{Request, Response};
//! use volt::hyper::VoltTimer;
//! use volt::net::TcpStream;
//!
//! async fn hello(_: Request<Incoming>) -> Result<Response<String>, Infallible> {
//!     Ok(Response::new("hello".to_owned()))
//! }
//!
//! async fn serve(connection: TcpStream) -> Result<(), hyper::Error> {
//!     let mut http = http1::Builder::new();
//!     http.timer(VoltTimer::new());
//!     http.serve_connection(connection, service_fn(hello)).await
//! }
//! ```

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use std::{fmt, io};

use hyper::rt::{Executor, Read, ReadBufCursor, Sleep, Timer, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::net::TcpStream;
#[cfg(unix)]
use crate::net::UnixStream;

/// Spawns hyper's tasks on the runtime in scope.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// use hyper::rt::Executor;
/// volt::hyper::VoltExecutor::new().execute(async {});
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct VoltExecutor;

impl VoltExecutor {
    /// The executor; it has no state.
    ///
    /// # Examples
    /// ```
    /// let executor = volt::hyper::VoltExecutor::new();
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl<F> Executor<F> for VoltExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    /// # Panics
    /// Outside a runtime.
    fn execute(&self, future: F) {
        drop(crate::task::spawn(future));
    }
}

/// hyper's timer on Volt's.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// use hyper::rt::Timer;
/// use std::time::Duration;
/// volt::hyper::VoltTimer::new().sleep(Duration::from_millis(1)).await;
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct VoltTimer;

impl VoltTimer {
    /// The timer; it has no state.
    ///
    /// ```
    /// use hyper::rt::Timer;
    ///
    /// let timer = volt::hyper::VoltTimer::new();
    /// volt::run(async move { timer.sleep(std::time::Duration::from_millis(1)).await });
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl Timer for VoltTimer {
    /// # Panics
    /// Outside a runtime.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(VoltSleep(crate::time::sleep(duration)))
    }

    /// # Panics
    /// Outside a runtime.
    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(VoltSleep(crate::time::sleep_until(deadline.into())))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<VoltSleep>() {
            Some(sleep) => sleep.inner().reset(deadline.into()),
            None => *sleep = self.sleep_until(deadline),
        }
    }

    fn now(&self) -> Instant {
        crate::time::Instant::now().into()
    }
}

/// A sleep of [`VoltTimer`].
struct VoltSleep(crate::time::Sleep);

impl VoltSleep {
    fn inner(self: Pin<&mut Self>) -> Pin<&mut crate::time::Sleep> {
        // SAFETY: the field is pinned when the struct is: nothing moves it out, the struct has no
        // `Drop`, and it is `Unpin` only if the field is.
        unsafe { self.map_unchecked_mut(|this| &mut this.0) }
    }
}

impl Future for VoltSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.inner().poll(cx)
    }
}

impl Sleep for VoltSleep {}

/// Makes hyper's `Read` and `Write` of an [`AsyncRead`] and [`AsyncWrite`], and the reverse.
///
/// Volt's own streams need it not: hyper takes them as they are.
///
/// # Examples
/// ```
/// use volt::hyper::VoltIo;
///
/// let (near, far) = volt::io::duplex(64);
/// fn hyper_takes(_: impl hyper::rt::Read + hyper::rt::Write + Unpin) {}
/// hyper_takes(VoltIo::new(near));
/// fn tokio_takes(_: impl volt::io::AsyncRead + volt::io::AsyncWrite) {}
/// tokio_takes(VoltIo::new(VoltIo::new(far)));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct VoltIo<T>(T);

impl<T> VoltIo<T> {
    /// Wraps `inner`.
    ///
    /// ```
    /// use volt::hyper::VoltIo;
    ///
    /// let (near, _far) = volt::io::duplex(64);
    /// let io = VoltIo::new(near);
    /// fn hyper_takes(_: impl hyper::rt::Read + hyper::rt::Write) {}
    /// hyper_takes(io);
    /// ```
    pub const fn new(inner: T) -> Self {
        Self(inner)
    }

    /// The wrapped stream.
    ///
    /// # Examples
    /// ```
    /// use volt::hyper::VoltIo;
    /// let (near, _far) = volt::io::duplex(64);
    /// let mut io = VoltIo::new(near);
    /// let stream = io.inner();
    /// ```
    pub const fn inner(&self) -> &T {
        &self.0
    }

    /// The wrapped stream.
    ///
    /// # Examples
    /// ```
    /// use volt::hyper::VoltIo;
    /// let (near, _far) = volt::io::duplex(64);
    /// let mut io = VoltIo::new(near);
    /// let stream = io.inner_mut();
    /// ```
    pub const fn inner_mut(&mut self) -> &mut T {
        &mut self.0
    }

    /// Takes the stream out.
    ///
    /// # Examples
    /// ```
    /// use volt::hyper::VoltIo;
    /// let (near, _far) = volt::io::duplex(64);
    /// let mut io = VoltIo::new(near);
    /// let stream = io.into_inner();
    /// ```
    pub fn into_inner(self) -> T {
        self.0
    }

    fn project(self: Pin<&mut Self>) -> Pin<&mut T> {
        // SAFETY: the field is pinned when the struct is: `into_inner` needs it by value, the struct
        // has no `Drop`, and it is `Unpin` only if the field is.
        unsafe { self.map_unchecked_mut(|this| &mut this.0) }
    }
}

/// Reads by tokio's trait into hyper's buffer.
fn read(
    io: Pin<&mut impl AsyncRead>,
    cx: &mut Context<'_>,
    mut cursor: ReadBufCursor<'_>,
) -> Poll<io::Result<()>> {
    // SAFETY: `ReadBuf` never makes initialised bytes uninitialised.
    let mut buf = ReadBuf::uninit(unsafe { cursor.as_mut() });
    ready!(io.poll_read(cx, &mut buf))?;
    let filled = buf.filled().len();
    // SAFETY: the first `filled` bytes of the cursor have just been initialised.
    unsafe { cursor.advance(filled) };
    Poll::Ready(Ok(()))
}

/// hyper's traits for a type that has tokio's, or holds one that has.
macro_rules! hyper_by_tokio {
    ($type:ty, |$pinned:ident| $io:expr, |$shared:ident| $ref:expr $(, $param:ident)?) => {
        impl$(<$param: AsyncRead>)? Read for $type {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                cursor: ReadBufCursor<'_>,
            ) -> Poll<io::Result<()>> {
                let $pinned = self;
                read($io, cx, cursor)
            }
        }

        impl$(<$param: AsyncWrite>)? Write for $type {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                let $pinned = self;
                AsyncWrite::poll_write($io, cx, buf)
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                let $pinned = self;
                AsyncWrite::poll_flush($io, cx)
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                let $pinned = self;
                AsyncWrite::poll_shutdown($io, cx)
            }

            fn is_write_vectored(&self) -> bool {
                let $shared = self;
                AsyncWrite::is_write_vectored($ref)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[io::IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                let $pinned = self;
                AsyncWrite::poll_write_vectored($io, cx, bufs)
            }
        }
    };
}

hyper_by_tokio!(TcpStream, |this| this, |this| this);
#[cfg(unix)]
hyper_by_tokio!(UnixStream, |this| this, |this| this);
hyper_by_tokio!(VoltIo<T>, |this| this.project(), |this| &this.0, T);

impl<T: Read> AsyncRead for VoltIo<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // SAFETY: hyper's buffer never makes initialised bytes uninitialised.
        let room = unsafe { buf.unfilled_mut() };
        let mut inner = hyper::rt::ReadBuf::uninit(room);
        ready!(self.project().poll_read(cx, inner.unfilled()))?;
        let filled = inner.filled().len();
        // SAFETY: that many bytes have just been initialised.
        unsafe { buf.assume_init(filled) };
        buf.advance(filled);
        Poll::Ready(Ok(()))
    }
}

impl<T: Write> AsyncWrite for VoltIo<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.project().poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.project().poll_write_vectored(cx, bufs)
    }
}

impl fmt::Debug for VoltSleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VoltSleep").field(&self.0).finish()
    }
}
