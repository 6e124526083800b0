//! Signals of the operating system.
//!
//! ```
//! use volt::signal::{self, unix::SignalKind};
//!
//! volt::run(async {
//!     let mut terminate = signal::unix::signal(SignalKind::terminate())?;
//!     # // SAFETY: it only sends this process a signal that is caught.
//!     # unsafe { libc::raise(libc::SIGTERM) };
//!     println!("press ctrl-c to stop, or send SIGTERM");
//!     let reason = volt::select! {
//!         pressed = signal::ctrl_c() => pressed.map(|()| "ctrl-c")?,
//!         Some(()) = terminate.recv() => "SIGTERM",
//!     };
//!     assert_eq!(reason, "SIGTERM");
//!     std::io::Result::Ok(())
//! })
//! .unwrap();
//! ```
mod arrivals;
mod hub;
pub mod unix;

use std::future::poll_fn;
use std::io;

/// Completes at the next ctrl-c (SIGINT) of this process.
///
/// From the first call on, SIGINT does not end the process any more, also after the future is
/// dropped: the process decides itself.
///
/// # Cancel safety
/// Safe: if it is dropped before it completes, and nobody else listens, a signal is kept for the next one. So none is
/// lost in a loop around `select!` that makes a new one in each round.
///
/// # Errors
/// If the handler cannot be installed, if there are no descriptors left (the first listener opens three), or if the
/// runtime shuts down.
///
/// # Panics
/// Outside a Volt runtime.
///
/// ```
/// # fn raise() {
/// #     let id = std::process::id().to_string();
/// #     assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
/// # }
/// volt::run(async {
///     let stopped = volt::spawn(volt::signal::ctrl_c());
///     volt::time::sleep(std::time::Duration::from_millis(100)).await;
///     raise();
///     stopped.await.unwrap().unwrap();
/// });
/// ```
pub async fn ctrl_c() -> io::Result<()> {
    let mut arrival = unix::listen("signal::ctrl_c", unix::SignalKind::interrupt(), true)?;
    poll_fn(|cx| arrival.poll_next(cx)).await
}
