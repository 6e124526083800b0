//! The signals of unix.
//!
//! ```
//! use volt::signal::unix::{SignalKind, signal};
//!
//! volt::run(async {
//!     let mut reload = signal(SignalKind::hangup())?;
//!     # // SAFETY: it only sends this process a signal that is caught.
//!     # unsafe { libc::raise(libc::SIGHUP) };
//!     // kill -HUP
//!     assert_eq!(reload.recv().await, Some(()));
//!     std::io::Result::Ok(())
//! })
//! .unwrap();
//! ```
//!
//! Each kind that somebody listens for has one handler, installed by `signal-hook-registry`, and all of them one socket pair,
//! by which the runtimes hear of signals. So a listener more costs neither descriptors nor system calls.
#![forbid(unsafe_code)]

use std::future::poll_fn;
use std::io;
use std::os::raw::c_int;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use volt_sync::coop;

use super::arrivals::Listener;
use super::hub::Hub;
use crate::reactor::Handle;
use crate::runtime::outside;

/// Which signal.
///
/// ```
/// use volt::signal::unix::SignalKind;
///
/// assert_eq!(SignalKind::terminate(), SignalKind::from_raw(libc::SIGTERM));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SignalKind(c_int);

impl SignalKind {
    /// The signal of this number, such as a real-time signal.
    ///
    /// ```
    /// use volt::signal::unix::SignalKind;
    /// assert_eq!(SignalKind::from_raw(2), SignalKind::interrupt());
    /// ```
    #[must_use]
    pub const fn from_raw(number: c_int) -> Self {
        Self(number)
    }

    /// The signal's number.
    ///
    /// ```
    /// use volt::signal::unix::SignalKind;
    /// assert_eq!(SignalKind::interrupt().as_raw_value(), 2);
    /// ```
    #[must_use]
    pub const fn as_raw_value(&self) -> c_int {
        self.0
    }

    /// SIGALRM: a timer set with `alarm` expired.
    ///
    /// # Examples
    /// ```
    /// use volt::signal::unix::SignalKind;
    /// assert_eq!(SignalKind::alarm().as_raw_value(), libc::SIGALRM);
    /// ```
    #[must_use]
    pub const fn alarm() -> Self {
        Self(libc::SIGALRM)
    }

    /// SIGCHLD: a child process changed its state.
    ///
    /// # Examples
    /// ```
    /// use volt::signal::unix::SignalKind;
    /// assert_eq!(SignalKind::child().as_raw_value(), libc::SIGCHLD);
    /// ```
    #[must_use]
    pub const fn child() -> Self {
        Self(libc::SIGCHLD)
    }

    /// SIGHUP: the terminal is gone; by habit, "read the configuration again".
    ///
    /// # Examples
    /// ```
    /// use volt::signal::unix::SignalKind;
    /// assert_eq!(SignalKind::hangup().as_raw_value(), libc::SIGHUP);
    /// ```
    #[must_use]
    pub const fn hangup() -> Self {
        Self(libc::SIGHUP)
    }

    /// SIGINT: ctrl-c.
    ///
    /// # Examples
    /// ```
    /// use volt::signal::unix::SignalKind;
    /// assert_eq!(SignalKind::interrupt().as_raw_value(), libc::SIGINT);
    /// ```
    #[must_use]
    pub const fn interrupt() -> Self {
        Self(libc::SIGINT)
    }

    /// SIGIO: input or output is possible.
    ///
    /// # Examples
    /// ```
    /// use volt::signal::unix::SignalKind;
    /// assert_eq!(SignalKind::io().as_raw_value(), libc::SIGIO);
    /// ```
    #[must_use]
    pub const fn io() -> Self {
        Self(libc::SIGIO)
    }

    /// SIGPIPE: written to a pipe that nobody reads.
    ///
    /// # Examples
    /// ```
    /// use volt::signal::unix::SignalKind;
    /// assert_eq!(SignalKind::pipe().as_raw_value(), libc::SIGPIPE);
    /// ```
    #[must_use]
    pub const fn pipe() -> Self {
        Self(libc::SIGPIPE)
    }

    /// SIGQUIT: ctrl-backslash.
    ///
    /// # Examples
    /// ```
    /// use volt::signal::unix::SignalKind;
    /// assert_eq!(SignalKind::quit().as_raw_value(), libc::SIGQUIT);
    /// ```
    #[must_use]
    pub const fn quit() -> Self {
        Self(libc::SIGQUIT)
    }

    /// SIGTERM: a request to end.
    ///
    /// # Examples
    /// ```
    /// use volt::signal::unix::SignalKind;
    /// assert_eq!(SignalKind::terminate().as_raw_value(), libc::SIGTERM);
    /// ```
    #[must_use]
    pub const fn terminate() -> Self {
        Self(libc::SIGTERM)
    }

    /// SIGUSR1.
    ///
    /// # Examples
    /// ```
    /// use volt::signal::unix::SignalKind;
    /// assert_eq!(SignalKind::user_defined1().as_raw_value(), libc::SIGUSR1);
    /// ```
    #[must_use]
    pub const fn user_defined1() -> Self {
        Self(libc::SIGUSR1)
    }

    /// SIGUSR2.
    ///
    /// # Examples
    /// ```
    /// use volt::signal::unix::SignalKind;
    /// assert_eq!(SignalKind::user_defined2().as_raw_value(), libc::SIGUSR2);
    /// ```
    #[must_use]
    pub const fn user_defined2() -> Self {
        Self(libc::SIGUSR2)
    }

    /// SIGWINCH: the terminal's window changed its size.
    ///
    /// # Examples
    /// ```
    /// use volt::signal::unix::SignalKind;
    /// assert_eq!(SignalKind::window_change().as_raw_value(), libc::SIGWINCH);
    /// ```
    #[must_use]
    pub const fn window_change() -> Self {
        Self(libc::SIGWINCH)
    }
}

impl From<c_int> for SignalKind {
    fn from(number: c_int) -> Self {
        Self(number)
    }
}

impl From<SignalKind> for c_int {
    fn from(kind: SignalKind) -> Self {
        kind.0
    }
}

/// The arrivals of one kind of signal. Made by [`signal`].
///
/// Dropping it ends the listening, not the effect on the default action: see [`signal`].
///
/// It may be awaited in any runtime, and go back and forth between them: the one in which it is polled hears of signals from then
/// on, until it shuts down, and no signal is missed meanwhile. Polled outside of all runtimes, it hears by those that
/// listen already, if one of them is driven: a multi-thread runtime always is, a current-thread one in its `block_on`.
///
/// ```
/// use volt::signal::unix::{Signal, SignalKind, signal};
///
/// volt::run(async {
///     let mut signals: Signal = signal(SignalKind::user_defined1()).unwrap();
///     # let id = std::process::id().to_string();
///     // somebody: kill -USR1
///     # std::process::Command::new("kill").args(["-USR1", &id]).status().unwrap();
///     assert_eq!(signals.recv().await, Some(()));
/// });
/// ```
#[derive(Debug)]
pub struct Signal {
    listener: Listener,
    hub: Arc<Hub>,
}

/// Listens for a kind of signal from now on.
///
/// The signal's default action, such as to end the process, does not happen any more from here on,
/// also when the [`Signal`] is dropped.
///
/// # Errors
/// If the kind is not one that can be listened for (SIGKILL, SIGSTOP, SIGILL, SIGFPE, SIGSEGV, or no
/// signal at all), or if there are no descriptors left: the first listener of the process opens two, the first of a
/// runtime one more.
///
/// # Panics
/// Outside a Volt runtime.
///
/// ```
/// use volt::signal::unix::{SignalKind, signal};
///
/// volt::run(async {
///     let mut hangup = signal(SignalKind::hangup()).unwrap();
///     # let id = std::process::id().to_string();
///     // somebody: kill -HUP
///     # std::process::Command::new("kill").args(["-HUP", &id]).status().unwrap();
///     assert_eq!(hangup.recv().await, Some(()));
///     assert!(signal(SignalKind::from_raw(9)).is_err());
/// });
/// ```
#[track_caller]
pub fn signal(kind: SignalKind) -> io::Result<Signal> {
    listen("signal", kind, false)
}

/// The same for the function `caller`, which the panic names; `once`: for one arrival.
#[track_caller]
pub(super) fn listen(caller: &'static str, kind: SignalKind, once: bool) -> io::Result<Signal> {
    Listener::check(kind.0)?;
    let hub = Hub::of(Handle::current(caller))?;
    Signal::new(kind, once, hub)
}

/// As [`signal`], in the runtime whose reactor this is. Wakers may run in here.
pub(crate) fn signal_in(reactor: Handle, kind: SignalKind) -> io::Result<Signal> {
    Signal::new(kind, false, Hub::of(reactor)?)
}

impl Signal {
    /// The hub first, so that what came while nobody watched is told before.
    fn new(kind: SignalKind, once: bool, hub: Arc<Hub>) -> io::Result<Self> {
        Ok(Self { listener: Listener::new(kind.0, once)?, hub })
    }

    /// Waits for the next arrival. Several that come before it is noticed count as one.
    ///
    /// Cancel safe. It is heard by the runtime in which this is polled, which need not be the one that it was made in.
    /// `None` if the last one has shut down, and there is no other, or that has no descriptors left.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::signal::unix::{SignalKind, signal};
    /// let mut signals = signal(SignalKind::user_defined1())?;
    /// # // SAFETY: it only sends this process a signal that is caught.
    /// # unsafe { libc::raise(libc::SIGUSR1) };
    /// assert_eq!(signals.recv().await, Some(()));
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn recv(&mut self) -> Option<()> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// As [`recv`](Self::recv).
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::signal::unix::{SignalKind, signal};
    /// let mut signals = signal(SignalKind::user_defined1())?;
    /// # // SAFETY: it only sends this process a signal that is caught.
    /// # unsafe { libc::raise(libc::SIGUSR1) };
    /// assert_eq!(std::future::poll_fn(|cx| signals.poll_recv(cx)).await, Some(()));
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        self.poll_next(cx).map(Result::ok)
    }

    /// As [`poll_recv`](Self::poll_recv), with the error that says why. Wakers may run in here.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let polled = self.poll_by_its_hub(cx);
            match &polled {
                // Whoever polls it waits in this runtime, and the other one may be idle. The waker has its place by now: so it
                // is woken by what comes from here on, whoever hears of it, and by what came before, of which the new hub tells.
                Poll::Pending => _ = self.moves_on(),
                // The runtime may have ended just now.
                Poll::Ready(Err(_)) if self.moves_on() => continue,
                Poll::Ready(Err(_)) => self.listener.has_failed(),
                Poll::Ready(Ok(())) => {}
            }
            return polled;
        }
    }

    /// As [`poll_next`](Self::poll_next), but hears by its own runtime only, also if it is polled in another one; an error if that
    /// has ended. No waker runs in here.
    pub(crate) fn poll_by_its_hub(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(coop::poll_proceed(cx));
        let polled = self.listener.poll(cx, || self.hub.has_ended());
        match polled {
            Poll::Pending => outside::waits(),
            Poll::Ready(_) => coop::made_progress(),
        }
        polled
    }

    /// Hears by the runtime in scope from now on, if there is another one than before, and it can. The hub of the one before
    /// stays with that: it is this listener that goes, and its place is the process's.
    fn moves_on(&mut self) -> bool {
        let other = Handle::try_current().filter(|reactor| !self.hub.hears_by(reactor));
        let hub = other.and_then(|reactor| Hub::of(reactor).ok());
        hub.map(|hub| self.hub = hub).is_some()
    }
}
