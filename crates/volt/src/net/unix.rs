//! Unix-domain sockets.
//!
//! # Examples
//! A server at a path, which knows who asks:
//! ```
//! # volt::run(async {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("socket");
//! use volt::io::{AsyncReadExt, AsyncWriteExt};
//! use volt::net::{UnixListener, UnixStream};
//!
//! let listener = UnixListener::bind(&path)?;
//! let server = volt::spawn(async move {
//!     let (mut stream, _) = listener.accept().await?;
//!     stream.write_u32(stream.peer_cred()?.uid()).await
//! });
//! let mut client = UnixStream::connect(&path).await?;
//! let seen = client.read_u32().await?;
//! assert_eq!(seen, client.peer_cred()?.uid(), "both ends are of this process's user");
//! server.await??;
//! # std::io::Result::Ok(())
//! # }).unwrap();
//! ```

mod addr;
mod datagram;
mod listener;
pub mod pipe;
mod socket;
mod stream;
mod ucred;

pub use self::addr::SocketAddr;
pub use self::datagram::UnixDatagram;
pub use self::listener::UnixListener;
pub use self::socket::UnixSocket;
pub use self::stream::UnixStream;
pub use self::ucred::UCred;
pub use libc::{gid_t, pid_t, uid_t};

use super::split;

/// The borrowed reading half of a [`UnixStream`].
///
/// ```
/// # volt::run(async {
/// use volt::io::AsyncReadExt;
/// use volt::net::unix::ReadHalf;
///
/// async fn first(mut reader: ReadHalf<'_>) -> std::io::Result<u8> {
///     reader.read_u8().await
/// }
///
/// let (mut a, b) = volt::net::UnixStream::pair()?;
/// b.try_write(&[7])?;
/// assert_eq!(first(a.split().0).await?, 7);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub type ReadHalf<'a> = split::ReadHalf<'a, UnixStream>;
/// The borrowed writing half of a [`UnixStream`].
///
/// ```
/// # volt::run(async {
/// use volt::io::{AsyncReadExt, AsyncWriteExt};
/// use volt::net::unix::WriteHalf;
///
/// async fn greet(mut writer: WriteHalf<'_>) -> std::io::Result<()> {
///     writer.write_u8(7).await
/// }
///
/// let (mut a, mut b) = volt::net::UnixStream::pair()?;
/// greet(a.split().1).await?;
/// assert_eq!(b.read_u8().await?, 7);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub type WriteHalf<'a> = split::WriteHalf<'a, UnixStream>;
/// The owned reading half of a [`UnixStream`].
///
/// ```
/// # volt::run(async {
/// use volt::io::AsyncReadExt;
/// use volt::net::unix::OwnedReadHalf;
///
/// async fn first(mut reader: OwnedReadHalf) -> std::io::Result<u8> {
///     reader.read_u8().await
/// }
///
/// let (a, b) = volt::net::UnixStream::pair()?;
/// b.try_write(&[7])?;
/// let (reader, _writer) = a.into_split();
/// assert_eq!(volt::spawn(first(reader)).await.unwrap()?, 7);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub type OwnedReadHalf = split::OwnedReadHalf<UnixStream>;
/// The owned writing half of a [`UnixStream`].
///
/// ```
/// # volt::run(async {
/// use volt::io::{AsyncReadExt, AsyncWriteExt};
/// use volt::net::unix::OwnedWriteHalf;
///
/// async fn greet(mut writer: OwnedWriteHalf) -> std::io::Result<()> {
///     writer.write_u8(7).await
/// }
///
/// let (a, mut b) = volt::net::UnixStream::pair()?;
/// let (_reader, writer) = a.into_split();
/// volt::spawn(greet(writer)).await.unwrap()?;
/// assert_eq!(b.read_u8().await?, 7);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub type OwnedWriteHalf = split::OwnedWriteHalf<UnixStream>;
split::reunite_error!(
    UnixStream,
    "use volt::net::UnixStream;"
    "use volt::net::unix::ReuniteError;"
    ""
    "let ((a, _x), (b, _y)) = (UnixStream::pair()?, UnixStream::pair()?);"
    "let ((reader, _), (_, writer)) = (a.into_split(), b.into_split());"
    "let ReuniteError(reader, writer) = reader.reunite(writer).unwrap_err();"
    "assert!(reader.reunite(writer).is_err(), \"still halves of two streams\");"
);

/// The flags of an open descriptor (`F_GETFL`).
fn flags(fd: std::os::fd::BorrowedFd<'_>) -> std::io::Result<libc::c_int> {
    use std::os::fd::AsRawFd;

    // SAFETY: the call reads flags of a descriptor that is open for as long as it is borrowed.
    let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) };
    if flags < 0 { Err(std::io::Error::last_os_error()) } else { Ok(flags) }
}
