//! Places for a waker: the crate atomic-waker, and lists of wakers behind a lock.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::task::Waker;

use crate::kind::WakerPlace;

impl WakerPlace for atomic_waker::AtomicWaker {
    fn create() -> Self {
        atomic_waker::AtomicWaker::new()
    }

    #[inline]
    fn register(&mut self, waker: &Waker) {
        atomic_waker::AtomicWaker::register(self, waker);
    }

    #[inline]
    fn take(&self) -> Option<Waker> {
        atomic_waker::AtomicWaker::take(self)
    }
}

/// The oldest waiter of a list, which takes any number of them.
impl WakerPlace for parking_lot::Mutex<VecDeque<Waker>> {
    fn create() -> Self {
        parking_lot::Mutex::default()
    }

    #[inline]
    fn register(&mut self, waker: &Waker) {
        // Shared, as a waiter would have it: an exclusive reference needs no lock.
        let list: &Self = self;
        list.lock().push_back(waker.clone());
    }

    #[inline]
    fn take(&self) -> Option<Waker> {
        self.lock().pop_front()
    }
}

/// The oldest waiter of a list, which takes any number of them.
impl WakerPlace for std::sync::Mutex<VecDeque<Waker>> {
    fn create() -> Self {
        std::sync::Mutex::default()
    }

    #[inline]
    fn register(&mut self, waker: &Waker) {
        let list: &Self = self;
        list.lock().expect("not poisoned").push_back(waker.clone());
    }

    #[inline]
    fn take(&self) -> Option<Waker> {
        self.lock().expect("not poisoned").pop_front()
    }
}
