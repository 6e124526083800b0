//! Addresses of unix sockets, as `socket2` has them.
#![forbid(unsafe_code)]

use std::io;
use std::path::Path;

use socket2::SockAddr;

use super::SocketAddr;

/// The standard library's address for what a system call has returned.
pub(super) fn address(from: &SockAddr) -> io::Result<SocketAddr> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Some(name) = from.as_abstract_namespace() {
        #[cfg(target_os = "android")]
        use std::os::android::net::SocketAddrExt;
        #[cfg(target_os = "linux")]
        use std::os::linux::net::SocketAddrExt;
        return SocketAddr::from_abstract_name(name);
    }
    // No name is the empty path.
    SocketAddr::from_pathname(from.as_pathname().unwrap_or(Path::new("")))
}
