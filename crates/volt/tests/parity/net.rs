// Included by `parity.rs` once with `rt` for Tokio and once with `rt` for Volt: sockets, pipes and `AsyncFd`.
//
// What is not in Tokio's signature in the same way is in `docs/design/tokio-api.md`.

use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::net as std_unix;
use std::path::Path;
use std::error::Error;
use std::task::Poll;
use std::time::Duration;

use rt::io::unix as fd;
use rt::net;

use super::super::{Cx, any};

/// `'a` is a lifetime of the type, `'b` the one of `self`, `'c` that of other arguments.
#[allow(clippy::too_many_lines, reason = "a list")]
pub(crate) async fn net<'a: 'b + 'c, 'b: 'c, 'c>() {
    calls! { fd::AsyncFd<OwnedFd>:
        async fn async_io::<u8>(&'b fd::AsyncFd<OwnedFd>, rt::io::Interest, fn(&OwnedFd) -> io::Result<u8>) -> io::Result<u8>;
        async fn async_io_mut::<u8>(&'b mut fd::AsyncFd<OwnedFd>, rt::io::Interest, fn(&mut OwnedFd) -> io::Result<u8>) -> io::Result<u8>;
        fn get_mut(&'b mut fd::AsyncFd<OwnedFd>) -> &'b mut OwnedFd;
        fn get_ref(&'b fd::AsyncFd<OwnedFd>) -> &'b OwnedFd;
        fn into_inner(fd::AsyncFd<OwnedFd>) -> OwnedFd;
        fn new(OwnedFd) -> io::Result<fd::AsyncFd<OwnedFd>>;
        fn poll_read_ready(&'b fd::AsyncFd<OwnedFd>, Cx<'c>) -> Poll<io::Result<fd::AsyncFdReadyGuard<'b, OwnedFd>>>;
        fn poll_read_ready_mut(&'b mut fd::AsyncFd<OwnedFd>, Cx<'c>) -> Poll<io::Result<fd::AsyncFdReadyMutGuard<'b, OwnedFd>>>;
        fn poll_write_ready(&'b fd::AsyncFd<OwnedFd>, Cx<'c>) -> Poll<io::Result<fd::AsyncFdReadyGuard<'b, OwnedFd>>>;
        fn poll_write_ready_mut(&'b mut fd::AsyncFd<OwnedFd>, Cx<'c>) -> Poll<io::Result<fd::AsyncFdReadyMutGuard<'b, OwnedFd>>>;
        async fn readable(&'b fd::AsyncFd<OwnedFd>) -> io::Result<fd::AsyncFdReadyGuard<'b, OwnedFd>>;
        async fn readable_mut(&'b mut fd::AsyncFd<OwnedFd>) -> io::Result<fd::AsyncFdReadyMutGuard<'b, OwnedFd>>;
        async fn ready(&'b fd::AsyncFd<OwnedFd>, rt::io::Interest) -> io::Result<fd::AsyncFdReadyGuard<'b, OwnedFd>>;
        async fn ready_mut(&'b mut fd::AsyncFd<OwnedFd>, rt::io::Interest) -> io::Result<fd::AsyncFdReadyMutGuard<'b, OwnedFd>>;
        unsafe fn register(OwnedFd) -> Result<fd::AsyncFd<OwnedFd>, fd::AsyncFdRegisterError<OwnedFd>>;
        unsafe fn register_with_interest(OwnedFd, rt::io::Interest) -> Result<fd::AsyncFd<OwnedFd>, fd::AsyncFdRegisterError<OwnedFd>>;
        fn try_io::<u8>(&'b fd::AsyncFd<OwnedFd>, rt::io::Interest, fn(&OwnedFd) -> io::Result<u8>) -> io::Result<u8>;
        fn try_io_mut::<u8>(&'b mut fd::AsyncFd<OwnedFd>, rt::io::Interest, fn(&mut OwnedFd) -> io::Result<u8>) -> io::Result<u8>;
        fn try_new(OwnedFd) -> Result<fd::AsyncFd<OwnedFd>, fd::AsyncFdRegisterError<OwnedFd>>;
        fn try_with_interest(OwnedFd, rt::io::Interest) -> Result<fd::AsyncFd<OwnedFd>, fd::AsyncFdRegisterError<OwnedFd>>;
        fn with_interest(OwnedFd, rt::io::Interest) -> io::Result<fd::AsyncFd<OwnedFd>>;
        async fn writable(&'b fd::AsyncFd<OwnedFd>) -> io::Result<fd::AsyncFdReadyGuard<'b, OwnedFd>>;
        async fn writable_mut(&'b mut fd::AsyncFd<OwnedFd>) -> io::Result<fd::AsyncFdReadyMutGuard<'b, OwnedFd>>;
    }
    calls! { fd::AsyncFdReadyGuard<'a, OwnedFd>:
        fn clear_ready(&'b mut fd::AsyncFdReadyGuard<'a, OwnedFd>);
        fn clear_ready_matching(&'b mut fd::AsyncFdReadyGuard<'a, OwnedFd>, rt::io::Ready);
        fn get_inner(&'b fd::AsyncFdReadyGuard<'a, OwnedFd>) -> &'a OwnedFd;
        fn get_ref(&'b fd::AsyncFdReadyGuard<'a, OwnedFd>) -> &'a fd::AsyncFd<OwnedFd>;
        fn ready(&'b fd::AsyncFdReadyGuard<'a, OwnedFd>) -> rt::io::Ready;
        fn retain_ready(&'b mut fd::AsyncFdReadyGuard<'a, OwnedFd>);
        fn try_io::<u8>(&'b mut fd::AsyncFdReadyGuard<'a, OwnedFd>, fn(&'a fd::AsyncFd<OwnedFd>) -> io::Result<u8>) -> Result<io::Result<u8>, fd::TryIoError>;
    }
    calls! { fd::AsyncFdReadyMutGuard<'a, OwnedFd>:
        fn clear_ready(&'b mut fd::AsyncFdReadyMutGuard<'a, OwnedFd>);
        fn clear_ready_matching(&'b mut fd::AsyncFdReadyMutGuard<'a, OwnedFd>, rt::io::Ready);
        fn get_inner(&'b fd::AsyncFdReadyMutGuard<'a, OwnedFd>) -> &'b OwnedFd;
        fn get_inner_mut(&'b mut fd::AsyncFdReadyMutGuard<'a, OwnedFd>) -> &'b mut OwnedFd;
        fn get_mut(&'b mut fd::AsyncFdReadyMutGuard<'a, OwnedFd>) -> &'b mut fd::AsyncFd<OwnedFd>;
        fn get_ref(&'b fd::AsyncFdReadyMutGuard<'a, OwnedFd>) -> &'b fd::AsyncFd<OwnedFd>;
        fn ready(&'b fd::AsyncFdReadyMutGuard<'a, OwnedFd>) -> rt::io::Ready;
        fn retain_ready(&'b mut fd::AsyncFdReadyMutGuard<'a, OwnedFd>);
        fn try_io::<u8>(&'b mut fd::AsyncFdReadyMutGuard<'a, OwnedFd>, fn(&mut fd::AsyncFd<OwnedFd>) -> io::Result<u8>) -> Result<io::Result<u8>, fd::TryIoError>;
    }
    calls! { fd::AsyncFdRegisterError<u8>:
        fn into_parts(fd::AsyncFdRegisterError<u8>) -> (u8, io::Error);
    }
    calls! { net::TcpListener:
        async fn accept(&'b net::TcpListener) -> io::Result<(net::TcpStream, SocketAddr)>;
        async fn bind::<SocketAddr>(SocketAddr) -> io::Result<net::TcpListener>;
        fn from_std(std::net::TcpListener) -> io::Result<net::TcpListener>;
        fn into_std(net::TcpListener) -> io::Result<std::net::TcpListener>;
        fn local_addr(&'b net::TcpListener) -> io::Result<SocketAddr>;
        fn poll_accept(&'b net::TcpListener, Cx<'c>) -> Poll<io::Result<(net::TcpStream, SocketAddr)>>;
        fn set_ttl(&'b net::TcpListener, u32) -> io::Result<()>;
        fn ttl(&'b net::TcpListener) -> io::Result<u32>;
    }
    calls! { net::TcpSocket:
        fn bind(&'b net::TcpSocket, SocketAddr) -> io::Result<()>;
        fn bind_device(&'b net::TcpSocket, Option<&'c [u8]>) -> io::Result<()>;
        async fn connect(net::TcpSocket, SocketAddr) -> io::Result<net::TcpStream>;
        fn device(&'b net::TcpSocket) -> io::Result<Option<Vec<u8>>>;
        fn from_std_stream(std::net::TcpStream) -> net::TcpSocket;
        fn keepalive(&'b net::TcpSocket) -> io::Result<bool>;
        fn linger(&'b net::TcpSocket) -> io::Result<Option<Duration>>;
        fn listen(net::TcpSocket, u32) -> io::Result<net::TcpListener>;
        fn local_addr(&'b net::TcpSocket) -> io::Result<SocketAddr>;
        fn new_v4() -> io::Result<net::TcpSocket>;
        fn new_v6() -> io::Result<net::TcpSocket>;
        fn nodelay(&'b net::TcpSocket) -> io::Result<bool>;
        fn recv_buffer_size(&'b net::TcpSocket) -> io::Result<u32>;
        fn reuseaddr(&'b net::TcpSocket) -> io::Result<bool>;
        fn reuseport(&'b net::TcpSocket) -> io::Result<bool>;
        fn send_buffer_size(&'b net::TcpSocket) -> io::Result<u32>;
        fn set_keepalive(&'b net::TcpSocket, bool) -> io::Result<()>;
        fn set_linger(&'b net::TcpSocket, Option<Duration>) -> io::Result<()>;
        fn set_nodelay(&'b net::TcpSocket, bool) -> io::Result<()>;
        fn set_recv_buffer_size(&'b net::TcpSocket, u32) -> io::Result<()>;
        fn set_reuseaddr(&'b net::TcpSocket, bool) -> io::Result<()>;
        fn set_reuseport(&'b net::TcpSocket, bool) -> io::Result<()>;
        fn set_send_buffer_size(&'b net::TcpSocket, u32) -> io::Result<()>;
        fn set_tclass_v6(&'b net::TcpSocket, u32) -> io::Result<()>;
        fn set_tos(&'b net::TcpSocket, u32) -> io::Result<()>;
        fn set_tos_v4(&'b net::TcpSocket, u32) -> io::Result<()>;
        fn set_zero_linger(&'b net::TcpSocket) -> io::Result<()>;
        fn take_error(&'b net::TcpSocket) -> io::Result<Option<io::Error>>;
        fn tclass_v6(&'b net::TcpSocket) -> io::Result<u32>;
        fn tos(&'b net::TcpSocket) -> io::Result<u32>;
        fn tos_v4(&'b net::TcpSocket) -> io::Result<u32>;
    }
    calls! { net::TcpStream:
        async fn async_io::<u8>(&'b net::TcpStream, rt::io::Interest, fn() -> io::Result<u8>) -> io::Result<u8>;
        async fn connect::<SocketAddr>(SocketAddr) -> io::Result<net::TcpStream>;
        fn from_std(std::net::TcpStream) -> io::Result<net::TcpStream>;
        fn into_split(net::TcpStream) -> (net::tcp::OwnedReadHalf, net::tcp::OwnedWriteHalf);
        fn into_std(net::TcpStream) -> io::Result<std::net::TcpStream>;
        fn linger(&'b net::TcpStream) -> io::Result<Option<Duration>>;
        fn local_addr(&'b net::TcpStream) -> io::Result<SocketAddr>;
        fn nodelay(&'b net::TcpStream) -> io::Result<bool>;
        async fn peek(&'b net::TcpStream, &'c mut [u8]) -> io::Result<usize>;
        fn peer_addr(&'b net::TcpStream) -> io::Result<SocketAddr>;
        fn poll_peek(&'b net::TcpStream, Cx<'c>, &'c mut rt::io::ReadBuf<'c>) -> Poll<io::Result<usize>>;
        fn poll_read_ready(&'b net::TcpStream, Cx<'c>) -> Poll<io::Result<()>>;
        fn poll_write_ready(&'b net::TcpStream, Cx<'c>) -> Poll<io::Result<()>>;
        fn quickack(&'b net::TcpStream) -> io::Result<bool>;
        async fn readable(&'b net::TcpStream) -> io::Result<()>;
        async fn ready(&'b net::TcpStream, rt::io::Interest) -> io::Result<rt::io::Ready>;
        fn set_linger(&'b net::TcpStream, Option<Duration>) -> io::Result<()>;
        fn set_nodelay(&'b net::TcpStream, bool) -> io::Result<()>;
        fn set_quickack(&'b net::TcpStream, bool) -> io::Result<()>;
        fn set_ttl(&'b net::TcpStream, u32) -> io::Result<()>;
        fn set_zero_linger(&'b net::TcpStream) -> io::Result<()>;
        fn split(&'b mut net::TcpStream) -> (net::tcp::ReadHalf<'b>, net::tcp::WriteHalf<'b>);
        fn take_error(&'b net::TcpStream) -> io::Result<Option<io::Error>>;
        fn try_io::<u8>(&'b net::TcpStream, rt::io::Interest, fn() -> io::Result<u8>) -> io::Result<u8>;
        fn try_read(&'b net::TcpStream, &'c mut [u8]) -> io::Result<usize>;
        fn try_read_buf::<Vec<u8>>(&'b net::TcpStream, &'c mut Vec<u8>) -> io::Result<usize>;
        fn try_read_vectored(&'b net::TcpStream, &'c mut [io::IoSliceMut<'c>]) -> io::Result<usize>;
        fn try_write(&'b net::TcpStream, &'c [u8]) -> io::Result<usize>;
        fn try_write_vectored(&'b net::TcpStream, &'c [io::IoSlice<'c>]) -> io::Result<usize>;
        fn ttl(&'b net::TcpStream) -> io::Result<u32>;
        async fn writable(&'b net::TcpStream) -> io::Result<()>;
    }
    calls! { net::UdpSocket:
        async fn async_io::<u8>(&'b net::UdpSocket, rt::io::Interest, fn() -> io::Result<u8>) -> io::Result<u8>;
        async fn bind::<SocketAddr>(SocketAddr) -> io::Result<net::UdpSocket>;
        fn bind_device(&'b net::UdpSocket, Option<&'c [u8]>) -> io::Result<()>;
        fn broadcast(&'b net::UdpSocket) -> io::Result<bool>;
        async fn connect::<SocketAddr>(&'b net::UdpSocket, SocketAddr) -> io::Result<()>;
        fn device(&'b net::UdpSocket) -> io::Result<Option<Vec<u8>>>;
        fn from_std(std::net::UdpSocket) -> io::Result<net::UdpSocket>;
        fn into_std(net::UdpSocket) -> io::Result<std::net::UdpSocket>;
        fn join_multicast_v4(&'b net::UdpSocket, std::net::Ipv4Addr, std::net::Ipv4Addr) -> io::Result<()>;
        fn join_multicast_v6(&'b net::UdpSocket, &'c std::net::Ipv6Addr, u32) -> io::Result<()>;
        fn leave_multicast_v4(&'b net::UdpSocket, std::net::Ipv4Addr, std::net::Ipv4Addr) -> io::Result<()>;
        fn leave_multicast_v6(&'b net::UdpSocket, &'c std::net::Ipv6Addr, u32) -> io::Result<()>;
        fn local_addr(&'b net::UdpSocket) -> io::Result<SocketAddr>;
        fn multicast_loop_v4(&'b net::UdpSocket) -> io::Result<bool>;
        fn multicast_loop_v6(&'b net::UdpSocket) -> io::Result<bool>;
        fn multicast_ttl_v4(&'b net::UdpSocket) -> io::Result<u32>;
        async fn peek(&'b net::UdpSocket, &'c mut [u8]) -> io::Result<usize>;
        async fn peek_from(&'b net::UdpSocket, &'c mut [u8]) -> io::Result<(usize, SocketAddr)>;
        async fn peek_sender(&'b net::UdpSocket) -> io::Result<SocketAddr>;
        fn peer_addr(&'b net::UdpSocket) -> io::Result<SocketAddr>;
        fn poll_peek(&'b net::UdpSocket, Cx<'c>, &'c mut rt::io::ReadBuf<'c>) -> Poll<io::Result<()>>;
        fn poll_peek_from(&'b net::UdpSocket, Cx<'c>, &'c mut rt::io::ReadBuf<'c>) -> Poll<io::Result<SocketAddr>>;
        fn poll_peek_sender(&'b net::UdpSocket, Cx<'c>) -> Poll<io::Result<SocketAddr>>;
        fn poll_recv(&'b net::UdpSocket, Cx<'c>, &'c mut rt::io::ReadBuf<'c>) -> Poll<io::Result<()>>;
        fn poll_recv_from(&'b net::UdpSocket, Cx<'c>, &'c mut rt::io::ReadBuf<'c>) -> Poll<io::Result<SocketAddr>>;
        fn poll_recv_ready(&'b net::UdpSocket, Cx<'c>) -> Poll<io::Result<()>>;
        fn poll_send(&'b net::UdpSocket, Cx<'c>, &'c [u8]) -> Poll<io::Result<usize>>;
        fn poll_send_ready(&'b net::UdpSocket, Cx<'c>) -> Poll<io::Result<()>>;
        fn poll_send_to(&'b net::UdpSocket, Cx<'c>, &'c [u8], SocketAddr) -> Poll<io::Result<usize>>;
        async fn readable(&'b net::UdpSocket) -> io::Result<()>;
        async fn ready(&'b net::UdpSocket, rt::io::Interest) -> io::Result<rt::io::Ready>;
        async fn recv(&'b net::UdpSocket, &'c mut [u8]) -> io::Result<usize>;
        async fn recv_buf::<Vec<u8>>(&'b net::UdpSocket, &'c mut Vec<u8>) -> io::Result<usize>;
        async fn recv_buf_from::<Vec<u8>>(&'b net::UdpSocket, &'c mut Vec<u8>) -> io::Result<(usize, SocketAddr)>;
        async fn recv_from(&'b net::UdpSocket, &'c mut [u8]) -> io::Result<(usize, SocketAddr)>;
        async fn send(&'b net::UdpSocket, &'c [u8]) -> io::Result<usize>;
        async fn send_to::<SocketAddr>(&'b net::UdpSocket, &'c [u8], SocketAddr) -> io::Result<usize>;
        fn set_broadcast(&'b net::UdpSocket, bool) -> io::Result<()>;
        fn set_multicast_loop_v4(&'b net::UdpSocket, bool) -> io::Result<()>;
        fn set_multicast_loop_v6(&'b net::UdpSocket, bool) -> io::Result<()>;
        fn set_multicast_ttl_v4(&'b net::UdpSocket, u32) -> io::Result<()>;
        fn set_tclass_v6(&'b net::UdpSocket, u32) -> io::Result<()>;
        fn set_tos(&'b net::UdpSocket, u32) -> io::Result<()>;
        fn set_tos_v4(&'b net::UdpSocket, u32) -> io::Result<()>;
        fn set_ttl(&'b net::UdpSocket, u32) -> io::Result<()>;
        fn take_error(&'b net::UdpSocket) -> io::Result<Option<io::Error>>;
        fn tclass_v6(&'b net::UdpSocket) -> io::Result<u32>;
        fn tos(&'b net::UdpSocket) -> io::Result<u32>;
        fn tos_v4(&'b net::UdpSocket) -> io::Result<u32>;
        fn try_io::<u8>(&'b net::UdpSocket, rt::io::Interest, fn() -> io::Result<u8>) -> io::Result<u8>;
        fn try_peek(&'b net::UdpSocket, &'c mut [u8]) -> io::Result<usize>;
        fn try_peek_from(&'b net::UdpSocket, &'c mut [u8]) -> io::Result<(usize, SocketAddr)>;
        fn try_peek_sender(&'b net::UdpSocket) -> io::Result<SocketAddr>;
        fn try_recv(&'b net::UdpSocket, &'c mut [u8]) -> io::Result<usize>;
        fn try_recv_buf::<Vec<u8>>(&'b net::UdpSocket, &'c mut Vec<u8>) -> io::Result<usize>;
        fn try_recv_buf_from::<Vec<u8>>(&'b net::UdpSocket, &'c mut Vec<u8>) -> io::Result<(usize, SocketAddr)>;
        fn try_recv_from(&'b net::UdpSocket, &'c mut [u8]) -> io::Result<(usize, SocketAddr)>;
        fn try_send(&'b net::UdpSocket, &'c [u8]) -> io::Result<usize>;
        fn try_send_to(&'b net::UdpSocket, &'c [u8], SocketAddr) -> io::Result<usize>;
        fn ttl(&'b net::UdpSocket) -> io::Result<u32>;
        async fn writable(&'b net::UdpSocket) -> io::Result<()>;
    }
    calls! { net::UnixListener:
        async fn accept(&'b net::UnixListener) -> io::Result<(net::UnixStream, net::unix::SocketAddr)>;
        fn bind::<&Path>(&Path) -> io::Result<net::UnixListener>;
        fn bind_addr(&'c net::unix::SocketAddr) -> io::Result<net::UnixListener>;
        fn from_std(std_unix::UnixListener) -> io::Result<net::UnixListener>;
        fn into_std(net::UnixListener) -> io::Result<std_unix::UnixListener>;
        fn local_addr(&'b net::UnixListener) -> io::Result<net::unix::SocketAddr>;
        fn poll_accept(&'b net::UnixListener, Cx<'c>) -> Poll<io::Result<(net::UnixStream, net::unix::SocketAddr)>>;
        fn take_error(&'b net::UnixListener) -> io::Result<Option<io::Error>>;
    }
    calls! { net::UnixSocket:
        fn bind(&'b net::UnixSocket, &Path) -> io::Result<()>;
        async fn connect(net::UnixSocket, &Path) -> io::Result<net::UnixStream>;
        fn listen(net::UnixSocket, u32) -> io::Result<net::UnixListener>;
        fn new_datagram() -> io::Result<net::UnixSocket>;
        fn new_stream() -> io::Result<net::UnixSocket>;
    }
    calls! { net::UnixStream:
        async fn async_io::<u8>(&'b net::UnixStream, rt::io::Interest, fn() -> io::Result<u8>) -> io::Result<u8>;
        async fn connect::<&Path>(&Path) -> io::Result<net::UnixStream>;
        async fn connect_addr(&'c net::unix::SocketAddr) -> io::Result<net::UnixStream>;
        fn from_std(std_unix::UnixStream) -> io::Result<net::UnixStream>;
        fn into_split(net::UnixStream) -> (net::unix::OwnedReadHalf, net::unix::OwnedWriteHalf);
        fn into_std(net::UnixStream) -> io::Result<std_unix::UnixStream>;
        fn local_addr(&'b net::UnixStream) -> io::Result<net::unix::SocketAddr>;
        fn pair() -> io::Result<(net::UnixStream, net::UnixStream)>;
        fn peer_addr(&'b net::UnixStream) -> io::Result<net::unix::SocketAddr>;
        fn peer_cred(&'b net::UnixStream) -> io::Result<net::unix::UCred>;
        fn poll_read_ready(&'b net::UnixStream, Cx<'c>) -> Poll<io::Result<()>>;
        fn poll_write_ready(&'b net::UnixStream, Cx<'c>) -> Poll<io::Result<()>>;
        async fn readable(&'b net::UnixStream) -> io::Result<()>;
        async fn ready(&'b net::UnixStream, rt::io::Interest) -> io::Result<rt::io::Ready>;
        fn split(&'b mut net::UnixStream) -> (net::unix::ReadHalf<'b>, net::unix::WriteHalf<'b>);
        fn take_error(&'b net::UnixStream) -> io::Result<Option<io::Error>>;
        fn try_io::<u8>(&'b net::UnixStream, rt::io::Interest, fn() -> io::Result<u8>) -> io::Result<u8>;
        fn try_read(&'b net::UnixStream, &'c mut [u8]) -> io::Result<usize>;
        fn try_read_buf::<Vec<u8>>(&'b net::UnixStream, &'c mut Vec<u8>) -> io::Result<usize>;
        fn try_read_vectored(&'b net::UnixStream, &'c mut [io::IoSliceMut<'c>]) -> io::Result<usize>;
        fn try_write(&'b net::UnixStream, &'c [u8]) -> io::Result<usize>;
        fn try_write_vectored(&'b net::UnixStream, &'c [io::IoSlice<'c>]) -> io::Result<usize>;
        async fn writable(&'b net::UnixStream) -> io::Result<()>;
    }
    calls! { net::tcp::OwnedReadHalf:
        fn local_addr(&'b net::tcp::OwnedReadHalf) -> io::Result<SocketAddr>;
        async fn peek(&'b mut net::tcp::OwnedReadHalf, &'c mut [u8]) -> io::Result<usize>;
        fn peer_addr(&'b net::tcp::OwnedReadHalf) -> io::Result<SocketAddr>;
        fn poll_peek(&'b mut net::tcp::OwnedReadHalf, Cx<'c>, &'c mut rt::io::ReadBuf<'c>) -> Poll<io::Result<usize>>;
        async fn readable(&'b net::tcp::OwnedReadHalf) -> io::Result<()>;
        async fn ready(&'b net::tcp::OwnedReadHalf, rt::io::Interest) -> io::Result<rt::io::Ready>;
        fn reunite(net::tcp::OwnedReadHalf, net::tcp::OwnedWriteHalf) -> Result<net::TcpStream, net::tcp::ReuniteError>;
        fn try_read(&'b net::tcp::OwnedReadHalf, &'c mut [u8]) -> io::Result<usize>;
        fn try_read_buf::<Vec<u8>>(&'b net::tcp::OwnedReadHalf, &'c mut Vec<u8>) -> io::Result<usize>;
        fn try_read_vectored(&'b net::tcp::OwnedReadHalf, &'c mut [io::IoSliceMut<'c>]) -> io::Result<usize>;
    }
    calls! { net::tcp::OwnedWriteHalf:
        fn forget(net::tcp::OwnedWriteHalf);
        fn local_addr(&'b net::tcp::OwnedWriteHalf) -> io::Result<SocketAddr>;
        fn peer_addr(&'b net::tcp::OwnedWriteHalf) -> io::Result<SocketAddr>;
        async fn ready(&'b net::tcp::OwnedWriteHalf, rt::io::Interest) -> io::Result<rt::io::Ready>;
        fn reunite(net::tcp::OwnedWriteHalf, net::tcp::OwnedReadHalf) -> Result<net::TcpStream, net::tcp::ReuniteError>;
        fn try_write(&'b net::tcp::OwnedWriteHalf, &'c [u8]) -> io::Result<usize>;
        fn try_write_vectored(&'b net::tcp::OwnedWriteHalf, &'c [io::IoSlice<'c>]) -> io::Result<usize>;
        async fn writable(&'b net::tcp::OwnedWriteHalf) -> io::Result<()>;
    }
    calls! { net::tcp::ReadHalf<'a>:
        fn local_addr(&'b net::tcp::ReadHalf<'a>) -> io::Result<SocketAddr>;
        async fn peek(&'b mut net::tcp::ReadHalf<'a>, &'c mut [u8]) -> io::Result<usize>;
        fn peer_addr(&'b net::tcp::ReadHalf<'a>) -> io::Result<SocketAddr>;
        fn poll_peek(&'b mut net::tcp::ReadHalf<'a>, Cx<'c>, &'c mut rt::io::ReadBuf<'c>) -> Poll<io::Result<usize>>;
        async fn readable(&'b net::tcp::ReadHalf<'a>) -> io::Result<()>;
        async fn ready(&'b net::tcp::ReadHalf<'a>, rt::io::Interest) -> io::Result<rt::io::Ready>;
        fn try_read(&'b net::tcp::ReadHalf<'a>, &'c mut [u8]) -> io::Result<usize>;
        fn try_read_buf::<Vec<u8>>(&'b net::tcp::ReadHalf<'a>, &'c mut Vec<u8>) -> io::Result<usize>;
        fn try_read_vectored(&'b net::tcp::ReadHalf<'a>, &'c mut [io::IoSliceMut<'c>]) -> io::Result<usize>;
    }
    calls! { net::tcp::WriteHalf<'a>:
        fn local_addr(&'b net::tcp::WriteHalf<'a>) -> io::Result<SocketAddr>;
        fn peer_addr(&'b net::tcp::WriteHalf<'a>) -> io::Result<SocketAddr>;
        async fn ready(&'b net::tcp::WriteHalf<'a>, rt::io::Interest) -> io::Result<rt::io::Ready>;
        fn try_write(&'b net::tcp::WriteHalf<'a>, &'c [u8]) -> io::Result<usize>;
        fn try_write_vectored(&'b net::tcp::WriteHalf<'a>, &'c [io::IoSlice<'c>]) -> io::Result<usize>;
        async fn writable(&'b net::tcp::WriteHalf<'a>) -> io::Result<()>;
    }
    calls! { net::unix::OwnedReadHalf:
        fn local_addr(&'b net::unix::OwnedReadHalf) -> io::Result<net::unix::SocketAddr>;
        fn peer_addr(&'b net::unix::OwnedReadHalf) -> io::Result<net::unix::SocketAddr>;
        async fn readable(&'b net::unix::OwnedReadHalf) -> io::Result<()>;
        async fn ready(&'b net::unix::OwnedReadHalf, rt::io::Interest) -> io::Result<rt::io::Ready>;
        fn reunite(net::unix::OwnedReadHalf, net::unix::OwnedWriteHalf) -> Result<net::UnixStream, net::unix::ReuniteError>;
        fn try_read(&'b net::unix::OwnedReadHalf, &'c mut [u8]) -> io::Result<usize>;
        fn try_read_buf::<Vec<u8>>(&'b net::unix::OwnedReadHalf, &'c mut Vec<u8>) -> io::Result<usize>;
        fn try_read_vectored(&'b net::unix::OwnedReadHalf, &'c mut [io::IoSliceMut<'c>]) -> io::Result<usize>;
    }
    calls! { net::unix::OwnedWriteHalf:
        fn forget(net::unix::OwnedWriteHalf);
        fn local_addr(&'b net::unix::OwnedWriteHalf) -> io::Result<net::unix::SocketAddr>;
        fn peer_addr(&'b net::unix::OwnedWriteHalf) -> io::Result<net::unix::SocketAddr>;
        async fn ready(&'b net::unix::OwnedWriteHalf, rt::io::Interest) -> io::Result<rt::io::Ready>;
        fn reunite(net::unix::OwnedWriteHalf, net::unix::OwnedReadHalf) -> Result<net::UnixStream, net::unix::ReuniteError>;
        fn try_write(&'b net::unix::OwnedWriteHalf, &'c [u8]) -> io::Result<usize>;
        fn try_write_vectored(&'b net::unix::OwnedWriteHalf, &'c [io::IoSlice<'c>]) -> io::Result<usize>;
        async fn writable(&'b net::unix::OwnedWriteHalf) -> io::Result<()>;
    }
    calls! { net::unix::ReadHalf<'a>:
        fn local_addr(&'b net::unix::ReadHalf<'a>) -> io::Result<net::unix::SocketAddr>;
        fn peer_addr(&'b net::unix::ReadHalf<'a>) -> io::Result<net::unix::SocketAddr>;
        async fn readable(&'b net::unix::ReadHalf<'a>) -> io::Result<()>;
        async fn ready(&'b net::unix::ReadHalf<'a>, rt::io::Interest) -> io::Result<rt::io::Ready>;
        fn try_read(&'b net::unix::ReadHalf<'a>, &'c mut [u8]) -> io::Result<usize>;
        fn try_read_buf::<Vec<u8>>(&'b net::unix::ReadHalf<'a>, &'c mut Vec<u8>) -> io::Result<usize>;
        fn try_read_vectored(&'b net::unix::ReadHalf<'a>, &'c mut [io::IoSliceMut<'c>]) -> io::Result<usize>;
    }
    calls! { net::unix::SocketAddr:
        fn as_abstract_name(&'b net::unix::SocketAddr) -> Option<&'b [u8]>;
        fn as_pathname(&'b net::unix::SocketAddr) -> Option<&'b Path>;
        fn is_unnamed(&'b net::unix::SocketAddr) -> bool;
    }
    calls! { net::unix::UCred:
        fn gid(&'b net::unix::UCred) -> net::unix::gid_t;
        fn pid(&'b net::unix::UCred) -> Option<net::unix::pid_t>;
        fn uid(&'b net::unix::UCred) -> net::unix::uid_t;
    }
    calls! { net::unix::WriteHalf<'a>:
        fn local_addr(&'b net::unix::WriteHalf<'a>) -> io::Result<net::unix::SocketAddr>;
        fn peer_addr(&'b net::unix::WriteHalf<'a>) -> io::Result<net::unix::SocketAddr>;
        async fn ready(&'b net::unix::WriteHalf<'a>, rt::io::Interest) -> io::Result<rt::io::Ready>;
        fn try_write(&'b net::unix::WriteHalf<'a>, &'c [u8]) -> io::Result<usize>;
        fn try_write_vectored(&'b net::unix::WriteHalf<'a>, &'c [io::IoSlice<'c>]) -> io::Result<usize>;
        async fn writable(&'b net::unix::WriteHalf<'a>) -> io::Result<()>;
    }
    calls! { net::unix::pipe::OpenOptions:
        fn new() -> net::unix::pipe::OpenOptions;
        fn open_receiver::<&Path>(&'b net::unix::pipe::OpenOptions, &Path) -> io::Result<net::unix::pipe::Receiver>;
        fn open_sender::<&Path>(&'b net::unix::pipe::OpenOptions, &Path) -> io::Result<net::unix::pipe::Sender>;
        fn read_write(&'b mut net::unix::pipe::OpenOptions, bool) -> &'b mut net::unix::pipe::OpenOptions;
        fn unchecked(&'b mut net::unix::pipe::OpenOptions, bool) -> &'b mut net::unix::pipe::OpenOptions;
    }
    calls! { net::unix::pipe::Receiver:
        fn from_file(std::fs::File) -> io::Result<net::unix::pipe::Receiver>;
        fn from_file_unchecked(std::fs::File) -> io::Result<net::unix::pipe::Receiver>;
        fn from_owned_fd(OwnedFd) -> io::Result<net::unix::pipe::Receiver>;
        fn from_owned_fd_unchecked(OwnedFd) -> io::Result<net::unix::pipe::Receiver>;
        fn into_blocking_fd(net::unix::pipe::Receiver) -> io::Result<OwnedFd>;
        fn into_nonblocking_fd(net::unix::pipe::Receiver) -> io::Result<OwnedFd>;
        fn poll_read_ready(&'b net::unix::pipe::Receiver, Cx<'c>) -> Poll<io::Result<()>>;
        async fn readable(&'b net::unix::pipe::Receiver) -> io::Result<()>;
        async fn ready(&'b net::unix::pipe::Receiver, rt::io::Interest) -> io::Result<rt::io::Ready>;
        fn try_io::<u8>(&'b net::unix::pipe::Receiver, fn() -> io::Result<u8>) -> io::Result<u8>;
        fn try_read(&'b net::unix::pipe::Receiver, &'c mut [u8]) -> io::Result<usize>;
        fn try_read_buf::<Vec<u8>>(&'b net::unix::pipe::Receiver, &'c mut Vec<u8>) -> io::Result<usize>;
        fn try_read_vectored(&'b net::unix::pipe::Receiver, &'c mut [io::IoSliceMut<'c>]) -> io::Result<usize>;
    }
    calls! { net::unix::pipe::Sender:
        fn from_file(std::fs::File) -> io::Result<net::unix::pipe::Sender>;
        fn from_file_unchecked(std::fs::File) -> io::Result<net::unix::pipe::Sender>;
        fn from_owned_fd(OwnedFd) -> io::Result<net::unix::pipe::Sender>;
        fn from_owned_fd_unchecked(OwnedFd) -> io::Result<net::unix::pipe::Sender>;
        fn into_blocking_fd(net::unix::pipe::Sender) -> io::Result<OwnedFd>;
        fn into_nonblocking_fd(net::unix::pipe::Sender) -> io::Result<OwnedFd>;
        fn poll_write_ready(&'b net::unix::pipe::Sender, Cx<'c>) -> Poll<io::Result<()>>;
        async fn ready(&'b net::unix::pipe::Sender, rt::io::Interest) -> io::Result<rt::io::Ready>;
        fn try_io::<u8>(&'b net::unix::pipe::Sender, fn() -> io::Result<u8>) -> io::Result<u8>;
        fn try_write(&'b net::unix::pipe::Sender, &'c [u8]) -> io::Result<usize>;
        fn try_write_vectored(&'b net::unix::pipe::Sender, &'c [io::IoSlice<'c>]) -> io::Result<usize>;
        async fn writable(&'b net::unix::pipe::Sender) -> io::Result<()>;
    }
    calls! { net::UnixDatagram:
        async fn async_io::<u8>(&'b net::UnixDatagram, rt::io::Interest, fn() -> io::Result<u8>) -> io::Result<u8>;
        fn bind::<&Path>(&Path) -> io::Result<net::UnixDatagram>;
        fn connect::<&Path>(&'b net::UnixDatagram, &Path) -> io::Result<()>;
        fn from_std(std_unix::UnixDatagram) -> io::Result<net::UnixDatagram>;
        fn into_std(net::UnixDatagram) -> io::Result<std_unix::UnixDatagram>;
        fn local_addr(&'b net::UnixDatagram) -> io::Result<net::unix::SocketAddr>;
        fn pair() -> io::Result<(net::UnixDatagram, net::UnixDatagram)>;
        fn peer_addr(&'b net::UnixDatagram) -> io::Result<net::unix::SocketAddr>;
        fn poll_recv(&'b net::UnixDatagram, Cx<'c>, &'c mut rt::io::ReadBuf<'c>) -> Poll<io::Result<()>>;
        fn poll_recv_from(&'b net::UnixDatagram, Cx<'c>, &'c mut rt::io::ReadBuf<'c>) -> Poll<io::Result<net::unix::SocketAddr>>;
        fn poll_recv_ready(&'b net::UnixDatagram, Cx<'c>) -> Poll<io::Result<()>>;
        fn poll_send(&'b net::UnixDatagram, Cx<'c>, &'c [u8]) -> Poll<io::Result<usize>>;
        fn poll_send_ready(&'b net::UnixDatagram, Cx<'c>) -> Poll<io::Result<()>>;
        fn poll_send_to::<&Path>(&'b net::UnixDatagram, Cx<'c>, &'c [u8], &Path) -> Poll<io::Result<usize>>;
        async fn readable(&'b net::UnixDatagram) -> io::Result<()>;
        async fn ready(&'b net::UnixDatagram, rt::io::Interest) -> io::Result<rt::io::Ready>;
        async fn recv(&'b net::UnixDatagram, &'c mut [u8]) -> io::Result<usize>;
        async fn recv_buf::<Vec<u8>>(&'b net::UnixDatagram, &'c mut Vec<u8>) -> io::Result<usize>;
        async fn recv_buf_from::<Vec<u8>>(&'b net::UnixDatagram, &'c mut Vec<u8>) -> io::Result<(usize, net::unix::SocketAddr)>;
        async fn recv_from(&'b net::UnixDatagram, &'c mut [u8]) -> io::Result<(usize, net::unix::SocketAddr)>;
        async fn send(&'b net::UnixDatagram, &'c [u8]) -> io::Result<usize>;
        async fn send_to::<&Path>(&'b net::UnixDatagram, &'c [u8], &Path) -> io::Result<usize>;
        fn shutdown(&'b net::UnixDatagram, std::net::Shutdown) -> io::Result<()>;
        fn take_error(&'b net::UnixDatagram) -> io::Result<Option<io::Error>>;
        fn try_io::<u8>(&'b net::UnixDatagram, rt::io::Interest, fn() -> io::Result<u8>) -> io::Result<u8>;
        fn try_recv(&'b net::UnixDatagram, &'c mut [u8]) -> io::Result<usize>;
        fn try_recv_buf::<Vec<u8>>(&'b net::UnixDatagram, &'c mut Vec<u8>) -> io::Result<usize>;
        fn try_recv_buf_from::<Vec<u8>>(&'b net::UnixDatagram, &'c mut Vec<u8>) -> io::Result<(usize, net::unix::SocketAddr)>;
        fn try_recv_from(&'b net::UnixDatagram, &'c mut [u8]) -> io::Result<(usize, net::unix::SocketAddr)>;
        fn try_send(&'b net::UnixDatagram, &'c [u8]) -> io::Result<usize>;
        fn try_send_to::<&Path>(&'b net::UnixDatagram, &'c [u8], &Path) -> io::Result<usize>;
        fn unbound() -> io::Result<net::UnixDatagram>;
        async fn writable(&'b net::UnixDatagram) -> io::Result<()>;
    }
    calls! { net::UnixSocket:
        fn datagram(net::UnixSocket) -> io::Result<net::UnixDatagram>;
    }
    functions! {
        async fn [net::lookup_host::<SocketAddr>](SocketAddr) -> io::Result<_>;
        fn [net::unix::pipe::pipe]() -> io::Result<(net::unix::pipe::Sender, net::unix::pipe::Receiver)>;
    }
    implements! {
        fd::AsyncFd<OwnedFd>: AsFd, AsRawFd, Debug, Send, Sync, Unpin;
        fd::AsyncFdReadyGuard<'a, OwnedFd>: Debug, Send, Sync, Unpin;
        fd::AsyncFdReadyMutGuard<'a, OwnedFd>: Debug, Send, Sync, Unpin;
        fd::AsyncFdRegisterError<u8>: Debug, Display, Error, Send, Sync, Unpin;
        io::Error: From<fd::AsyncFdRegisterError<OwnedFd>>;
        std_unix::SocketAddr: From<net::unix::SocketAddr>;
        fd::TryIoError: Debug, Send, Sync, Unpin;
        net::TcpListener: AsFd, AsRawFd, Debug, Send, Sync, TryFrom<std::net::TcpListener>, Unpin;
        net::TcpSocket: AsFd, AsRawFd, Debug, FromRawFd, IntoRawFd, Send, Sync, Unpin;
        net::TcpStream: AsFd, AsRawFd, AsRef<net::TcpStream>, Debug, Send, Sync, TryFrom<std::net::TcpStream>, Unpin, rt::io::AsyncRead, rt::io::AsyncWrite;
        net::UdpSocket: AsFd, AsRawFd, Debug, Send, Sync, TryFrom<std::net::UdpSocket>, Unpin;
        net::UnixListener: AsFd, AsRawFd, Debug, Send, Sync, TryFrom<std_unix::UnixListener>, Unpin;
        net::UnixSocket: AsFd, AsRawFd, Debug, FromRawFd, IntoRawFd, Send, Sync, Unpin;
        net::UnixStream: AsFd, AsRawFd, AsRef<net::UnixStream>, Debug, Send, Sync, TryFrom<std_unix::UnixStream>, Unpin, rt::io::AsyncRead, rt::io::AsyncWrite;
        net::tcp::OwnedReadHalf: AsRef<net::TcpStream>, Debug, Send, Sync, Unpin, rt::io::AsyncRead;
        net::tcp::OwnedWriteHalf: AsRef<net::TcpStream>, Debug, Send, Sync, Unpin, rt::io::AsyncWrite;
        net::tcp::ReadHalf<'a>: AsRef<net::TcpStream>, Debug, Send, Sync, Unpin, rt::io::AsyncRead;
        net::tcp::ReuniteError: Debug, Display, Error, Send, Sync, Unpin;
        net::tcp::WriteHalf<'a>: AsRef<net::TcpStream>, Debug, Send, Sync, Unpin, rt::io::AsyncWrite;
        net::unix::OwnedReadHalf: AsRef<net::UnixStream>, Debug, Send, Sync, Unpin, rt::io::AsyncRead;
        net::unix::OwnedWriteHalf: AsRef<net::UnixStream>, Debug, Send, Sync, Unpin, rt::io::AsyncWrite;
        net::unix::ReadHalf<'a>: AsRef<net::UnixStream>, Debug, Send, Sync, Unpin, rt::io::AsyncRead;
        net::unix::ReuniteError: Debug, Display, Error, Send, Sync, Unpin;
        net::unix::SocketAddr: Clone, Debug, From<std_unix::SocketAddr>, Send, Sync, Unpin;
        net::unix::UCred: Clone, Copy, Debug, Eq, Hash, PartialEq, Send, Sync, Unpin;
        net::unix::WriteHalf<'a>: AsRef<net::UnixStream>, Debug, Send, Sync, Unpin, rt::io::AsyncWrite;
        net::unix::pipe::OpenOptions: Clone, Debug, Default, Send, Sync, Unpin;
        net::unix::pipe::Receiver: AsFd, AsRawFd, Debug, Send, Sync, Unpin, rt::io::AsyncRead;
        net::unix::pipe::Sender: AsFd, AsRawFd, Debug, Send, Sync, Unpin, rt::io::AsyncWrite;
    }
}
