//! What `volt-pool` and `volt-rt` share with this crate. Not part of the public API: no stability.

pub use crate::block_on::block_on;
pub use crate::cache_padded::CachePadded;
pub use crate::delay::{Timer, sleep_by};
pub use crate::first_panic::contain;
pub use crate::linger::Linger;
pub use crate::linked_list::{Link, LinkedList, Pointers};
pub use crate::may_block::{assert_may_block, refuse_blocking_where};
pub use crate::parker::Parker;
pub use crate::waiter_slot::WaiterSlot;
pub use crate::wake_list::WakeList;

/// How late the kernel may end a timed wait.
pub mod slack {
    pub use crate::slack::*;
}

/// The layer through which all of Volt touches threads, atomics and time.
pub mod primitive {
    pub use crate::primitive::*;
    pub use crate::{const_fn, const_thread_local};
}
