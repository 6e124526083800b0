//! Options of UDP sockets.
#![forbid(unsafe_code)]

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use socket2::SockRef;

use super::UdpSocket;

/// Pairs of a getter and a setter that `SockRef` has, too, with a value for the example.
macro_rules! options {
    ($($(#[$cfg:meta])* $what:literal $get:ident = $get2:ident, $set:ident = $set2:ident: $type:ty,
        $bind:literal, $value:literal;)*) => {
        impl UdpSocket {$(
            #[doc = concat!("Returns ", $what, ".")]
            ///
            /// # Errors
            /// Whatever `getsockopt(2)` reports.
            ///
            /// # Examples
            #[doc = example!($bind, $set, $get, $value)]
            $(#[$cfg])*
            pub fn $get(&self) -> io::Result<$type> {
                SockRef::from(self).$get2()
            }

            #[doc = concat!("Sets ", $what, ".")]
            ///
            /// # Errors
            /// Whatever `setsockopt(2)` reports.
            ///
            /// # Examples
            #[doc = example!($bind, $set, $get, $value)]
            $(#[$cfg])*
            pub fn $set(&self, value: $type) -> io::Result<()> {
                SockRef::from(self).$set2(value)
            }
        )*}
    };
}

/// What was set is what one gets.
macro_rules! example {
    ($bind:literal, $set:ident, $get:ident, $value:literal) => {
        crate::net::share::example!(
            concat!("let socket = volt::net::UdpSocket::bind(\"", $bind, ":0\").await?;\n"),
            "socket.",
            stringify!($set),
            "(",
            stringify!($value),
            ")?;\n",
            "assert_eq!(socket.",
            stringify!($get),
            "()?, ",
            stringify!($value),
            ");\n"
        )
    };
}

options! {
    "whether it may send to broadcast addresses (`SO_BROADCAST`)"
        broadcast = broadcast, set_broadcast = set_broadcast: bool, "127.0.0.1", true;
    "whether its own multicasts come back (`IP_MULTICAST_LOOP`)"
        multicast_loop_v4 = multicast_loop_v4, set_multicast_loop_v4 = set_multicast_loop_v4: bool,
        "127.0.0.1", false;
    "whether its own multicasts come back (`IPV6_MULTICAST_LOOP`)"
        multicast_loop_v6 = multicast_loop_v6, set_multicast_loop_v6 = set_multicast_loop_v6: bool,
        "[::1]", false;
    "the time-to-live of multicasts (`IP_MULTICAST_TTL`)"
        multicast_ttl_v4 = multicast_ttl_v4, set_multicast_ttl_v4 = set_multicast_ttl_v4: u32,
        "127.0.0.1", 7;
    "the time-to-live of packets (`IP_TTL`)" ttl = ttl_v4, set_ttl = set_ttl_v4: u32, "127.0.0.1", 7;
    "the type of service of packets (`IP_TOS`)" tos_v4 = tos_v4, set_tos_v4 = set_tos_v4: u32,
        "127.0.0.1", 16;
    #[cfg(any(
        target_os = "android", target_os = "dragonfly", target_os = "freebsd", target_os = "fuchsia",
        target_os = "linux", target_os = "macos", target_os = "netbsd", target_os = "openbsd",
        target_os = "cygwin",
    ))]
    "the traffic class of packets (`IPV6_TCLASS`)"
        tclass_v6 = tclass_v6, set_tclass_v6 = set_tclass_v6: u32, "[::1]", 16;
}

/// Names of before.
impl UdpSocket {
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

impl UdpSocket {
    /// Joins a multicast group (`IP_ADD_MEMBERSHIP`); the interface 0.0.0.0 lets the system choose.
    ///
    /// # Errors
    /// Whatever `setsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use std::net::Ipv4Addr;
    ///
    /// let socket = volt::net::UdpSocket::bind("0.0.0.0:0").await?;
    /// let group = Ipv4Addr::new(239, 255, 17, 3);
    /// socket.join_multicast_v4(group, Ipv4Addr::LOCALHOST)?;
    /// socket.leave_multicast_v4(group, Ipv4Addr::LOCALHOST)?;
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn join_multicast_v4(&self, multiaddr: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.io.join_multicast_v4(&multiaddr, &interface)
    }

    /// Joins a multicast group (`IPV6_ADD_MEMBERSHIP`); the interface 0 lets the system choose.
    ///
    /// # Errors
    /// Whatever `setsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let Ok(socket) = volt::net::UdpSocket::bind("[::]:0").await else {
    ///     return Ok(()); // a machine without IPv6
    /// };
    /// let group = "ff02::1234".parse().unwrap();
    /// match socket.join_multicast_v6(&group, 0) {
    ///     Ok(()) => socket.leave_multicast_v6(&group, 0)?,
    ///     Err(error) => println!("no interface takes multicasts: {error}"),
    /// }
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn join_multicast_v6(&self, multiaddr: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.io.join_multicast_v6(multiaddr, interface)
    }

    /// Leaves a multicast group (`IP_DROP_MEMBERSHIP`); see
    /// [`join_multicast_v4`](Self::join_multicast_v4) for an example.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use std::net::Ipv4Addr;
    ///
    /// let socket = volt::net::UdpSocket::bind("0.0.0.0:0").await?;
    /// let group = Ipv4Addr::new(224, 0, 0, 251);
    /// let not_joined = socket.leave_multicast_v4(group, Ipv4Addr::LOCALHOST);
    /// assert_eq!(not_joined.unwrap_err().kind(), std::io::ErrorKind::AddrNotAvailable);
    /// socket.join_multicast_v4(group, Ipv4Addr::LOCALHOST)?;
    /// socket.leave_multicast_v4(group, Ipv4Addr::LOCALHOST)?;
    /// # Ok(()) })
    /// # }
    /// ```
    ///
    /// # Errors
    /// Whatever `setsockopt(2)` reports.
    pub fn leave_multicast_v4(&self, multiaddr: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.io.leave_multicast_v4(&multiaddr, &interface)
    }

    /// Leaves a multicast group (`IPV6_DROP_MEMBERSHIP`); see
    /// [`join_multicast_v6`](Self::join_multicast_v6) for an example.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let Ok(socket) = volt::net::UdpSocket::bind("[::1]:0").await else {
    ///     return Ok(()); // a machine without IPv6
    /// };
    /// let group = "ff02::1234".parse().unwrap();
    /// assert!(socket.leave_multicast_v6(&group, 0).is_err(), "it was not joined");
    /// # Ok(()) })
    /// # }
    /// ```
    ///
    /// # Errors
    /// Whatever `setsockopt(2)` reports.
    pub fn leave_multicast_v6(&self, multiaddr: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.io.leave_multicast_v6(multiaddr, interface)
    }

    /// The network interface that the socket is bound to (`SO_BINDTODEVICE`).
    ///
    /// # Errors
    /// Whatever `getsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let socket = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// assert_eq!(socket.device()?, None);
    /// # Ok(()) })
    /// # }
    /// ```
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "fuchsia"))]
    pub fn device(&self) -> io::Result<Option<Vec<u8>>> {
        SockRef::from(self).device()
    }

    /// Binds the socket to a network interface (`SO_BINDTODEVICE`); `None` unbinds it.
    ///
    /// # Errors
    /// Whatever `setsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let socket = volt::net::UdpSocket::bind("0.0.0.0:0").await?;
    /// match socket.bind_device(Some(b"lo")) {
    ///     Ok(()) => assert_eq!(socket.device()?, Some(b"lo".to_vec())),
    ///     Err(error) => println!("not allowed here: {error}"),
    /// }
    /// # Ok(()) })
    /// # }
    /// ```
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "fuchsia"))]
    pub fn bind_device(&self, interface: Option<&[u8]>) -> io::Result<()> {
        SockRef::from(self).bind_device(interface)
    }
}
