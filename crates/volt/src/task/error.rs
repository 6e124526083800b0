//! Why a task has no output.

use std::any::Any;
use std::fmt;
use std::io;

use super::id::Id;

/// A task that was joined had panicked or been cancelled.
///
/// # Examples
/// ```
/// volt::run(async {
///     let error = volt::spawn(async { panic!("oh no") }).await.unwrap_err();
///     assert!(error.to_string().ends_with("panicked with message \"oh no\""));
///     let payload = error.into_panic();
///     assert_eq!(*payload.downcast::<&str>().unwrap(), "oh no");
/// });
/// ```
pub struct JoinError {
    id: Id,
    cause: Cause,
}

enum Cause {
    Cancelled,
    Panic(Payload),
}

/// A panic's payload, which is reached only by value or as a string.
struct Payload(Box<dyn Any + Send + 'static>);

// SAFETY: a shared payload is only asked whether it is a `String` or a `&'static str`, which are
// `Sync`.
unsafe impl Sync for Payload {}

impl Payload {
    fn message(&self) -> Option<&str> {
        if let Some(message) = self.0.downcast_ref::<String>() {
            return Some(message);
        }
        self.0.downcast_ref::<&'static str>().copied()
    }
}

impl JoinError {
    pub(crate) fn cancelled(id: Id) -> Self {
        Self { id, cause: Cause::Cancelled }
    }

    pub(crate) fn panicked(id: Id, payload: Box<dyn Any + Send + 'static>) -> Self {
        Self { id, cause: Cause::Panic(Payload(payload)) }
    }

    /// True if the task was aborted, or its runtime shut down before it completed.
    ///
    /// ```
    /// volt::run(async {
    ///     let task = volt::spawn(std::future::pending::<()>());
    ///     task.abort();
    ///     assert!(task.await.unwrap_err().is_cancelled());
    /// });
    /// ```
    pub fn is_cancelled(&self) -> bool {
        matches!(self.cause, Cause::Cancelled)
    }

    /// True if the task panicked.
    ///
    /// ```
    /// volt::run(async {
    ///     let error = volt::spawn(async { panic!("oh no") }).await.unwrap_err();
    ///     assert!(error.is_panic() && !error.is_cancelled());
    /// });
    /// ```
    pub fn is_panic(&self) -> bool {
        matches!(self.cause, Cause::Panic(_))
    }

    /// The panic's payload, for [`std::panic::resume_unwind`].
    ///
    /// ```
    /// volt::run(async {
    ///     let error = volt::spawn(async { panic!("oh no") }).await.unwrap_err();
    ///     assert_eq!(error.into_panic().downcast_ref::<&str>(), Some(&"oh no"));
    /// });
    /// ```
    ///
    /// # Panics
    /// If the task did not panic; see [`try_into_panic`](Self::try_into_panic).
    #[track_caller]
    pub fn into_panic(self) -> Box<dyn Any + Send + 'static> {
        self.try_into_panic().expect("`JoinError` reason is not a panic.")
    }

    /// The panic's payload.
    ///
    /// ```
    /// volt::run(async {
    ///     let task = volt::spawn(std::future::pending::<()>());
    ///     task.abort();
    ///     let error = task.await.unwrap_err().try_into_panic().unwrap_err();
    ///     assert!(error.is_cancelled());
    /// });
    /// ```
    ///
    /// # Errors
    /// Returns the error itself if the task did not panic.
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send + 'static>, JoinError> {
        match self.cause {
            Cause::Panic(payload) => Ok(payload.0),
            Cause::Cancelled => Err(self),
        }
    }

    /// The id of the task.
    ///
    /// ```
    /// volt::run(async {
    ///     let task = volt::spawn(async { panic!("oh no") });
    ///     let id = task.id();
    ///     assert_eq!(task.await.unwrap_err().id(), id);
    /// });
    /// ```
    pub fn id(&self) -> Id {
        self.id
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id;
        match &self.cause {
            Cause::Cancelled => write!(f, "task {id} was cancelled"),
            Cause::Panic(payload) => match payload.message() {
                Some(message) => write!(f, "task {id} panicked with message {message:?}"),
                None => write!(f, "task {id} panicked"),
            },
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id;
        match &self.cause {
            Cause::Cancelled => write!(f, "JoinError::Cancelled({id:?})"),
            Cause::Panic(payload) => match payload.message() {
                Some(message) => write!(f, "JoinError::Panic({id:?}, {message:?}, ...)"),
                None => write!(f, "JoinError::Panic({id:?}, ...)"),
            },
        }
    }
}

impl std::error::Error for JoinError {}

impl From<JoinError> for io::Error {
    fn from(error: JoinError) -> io::Error {
        io::Error::other(match error.cause {
            Cause::Cancelled => "task was cancelled",
            Cause::Panic(_) => "task panicked",
        })
    }
}
