//! What the tests of several modules share.
#![cfg_attr(volt_loom, allow(dead_code, reason = "the models need only a part of it"))]

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};

/// Counts the wake-ups of the wakers that it makes.
#[derive(Clone, Default)]
pub(crate) struct Wakes(Arc<Count>);

#[derive(Default)]
struct Count {
    wakes: AtomicUsize,
    panics: bool,
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, SeqCst);
        assert!(!self.panics, "a waker that panics");
    }
}

impl Wakes {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The waker panics after it has been counted.
    pub(crate) fn panicking() -> Self {
        Self(Arc::new(Count { wakes: AtomicUsize::new(0), panics: true }))
    }

    pub(crate) fn waker(&self) -> Waker {
        Waker::from(self.0.clone())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.wakes.load(SeqCst)
    }

    /// How many wakers there are.
    pub(crate) fn clones(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }

    pub(crate) fn poll<F: Future>(&self, future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(&self.waker()))
    }
}

/// Polls once, with a waker that does nothing.
pub(crate) fn poll_once<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Unwraps a `Ready`.
#[track_caller]
pub(crate) fn ready<F: Future>(future: F) -> F::Output {
    match poll_once(pin!(future)) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("pending"),
    }
}

/// Drops the future that `make` returns after 0, 1, 2 ... polls, until it completes. Before each
/// poll but the first, `step` runs, which changes what the future waits for; after each drop,
/// `check` must find everything as if the future had never been.
pub(crate) fn drop_at_every_await<S, F: Future>(
    setup: impl Fn() -> S,
    make: impl Fn(&S) -> F,
    step: impl Fn(&S, usize),
    check: impl Fn(S),
) {
    for polls in 0.. {
        let state = setup();
        let mut completed = false;
        {
            let mut future = pin!(make(&state));
            for poll in 0..polls {
                if poll > 0 {
                    step(&state, poll);
                }
                if poll_once(future.as_mut()).is_ready() {
                    completed = true;
                    break;
                }
            }
            if !completed {
                // The change comes after the last poll, and before the drop.
                step(&state, polls);
            }
        }
        check(state);
        if completed {
            assert!(polls > 1, "the future never waited");
            return;
        }
        assert!(polls < 100, "the future never completes");
    }
}

thread_local! {
    static ON_CLONE: Cell<Option<Box<dyn FnOnce()>>> = const { Cell::new(None) };
    static PANICS: Cell<bool> = const { Cell::new(false) };
}

/// A waker whose first clone runs `on_clone`, and panics when it is dropped. One at a time in each
/// thread.
pub(crate) fn hostile_waker(on_clone: impl FnOnce() + 'static) -> Waker {
    static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, drop, |_| (), drop);

    fn clone(_: *const ()) -> RawWaker {
        if let Some(on_clone) = ON_CLONE.take() {
            on_clone();
            PANICS.set(true);
        }
        RawWaker::new(std::ptr::null(), &VTABLE)
    }

    fn drop(_: *const ()) {
        // Two panics at once would end the process, and with it the report of a failed assertion.
        let panics = PANICS.take() && !std::thread::panicking();
        assert!(!panics, "a waker that panics in drop");
    }

    ON_CLONE.set(Some(Box::new(on_clone)));
    // SAFETY: the functions do not use the pointer, and there is nothing to free.
    unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &VTABLE)) }
}

/// Keeps something that a future needs for itself, such as a receiver.
pub(crate) struct Lender<T>(Rc<RefCell<Option<T>>>);

impl<T> Lender<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Rc::new(RefCell::new(Some(value))))
    }

    pub(crate) fn lend(&self) -> Lent<T> {
        Lent(self.0.clone(), self.0.take())
    }

    /// What every future that had it has given back.
    #[track_caller]
    pub(crate) fn take_back(self) -> T {
        self.0.take().expect("nobody has it")
    }
}

/// Comes back to its lender when it is dropped.
pub(crate) struct Lent<T>(Rc<RefCell<Option<T>>>, Option<T>);

impl<T> std::ops::Deref for Lent<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.1.as_ref().expect("present until drop")
    }
}

impl<T> std::ops::DerefMut for Lent<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.1.as_mut().expect("present until drop")
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        self.0.replace(self.1.take());
    }
}

#[cfg(not(volt_loom))]
/// Fails to compile if the type implements the trait: then two candidates for `check` exist.
macro_rules! not_impl {
    ($type:ty: $trait:path) => {
        const _: fn() = || {
            trait Ambiguous<A> {
                fn check() {}
            }
            impl<T: ?Sized> Ambiguous<()> for T {}
            #[allow(dead_code, reason = "only its implementation counts")]
            struct Has;
            impl<T: ?Sized + $trait> Ambiguous<Has> for T {}
            let _ = <$type as Ambiguous<_>>::check;
        };
    };
}
#[cfg(not(volt_loom))]
pub(crate) use not_impl;
