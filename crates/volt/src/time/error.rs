//! Errors of the timers.
#![forbid(unsafe_code)]

use std::{error, fmt, io};

/// The deadline of a [`timeout`](super::timeout) passed before its future completed.
///
/// # Examples
/// ```
/// # volt::run(async {
/// use std::time::Duration;
/// use volt::time::{error::Elapsed, timeout};
/// let result = timeout(Duration::from_millis(1), std::future::pending::<()>()).await;
/// let elapsed: Elapsed = result.unwrap_err();
/// let error = std::io::Error::from(elapsed);
/// assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
/// # });
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Elapsed(());

impl Elapsed {
    pub(super) const fn new() -> Self {
        Self(())
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("deadline has elapsed")
    }
}

impl error::Error for Elapsed {}

impl From<Elapsed> for io::Error {
    fn from(_: Elapsed) -> Self {
        io::ErrorKind::TimedOut.into()
    }
}
