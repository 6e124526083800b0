//! A TCP socket before it is connected or listens.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::{TcpListener, TcpStream};
use crate::reactor::Handle;

/// A TCP socket that is neither connected nor listening yet, to set options on.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// use volt::net::TcpSocket;
///
/// let socket = TcpSocket::new_v4()?;
/// socket.set_reuseaddr(true)?;
/// socket.bind("127.0.0.1:0".parse().unwrap())?;
/// let listener = socket.listen(64)?;
///
/// let socket = TcpSocket::new_v4()?;
/// socket.set_nodelay(true)?;
/// let stream = socket.connect(listener.local_addr()?).await?;
/// assert!(stream.nodelay()?);
/// # Ok(()) })
/// # }
/// ```
pub struct TcpSocket {
    socket: Socket,
}

/// Pairs of a getter and a setter that `socket2` has, too.
macro_rules! options {
    ($($(#[$cfg:meta])*
        $what:literal $get:ident = $get2:ident, $set:ident = $set2:ident: $type:ty, $new:literal, $value:literal;
    )*) => {
        impl TcpSocket {$(
            #[doc = concat!("Returns ", $what, ".")]
            ///
            /// # Errors
            /// Whatever `getsockopt(2)` reports.
            ///
            /// # Examples
            /// ```
            #[doc = concat!("let socket = volt::net::TcpSocket::", $new, "()?;")]
            #[doc = concat!("let before = socket.", stringify!($get), "()?;")]
            #[doc = concat!("socket.", stringify!($set), "(", $value, ")?;")]
            #[doc = concat!("assert_ne!(socket.", stringify!($get), "()?, before);")]
            /// # Ok::<(), std::io::Error>(())
            /// ```
            $(#[$cfg])*
            pub fn $get(&self) -> io::Result<$type> {
                self.socket.$get2()
            }

            #[doc = concat!("Sets ", $what, ".")]
            ///
            /// # Errors
            /// Whatever `setsockopt(2)` reports.
            ///
            /// # Examples
            /// ```
            #[doc = concat!("let socket = volt::net::TcpSocket::", $new, "()?;")]
            #[doc = concat!("socket.", stringify!($set), "(", $value, ")?;")]
            #[doc = concat!("assert_eq!(socket.", stringify!($get), "()?, ", $value, ");")]
            /// # Ok::<(), std::io::Error>(())
            /// ```
            $(#[$cfg])*
            pub fn $set(&self, value: $type) -> io::Result<()> {
                self.socket.$set2(value)
            }
        )*}
    };
}

options! {
    "whether idle connections are probed (`SO_KEEPALIVE`)"
        keepalive = keepalive, set_keepalive = set_keepalive: bool, "new_v4", "true";
    "whether the address may be bound while old connections linger (`SO_REUSEADDR`)"
        reuseaddr = reuse_address, set_reuseaddr = set_reuse_address: bool, "new_v4", "true";
    #[cfg(all(unix, not(target_os = "solaris"), not(target_os = "illumos"), not(target_os = "cygwin")))]
    "whether several sockets may share the address (`SO_REUSEPORT`)"
        reuseport = reuse_port, set_reuseport = set_reuse_port: bool, "new_v4", "true";
    "how long closing waits for unsent data (`SO_LINGER`)"
        linger = linger, set_linger = set_linger: Option<Duration>,
        "new_v4", "Some(std::time::Duration::from_secs(1))";
    "whether small writes are sent at once (`TCP_NODELAY`)"
        nodelay = tcp_nodelay, set_nodelay = set_tcp_nodelay: bool, "new_v4", "true";
    "the type of service of packets (`IP_TOS`)"
        tos_v4 = tos_v4, set_tos_v4 = set_tos_v4: u32, "new_v4", "16";
    #[cfg(any(
        target_os = "android", target_os = "dragonfly", target_os = "freebsd", target_os = "fuchsia",
        target_os = "linux", target_os = "macos", target_os = "netbsd", target_os = "openbsd",
        target_os = "cygwin",
    ))]
    "the traffic class of packets (`IPV6_TCLASS`)"
        tclass_v6 = tclass_v6, set_tclass_v6 = set_tclass_v6: u32, "new_v6", "16";
}

/// Names of before.
impl TcpSocket {
    /// [`tos_v4`](Self::tos_v4).
    ///
    /// # Errors
    /// As that.
    #[deprecated(note = "it is IPv4's: use `tos_v4`")]
    #[doc(hidden)]
    pub fn tos(&self) -> io::Result<u32> {
        self.tos_v4()
    }

    /// [`set_tos_v4`](Self::set_tos_v4).
    ///
    /// # Errors
    /// As that.
    #[deprecated(note = "it is IPv4's: use `set_tos_v4`")]
    #[doc(hidden)]
    pub fn set_tos(&self, tos: u32) -> io::Result<()> {
        self.set_tos_v4(tos)
    }
}

impl TcpSocket {
    /// A socket for IPv4.
    ///
    /// # Errors
    /// Whatever `socket(2)` reports.
    ///
    /// # Examples
    /// ```
    /// let socket = volt::net::TcpSocket::new_v4()?;
    /// socket.bind("127.0.0.1:0".parse().unwrap())?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new_v4() -> io::Result<Self> {
        Self::new(Domain::IPV4)
    }

    /// A socket for IPv6.
    ///
    /// # Errors
    /// Whatever `socket(2)` reports.
    ///
    /// # Examples
    /// ```
    /// let socket = volt::net::TcpSocket::new_v6()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new_v6() -> io::Result<Self> {
        Self::new(Domain::IPV6)
    }

    fn new(domain: Domain) -> io::Result<Self> {
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket })
    }

    /// Takes over a stream of the standard library, which should not be connected, and makes it
    /// non-blocking.
    ///
    /// # Examples
    /// ```
    /// let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    /// let socket = volt::net::TcpSocket::from_std_stream(socket.into());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn from_std_stream(stream: std::net::TcpStream) -> Self {
        // As in Tokio there is no way to report a failure here; `connect` and `listen` would.
        let _ = stream.set_nonblocking(true);
        Self { socket: stream.into() }
    }

    /// The size of the send buffer (`SO_SNDBUF`); Linux doubles what was set.
    ///
    /// # Errors
    /// Whatever `getsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// let socket = volt::net::TcpSocket::new_v4()?;
    /// socket.set_send_buffer_size(32 * 1024)?;
    /// assert!(socket.send_buffer_size()? >= 32 * 1024);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn send_buffer_size(&self) -> io::Result<u32> {
        self.socket.send_buffer_size().map(saturate)
    }

    /// Sets the size of the send buffer (`SO_SNDBUF`).
    ///
    /// # Errors
    /// Whatever `setsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// let socket = volt::net::TcpSocket::new_v4()?;
    /// socket.set_send_buffer_size(32 * 1024)?;
    /// assert!(socket.send_buffer_size()? >= 32 * 1024);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_send_buffer_size(&self, size: u32) -> io::Result<()> {
        self.socket.set_send_buffer_size(size as usize)
    }

    /// The size of the receive buffer (`SO_RCVBUF`); Linux doubles what was set.
    ///
    /// # Errors
    /// Whatever `getsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// let socket = volt::net::TcpSocket::new_v4()?;
    /// socket.set_recv_buffer_size(32 * 1024)?;
    /// assert!(socket.recv_buffer_size()? >= 32 * 1024);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn recv_buffer_size(&self) -> io::Result<u32> {
        self.socket.recv_buffer_size().map(saturate)
    }

    /// Sets the size of the receive buffer (`SO_RCVBUF`).
    ///
    /// # Errors
    /// Whatever `setsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// let socket = volt::net::TcpSocket::new_v4()?;
    /// socket.set_recv_buffer_size(32 * 1024)?;
    /// assert!(socket.recv_buffer_size()? >= 32 * 1024);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_recv_buffer_size(&self, size: u32) -> io::Result<()> {
        self.socket.set_recv_buffer_size(size as usize)
    }

    /// Makes closing reset the connection: [`set_linger`](Self::set_linger) with zero.
    ///
    /// # Errors
    /// Whatever `setsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// let socket = volt::net::TcpSocket::new_v4()?;
    /// socket.set_zero_linger()?;
    /// assert_eq!(socket.linger()?, Some(std::time::Duration::ZERO));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }

    /// The network interface that the socket is bound to (`SO_BINDTODEVICE`).
    ///
    /// # Errors
    /// Whatever `getsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// let socket = volt::net::TcpSocket::new_v4()?;
    /// assert_eq!(socket.device()?, None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn device(&self) -> io::Result<Option<Vec<u8>>> {
        self.socket.device()
    }

    /// Binds the socket to a network interface (`SO_BINDTODEVICE`).
    ///
    /// # Errors
    /// Whatever `setsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// let socket = volt::net::TcpSocket::new_v4()?;
    /// match socket.bind_device(Some(b"lo")) {
    ///     Ok(()) => assert_eq!(socket.device()?, Some(b"lo".to_vec())),
    ///     Err(error) => println!("not allowed here: {error}"),
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn bind_device(&self, interface: Option<&[u8]>) -> io::Result<()> {
        self.socket.bind_device(interface)
    }

    /// The address that the socket is bound to.
    ///
    /// # Errors
    /// Whatever `getsockname(2)` reports.
    ///
    /// # Examples
    /// ```
    /// let socket = volt::net::TcpSocket::new_v4()?;
    /// socket.bind("127.0.0.1:0".parse().unwrap())?;
    /// assert_ne!(socket.local_addr()?.port(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()?.as_socket().ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    /// Takes the error that the socket has recorded, if any (`SO_ERROR`).
    ///
    /// # Errors
    /// Whatever `getsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// let socket = volt::net::TcpSocket::new_v4()?;
    /// assert!(socket.take_error()?.is_none());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.socket.take_error()
    }

    /// Binds the socket to `addr`.
    ///
    /// # Errors
    /// Whatever `bind(2)` reports: the address is in use, or not of this machine.
    ///
    /// # Examples
    /// ```
    /// let socket = volt::net::TcpSocket::new_v4()?;
    /// socket.bind("127.0.0.1:0".parse().unwrap())?;
    /// assert_ne!(socket.local_addr()?.port(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn bind(&self, addr: SocketAddr) -> io::Result<()> {
        self.socket.bind(&addr.into())
    }

    /// Connects to `addr`.
    ///
    /// # Errors
    /// Whatever `connect(2)` reports.
    ///
    /// # Panics
    /// Outside a runtime.
    ///
    /// # Cancel safety
    /// Safe: the attempt is given up.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let address = listener.local_addr()?;
    /// let socket = volt::net::TcpSocket::new_v4()?;
    /// let stream = socket.connect(address).await?;
    /// assert_eq!(stream.peer_addr()?, address);
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn connect(self, addr: SocketAddr) -> io::Result<TcpStream> {
        let handle = Handle::current("TcpSocket::connect");
        match self.socket.connect(&addr.into()) {
            Err(error) if !is_under_way(&error) => return Err(error),
            _ => {}
        }
        let io = mio::net::TcpStream::from_std(self.socket.into());
        TcpStream::finish_connect(handle, io).await
    }

    /// Listens, with room for `backlog` connections that nobody has accepted.
    ///
    /// # Errors
    /// Whatever `listen(2)` reports.
    ///
    /// # Panics
    /// Outside a runtime.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let socket = volt::net::TcpSocket::new_v4()?;
    /// socket.bind("127.0.0.1:0".parse().unwrap())?;
    /// let listener = socket.listen(64)?;
    /// assert_ne!(listener.local_addr()?.port(), 0);
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        self.socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        let io = mio::net::TcpListener::from_std(self.socket.into());
        TcpListener::new("TcpSocket::listen", io)
    }
}

/// Whether it connects, and an event will say how that ends. (On unix one that would block does not: there was no port for it.)
fn is_under_way(error: &io::Error) -> bool {
    #[cfg(unix)]
    return error.raw_os_error() == Some(libc::EINPROGRESS);
    #[cfg(not(unix))]
    return error.kind() == io::ErrorKind::WouldBlock;
}

fn saturate(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

impl fmt::Debug for TcpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SockRef::from(&self.socket).fmt(f)
    }
}

#[cfg(unix)]
impl std::os::fd::AsRawFd for TcpSocket {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.socket.as_raw_fd()
    }
}

#[cfg(unix)]
impl std::os::fd::AsFd for TcpSocket {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(unix)]
impl std::os::fd::IntoRawFd for TcpSocket {
    fn into_raw_fd(self) -> std::os::fd::RawFd {
        self.socket.into_raw_fd()
    }
}

#[cfg(unix)]
impl std::os::fd::FromRawFd for TcpSocket {
    /// Takes over a TCP socket, which must be non-blocking.
    ///
    /// # Safety
    /// 1. `fd` is open, and the caller's to give away.
    unsafe fn from_raw_fd(fd: std::os::fd::RawFd) -> Self {
        // SAFETY: (1) by the caller's promise.
        Self { socket: unsafe { Socket::from_raw_fd(fd) } }
    }
}

#[cfg(windows)]
impl std::os::windows::io::AsRawSocket for TcpSocket {
    fn as_raw_socket(&self) -> std::os::windows::io::RawSocket {
        self.socket.as_raw_socket()
    }
}

#[cfg(windows)]
impl std::os::windows::io::AsSocket for TcpSocket {
    fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
        self.socket.as_socket()
    }
}

#[cfg(windows)]
impl std::os::windows::io::IntoRawSocket for TcpSocket {
    fn into_raw_socket(self) -> std::os::windows::io::RawSocket {
        self.socket.into_raw_socket()
    }
}

#[cfg(windows)]
impl std::os::windows::io::FromRawSocket for TcpSocket {
    /// Takes over a TCP socket, which must be non-blocking.
    ///
    /// # Safety
    /// 1. `socket` is open, and the caller's to give away.
    unsafe fn from_raw_socket(socket: std::os::windows::io::RawSocket) -> Self {
        // SAFETY: (1) by the caller's promise.
        Self { socket: unsafe { Socket::from_raw_socket(socket) } }
    }
}
