//! Addresses of unix sockets.
#![forbid(unsafe_code)]

use std::fmt;
use std::io;
#[cfg(target_os = "android")]
use std::os::android::net::SocketAddrExt;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr as StdSocketAddr;
use std::path::Path;

use socket2::SockAddr;

/// Where a unix socket is: at a path, at an abstract name (Linux), or nowhere.
///
/// It comes from the standard library's address and becomes one, and that has the constructors.
///
/// # Examples
/// ```
/// use volt::net::unix::SocketAddr;
///
/// let address = SocketAddr::from(std::os::unix::net::SocketAddr::from_pathname("/run/volt")?);
/// assert_eq!(address.as_pathname(), Some("/run/volt".as_ref()));
/// let address = std::os::unix::net::SocketAddr::from(address);
/// assert!(!address.is_unnamed());
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone)]
pub struct SocketAddr(pub(super) StdSocketAddr);

impl SocketAddr {
    /// True if the socket is not bound: nobody can send to it by its address.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// let (a, _b) = volt::net::UnixStream::pair()?;
    /// assert!(a.local_addr()?.is_unnamed());
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn is_unnamed(&self) -> bool {
        self.0.is_unnamed()
    }

    /// The path, if the socket is at one.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("socket");
    /// let listener = volt::net::UnixListener::bind(&path)?;
    /// assert_eq!(listener.local_addr()?.as_pathname(), Some(path.as_path()));
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn as_pathname(&self) -> Option<&Path> {
        self.0.as_pathname()
    }

    /// The abstract name, if the socket has one.
    ///
    /// # Examples
    /// ```
    /// # #[cfg(target_os = "linux")]
    /// # volt::run(async {
    /// use std::os::linux::net::SocketAddrExt;
    ///
    /// let name = format!("volt-doc-name-{}", std::process::id());
    /// let address = std::os::unix::net::SocketAddr::from_abstract_name(&name)?;
    /// let listener = volt::net::UnixListener::bind_addr(&address.into())?;
    /// assert_eq!(listener.local_addr()?.as_abstract_name(), Some(name.as_bytes()));
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[must_use]
    pub fn as_abstract_name(&self) -> Option<&[u8]> {
        self.0.as_abstract_name()
    }
}

impl fmt::Debug for SocketAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<StdSocketAddr> for SocketAddr {
    fn from(address: StdSocketAddr) -> Self {
        Self(address)
    }
}

impl From<SocketAddr> for StdSocketAddr {
    fn from(address: SocketAddr) -> Self {
        address.0
    }
}

/// The address that a caller means by `path`: on Linux an abstract one, if it begins with a NUL. (`socket2` has the same
/// rule for a `UnixSocket`.)
pub(super) fn from_path(path: &Path) -> io::Result<StdSocketAddr> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Some(name) = path.as_os_str().as_encoded_bytes().strip_prefix(b"\0") {
        return StdSocketAddr::from_abstract_name(name);
    }
    StdSocketAddr::from_pathname(path)
}

/// The address that a system call has returned to `socket2`. One that the standard library has no constructor for (a
/// path of 108 bytes, which only its own receiving returns) is unnamed: what came with it is there already.
pub(super) fn address(from: &SockAddr) -> io::Result<SocketAddr> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Some(name) = from.as_abstract_namespace() {
        return StdSocketAddr::from_abstract_name(name).map(SocketAddr);
    }
    // No name is the empty path.
    let path = |path: &Path| StdSocketAddr::from_pathname(path).map(SocketAddr);
    path(from.as_pathname().unwrap_or(Path::new(""))).or_else(|_| path(Path::new("")))
}
