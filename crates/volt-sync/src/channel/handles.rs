//! How many senders or receivers there are.
//!
//! Purpose: the last one to be dropped closes the channel.
//!
//! Rejected: the count of an `Arc` around each half, which costs an allocation for each.
//!
//! | Count | Meaning                                      |
//! |-------|----------------------------------------------|
//! | n > 0 | that many handles                            |
//! | 0     | the half is gone; `upgrade` does not revive it |
//!
//! Invariant 1: each handle also holds the channel's `Arc`, whose count aborts before it overflows;
//! so this one cannot overflow.
//!
//! | Edge  | Release side | Acquire side | Carries | Model that fails without it |
//! |-------|--------------|--------------|---------|-----------------------------|
//! | [HC1] | `Handles::remove` | `Handles::remove` of the last | what was sent through the others | `channel::handles::model::the_last_one_sees_what_the_others_did` |
//!
//! Progress: no waiting.
//!
//! Cost: 1 RMW to clone, 1 to drop.

use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use crate::primitive::AtomicUsize;

#[derive(Debug)]
pub(crate) struct Handles(AtomicUsize);

impl Handles {
    pub(crate) fn new(count: usize) -> Self {
        Self(AtomicUsize::new(count))
    }

    pub(crate) fn count(&self) -> usize {
        // ORD relaxed: a snapshot.
        self.0.load(Relaxed)
    }

    /// A clone of an existing handle.
    pub(crate) fn add(&self) {
        // ORD relaxed: the handle that is cloned keeps the count above zero.
        self.0.fetch_add(1, Relaxed);
    }

    /// A handle is dropped. True if it was the last.
    pub(crate) fn remove(&self) -> bool {
        // ORD[HC1] release: what was sent through this handle comes before the close.
        // ORD[HC1] acquire: of the last: so does what was sent through the others.
        self.0.fetch_sub(1, AcqRel) == 1
    }

    /// A new handle, if there are any.
    pub(crate) fn upgrade(&self) -> bool {
        // ORD relaxed: the exchange below decides.
        let mut count = self.0.load(Relaxed);
        while count != 0 {
            // ORD relaxed: as `add`.
            match self.0.compare_exchange_weak(count, count + 1, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => count = now,
            }
        }
        false
    }
}

#[cfg(all(test, volt_loom))]
mod model {
    use super::Handles;
    use crate::primitive::explore;
    use crate::primitive::{Arc, UnsafeCell, thread};

    #[test]
    fn the_last_one_sees_what_the_others_did() {
        explore(|| {
            let handles = Arc::new(Handles::new(2));
            let cells = Arc::new([UnsafeCell::new(0), UnsafeCell::new(0)]);
            let drop_one = |own: usize| {
                let (handles, cells) = (handles.clone(), cells.clone());
                move || {
                    // SAFETY: read only by whoever removes the last handle.
                    cells[own].with_mut(|cell| unsafe { *cell = 1 });
                    handles.remove().then(|| {
                        // SAFETY: its writer has removed its handle.
                        cells.iter().map(|cell| cell.with(|cell| unsafe { *cell })).sum::<u32>()
                    })
                }
            };
            let other = thread::spawn(drop_one(0));
            let mine = drop_one(1)();
            let seen = [mine, other.join().unwrap()];
            assert!(seen == [Some(2), None] || seen == [None, Some(2)], "{seen:?}");
        });
    }
}
