//! Threads, atomics and the futex inside loom's model checker.
//!
//! Loom's generic functions contain all that it does at a step, so that each closure and each type gets a copy of
//! its own, and the models would take twice as long to compile. What stands before them here is generic only in what
//! it hands on.

pub use loom::hint;
pub use loom::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
};
pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
/// The standard mutex: loom's cannot be made in a constant.
pub use std::sync::Mutex as StaticMutex;

use std::time::Duration;

use super::RawCell;

/// Explores what the threads of `f` can do, within the bounds that the environment sets.
pub fn explore(f: impl Fn() + Send + Sync + 'static) {
    check(None, Box::new(f));
}

/// As [`explore`], with no more than so many preemptions.
pub fn explore_preempted(preemptions: usize, f: impl Fn() + Send + Sync + 'static) {
    check(Some(preemptions), Box::new(f));
}

/// The longest execution, in steps. Loom's own bound is too narrow for a model with several threads that sleep.
const LONGEST: usize = 20_000;

fn check(preemptions: Option<usize>, f: Box<dyn Fn() + Send + Sync>) {
    let mut model = loom::model::Builder::new();
    model.max_branches = model.max_branches.max(LONGEST);
    model.preemption_bound = preemptions.or(model.preemption_bound);
    model.check(f);
}

/// Loom's threads.
pub mod thread {
    pub use loom::thread::*;

    /// Starts a thread of the model.
    #[track_caller]
    pub fn spawn<T: 'static>(f: impl FnOnce() -> T + 'static) -> JoinHandle<T> {
        loom::thread::spawn(Box::new(f) as Box<dyn FnOnce() -> T>)
    }
}

/// A value of each thread.
#[derive(Debug)]
pub struct LocalKey<T: 'static>(pub &'static loom::thread::LocalKey<T>);

impl<T: 'static> LocalKey<T> {
    /// Calls `f` with this thread's value.
    ///
    /// # Panics
    /// If the thread ends and has dropped it.
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        self.try_with(f).expect("the value is dropped already")
    }

    /// Calls `f` with this thread's value.
    ///
    /// # Errors
    /// If the thread ends and has dropped it.
    pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Result<R, thread::AccessError> {
        let value = self.0.try_with(std::ptr::from_ref)?;
        // SAFETY: the value lives until the thread ends, and that is the one that is in here.
        Ok(f(unsafe { &*value }))
    }
}

/// Declares [`LocalKey`]s, as the standard library's macro.
#[doc(hidden)]
#[macro_export]
macro_rules! model_thread_local {
    ($($(#[$meta:meta])* $vis:vis static $name:ident: $type:ty = $init:expr);* $(;)?) => {$(
        $(#[$meta])*
        $vis static $name: $crate::internal::primitive::LocalKey<$type> = {
            loom::thread_local! { static VALUE: $type = $init; }
            $crate::internal::primitive::LocalKey(&VALUE)
        };
    )*};
}
pub use model_thread_local as thread_local;

/// A cell whose accesses loom checks, with the `get_mut` that loom's own lacks.
#[derive(Debug, Default)]
pub struct UnsafeCell<T> {
    accesses: Accesses,
    content: RawCell<T>,
}

impl<T> UnsafeCell<T> {
    /// Wraps `value`.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Self { accesses: Accesses::new(), content: RawCell::new(value) }
    }

    /// Returns the content.
    #[track_caller]
    pub fn into_inner(self) -> T {
        drop(self.accesses.exclusive());
        self.content.into_inner()
    }

    /// Calls `f` with a pointer for shared access.
    #[track_caller]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        let _access = self.accesses.shared();
        f(self.content.get())
    }

    /// Calls `f` with a pointer for exclusive access.
    #[track_caller]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        let _access = self.accesses.exclusive();
        f(self.content.get())
    }

    /// Returns the content, borrowed for as long as the cell is.
    #[track_caller]
    pub fn get_mut(&mut self) -> &mut T {
        // Loom checks that earlier accesses are ordered before this; others there are none while the result lives.
        drop(self.accesses.exclusive());
        self.content.get_mut()
    }
}

/// What loom knows of the accesses to a cell, whatever it contains.
#[derive(Debug, Default)]
struct Accesses(loom::cell::UnsafeCell<()>);

impl Accesses {
    #[track_caller]
    fn new() -> Self {
        Self(loom::cell::UnsafeCell::new(()))
    }

    #[track_caller]
    fn shared(&self) -> loom::cell::ConstPtr<()> {
        self.0.get()
    }

    #[track_caller]
    fn exclusive(&self) -> loom::cell::MutPtr<()> {
        self.0.get_mut()
    }
}

/// Every spin is a chance for the other threads: without the yield loom would explore endless
/// spinning.
pub fn spin(_attempt: u32) {
    thread::yield_now();
}

/// The machine's clock, which loom does not model.
pub fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// As on a system that does not say it.
pub fn now_ns() -> Option<u64> {
    None
}

/// Loom's threads do not wait for a time.
pub fn set_timer_slack(_ns: u32) {}

/// As in the real thing, where the system does not say it.
pub fn stack_size() -> Option<usize> {
    None
}

/// As in the real thing, where it is not known.
pub fn processor() -> u32 {
    0
}

/// Loom's threads do not wait for a time.
pub fn timer_slack() -> u32 {
    0
}

/// A 32-bit word on which threads can sleep, see the native version.
///
/// The real futex compares the word and queues the sleeper under one lock of the kernel, which the
/// mutex stands for. Timeouts never elapse here: a protocol that needs one to make progress
/// deadlocks in the model, which loom reports. Nor does anybody wake up without a reason, and no more wake up
/// than a call asks for: a protocol that wakes too few deadlocks as well.
#[derive(Debug)]
pub struct Futex {
    word: AtomicU32,
    /// The longest waiting first.
    sleepers: Mutex<Vec<Sleeper>>,
}

#[derive(Debug)]
struct Sleeper {
    kinds: u32,
    wake: std::sync::Arc<Condvar>,
}

impl Futex {
    /// A word that holds `value`.
    pub fn new(value: u32) -> Self {
        Self { word: AtomicU32::new(value), sleepers: Mutex::new(Vec::new()) }
    }

    /// The word itself.
    pub fn word(&self) -> &AtomicU32 {
        &self.word
    }

    /// Sleeps while the word holds `expected`.
    pub fn wait(&self, expected: u32, _timeout: Option<Duration>) {
        self.wait_as(expected, u32::MAX);
    }

    /// As `wait`, as one of the `kinds`.
    pub fn wait_as(&self, expected: u32, kinds: u32) {
        let mut sleepers = self.lock();
        // ORD relaxed: the mutex orders this look against the waker's change, see `wake_kinds`.
        if self.word.load(std::sync::atomic::Ordering::Relaxed) == expected {
            let wake = std::sync::Arc::new(Condvar::new());
            sleepers.push(Sleeper { kinds, wake: wake.clone() });
            drop(wake.wait(sleepers));
        }
    }

    /// Wakes at most `count` sleepers.
    pub fn wake(&self, count: u32) {
        self.wake_kinds(count, u32::MAX);
    }

    /// Wakes all sleepers.
    pub fn wake_all(&self) {
        self.wake(i32::MAX.unsigned_abs());
    }

    /// Wakes one sleeper of one of the `kinds`. False if there is none.
    pub fn wake_one_of(&self, kinds: u32) -> bool {
        self.wake_kinds(1, kinds) > 0
    }

    /// As the kernel, for which the count has a sign: it looks whether that is reached after it has woken one.
    fn wake_kinds(&self, count: u32, kinds: u32) -> usize {
        let most = if count > i32::MAX.unsigned_abs() { 1 } else { count.max(1) as usize };
        let mut woken = Vec::new();
        let mut sleepers = self.lock();
        sleepers.retain(|sleeper| {
            let wakes = woken.len() < most && sleeper.kinds & kinds != 0;
            if wakes {
                woken.push(sleeper.wake.clone());
            }
            !wakes
        });
        drop(sleepers);
        woken.iter().for_each(|wake| wake.notify_one());
        woken.len()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Sleeper>> {
        self.sleepers.lock().expect("loom's mutexes are not poisoned")
    }
}
