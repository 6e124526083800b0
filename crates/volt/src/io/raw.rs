//! The system calls of what is read and written as bytes: streams and pipes.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;

use mio::event::Source;
use tokio::io::ReadBuf;

#[cfg(unix)]
pub(crate) use std::os::fd::AsRawFd as Descriptor;
#[cfg(windows)]
pub(crate) use std::os::windows::io::AsRawSocket as Descriptor;

/// What a read of a stream found.
pub(crate) struct Received {
    pub(crate) count: usize,
    /// The read may have ended before the end of what there was: a short one does not mean "empty".
    pub(crate) cut: bool,
}

/// What bytes can be read from.
pub(crate) trait RawRead: Source + Descriptor + fmt::Debug {
    fn read(&self, buf: &mut [u8]) -> io::Result<usize>;
    fn read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize>;
    /// As `read`, into memory that need not be initialised.
    fn receive(&self, buf: &mut [MaybeUninit<u8>]) -> io::Result<Received>;
}

/// What bytes can be written to.
pub(crate) trait RawWrite: Source + Descriptor + fmt::Debug {
    fn write(&self, buf: &[u8]) -> io::Result<usize>;
    fn write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize>;
}

/// A connected stream socket.
pub(crate) trait RawStream: RawRead + RawWrite {
    fn shutdown(&self, how: Shutdown) -> io::Result<()>;
}

/// So many bytes are copied sooner than the kernel looks at a list of buffers.
const GATHER: usize = 2048;

/// Writes several small buffers as one: on Linux a `writev` of two to a TCP socket takes 190 ns longer
/// than a `send`, copying them 2 to 17. None if they are large.
#[inline]
fn write_gathered(
    bufs: &[IoSlice<'_>],
    write: impl FnOnce(&[u8]) -> io::Result<usize>,
) -> Option<io::Result<usize>> {
    if let [buf] = bufs {
        return Some(write(buf));
    }
    let mut room = [MaybeUninit::uninit(); GATHER];
    let mut all = ReadBuf::uninit(&mut room);
    for buf in bufs {
        if buf.len() > all.remaining() {
            return None;
        }
        all.put_slice(buf);
    }
    Some(write(all.filled()))
}

/// `$receive` is what makes the types differ.
macro_rules! raw_read {
    ($type:ty, $receive:expr) => {
        impl RawRead for $type {
            #[inline]
            fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
                Read::read(&mut &*self, buf)
            }

            fn read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                Read::read_vectored(&mut &*self, bufs)
            }

            #[inline]
            fn receive(&self, buf: &mut [MaybeUninit<u8>]) -> io::Result<Received> {
                self.try_io(|| $receive(self, buf))
            }
        }
    };
}

macro_rules! raw_write {
    ($type:ty) => {
        impl RawWrite for $type {
            #[inline]
            fn write(&self, buf: &[u8]) -> io::Result<usize> {
                Write::write(&mut &*self, buf)
            }

            fn write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
                write_gathered(bufs, |bytes| self.write(bytes))
                    .unwrap_or_else(|| Write::write_vectored(&mut &*self, bufs))
            }
        }
    };
}

macro_rules! raw_stream {
    ($type:ty, $receive:expr) => {
        raw_read!($type, $receive);
        raw_write!($type);

        impl RawStream for $type {
            fn shutdown(&self, how: Shutdown) -> io::Result<()> {
                <$type>::shutdown(self, how)
            }
        }
    };
}

raw_stream!(mio::net::TcpStream, receive);
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
raw_stream!(mio::net::UnixStream, receive);
#[cfg(any(target_os = "linux", target_os = "android"))]
raw_stream!(mio::net::UnixStream, receive_to_boundary);
#[cfg(unix)]
raw_read!(mio::unix::pipe::Receiver, receive_from_pipe);
#[cfg(unix)]
raw_write!(mio::unix::pipe::Sender);

#[cfg(unix)]
fn receive(io: &impl std::os::fd::AsFd, buf: &mut [MaybeUninit<u8>]) -> io::Result<Received> {
    let count = socket2::SockRef::from(io).recv(buf)?;
    Ok(Received { count, cut: false })
}

#[cfg(windows)]
fn receive(
    io: &impl std::os::windows::io::AsSocket,
    buf: &mut [MaybeUninit<u8>],
) -> io::Result<Received> {
    let count = socket2::SockRef::from(io).recv(buf)?;
    Ok(Received { count, cut: false })
}

/// A read ends at the end of a packet, too, if the writing end of the pipe is in packet mode (`O_DIRECT`
/// of pipe(2)), which the reading end cannot know: a short read does not mean "empty".
#[cfg(unix)]
fn receive_from_pipe(
    io: &impl std::os::fd::AsRawFd,
    buf: &mut [MaybeUninit<u8>],
) -> io::Result<Received> {
    // SAFETY: the kernel writes at most that many bytes, to a buffer that is ours for the call.
    let count = unsafe { libc::read(io.as_raw_fd(), buf.as_mut_ptr().cast(), buf.len()) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    Ok(Received { count, cut: true })
}

/// Above this a read is likely to be short, and it pays to learn whether that means "empty".
#[cfg(any(target_os = "linux", target_os = "android"))]
const LARGE: usize = 512;

/// A read of a unix stream ends where descriptors or credentials come with the data, and more may
/// follow. `recvmsg` without room for them says so, but costs half as much as the failing read that
/// it saves: not worth it where the caller asks for exactly what it expects.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn receive_to_boundary(
    io: &impl std::os::fd::AsRawFd,
    buf: &mut [MaybeUninit<u8>],
) -> io::Result<Received> {
    if buf.len() < LARGE {
        // SAFETY: the kernel writes at most that many bytes, to a buffer that is ours for the call.
        let count = unsafe { libc::recv(io.as_raw_fd(), buf.as_mut_ptr().cast(), buf.len(), 0) };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        return Ok(Received { count, cut: true });
    }
    let mut part = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    // SAFETY: a `msghdr` of zeros is valid: no name, no parts, no control data.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    // SAFETY: the message names one buffer, which is ours for the call; the kernel keeps nothing.
    let count = unsafe { libc::recvmsg(io.as_raw_fd(), &raw mut message, 0) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    Ok(Received { count, cut: message.msg_flags & libc::MSG_CTRUNC != 0 })
}
