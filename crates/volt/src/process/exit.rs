//! Waiting for the end of a process, and collecting the status of those that nobody waits for.
//!
//! On Linux a pidfd becomes readable when its process ends. Elsewhere, and on kernels before 5.3,
//! every SIGCHLD is a reason to look. If the runtime that watches a child shuts down, whoever waits for it in
//! another one watches it there.

use std::future::poll_fn;
use std::io;
use std::process::{Child as StdChild, ExitStatus};
use std::sync::PoisonError;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use volt_sync::internal::primitive::StaticMutex;

use crate::runtime::Handle;
use crate::signal::unix::{Signal, SignalKind, signal};
use crate::task::yield_now;
use crate::time::sleep;

/// Children that were dropped while they ran.
static ORPHANS: StaticMutex<Vec<StdChild>> = StaticMutex::new(Vec::new());

/// How long a child that has ended is left to the process that traces it before the next look. A pidfd says
/// no second time that a process has ended, and the tracer may take what time it likes.
const WHILE_TRACED: Duration = Duration::from_millis(10);

/// What a look at a child has found.
enum Look {
    Ended(ExitStatus),
    /// It has ended, but another process traces it, and has not taken its status yet.
    OfAnother,
    /// The runtime that watched it has shut down.
    Unwatched,
}

/// What tells that a process has ended.
#[derive(Debug)]
pub(super) enum Exit {
    #[cfg(target_os = "linux")]
    Pidfd(crate::io::unix::AsyncFd<std::os::fd::OwnedFd>),
    Sigchld(Signal),
}

impl Exit {
    /// Starts to watch `child`.
    pub(super) fn watch(child: &StdChild) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(pidfd) = open_pidfd(child)? {
            return Ok(Self::Pidfd(pidfd));
        }
        let _ = child;
        signal(SignalKind::child()).map(Self::Sigchld)
    }

    /// Waits until `child` has ended, and collects its status. Cancel safe.
    pub(super) async fn status(&mut self, child: &mut StdChild) -> io::Result<ExitStatus> {
        loop {
            match poll_fn(|cx| self.poll_look(child, cx)).await? {
                Look::Ended(status) => return Ok(status),
                Look::OfAnother if Handle::try_current().is_ok() => sleep(WHILE_TRACED).await,
                // Another executor has no timers that we know.
                Look::OfAnother => yield_now().await,
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
                #[cfg(target_os = "linux")]
                (Ok(()), Self::Pidfd(_)) => return Poll::Ready(Ok(Look::OfAnother)),
            }
        }
    }

    /// Watches `child` in the current runtime, since the one that did has shut down.
    ///
    /// # Errors
    /// If there is none, or it has shut down as well.
    fn watch_here(&mut self, child: &StdChild) -> io::Result<()> {
        if Handle::try_current().is_err() {
            return Err(io::Error::other("the runtime that watches the child has shut down"));
        }
        *self = Self::watch(child)?;
        Ok(())
    }

    fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Pidfd(pidfd) => {
                // A pidfd stays readable, and is never read.
                ready!(pidfd.poll_read_ready(cx))?.retain_ready();
                Poll::Ready(Ok(()))
            }
            Self::Sigchld(signal) => match ready!(signal.poll_recv(cx)) {
                Some(()) => Poll::Ready(Ok(())),
                None => Poll::Ready(Err(io::Error::other("the runtime has shut down"))),
            },
        }
    }
}

/// `None` if the kernel has no pidfds.
#[cfg(target_os = "linux")]
fn open_pidfd(
    child: &StdChild,
) -> io::Result<Option<crate::io::unix::AsyncFd<std::os::fd::OwnedFd>>> {
    use std::os::fd::{FromRawFd, OwnedFd, RawFd};

    // SAFETY: `pidfd_open` takes two integers and touches no memory. The child has not been waited
    // for, so the number is its own.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
    let Ok(fd @ 0..) = RawFd::try_from(fd) else { return Ok(None) };
    // SAFETY: the kernel has just given us this descriptor, which it opened close-on-exec.
    let pidfd = unsafe { OwnedFd::from_raw_fd(fd) };
    let interest = crate::io::Interest::READABLE;
    crate::io::unix::AsyncFd::with_interest(pidfd, interest).map(Some)
}

/// Takes a child that nobody waits for any more.
pub(super) fn adopt(child: StdChild) {
    ORPHANS.lock().unwrap_or_else(PoisonError::into_inner).push(child);
}

/// Collects the status of orphans that have ended.
pub(super) fn reap() {
    let mut orphans = ORPHANS.lock().unwrap_or_else(PoisonError::into_inner);
    // An error means that there is nothing to wait for.
    orphans.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
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
