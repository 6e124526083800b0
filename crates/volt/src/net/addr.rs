//! Names to addresses.
#![forbid(unsafe_code)]

use std::future::{Ready, ready};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::{option, vec};

use crate::runtime::context;

/// What can be turned into socket addresses, possibly by asking the system's resolver.
///
/// Implemented for the address types of [`std::net`], for pairs of a host or address and a port,
/// for `"host:port"`, and for slices of addresses. Sealed. Addresses, and strings that hold one,
/// are taken at once; names are resolved on the blocking pool.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// use volt::net::{TcpListener, ToSocketAddrs};
/// async fn listen(at: impl ToSocketAddrs) -> std::io::Result<u16> {
///     Ok(TcpListener::bind(at).await?.local_addr()?.port())
/// }
/// assert_ne!(listen("127.0.0.1:0").await?, 0);
/// assert_ne!(listen((std::net::Ipv4Addr::LOCALHOST, 0)).await?, 0);
/// # Ok(()) })
/// # }
/// ```
pub trait ToSocketAddrs: sealed::Resolve {}

/// Resolves `host`, as [`std::net::ToSocketAddrs`] would, without blocking the task.
///
/// # Errors
/// If the name is malformed or unknown, or the resolver fails.
///
/// # Panics
/// Outside a runtime, if `host` is a name that has to be resolved.
///
/// # Cancel safety
/// Safe; the resolver's answer is then ignored.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// let mut addresses = volt::net::lookup_host("localhost:80").await?;
/// assert!(addresses.all(|address| address.port() == 80 && address.ip().is_loopback()));
/// # Ok(()) })
/// # }
/// ```
pub async fn lookup_host<T: ToSocketAddrs>(
    host: T,
) -> io::Result<impl Iterator<Item = SocketAddr>> {
    resolve("lookup_host", host).await
}

/// As [`lookup_host`], for the function `caller`, whose name a panic outside of a runtime gives.
pub(super) async fn resolve<T: ToSocketAddrs>(
    caller: &'static str,
    host: T,
) -> io::Result<T::Iter> {
    host.resolve(Token { caller }).await
}

/// Tries each address that `host` stands for, until one works. For the function `caller`.
pub(super) async fn try_each<T: ToSocketAddrs, R, F: Future<Output = io::Result<R>>>(
    caller: &'static str,
    host: T,
    mut attempt: impl FnMut(SocketAddr) -> F,
) -> io::Result<R> {
    let mut last = None;
    for address in resolve(caller, host).await? {
        match attempt(address).await {
            Ok(result) => return Ok(result),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "could not resolve to any address")
    }))
}

pub(crate) mod sealed {
    use std::io;
    use std::net::SocketAddr;

    /// Only this crate can call `resolve`, and says for which function.
    #[derive(Debug)]
    pub struct Token {
        pub(super) caller: &'static str,
    }

    #[doc(hidden)]
    pub trait Resolve {
        type Iter: Iterator<Item = SocketAddr> + Send + 'static;
        type Future: Future<Output = io::Result<Self::Iter>> + Send + 'static;
        fn resolve(&self, token: Token) -> Self::Future;
    }
}

use self::sealed::{Resolve, Token};

/// The addresses that a name stands for.
#[derive(Debug)]
pub enum Addresses {
    /// It was an address.
    One(option::IntoIter<SocketAddr>),
    /// The resolver's answer.
    Many(vec::IntoIter<SocketAddr>),
}

impl Iterator for Addresses {
    type Item = SocketAddr;

    fn next(&mut self) -> Option<SocketAddr> {
        match self {
            Self::One(one) => one.next(),
            Self::Many(many) => many.next(),
        }
    }
}

/// A lookup under way.
#[allow(missing_debug_implementations, reason = "reachable only through a sealed trait")]
pub enum Lookup {
    /// Nothing to ask.
    Known(Ready<io::Result<Addresses>>),
    /// On the blocking pool.
    Asking(crate::task::JoinHandle<io::Result<vec::IntoIter<SocketAddr>>>),
}

impl Lookup {
    fn known(address: SocketAddr) -> Self {
        Self::Known(ready(Ok(Addresses::One(Some(address).into_iter()))))
    }

    /// Asks the system's resolver.
    ///
    /// # Panics
    /// Outside of a runtime, naming `token.caller`.
    fn ask<T: std::net::ToSocketAddrs<Iter = vec::IntoIter<SocketAddr>> + Send + 'static>(
        token: &Token,
        name: T,
    ) -> Self {
        context::require(token.caller);
        Self::Asking(crate::task::spawn_blocking(move || name.to_socket_addrs()))
    }
}

impl Future for Lookup {
    type Output = io::Result<Addresses>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Known(known) => Pin::new(known).poll(cx),
            Self::Asking(task) => Pin::new(task).poll(cx).map(|answer| match answer {
                Ok(answer) => answer.map(Addresses::Many),
                Err(failed) => Err(failed.into()),
            }),
        }
    }
}

/// Implements the traits for types that are an address already.
macro_rules! addresses {
    ($($type:ty),*) => {$(
        impl ToSocketAddrs for $type {}

        impl Resolve for $type {
            type Iter = option::IntoIter<SocketAddr>;
            type Future = Ready<io::Result<Self::Iter>>;

            fn resolve(&self, _: Token) -> Self::Future {
                ready(Ok(Some(SocketAddr::from(*self)).into_iter()))
            }
        }
    )*};
}

addresses!(SocketAddr, SocketAddrV4, SocketAddrV6, (IpAddr, u16), (Ipv4Addr, u16), (Ipv6Addr, u16));

impl ToSocketAddrs for str {}

impl Resolve for str {
    type Iter = Addresses;
    type Future = Lookup;

    fn resolve(&self, token: Token) -> Lookup {
        match self.parse() {
            Ok(address) => Lookup::known(address),
            Err(_) => Lookup::ask(&token, self.to_owned()),
        }
    }
}

impl ToSocketAddrs for (&str, u16) {}

impl Resolve for (&str, u16) {
    type Iter = Addresses;
    type Future = Lookup;

    fn resolve(&self, token: Token) -> Lookup {
        let (host, port) = *self;
        match host.parse::<IpAddr>() {
            Ok(ip) => Lookup::known(SocketAddr::new(ip, port)),
            Err(_) => Lookup::ask(&token, (host.to_owned(), port)),
        }
    }
}

impl ToSocketAddrs for (String, u16) {}

impl Resolve for (String, u16) {
    type Iter = Addresses;
    type Future = Lookup;

    fn resolve(&self, token: Token) -> Lookup {
        (self.0.as_str(), self.1).resolve(token)
    }
}

impl ToSocketAddrs for String {}

impl Resolve for String {
    type Iter = Addresses;
    type Future = Lookup;

    fn resolve(&self, token: Token) -> Lookup {
        self.as_str().resolve(token)
    }
}

impl ToSocketAddrs for [SocketAddr] {}

impl Resolve for [SocketAddr] {
    type Iter = vec::IntoIter<SocketAddr>;
    type Future = Ready<io::Result<Self::Iter>>;

    fn resolve(&self, _: Token) -> Self::Future {
        let all: Vec<SocketAddr> = self.into();
        ready(Ok(all.into_iter()))
    }
}

impl<T: ToSocketAddrs + ?Sized> ToSocketAddrs for &T {}

impl<T: Resolve + ?Sized> Resolve for &T {
    type Iter = T::Iter;
    type Future = T::Future;

    fn resolve(&self, token: Token) -> Self::Future {
        (**self).resolve(token)
    }
}
