//! Waiting for the end of a process, and collecting the status of those that nobody waits for.
//!
//! On Linux a pidfd becomes readable when its process ends. Elsewhere, and on kernels before 5.3,
//! every SIGCHLD is a reason to look, and without a descriptor for either, time is. If the runtime that watches a child shuts down, whoever waits for it in
//! another one watches it there.

use std::future::poll_fn;
use std::io;
use std::ops::DerefMut;
use std::process::{Child as StdChild, ExitStatus};
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker, ready};
use std::thread;
use std::time::Duration;

use volt_sync::internal::contain;
use volt_sync::internal::primitive::StaticMutex;
use volt_sync::internal::slack;

use crate::runtime::{Handle, outside};
use crate::signal::unix::{Signal, SignalKind, signal};

/// Children that were dropped while they ran.
static ORPHANS: StaticMutex<Orphans> =
    StaticMutex::new(Orphans { children: Vec::new(), adopted: 0, next: 0 });

struct Orphans {
    /// Each with its number, in the order of these.
    children: Vec<(u64, StdChild)>,
    /// So many there have been.
    adopted: u64,
    /// Which one is looked at next.
    next: usize,
}

/// How many of them are looked at for each child that is started or dropped.
const LOOKS: usize = 32;

/// A child whose end is waited for.
pub(super) trait Watched {
    /// Its status, if it has ended.
    fn look(&mut self) -> io::Result<Option<ExitStatus>>;

    /// Starts to watch it in the current runtime.
    fn watch(&self) -> io::Result<Exit>;
}

impl Watched for StdChild {
    fn look(&mut self) -> io::Result<Option<ExitStatus>> {
        self.try_wait()
    }

    fn watch(&self) -> io::Result<Exit> {
        Exit::watch(self)
    }
}

/// The number of a child among those that nobody waits for any more, and whose status [`reap`] may collect at any time.
pub(super) struct Orphan(u64);

impl Orphan {
    /// Where it is. `None` if its status has been collected.
    fn find(&self, orphans: &Orphans) -> Option<usize> {
        orphans.children.binary_search_by_key(&self.0, |(number, _)| *number).ok()
    }
}

impl Watched for Orphan {
    /// Nobody asks what the status was, so that of one that was collected before is as good as any.
    fn look(&mut self) -> io::Result<Option<ExitStatus>> {
        let mut orphans = orphans();
        let Some(at) = self.find(&orphans) else { return Ok(Some(ExitStatus::default())) };
        let status = orphans.children[at].1.try_wait()?;
        if status.is_some() {
            orphans.children.remove(at);
        }
        Ok(status)
    }

    fn watch(&self) -> io::Result<Exit> {
        // Under the lock, so that the process keeps its number.
        let orphans = orphans();
        match self.find(&orphans) {
            Some(at) => Exit::watch(&orphans.children[at].1),
            None => Ok(Exit::NoSign),
        }
    }
}

/// How long a child without a sign is left alone before the next look, as is one that has ended, to the process that
/// traces it: a pidfd says no second time that a process has ended, and the tracer may take what time it likes. The
/// machine's time, whatever a runtime's clock says, and whether or not one is left.
const REST: Duration = Duration::from_millis(10);

/// The same if the system gives no thread that could wait, on the thread that looks.
const SHORT_REST: Duration = Duration::from_millis(1);

/// Who waits for the next look at such a child. There is a thread for it while there is somebody; such children are few.
static RESTING: StaticMutex<Resting> =
    StaticMutex::new(Resting { wakers: Vec::new(), rounds: 0, thread: false });

struct Resting {
    wakers: Vec<Waker>,
    /// So many times they have been woken.
    rounds: u64,
    thread: bool,
}

/// Ready after [`REST`] at most; a poll that comes earlier is no reason to look. If the system gives no thread, it is after
/// [`SHORT_REST`], for which this one sleeps: that is better than to look without a rest, or never.
async fn rest() {
    let mut until = None;
    poll_fn(|cx| {
        // Cloned and dropped outside of the lock.
        let waker = cx.waker().clone();
        let mut resting = RESTING.lock().unwrap_or_else(PoisonError::into_inner);
        if resting.rounds >= *until.get_or_insert(resting.rounds + 1) {
            return Poll::Ready(());
        }
        if !resting.thread {
            let thread = thread::Builder::new().name("volt-children".to_owned());
            resting.thread = slack::without(|| thread.spawn(wake_the_rested)).is_ok();
        }
        if !resting.thread {
            until = Some(resting.rounds);
            drop(resting);
            thread::sleep(SHORT_REST);
            waker.wake();
        } else if !resting.wakers.iter().any(|other| other.will_wake(&waker)) {
            resting.wakers.push(waker);
        }
        outside::waits();
        Poll::Pending
    })
    .await;
}

fn wake_the_rested() {
    loop {
        thread::sleep(REST);
        let wakers = {
            let mut resting = RESTING.lock().unwrap_or_else(PoisonError::into_inner);
            resting.thread = !resting.wakers.is_empty();
            if !resting.thread {
                return;
            }
            resting.rounds += 1;
            std::mem::take(&mut resting.wakers)
        };
        wakers.into_iter().for_each(|waker| contain(|| waker.wake()));
    }
}

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
    #[cfg(target_os = "linux")]
    Pidfd(crate::io::unix::AsyncFd<std::os::fd::OwnedFd>),
    Sigchld(Signal),
    NoSign,
}

impl Exit {
    /// Starts to watch `child`.
    pub(super) fn watch(child: &StdChild) -> io::Result<Self> {
        let sign = match Self::by_pidfd(child) {
            Ok(Some(pidfd)) => Ok(pidfd),
            Ok(None) => signal(SignalKind::child()).map(Self::Sigchld),
            Err(error) => Err(error),
        };
        sign.or_else(|error| match error.raw_os_error() {
            // It runs by now.
            Some(libc::EMFILE | libc::ENFILE) => Ok(Self::NoSign),
            _ => Err(error),
        })
    }

    /// `None` if the kernel has no pidfds, or there is no descriptor left.
    #[cfg(target_os = "linux")]
    fn by_pidfd(child: &StdChild) -> io::Result<Option<Self>> {
        use std::os::fd::{FromRawFd, OwnedFd, RawFd};

        // SAFETY: `pidfd_open` takes two integers and touches no memory. The child has not been waited
        // for, so the number is its own.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
        let Ok(fd @ 0..) = RawFd::try_from(fd) else { return Ok(None) };
        // SAFETY: the kernel has just given us this descriptor, which it opened close-on-exec.
        let pidfd = unsafe { OwnedFd::from_raw_fd(fd) };
        let interest = crate::io::Interest::READABLE;
        crate::io::unix::AsyncFd::with_interest(pidfd, interest).map(Self::Pidfd).map(Some)
    }

    #[cfg(not(target_os = "linux"))]
    fn by_pidfd(_: &StdChild) -> io::Result<Option<Self>> {
        Ok(None)
    }

    /// Waits until `child` has ended, and collects its status. Cancel safe.
    pub(super) async fn status(&mut self, child: &mut impl Watched) -> io::Result<ExitStatus> {
        loop {
            match poll_fn(|cx| self.poll_look(child, cx)).await? {
                Look::Ended(status) => return Ok(status),
                Look::NoSign => rest().await,
                Look::Unwatched => self.watch_here(child)?,
            }
        }
    }

    /// Waits for a sign that `child` has ended.
    fn poll_look(
        &mut self,
        child: &mut impl Watched,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Look>> {
        loop {
            // Registered before the look, so that no end in between is missed.
            let arrived = self.poll_arrival(cx);
            if let Some(status) = child.look()? {
                return Poll::Ready(Ok(Look::Ended(status)));
            }
            match (ready!(arrived), &self) {
                (Err(_), _) => return Poll::Ready(Ok(Look::Unwatched)),
                (Ok(()), Self::Sigchld(_)) => {}
                #[cfg(target_os = "linux")]
                (Ok(()), Self::Pidfd(_)) => return Poll::Ready(Ok(Look::NoSign)),
                (Ok(()), Self::NoSign) => return Poll::Ready(Ok(Look::NoSign)),
            }
        }
    }

    /// Watches `child` in the current runtime, since the one that did has shut down.
    ///
    /// # Errors
    /// If there is none, or it has shut down as well.
    fn watch_here(&mut self, child: &impl Watched) -> io::Result<()> {
        if Handle::try_current().is_err() {
            return Err(io::Error::other("the runtime that watches the child has shut down"));
        }
        *self = child.watch()?;
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
            Self::NoSign => Poll::Ready(Ok(())),
        }
    }
}

fn orphans() -> impl DerefMut<Target = Orphans> {
    ORPHANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a child that nobody waits for any more.
pub(super) fn adopt(child: StdChild) -> Orphan {
    let mut orphans = orphans();
    let number = orphans.adopted;
    orphans.adopted += 1;
    orphans.children.push((number, child));
    Orphan(number)
}

/// Collects the status of orphans that have ended: of [`LOOKS`] of them, in turn. (Most have a task that does.)
pub(super) fn reap() {
    let mut orphans = orphans();
    let Orphans { children, next, .. } = &mut *orphans;
    for _ in 0..LOOKS.min(children.len()) {
        *next = if *next < children.len() { *next } else { 0 };
        // An error means that there is nothing to wait for.
        match children[*next].1.try_wait() {
            Ok(None) => *next += 1,
            _ => drop(children.remove(*next)),
        }
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;
    use volt_sync::internal::primitive::Mutex;

    use super::*;
    use crate::time::Instant;

    /// Nor does it leave more wake-ups than rests.
    #[test]
    fn a_poll_that_comes_early_ends_no_rest() {
        #[derive(Default)]
        struct Woken(Mutex<u32>);
        impl Wake for Woken {
            fn wake(self: Arc<Self>) {
                *self.0.lock().unwrap() += 1;
            }
        }
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let start = Instant::now();
        for _ in 0..10 {
            let mut rest = std::pin::pin!(rest());
            while rest.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                thread::yield_now();
            }
        }
        assert!(start.elapsed() > 5 * REST);
        assert!(*woken.0.lock().unwrap() <= 10);
    }

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
