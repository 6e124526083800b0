//! The waiter slot of `volt::sync`, which is not public.

use std::task::Waker;

use volt_sync::internal::WaiterSlot;

use crate::kind::WakerPlace;

impl WakerPlace for WaiterSlot {
    fn create() -> Self {
        WaiterSlot::new()
    }

    #[inline]
    fn register(&mut self, waker: &Waker) {
        // SAFETY: the slot is borrowed exclusively, so calls do not overlap (obligation 1).
        unsafe { WaiterSlot::register(self, waker) };
    }

    #[inline]
    fn take(&self) -> Option<Waker> {
        WaiterSlot::take(self)
    }
}
