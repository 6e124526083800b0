//! What TCP and unix streams have in common.
#![forbid(unsafe_code)]

/// The methods and traits of a stream type with a field `io: Evented<_>`. `$pair` are the lines of
/// an example that make two connected streams, `a` and `b`.
macro_rules! stream {
    ($type:ident, $pair:literal) => {
        impl $type {
            /// Waits until the stream is ready for some of `interest`, and returns for what.
            ///
            /// A hint: the operation that follows may still find nothing to do, and then fails with
            /// [`WouldBlock`](std::io::ErrorKind::WouldBlock).
            ///
            /// # Errors
            /// If the runtime has shut down.
            ///
            /// # Cancel safety
            /// Safe: readiness stays until an operation has used it up.
            ///
            /// # Examples
            #[doc = $crate::net::stream::example!($pair, "
use volt::io::Interest;
let ready = a.ready(Interest::READABLE | Interest::WRITABLE).await?;
assert!(ready.is_writable());
")]
            pub async fn ready(&self, interest: crate::io::Interest) -> std::io::Result<crate::io::Ready> {
                self.io.ready(interest).await
            }

            /// Waits until there is something to read, or the end of the stream.
            ///
            /// # Errors
            /// As [`ready`](Self::ready); cancel safety likewise.
            ///
            /// # Examples
            #[doc = $crate::net::stream::example!($pair, "
assert_eq!(b.try_write(b\"hello\")?, 5);
let mut buf = [0; 16];
let count = loop {
    a.readable().await?;
    match a.try_read(&mut buf) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
        result => break result?,
    }
};
assert_eq!(&buf[..count], b\"hello\");
")]
            pub async fn readable(&self) -> std::io::Result<()> {
                self.ready(crate::io::Interest::READABLE).await.map(drop)
            }

            /// Waits until there is room to write, or an error to report.
            ///
            /// # Errors
            /// As [`ready`](Self::ready); cancel safety likewise.
            ///
            /// # Examples
            #[doc = $crate::net::stream::example!($pair, "
a.writable().await?;
assert_eq!(a.try_write(b\"hello\")?, 5);
")]
            pub async fn writable(&self) -> std::io::Result<()> {
                self.ready(crate::io::Interest::WRITABLE).await.map(drop)
            }

            /// [`readable`](Self::readable) for hand-written futures. Only the task that polled
            /// last is woken.
            ///
            /// # Errors
            /// As [`ready`](Self::ready).
            ///
            /// # Examples
            #[doc = $crate::net::stream::example!($pair, "
drop(b);
std::future::poll_fn(|cx| a.poll_read_ready(cx)).await?;
assert_eq!(a.try_read(&mut [0; 16])?, 0);
")]
            pub fn poll_read_ready(&self, cx: &mut std::task::Context<'_>) -> std::task::Poll<std::io::Result<()>> {
                self.io.poll_ready(crate::reactor::Direction::Read, cx)
            }

            /// [`writable`](Self::writable) for hand-written futures. Only the task that polled
            /// last is woken.
            ///
            /// # Errors
            /// As [`ready`](Self::ready).
            ///
            /// # Examples
            #[doc = $crate::net::stream::example!($pair, "
std::future::poll_fn(|cx| a.poll_write_ready(cx)).await?;
assert_eq!(a.try_write(b\"hello\")?, 5);
")]
            pub fn poll_write_ready(&self, cx: &mut std::task::Context<'_>) -> std::task::Poll<std::io::Result<()>> {
                self.io.poll_ready(crate::reactor::Direction::Write, cx)
            }

            /// Reads what there is, without waiting. `Ok(0)` is the end of the stream (or an empty
            /// `buf`).
            ///
            /// # Errors
            /// [`WouldBlock`](std::io::ErrorKind::WouldBlock) if there is nothing; whatever `recv(2)`
            /// reports. See [`readable`](Self::readable) for an example.
            pub fn try_read(&self, buf: &mut [u8]) -> std::io::Result<usize> {
                self.io.try_read(buf)
            }

            /// As [`try_read`](Self::try_read), into several buffers, one after the other.
            ///
            /// # Errors
            /// As `try_read`.
            ///
            /// # Examples
            #[doc = $crate::net::stream::example!($pair, "
use std::io::IoSliceMut;
b.try_write(b\"hello\")?;
a.readable().await?;
let (mut first, mut second) = ([0; 2], [0; 8]);
let mut bufs = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
assert_eq!(a.try_read_vectored(&mut bufs)?, 5);
assert_eq!((&first, &second[..3]), (b\"he\", &b\"llo\"[..]));
")]
            pub fn try_read_vectored(&self, bufs: &mut [std::io::IoSliceMut<'_>]) -> std::io::Result<usize> {
                self.io.try_read_vectored(bufs)
            }

            /// As [`try_read`](Self::try_read), into the spare room of `buf`, which is not zeroed
            /// first.
            ///
            /// # Errors
            /// As `try_read`.
            ///
            /// # Examples
            #[doc = $crate::net::stream::example!($pair, "
b.try_write(b\"hello\")?;
a.readable().await?;
let mut buf = Vec::with_capacity(16);
assert_eq!(a.try_read_buf(&mut buf)?, 5);
assert_eq!(buf, b\"hello\");
")]
            pub fn try_read_buf<B: bytes::BufMut>(&self, buf: &mut B) -> std::io::Result<usize> {
                self.io.try_read_buf(buf)
            }

            /// Writes as much as there is room for, without waiting.
            ///
            /// # Errors
            /// [`WouldBlock`](std::io::ErrorKind::WouldBlock) if there is no room; whatever `send(2)`
            /// reports. See [`writable`](Self::writable) for an example.
            pub fn try_write(&self, buf: &[u8]) -> std::io::Result<usize> {
                self.io.try_write(buf)
            }

            /// As [`try_write`](Self::try_write), from several buffers, one after the other.
            ///
            /// # Errors
            /// As `try_write`.
            ///
            /// # Examples
            #[doc = $crate::net::stream::example!($pair, "
use std::io::IoSlice;
assert_eq!(a.try_write_vectored(&[IoSlice::new(b\"hel\"), IoSlice::new(b\"lo\")])?, 5);
")]
            pub fn try_write_vectored(&self, bufs: &[std::io::IoSlice<'_>]) -> std::io::Result<usize> {
                self.io.try_write_vectored(bufs)
            }

            /// Runs `io`, an operation of the caller's own on this socket, if the stream is ready
            /// for some of `interest`; a `WouldBlock` from it takes the readiness back.
            ///
            /// # Errors
            /// [`WouldBlock`](std::io::ErrorKind::WouldBlock) if it is not; whatever `io` returns.
            ///
            /// # Examples
            #[doc = $crate::net::stream::example!($pair, "
use volt::io::Interest;
b.try_write(b\"hello\")?;
a.readable().await?;
let socket = socket2::SockRef::from(&a);
let mut buf = [0; 16];
let count = a.try_io(Interest::READABLE, || std::io::Read::read(&mut &*socket, &mut buf))?;
assert_eq!(&buf[..count], b\"hello\");
")]
            pub fn try_io<R>(
                &self,
                interest: crate::io::Interest,
                io: impl FnOnce() -> std::io::Result<R>,
            ) -> std::io::Result<R> {
                self.io.registration().try_io(interest, io)
            }

            /// As [`try_io`](Self::try_io), but waits and runs `io` again as often as it returns
            /// `WouldBlock`.
            ///
            /// # Errors
            /// Whatever else `io` returns, or if the runtime has shut down.
            ///
            /// # Cancel safety
            /// Safe if `io` is: it never stops in the middle of a call.
            ///
            /// # Examples
            #[doc = $crate::net::stream::example!($pair, "
use volt::io::Interest;
b.try_write(b\"hello\")?;
let socket = socket2::SockRef::from(&a);
let mut buf = [0; 16];
let count =
    a.async_io(Interest::READABLE, || std::io::Read::read(&mut &*socket, &mut buf)).await?;
assert_eq!(&buf[..count], b\"hello\");
")]
            pub async fn async_io<R>(
                &self,
                interest: crate::io::Interest,
                io: impl FnMut() -> std::io::Result<R>,
            ) -> std::io::Result<R> {
                self.io.registration().async_io(interest, io).await
            }

            /// Takes the error that the socket has recorded, if any (`SO_ERROR`).
            ///
            /// # Errors
            /// Whatever `getsockopt(2)` reports.
            pub fn take_error(&self) -> std::io::Result<Option<std::io::Error>> {
                self.io.take_error()
            }

            /// Two halves that read and write at the same time, borrowed from the stream.
            ///
            /// # Examples
            #[doc = $crate::net::stream::example!($pair, "
use volt::io::{AsyncReadExt, AsyncWriteExt};
let mut a = a;
let (mut reader, mut writer) = a.split();
writer.write_all(b\"hello\").await?;
drop(b);
let mut rest = Vec::new();
assert!(reader.read_to_end(&mut rest).await.is_ok_and(|count| count == 0) || rest.is_empty());
")]
            pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
                crate::net::split::borrow(self)
            }

            /// Two halves that read and write at the same time, each of which a task can own. Costs
            /// an allocation. Dropping the writing half shuts the stream down for writing.
            ///
            /// # Examples
            #[doc = $crate::net::stream::example!($pair, "
use volt::io::{AsyncReadExt, AsyncWriteExt};
let ((mut reader, writer), (_, mut other)) = (a.into_split(), b.into_split());
other.write_all(b\"hello\").await?;
drop(other);
let mut all = Vec::new();
reader.read_to_end(&mut all).await?;
assert_eq!(all, b\"hello\");
reader.reunite(writer)?;
")]
            pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
                crate::net::split::own(self)
            }
        }

        impl crate::net::split::Half for $type {
            type Io = mio::net::$type;
            fn io(&self) -> &crate::io::Evented<Self::Io> {
                &self.io
            }
        }

        impl tokio::io::AsyncRead for $type {
            fn poll_read(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buf: &mut tokio::io::ReadBuf<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                self.io.poll_read(cx, buf)
            }
        }

        impl tokio::io::AsyncWrite for $type {
            fn poll_write(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buf: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.io.poll_write(cx, buf)
            }

            fn poll_write_vectored(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                bufs: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.io.poll_write_vectored(cx, bufs)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            /// Nothing is buffered.
            fn poll_flush(
                self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::task::Poll::Ready(Ok(()))
            }

            fn poll_shutdown(
                self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::task::Poll::Ready(self.io.shutdown_write())
            }
        }

        crate::net::stream::descriptor!($type);
    };
}

/// `Debug` and the descriptor's traits for a type with a field `io: Evented<_>`.
macro_rules! descriptor {
    ($type:ident) => {
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.io.fmt(f)
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsRawFd for $type {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                self.io.as_raw_fd()
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsFd for $type {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.io.as_fd()
            }
        }
    };
}

/// An example: an async main with two streams.
macro_rules! example {
    ($pair:literal, $body:literal) => {
        concat!(
            "```\n# fn main() -> Result<(), Box<dyn std::error::Error>> {\n",
            "# volt::runtime::Runtime::new()?.block_on(async {\n",
            $pair,
            $body,
            "# Ok(()) })\n# }\n```"
        )
    };
}

pub(super) use {descriptor, example, stream};
