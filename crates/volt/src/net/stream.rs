//! What TCP and unix streams have in common.
#![forbid(unsafe_code)]

use crate::io::Interest;

/// Urgent data stops a read in the middle, see `Evented::poll_read`.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) const EXTRA: Option<Interest> = Some(Interest::PRIORITY);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) const EXTRA: Option<Interest> = None;

/// What a stream is registered for.
pub(super) fn interest() -> Interest {
    let both = Interest::READABLE | Interest::WRITABLE;
    EXTRA.map_or(both, |extra| both | extra)
}

/// The methods and traits of a stream type with a field `io: Evented<_>`. `$pair` are the lines of
/// an example that make two connected streams, `a` and `b`.
macro_rules! stream {
    ($type:ident, $pair:literal) => {
        crate::net::share::ready!([] $type, |this| this.io, $pair, "", "READABLE | Interest::WRITABLE");
        crate::net::share::reader!([] $type, |this| this.io, $pair);
        crate::net::share::writer!([] $type, |this| this.io, |this| this.io.shutdown_write(), $pair);
        crate::net::share::poll_readable!($type, $pair, poll_read_ready, try_write, try_read);
        crate::net::share::poll_writable!($type, $pair, poll_write_ready, try_write);
        crate::net::share::own_io!($type, $pair, try_write);
        crate::net::share::descriptor!($type);

        impl $type {
            /// Two halves that read and write at the same time, borrowed from the stream.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($pair, "
use volt::io::{AsyncReadExt, AsyncWriteExt};
let (mut a, mut b) = (a, b);
let (mut reader, mut writer) = a.split();
b.write_all(b\"question\").await?;
let mut buf = [0; 8];
reader.read_exact(&mut buf).await?;
writer.write_all(b\"answer\").await?;
assert_eq!(&buf, b\"question\");
")]
            pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
                crate::net::split::borrow(self)
            }

            /// Two halves that read and write at the same time, each of which a task can own. Costs
            /// an allocation. Dropping the writing half shuts the stream down for writing.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($pair, "
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

            /// Waits until a socket that has begun to connect has done so.
            pub(super) async fn finish_connect(
                handle: crate::reactor::Handle,
                io: mio::net::$type,
            ) -> std::io::Result<Self> {
                let (interest, start) =
                    (crate::net::stream::interest(), crate::reactor::Start::Unknown);
                let io = crate::io::Evented::new(handle, io, interest, start)?;
                io.ready(crate::io::Interest::WRITABLE).await?;
                if let Some(error) = io.take_error()? {
                    return Err(error);
                }
                io.registration().disarm()?;
                Ok(Self { io })
            }
        }

        impl crate::net::split::Half for $type {
            type Io = mio::net::$type;
            fn io(&self) -> &crate::io::Evented<Self::Io> {
                &self.io
            }
            fn unmatched(reader: OwnedReadHalf, writer: OwnedWriteHalf) -> ReuniteError {
                ReuniteError(reader, writer)
            }
        }

        impl crate::net::split::sealed::Reunites for $type {
            type ReuniteError = ReuniteError;
        }

        impl AsRef<$type> for $type {
            fn as_ref(&self) -> &Self {
                self
            }
        }
    };
}

pub(super) use stream;
