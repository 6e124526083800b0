//! Who is at the other end of a unix socket.

use std::io;

use super::{UnixStream, gid_t, pid_t, uid_t};

/// The credentials of the process at the other end when it connected.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// use volt::net::unix::UCred;
/// let (a, _b) = volt::net::UnixStream::pair()?;
/// let peer: UCred = a.peer_cred()?;
/// println!("user {}, group {}", peer.uid(), peer.gid());
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UCred {
    uid: uid_t,
    gid: gid_t,
    pid: Option<pid_t>,
}

impl UCred {
    /// Its effective user.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let (a, b) = volt::net::UnixStream::pair()?;
    /// println!("user {}", a.peer_cred()?.uid());
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn uid(&self) -> uid_t {
        self.uid
    }

    /// Its effective group.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let (a, b) = volt::net::UnixStream::pair()?;
    /// println!("group {}", a.peer_cred()?.gid());
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn gid(&self) -> gid_t {
        self.gid
    }

    /// Its process identifier, where the system tells it (Linux).
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let (a, b) = volt::net::UnixStream::pair()?;
    /// println!("process {:?}", a.peer_cred()?.pid());
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn pid(&self) -> Option<pid_t> {
        self.pid
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn of(stream: &UnixStream) -> io::Result<UCred> {
    use std::os::fd::AsRawFd;

    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the option's value is a `ucred`, which the kernel writes to ours, at most `size`
    // bytes; it keeps neither pointer.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut size,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let libc::ucred { pid, uid, gid } = credentials;
    Ok(UCred { uid, gid, pid: Some(pid) })
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn of(stream: &UnixStream) -> io::Result<UCred> {
    use std::os::fd::AsRawFd;

    let (mut uid, mut gid) = (0, 0);
    // SAFETY: both results are written to variables of ours that outlive the call.
    let result = unsafe { libc::getpeereid(stream.as_raw_fd(), &raw mut uid, &raw mut gid) };
    if result == 0 { Ok(UCred { uid, gid, pid: None }) } else { Err(io::Error::last_os_error()) }
}
