//! Values that belong to a task instead of a thread.
//!
//! A value stays inside its scope's future. While that is polled, a thread-local points to the innermost scope.
//!
//! Invariants:
//! 1. What the thread-local points to is on the stack, in a call of `within` that has not returned.
//! 2. That call has the value borrowed exclusively, and only reads it.
//! 3. A scope is seen at its own level only: not by tasks that run on top of a wait in it (`runtime/level.rs`).
//!
//! Rejected: to swap the value into and out of the thread-local at each poll. A scope on top of a wait could not swap
//! while somebody below it holds a reference to the value.

use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::marker::PhantomPinned;
use std::mem;
use std::pin::Pin;
use std::ptr;
use std::task::{Context, Poll};
use std::thread;

use pin_project_lite::pin_project;

use crate::runtime::level;

/// Declares task-local keys: statics of the type [`task::LocalKey`](crate::task::LocalKey).
///
/// # Examples
/// ```
/// volt::task_local! {
///     pub static ONE: u32;
///     static NAME: String;
/// }
/// # volt::run(async {
/// ONE.scope(1, async {
///     assert_eq!(ONE.get(), 1);
///     NAME.scope("inner".to_owned(), async {
///         assert_eq!(NAME.with(|name| name.len()), 5);
///         assert_eq!(ONE.get(), 1);
///     })
///     .await;
///     assert!(NAME.try_with(|_| ()).is_err());
/// })
/// .await;
/// # });
/// ```
#[macro_export]
macro_rules! task_local {
    () => {};
    ($(#[$attribute:meta])* $vis:vis static $name:ident: $type:ty; $($rest:tt)*) => {
        $crate::__task_local_key!($(#[$attribute])* $vis $name, $type);
        $crate::task_local!($($rest)*);
    };
    ($(#[$attribute:meta])* $vis:vis static $name:ident: $type:ty) => {
        $crate::__task_local_key!($(#[$attribute])* $vis $name, $type);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __task_local_key {
    ($(#[$attribute:meta])* $vis:vis $name:ident, $type:ty) => {
        $(#[$attribute])*
        $vis static $name: $crate::task::LocalKey<$type> = {
            ::std::thread_local! {
                static SCOPES: $crate::task::__TaskLocalScopes<$type> =
                    const { $crate::task::__TaskLocalScopes::new() };
            }
            $crate::task::LocalKey::__new(&SCOPES)
        };
    };
}

/// A key to a value that is there while a future in its [`scope`](Self::scope) is polled.
///
/// Declared with [`task_local!`](crate::task_local). A spawned task does not inherit the values of
/// its parent.
///
/// ```
/// volt::task_local! { static NAME: &'static str; }
///
/// volt::run(NAME.scope("parent", async {
///     assert_eq!(NAME.get(), "parent");
///     let child = volt::spawn(async { NAME.try_get().is_err() });
///     assert!(child.await.unwrap(), "not inherited");
/// }));
/// ```
///
/// # Cost
/// A scope writes to a thread-local before and after each poll.
pub struct LocalKey<T: 'static> {
    scopes: &'static thread::LocalKey<__TaskLocalScopes<T>>,
}

/// The scopes of one key that a thread is in.
#[doc(hidden)]
#[derive(Debug)]
pub struct __TaskLocalScopes<T: 'static>(Cell<*const Scope<T>>);

impl<T: 'static> __TaskLocalScopes<T> {
    #[doc(hidden)]
    pub const fn new() -> Self {
        Self(Cell::new(ptr::null()))
    }
}

/// A call of `within`.
#[derive(Debug)]
struct Scope<T> {
    value: *const Option<T>,
    level: u32,
}

impl<T: 'static> LocalKey<T> {
    #[doc(hidden)]
    pub const fn __new(scopes: &'static thread::LocalKey<__TaskLocalScopes<T>>) -> Self {
        Self { scopes }
    }

    /// Sets the value while `future` runs. It is dropped with the future, or before if
    /// [taken](TaskLocalFuture::take_value).
    ///
    /// ```
    /// volt::task_local! { static KEY: u32; }
    ///
    /// volt::run(KEY.scope(1, async {
    ///     assert_eq!(KEY.scope(2, async { KEY.get() }).await, 2);
    ///     assert_eq!(KEY.get(), 1);
    /// }));
    /// ```
    pub fn scope<F: Future>(&'static self, value: T, future: F) -> TaskLocalFuture<T, F> {
        TaskLocalFuture {
            key: self,
            value: Some(value),
            future: Some(future),
            _pinned: PhantomPinned,
        }
    }

    /// Sets the value while `f` runs.
    ///
    /// ```
    /// volt::task_local! { static KEY: u32; }
    ///
    /// assert_eq!(KEY.sync_scope(1, || KEY.get() + 1), 2);
    /// ```
    pub fn sync_scope<F, R>(&'static self, value: T, f: F) -> R
    where
        F: FnOnce() -> R,
    {
        self.within(&mut Some(value), f)
    }

    /// Calls `f` with the value.
    ///
    /// ```
    /// volt::task_local! { static NAME: String; }
    ///
    /// let length = NAME.sync_scope("Volt".to_owned(), || NAME.with(|name| name.len()));
    /// assert_eq!(length, 4);
    /// ```
    ///
    /// # Panics
    /// Outside of a scope of this key.
    #[track_caller]
    pub fn with<F, R>(&'static self, f: F) -> R
    where
        F: FnOnce(&T) -> R,
    {
        match self.try_with(f) {
            Ok(result) => result,
            Err(error) => panic!("{error}"),
        }
    }

    /// Calls `f` with the value, if there is one.
    ///
    /// ```
    /// volt::task_local! { static NAME: String; }
    ///
    /// assert!(NAME.try_with(|name| name.len()).is_err());
    /// ```
    ///
    /// # Errors
    /// Outside of a scope of this key.
    pub fn try_with<F, R>(&'static self, f: F) -> Result<R, AccessError>
    where
        F: FnOnce(&T) -> R,
    {
        let scope = self.scopes.with(|scopes| scopes.0.get());
        // SAFETY: the call that it belongs to is below on this thread's stack (invariant 1).
        let scope = unsafe { scope.as_ref() }.filter(|scope| scope.level == level::current());
        // SAFETY: valid until that call returns, and nobody changes it before (invariant 2).
        let value = scope.and_then(|scope| unsafe { (*scope.value).as_ref() });
        value.map(f).ok_or(AccessError { _private: () })
    }

    /// Makes `value` the one of this key while `f` runs.
    fn within<R>(&'static self, value: &mut Option<T>, f: impl FnOnce() -> R) -> R {
        struct Leave<T: 'static>(&'static LocalKey<T>, *const Scope<T>);
        impl<T> Drop for Leave<T> {
            fn drop(&mut self) {
                self.0.scopes.with(|scopes| scopes.0.set(self.1));
            }
        }
        let scope = Scope { value: ptr::from_ref(value), level: level::current() };
        let outer = self.scopes.with(|scopes| scopes.0.replace(&raw const scope));
        // Before `scope` goes: it was made later.
        let _leave = Leave(self, outer);
        f()
    }
}

impl<T: Clone + 'static> LocalKey<T> {
    /// A copy of the value.
    ///
    /// ```
    /// volt::task_local! { static KEY: u32; }
    ///
    /// assert_eq!(KEY.sync_scope(1, || KEY.get()), 1);
    /// ```
    ///
    /// # Panics
    /// Outside of a scope of this key.
    #[track_caller]
    pub fn get(&'static self) -> T {
        self.with(T::clone)
    }

    /// A copy of the value, if there is one.
    ///
    /// ```
    /// volt::task_local! { static KEY: u32; }
    ///
    /// assert!(KEY.try_get().is_err());
    /// assert_eq!(KEY.sync_scope(1, || KEY.try_get()), Ok(1));
    /// ```
    ///
    /// # Errors
    /// Outside of a scope of this key.
    pub fn try_get(&'static self) -> Result<T, AccessError> {
        self.try_with(T::clone)
    }
}

impl<T: 'static> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("LocalKey { .. }")
    }
}

pin_project! {
    /// The future of [`LocalKey::scope`].
    ///
    /// ```
    /// use volt::task::futures::TaskLocalFuture;
    ///
    /// volt::task_local! { static KEY: u32; }
    ///
    /// let future: TaskLocalFuture<u32, _> = KEY.scope(1, async { KEY.get() });
    /// assert_eq!(volt::run(future), 1);
    /// ```
    pub struct TaskLocalFuture<T, F>
    where
        T: 'static,
    {
        key: &'static LocalKey<T>,
        value: Option<T>,
        #[pin]
        future: Option<F>,
        #[pin]
        _pinned: PhantomPinned,
    }

    impl<T: 'static, F> PinnedDrop for TaskLocalFuture<T, F> {
        /// The future's drop sees the value.
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            let mut future = this.future;
            if mem::needs_drop::<F>() && future.is_some() {
                this.key.within(this.value, || future.set(None));
            }
        }
    }
}

impl<T: 'static, F> TaskLocalFuture<T, F> {
    /// Takes the value back out: the one that the scope was made with, or what it was changed to.
    /// Later polls panic when they ask for it.
    ///
    /// # Examples
    /// ```
    /// volt::task_local! { static KEY: u32; }
    /// # volt::run(async {
    /// let mut scoped = Box::pin(KEY.scope(7, async { KEY.get() }));
    /// assert_eq!(scoped.as_mut().await, 7);
    /// assert_eq!(scoped.as_mut().take_value(), Some(7));
    /// # });
    /// ```
    pub fn take_value(self: Pin<&mut Self>) -> Option<T> {
        self.project().value.take()
    }
}

impl<T: 'static, F: Future> Future for TaskLocalFuture<T, F> {
    type Output = F::Output;

    #[track_caller]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let mut future = this.future;
        this.key.within(this.value, || match future.as_mut().as_pin_mut() {
            None => panic!("`TaskLocalFuture` polled after completion"),
            Some(inner) => {
                let polled = inner.poll(cx);
                if polled.is_ready() {
                    future.set(None);
                }
                polled
            }
        })
    }
}

impl<T: fmt::Debug + 'static, F> fmt::Debug for TaskLocalFuture<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskLocalFuture").field("value", &self.value).finish_non_exhaustive()
    }
}

/// A task-local value was asked for outside of its scope.
///
/// ```
/// volt::task_local! { static KEY: u32; }
///
/// assert!(KEY.try_get().unwrap_err().to_string().starts_with("task-local value not set"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AccessError {
    _private: (),
}

impl fmt::Debug for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessError").finish()
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("task-local value not set: this is inside of no `scope` of the key")?;
        f.write_str(", and a spawned task inherits none")
    }
}

impl Error for AccessError {}
