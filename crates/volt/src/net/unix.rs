//! Unix-domain sockets.

mod addr;
mod datagram;
mod listener;
pub mod pipe;
mod socket;
mod stream;
mod ucred;

pub use self::datagram::UnixDatagram;
pub use self::listener::UnixListener;
pub use self::socket::UnixSocket;
pub use self::stream::UnixStream;
pub use self::ucred::UCred;
pub use libc::{gid_t, pid_t, uid_t};
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

/// The flags of an open descriptor (`F_GETFL`).
fn flags(fd: std::os::fd::BorrowedFd<'_>) -> std::io::Result<libc::c_int> {
    use std::os::fd::AsRawFd;

    // SAFETY: the call reads flags of a descriptor that is open for as long as it is borrowed.
    let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) };
    if flags < 0 { Err(std::io::Error::last_os_error()) } else { Ok(flags) }
}
