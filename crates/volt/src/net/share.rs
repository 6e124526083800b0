//! Methods that several sockets, their halves and pipes have in common.
//!
//! `$setup` are the lines of an example that make `a`, of the type at hand, and `b`, the other end.
#![forbid(unsafe_code)]

/// An example: an async main, with the lines of `$setup` first.
macro_rules! example {
    ($setup:expr, $($body:expr),+) => {
        concat!(
            "```\n# fn main() -> Result<(), Box<dyn std::error::Error>> {\n",
            "# volt::runtime::Runtime::new()?.block_on(async {\n",
            $setup,
            $($body,)+
            "# Ok(()) })\n# }\n```"
        )
    };
}

/// `ready`, for whatever has an `Evented`, which `$io` makes of `$this`. The example waits for `$kind`,
/// which comes by `$before`.
macro_rules! ready {
    ([$($generics:tt)*] $type:ty, |$this:ident| $io:expr, $setup:literal, $before:literal, $kind:literal) => {
        impl<$($generics)*> $type {
            /// Waits until it is ready for some of `interest`, and returns for what.
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
            #[doc = $crate::net::share::example!($setup, $before, "
use volt::io::Interest;
a.ready(Interest::", $kind, ").await?;
")]
            pub async fn ready(&self, interest: crate::io::Interest) -> std::io::Result<crate::io::Ready> {
                let $this = self;
                $io.ready(interest).await
            }
        }
    };
}

/// `readable` and `$poll`, by `ready`.
macro_rules! readable {
    ([$($generics:tt)*] $type:ty, $setup:literal, $send:ident, $receive:ident) => {
        impl<$($generics)*> $type {
            /// Waits until there is something to read: data, or an end.
            ///
            /// # Errors
            /// As [`ready`](Self::ready); cancel safety likewise.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($setup,
                "assert_eq!(b.", stringify!($send), "(b\"hello\")?, 5);
let mut buf = [0; 16];
let count = loop {
    a.readable().await?;
    match a.", stringify!($receive), "(&mut buf) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
        result => break result?,
    }
};
assert_eq!(&buf[..count], b\"hello\");
")]
            pub async fn readable(&self) -> std::io::Result<()> {
                self.ready(crate::io::Interest::READABLE).await.map(drop)
            }
        }
    };
}

/// `writable`, by `ready`.
macro_rules! writable {
    ([$($generics:tt)*] $type:ty, $setup:literal, $send:ident) => {
        impl<$($generics)*> $type {
            /// Waits until there is room to write, or the end of writing.
            ///
            /// # Errors
            /// As [`ready`](Self::ready); cancel safety likewise.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($setup,
                "a.writable().await?;\nassert_eq!(a.", stringify!($send), "(b\"hello\")?, 5);\n")]
            pub async fn writable(&self) -> std::io::Result<()> {
                self.ready(crate::io::Interest::WRITABLE).await.map(drop)
            }
        }
    };
}

/// `$poll`, which is `readable` for hand-written futures. The type has a field `io`.
macro_rules! poll_readable {
    ($type:ty, $setup:literal, $poll:ident, $send:ident, $receive:ident) => {
        impl $type {
            /// [`readable`](Self::readable) for hand-written futures. Only the task that polled last
            /// is woken.
            ///
            /// # Errors
            /// As [`ready`](Self::ready).
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($setup, "b.", stringify!($send), "(b\"hello\")?;
std::future::poll_fn(|cx| a.", stringify!($poll), "(cx)).await?;
assert_eq!(a.", stringify!($receive), "(&mut [0; 16])?, 5);
")]
            pub fn $poll(
                &self,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                self.io.poll_ready(crate::reactor::Direction::Read, cx)
            }
        }
    };
}

/// `$poll`, which is `writable` for hand-written futures. The type has a field `io`.
macro_rules! poll_writable {
    ($type:ty, $setup:literal, $poll:ident, $send:ident) => {
        impl $type {
            /// [`writable`](Self::writable) for hand-written futures. Only the task that polled last
            /// is woken.
            ///
            /// # Errors
            /// As [`ready`](Self::ready).
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($setup,
                                "std::future::poll_fn(|cx| a.", stringify!($poll), "(cx)).await?;
assert_eq!(a.", stringify!($send), "(b\"hello\")?, 5);
")]
            pub fn $poll(
                &self,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                self.io.poll_ready(crate::reactor::Direction::Write, cx)
            }
        }
    };
}

/// What has an end to read bytes from, which `$io` makes of `$this`.
macro_rules! reader {
    ([$($generics:tt)*] $type:ty, |$this:ident| $io:expr, $setup:literal) => {
        crate::net::share::readable!([$($generics)*] $type, $setup, try_write, try_read);

        impl<$($generics)*> $type {
            /// Reads what there is, without waiting. `Ok(0)` is the end (or an empty `buf`).
            ///
            /// # Errors
            /// [`WouldBlock`](std::io::ErrorKind::WouldBlock) if there is nothing; whatever the
            /// system call reports.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($setup, "b.try_write(b\"hello\")?;
a.readable().await?;
let mut buf = [0; 16];
assert_eq!(a.try_read(&mut buf)?, 5);
assert_eq!(&buf[..5], b\"hello\");
")]
            pub fn try_read(&self, buf: &mut [u8]) -> std::io::Result<usize> {
                let $this = self;
                $io.try_read(buf)
            }

            /// As [`try_read`](Self::try_read), into several buffers, one after the other.
            ///
            /// # Errors
            /// As `try_read`.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($setup, "
use std::io::IoSliceMut;
b.try_write(b\"hello\")?;
a.readable().await?;
let (mut first, mut second) = ([0; 2], [0; 8]);
let mut bufs = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
assert_eq!(a.try_read_vectored(&mut bufs)?, 5);
assert_eq!((&first, &second[..3]), (b\"he\", &b\"llo\"[..]));
")]
            pub fn try_read_vectored(&self, bufs: &mut [std::io::IoSliceMut<'_>]) -> std::io::Result<usize> {
                let $this = self;
                $io.try_read_vectored(bufs)
            }

            /// As [`try_read`](Self::try_read), into the spare room of `buf`, which is not zeroed
            /// first.
            ///
            /// # Errors
            /// As `try_read`.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($setup, "b.try_write(b\"hello\")?;
a.readable().await?;
let mut buf = Vec::with_capacity(16);
assert_eq!(a.try_read_buf(&mut buf)?, 5);
assert_eq!(buf, b\"hello\");
")]
            pub fn try_read_buf<B: bytes::BufMut>(&self, buf: &mut B) -> std::io::Result<usize> {
                let $this = self;
                $io.try_read_buf(buf)
            }
        }

        impl<$($generics)*> tokio::io::AsyncRead for $type {
            fn poll_read(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buf: &mut tokio::io::ReadBuf<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                let $this = self;
                $io.poll_read(cx, buf)
            }
        }
    };
}

/// What has an end to write bytes to, which `$io` makes of `$this`. `$shut` shuts it down.
macro_rules! writer {
    ([$($generics:tt)*] $type:ty, |$this:ident| $io:expr, |$half:ident| $shut:expr, $setup:literal) => {
        crate::net::share::writable!([$($generics)*] $type, $setup, try_write);

        impl<$($generics)*> $type {
            /// Writes as much as there is room for, without waiting.
            ///
            /// # Errors
            /// [`WouldBlock`](std::io::ErrorKind::WouldBlock) if there is no room; whatever the
            /// system call reports.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($setup, "assert_eq!(a.try_write(b\"hello\")?, 5);
let full = loop {
    if let Err(error) = a.try_write(&[0; 1 << 14]) {
        break error;
    }
};
assert_eq!(full.kind(), std::io::ErrorKind::WouldBlock);
")]
            pub fn try_write(&self, buf: &[u8]) -> std::io::Result<usize> {
                let $this = self;
                $io.try_write(buf)
            }

            /// As [`try_write`](Self::try_write), from several buffers, one after the other.
            ///
            /// # Errors
            /// As `try_write`.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($setup, "
use std::io::IoSlice;
assert_eq!(a.try_write_vectored(&[IoSlice::new(b\"hel\"), IoSlice::new(b\"lo\")])?, 5);
")]
            pub fn try_write_vectored(&self, bufs: &[std::io::IoSlice<'_>]) -> std::io::Result<usize> {
                let $this = self;
                $io.try_write_vectored(bufs)
            }
        }

        impl<$($generics)*> tokio::io::AsyncWrite for $type {
            fn poll_write(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buf: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let $this = self;
                $io.poll_write(cx, buf)
            }

            fn poll_write_vectored(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                bufs: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let $this = self;
                $io.poll_write_vectored(cx, bufs)
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
                let $half = self.get_mut();
                std::task::Poll::Ready($shut)
            }
        }
    };
}

/// A caller's own operations on a socket with a field `io`, and its error. `$send` and `$receive` are
/// methods that send and receive at once, for the examples.
macro_rules! own_io {
    ($type:ty, $setup:literal, $send:ident) => {
        impl $type {
            /// Runs `io`, an operation of the caller's own on this socket, if the socket is ready
            /// for some of `interest`; a `WouldBlock` from it takes the readiness back.
            ///
            /// # Errors
            /// [`WouldBlock`](std::io::ErrorKind::WouldBlock) if it is not; whatever `io` returns.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($setup, "
use volt::io::Interest;
b.", stringify!($send), "(b\"hello\")?;
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
            #[doc = $crate::net::share::example!($setup, "
use volt::io::Interest;
b.", stringify!($send), "(b\"hello\")?;
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
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($setup, "assert!(a.take_error()?.is_none());\n")]
            pub fn take_error(&self) -> std::io::Result<Option<std::io::Error>> {
                self.io.take_error()
            }
        }
    };
}

/// `Debug` and the descriptor's traits for a type with a field `io`.
macro_rules! descriptor {
    ($type:ident) => {
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&*self.io, f)
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

        #[cfg(windows)]
        impl std::os::windows::io::AsRawSocket for $type {
            fn as_raw_socket(&self) -> std::os::windows::io::RawSocket {
                self.io.as_raw_socket()
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsSocket for $type {
            fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
                self.io.as_socket()
            }
        }
    };
}

pub(crate) use {
    descriptor, example, own_io, poll_readable, poll_writable, readable, reader, ready, writable,
    writer,
};
