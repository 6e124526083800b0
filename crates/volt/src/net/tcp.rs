//! TCP: listener, stream and its halves, and the socket that becomes either.

mod listener;
mod socket;
mod stream;

pub use self::listener::TcpListener;
pub use self::socket::TcpSocket;
pub use self::stream::TcpStream;

use super::split;

/// The borrowed reading half of a [`TcpStream`].
pub type ReadHalf<'a> = split::ReadHalf<'a, TcpStream>;
/// The borrowed writing half of a [`TcpStream`].
pub type WriteHalf<'a> = split::WriteHalf<'a, TcpStream>;
/// The owned reading half of a [`TcpStream`].
pub type OwnedReadHalf = split::OwnedReadHalf<TcpStream>;
/// The owned writing half of a [`TcpStream`].
pub type OwnedWriteHalf = split::OwnedWriteHalf<TcpStream>;
/// The error of [`OwnedReadHalf::reunite`](split::OwnedReadHalf::reunite).
pub type ReuniteError = split::ReuniteError<TcpStream>;
