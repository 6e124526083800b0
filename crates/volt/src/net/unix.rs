//! Unix-domain sockets.

mod datagram;
mod listener;
mod stream;
mod ucred;

pub use self::datagram::UnixDatagram;
pub use self::listener::UnixListener;
pub use self::stream::UnixStream;
pub use self::ucred::UCred;
pub use std::os::unix::net::SocketAddr;

use super::split;

/// The borrowed reading half of a [`UnixStream`].
pub type ReadHalf<'a> = split::ReadHalf<'a, UnixStream>;
/// The borrowed writing half of a [`UnixStream`].
pub type WriteHalf<'a> = split::WriteHalf<'a, UnixStream>;
/// The owned reading half of a [`UnixStream`].
pub type OwnedReadHalf = split::OwnedReadHalf<UnixStream>;
/// The owned writing half of a [`UnixStream`].
pub type OwnedWriteHalf = split::OwnedWriteHalf<UnixStream>;
/// The error of [`OwnedReadHalf::reunite`](split::OwnedReadHalf::reunite).
pub type ReuniteError = split::ReuniteError<UnixStream>;
