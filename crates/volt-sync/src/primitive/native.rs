//! Threads, atomics and the futex of the machine.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "this is the layer that wraps them"
)]

pub use std::hint;
pub use std::sync::Arc;
pub use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
};
#[cfg(not(volt_tsan))]
pub use std::sync::{Condvar, Mutex, MutexGuard};
pub use std::thread;
pub use std::thread_local;

#[cfg(volt_tsan)]
#[path = "tsan.rs"]
mod tsan;
#[cfg(volt_tsan)]
pub use tsan::{Condvar, Mutex, MutexGuard};

/// A mutex for a static, which needs a constant.
pub use Mutex as StaticMutex;

use std::time::Duration;

/// [`std::cell::UnsafeCell`] with the closure interface of loom's, which checks every access.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Returns the content.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Calls `f` with a pointer for shared access.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Calls `f` with a pointer for exclusive access.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }

    /// Returns the content, borrowed for as long as the cell is.
    #[inline(always)]
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    /// The raw pointer, for content whose address must outlive a closure (guards).
    ///
    /// Loom cannot check accesses made through it; the model's version of this method is absent,
    /// so that whoever needs it says how the access is modelled.
    #[inline(always)]
    pub const fn get(&self) -> *mut T {
        self.0.get()
    }
}

/// Waits a moment inside a spin loop. `attempt` counts the rounds so far: the first ones cost a
/// few cycles, later ones give the processor away so that a preempted holder can go on.
#[inline]
pub fn spin(attempt: u32) {
    if attempt < 64 { hint::spin_loop() } else { thread::yield_now() }
}

/// The machine's monotonic clock.
#[inline]
pub fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// What the clock of [`now`] reads, in nanoseconds; `None` where the system does not say it.
///
/// Cost: one call into the C library, less than to convert the result of [`now`].
#[inline]
pub fn now_ns() -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is valid for writes.
        let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        debug_assert_eq!(result, 0, "Linux has this clock, so the call cannot fail");
        // It counts from the start of the machine: u64 reaches for five centuries.
        let seconds = (time.tv_sec as u64).wrapping_mul(1_000_000_000);
        Some(seconds.wrapping_add(time.tv_nsec as u64))
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// Asks the kernel to end the timed waits of the current thread within `ns` of their time, instead
/// of the usual 50 us. Does nothing where there is no such thing.
pub fn set_timer_slack(ns: u32) {
    #[cfg(target_os = "linux")]
    // SAFETY: this option takes one number and touches no memory of the process. (It fails only in
    // a thread with a real-time policy, which has no slack anyway.)
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, libc::c_ulong::from(ns));
    }
    #[cfg(not(target_os = "linux"))]
    let _ = ns;
}

/// The size of this thread's stack, where the system says it. On the main thread this reads a file.
pub fn stack_size() -> Option<usize> {
    #[cfg(target_os = "linux")]
    {
        let mut attributes = std::mem::MaybeUninit::uninit();
        // SAFETY: it names the calling thread.
        let this = unsafe { libc::pthread_self() };
        // SAFETY: the thread lives, and the attributes are written if this returns 0.
        if unsafe { libc::pthread_getattr_np(this, attributes.as_mut_ptr()) } != 0 {
            return None;
        }
        let mut size = 0;
        // SAFETY: the attributes are initialized, and not destroyed yet.
        let read = unsafe { libc::pthread_attr_getstacksize(attributes.as_ptr(), &raw mut size) };
        // SAFETY: initialized, destroyed once, and not used any more.
        unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
        (read == 0).then_some(size)
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// The number of the calling thread's processor, plus one; 0 if that is not known.
#[inline]
pub fn processor() -> u32 {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: takes no arguments and only returns a number, or -1.
        let number = unsafe { libc::sched_getcpu() };
        u32::try_from(number).map_or(0, |number| number + 1)
    }
    #[cfg(not(target_os = "linux"))]
    0
}

/// What [`set_timer_slack`] sets, or 0 where there is no such thing.
pub fn timer_slack() -> u32 {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: this option takes no argument and touches no memory of the process.
        let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
        u32::try_from(slack).unwrap_or(0)
    }
    #[cfg(not(target_os = "linux"))]
    0
}

/// A 32-bit word on which threads can sleep until another thread changes it and wakes them.
///
/// `wait` may return spuriously; callers loop.
#[derive(Debug)]
#[repr(C)]
pub struct Futex {
    word: AtomicU32,
}

impl Futex {
    /// A word that holds `value`.
    pub const fn new(value: u32) -> Self {
        Self { word: AtomicU32::new(value) }
    }

    /// The word itself.
    #[inline(always)]
    pub const fn word(&self) -> &AtomicU32 {
        &self.word
    }

    /// Wakes all sleepers.
    pub fn wake_all(&self) {
        // The kernel's number has a sign.
        self.wake(i32::MAX.unsigned_abs());
    }
}

#[cfg(target_os = "linux")]
impl Futex {
    /// As [`wait`](Self::wait) without a timeout, as one of the `kinds`, which are bits: not 0.
    pub fn wait_as(&self, expected: u32, kinds: u32) {
        // SAFETY: FUTEX_WAIT_BITSET reads the word, which `self` keeps alive. Without a timeout and
        // a second word it reads nothing else.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.word.as_ptr(),
                libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
                expected,
                std::ptr::null::<libc::timespec>(),
                std::ptr::null::<u32>(),
                kinds,
            );
        }
    }

    /// Wakes one sleeper of one of the `kinds`. False if there is none.
    pub fn wake_one_of(&self, kinds: u32) -> bool {
        self.wake_kinds(1, kinds) > 0
    }

    /// Sleeps while the word holds `expected`, at most for `timeout`.
    pub fn wait(&self, expected: u32, timeout: Option<Duration>) {
        let timeout = timeout.map(|t| libc::timespec {
            tv_sec: libc::time_t::try_from(t.as_secs()).unwrap_or(libc::time_t::MAX),
            // Below 10^9, so it fits every platform's `c_long`.
            tv_nsec: t.subsec_nanos() as libc::c_long,
        });
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: FUTEX_WAIT reads the word, which `self` keeps alive, and the timespec, which
        // lives until the call returns; the kernel retains neither pointer.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.word.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                expected,
                timeout,
            );
        }
    }

    /// Wakes at most `count` sleepers.
    pub fn wake(&self, count: u32) {
        self.wake_kinds(count, u32::MAX);
    }

    /// Wakes at most `count` sleepers of the `kinds`; [`wait`](Self::wait) is of every kind. How many
    /// it woke.
    fn wake_kinds(&self, count: u32, kinds: u32) -> libc::c_long {
        // SAFETY: FUTEX_WAKE_BITSET uses the address and does not access the memory behind it.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.word.as_ptr(),
                libc::FUTEX_WAKE_BITSET | libc::FUTEX_PRIVATE_FLAG,
                count,
                std::ptr::null::<libc::timespec>(),
                std::ptr::null::<u32>(),
                kinds,
            )
        }
    }
}

/// By the `parking_lot_core` crate, which finds sleepers by the address of the word as well: who wakes them does
/// not access it, and it may be gone (a thread that was about to wake up by itself).
#[cfg(not(target_os = "linux"))]
impl Futex {
    /// As [`wait`](Self::wait) without a timeout, as one of the `kinds`, which are bits: not 0.
    pub fn wait_as(&self, expected: u32, kinds: u32) {
        self.wait_until(expected, kinds, None);
    }

    /// Wakes one sleeper of one of the `kinds`. False if there is none.
    pub fn wake_one_of(&self, kinds: u32) -> bool {
        self.wake_kinds(1, kinds) > 0
    }

    /// Sleeps while the word holds `expected`, at most for `timeout`.
    pub fn wait(&self, expected: u32, timeout: Option<Duration>) {
        let end = timeout.and_then(|timeout| std::time::Instant::now().checked_add(timeout));
        self.wait_until(expected, u32::MAX, end);
    }

    fn wait_until(&self, expected: u32, kinds: u32, end: Option<std::time::Instant>) {
        // ORD relaxed: the lock of the sleepers' queue orders this look against the waker's change.
        let sleeps = || self.word.load(std::sync::atomic::Ordering::Relaxed) == expected;
        let kinds = parking_lot_core::ParkToken(kinds as usize);
        // SAFETY: no closure panics or calls into that crate, and nobody else uses this address as a key: it
        // is that of a word which `self` keeps alive.
        let _how =
            unsafe { parking_lot_core::park(self.key(), sleeps, || {}, |_, _| {}, kinds, end) };
    }

    /// Wakes at most `count` sleepers.
    pub fn wake(&self, count: u32) {
        self.wake_kinds(count, u32::MAX);
    }

    /// As on Linux.
    fn wake_kinds(&self, count: u32, kinds: u32) -> usize {
        use parking_lot_core::{DEFAULT_UNPARK_TOKEN, FilterOp};

        let mut left = count;
        let choose = |of: parking_lot_core::ParkToken| {
            if left == 0 {
                return FilterOp::Stop;
            }
            if of.0 as u32 & kinds == 0 {
                return FilterOp::Skip;
            }
            left -= 1;
            FilterOp::Unpark
        };
        // SAFETY: no closure panics or calls into that crate. The word may be gone, and its address another
        // lock's of that crate: what sleeps there has a token of no kind, or wakes up to look again.
        let result = unsafe {
            parking_lot_core::unpark_filter(self.key(), choose, |_| DEFAULT_UNPARK_TOKEN)
        };
        result.unparked_threads
    }

    fn key(&self) -> usize {
        self.word.as_ptr().addr()
    }
}
