//! The errors of the locks.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use crate::permits::{Closed, Refused};

/// The semaphore was [closed](crate::Semaphore::close).
///
/// # Examples
/// ```
/// let semaphore = volt_sync::Semaphore::new(0);
/// semaphore.close();
/// let error = semaphore.blocking_acquire().unwrap_err();
/// assert_eq!(error.to_string(), "semaphore closed");
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct AcquireError(());

/// Why [`Semaphore::try_acquire`](crate::Semaphore::try_acquire) and its like got nothing.
///
/// # Examples
/// ```
/// use volt_sync::{Semaphore, TryAcquireError};
/// let semaphore = Semaphore::new(0);
/// assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
/// semaphore.close();
/// assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::Closed);
/// ```
#[derive(Debug, PartialEq, Eq)]
pub enum TryAcquireError {
    /// The semaphore was [closed](crate::Semaphore::close).
    Closed,
    /// Too few permits, or somebody waits for them already.
    NoPermits,
}

/// The lock is held, or somebody waits for it already.
///
/// # Examples
/// ```
/// let mutex = volt_sync::Mutex::new(());
/// let guard = mutex.try_lock().unwrap();
/// assert_eq!(mutex.try_lock().unwrap_err().to_string(), "operation would block");
/// ```
#[derive(Debug)]
pub struct TryLockError(pub(crate) ());

impl From<Closed> for AcquireError {
    fn from(_: Closed) -> Self {
        Self(())
    }
}

impl From<Refused> for TryAcquireError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Closed => Self::Closed,
            Refused::TooFew => Self::NoPermits,
        }
    }
}

impl From<Refused> for TryLockError {
    fn from(_: Refused) -> Self {
        Self(())
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("semaphore closed")
    }
}

impl fmt::Display for TryAcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "semaphore closed",
            Self::NoPermits => "no permits available",
        })
    }
}

impl fmt::Display for TryLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("operation would block")
    }
}

impl Error for AcquireError {}
impl Error for TryAcquireError {}
impl Error for TryLockError {}
