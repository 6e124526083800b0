//! Waiting for the end of a process.
//!
//! On Linux a pidfd becomes readable when its process ends. Elsewhere, and on kernels before 5.3,
//! every SIGCHLD is a reason to look, and without a descriptor for either, time is (`rest.rs`). If the runtime that watches
//! a child shuts down, whoever waits for it in another one watches it there. Those that nobody waits for are in `orphans.rs`.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child as StdChild, ExitStatus};
use std::task::{Context, Poll, ready};

use super::rest::rest;
use crate::io::Interest;
use crate::io::unix::AsyncFd;
use crate::runtime::Handle;
use crate::signal::unix::{Signal, SignalKind, signal};

/// What a look at a child has found.
enum Look {
    Ended(ExitStatus),
    /// There is no sign of what it does: it has ended, but another process traces it, and has not taken its status
    /// yet; or there was no descriptor for one.
    NoSign,
    /// The runtime that watched it has shut down.
    Unwatched,
}

/// What tells that a process has ended.
#[derive(Debug)]
pub(super) enum Exit {
    Pidfd(AsyncFd<OwnedFd>),
    Sigchld(Signal),
    NoSign,
}

impl Exit {
    /// Starts to watch `child`.
    pub(super) fn watch(child: &StdChild) -> io::Result<Self> {
        let sign = match pidfd(child) {
            Some(pidfd) => AsyncFd::with_interest(pidfd, Interest::READABLE).map(Self::Pidfd),
            None => signal(SignalKind::child()).map(Self::Sigchld),
        };
        sign.or_else(|error| match error.raw_os_error() {
            // It runs by now.
            Some(libc::EMFILE | libc::ENFILE) => Ok(Self::NoSign),
            _ => Err(error),
        })
    }

    /// Watches it no more. The pidfd, if it has one.
    pub(super) fn into_pidfd(self) -> Option<OwnedFd> {
        match self {
            Self::Pidfd(pidfd) => Some(pidfd.into_inner()),
            Self::Sigchld(_) | Self::NoSign => None,
        }
    }

    /// Waits until `child` has ended, and collects its status. Cancel safe.
    pub(super) async fn status(&mut self, child: &mut StdChild) -> io::Result<ExitStatus> {
        loop {
            match poll_fn(|cx| self.poll_look(child, cx)).await? {
                Look::Ended(status) => return Ok(status),
                Look::NoSign => rest().await,
                Look::Unwatched => self.watch_here(child)?,
            }
        }
    }

    /// Waits for a sign that `child` has ended.
    fn poll_look(&mut self, child: &mut StdChild, cx: &mut Context<'_>) -> Poll<io::Result<Look>> {
        loop {
            // Registered before the look, so that no end in between is missed.
            let arrived = self.poll_arrival(cx);
            if let Some(status) = child.try_wait()? {
                return Poll::Ready(Ok(Look::Ended(status)));
            }
            match (ready!(arrived), &self) {
                (Err(_), _) => return Poll::Ready(Ok(Look::Unwatched)),
                (Ok(()), Self::Sigchld(_)) => {}
                (Ok(()), Self::Pidfd(_)) => return Poll::Ready(Ok(Look::NoSign)),
                (Ok(()), Self::NoSign) => return Poll::Ready(Ok(Look::NoSign)),
            }
        }
    }

    /// Watches `child` in the current runtime, since the one that did has shut down.
    ///
    /// # Errors
    /// If there is none, or it has shut down as well.
    fn watch_here(&mut self, child: &StdChild) -> io::Result<()> {
        if Handle::try_current().is_err() {
            return Err(crate::runtime::shut_down("the runtime that watches the child"));
        }
        *self = Self::watch(child)?;
        Ok(())
    }

    fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Pidfd(pidfd) => {
                // A pidfd stays readable, and is never read.
                ready!(pidfd.poll_read_ready(cx))?.retain_ready();
                Poll::Ready(Ok(()))
            }
            Self::Sigchld(signal) => signal.poll_next(cx),
            Self::NoSign => Poll::Ready(Ok(())),
        }
    }
}

/// A descriptor that becomes readable when `child` ends. `None` if the kernel has no pidfds, or there is no descriptor left.
#[cfg(target_os = "linux")]
pub(super) fn pidfd(child: &StdChild) -> Option<OwnedFd> {
    use std::os::fd::{FromRawFd, RawFd};

    // SAFETY: `pidfd_open` takes two integers and touches no memory. (The number is the child's, as long as nobody
    // else waits for it.)
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
    let fd = RawFd::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the kernel has just given us this descriptor, which it opened close-on-exec.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Others have none.
#[cfg(not(target_os = "linux"))]
pub(super) fn pidfd(_: &StdChild) -> Option<OwnedFd> {
    None
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use std::time::Duration;

    use super::*;

    /// No SIGCHLD comes any more, and a pidfd is readable from the start.
    #[test]
    fn an_end_before_the_watch_is_noticed() {
        let runtime = crate::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for fallback in [false, true] {
                let mut child = std::process::Command::new("true").spawn().unwrap();
                let mut info = std::mem::MaybeUninit::uninit();
                let (all, leave) = (libc::P_PID, libc::WEXITED | libc::WNOWAIT);
                // SAFETY: `info` has room for what the call writes; it leaves the child as it is.
                let waited = unsafe { libc::waitid(all, child.id(), info.as_mut_ptr(), leave) };
                assert_eq!(waited, 0);
                let mut exit = match fallback {
                    false => Exit::watch(&child).unwrap(),
                    true => Exit::Sigchld(signal(SignalKind::child()).unwrap()),
                };
                let limit = Duration::from_secs(60);
                let status = crate::time::timeout(limit, exit.status(&mut child))
                    .await
                    .expect("it is stuck");
                assert!(status.unwrap().success());
            }
        });
    }
}
