//! A call that one of two takes: any thread of the pool, or the thread that waits for the caller.
//!
//! Purpose: a guest that runs a fork of a thread calls into the pool. All threads may wait, and that
//! one for the guest: it has to take the call. But it may be busy for long, while others have nothing
//! to do. So the call is sent twice, by a *ticket* in the pool's queue and by an *order* in that
//! thread's mail. Whoever comes first claims it.
//!
//! Rejected: the order only if no thread is idle (one that was may be taken by other work, which waits
//! for ever); a scope with one task, whose order counts as another one: its owner would wait until the
//! thread has called that as well.
//!
//! Invariants:
//! 1. The errand is in an `Arc`: the caller holds one, the ticket another, the order a third. Ticket and
//!    order may be called long after the call has ended, and then do nothing.
//! 2. The call lives until it was claimed and called.
//! 3. The order's frame is a part of the host's. Once that has ended, the order's has an outcome: the
//!    caller sees to that before it goes on. Then its ancestors are not looked at, see
//!    `Worker::take_mail`.
//!
//! Progress: the ticket is queued like any other task, and the host finds the order as soon as it waits
//! for its frame again.
//!
//! Cost: an allocation, a task in each of two queues, 1 RMW to claim.

use std::mem::offset_of;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use volt_sync::internal::primitive::{AtomicBool, fence};

use crate::engine::Core;
use crate::frame::Frame;
use crate::task::{Action, Task};
use crate::worker::{Worker, with_current};

#[repr(C)]
pub(crate) struct Errand {
    ticket: Task,
    order: Task,
    /// The origin of the order.
    frame: Frame,
    claimed: AtomicBool,
    call: NonNull<Task>,
    core: *const Core,
}

// SAFETY: all fields are atomic or constant, and the tasks belong to their queues. The call is sent
// (whoever made the errand promised that), and the core is only compared.
unsafe impl Send for Errand {}
// SAFETY: as for the one above.
unsafe impl Sync for Errand {}

impl Errand {
    /// Sends `call` to the threads of the pool, and to `host`, one of them, which waits for `frame`.
    ///
    /// # Safety
    /// 1. `call` is marked as queued, in no queue, and lives until it is called; any thread may call it.
    /// 2. The caller is a part of `frame`. It waits until `call` was called, and then calls
    ///    [`end`](Self::end) before it goes on.
    pub(crate) unsafe fn send(
        call: NonNull<Task>,
        core: &Core,
        host: &Worker,
        frame: &Frame,
    ) -> Arc<Self> {
        // SAFETY: it is looked at as long as the host waits for `frame` (2, invariant 3).
        let part = unsafe { Frame::new(frame, frame.parker(), ptr::null()) };
        let mut errand = Arc::new(Self {
            ticket: Task::new(Self::ticket_called),
            order: Task::new(Self::order_called),
            frame: part,
            claimed: AtomicBool::new(false),
            call,
            core,
        });
        let own = Arc::as_ptr(&errand);
        if let Some(errand) = Arc::get_mut(&mut errand) {
            // SAFETY: a field of the errand, in its place for good.
            let origin = unsafe { &raw const (*own).frame };
            errand.order = Task::within(Self::order_called, origin);
        }
        let order = Self::sent(&errand, offset_of!(Self, order));
        // SAFETY: its count keeps it alive until it is called; its origin lives as long.
        if unsafe { host.post(order) }.is_ok() {
            // ORD SeqCst fence: between publishing and looking for a sleeper; pairs with `Frame::sleep`.
            fence(SeqCst);
            frame.call_helper();
        } else {
            // The host ends, and runs its last task: perhaps nobody else is there.
            // SAFETY: refused, so in no queue.
            unsafe { Task::call(order, Action::Discard) };
        }
        let ticket = Self::sent(&errand, offset_of!(Self, ticket));
        // SAFETY: its count keeps it alive until it is called.
        if unsafe { core.schedule(ticket) }.is_err() {
            // SAFETY: refused, so in no queue.
            unsafe { Task::call(ticket, Action::Discard) };
        }
        errand
    }

    /// The call has ended: nobody waits any more for what is left in the host's mail.
    pub(crate) fn end(&self) {
        self.frame.void();
    }

    /// The task in this field, with a count of its own.
    fn sent(this: &Arc<Self>, offset: usize) -> NonNull<Task> {
        let own = Arc::into_raw(this.clone());
        // SAFETY: a field of the errand.
        let task = unsafe { own.byte_add(offset) }.cast::<Task>();
        // SAFETY: a field is not at address zero.
        let task = unsafe { NonNull::new_unchecked(task.cast_mut()) };
        // SAFETY: alive, as the count says.
        unsafe { Task::mark_queued(task) };
        task
    }

    /// # Safety
    /// 1. As for `called`, with the ticket.
    unsafe fn ticket_called(task: NonNull<Task>, action: Action) {
        // SAFETY: passed on (1).
        unsafe { Self::called(task, offset_of!(Self, ticket), action) }
    }

    /// # Safety
    /// 1. As for `called`, with the order.
    unsafe fn order_called(task: NonNull<Task>, action: Action) {
        // SAFETY: passed on (1).
        unsafe { Self::called(task, offset_of!(Self, order), action) }
    }

    /// # Safety
    /// 1. `task` is the field at `offset` of an errand in an `Arc`, and owns one count of it.
    unsafe fn called(task: NonNull<Task>, offset: usize, action: Action) {
        // SAFETY: inside of the errand (1).
        let this = unsafe { task.as_ptr().byte_sub(offset) }.cast::<Self>();
        // SAFETY: the task's count (1).
        let errand = unsafe { Arc::from_raw(this.cast_const()) };
        // ORD relaxed: each of the two queues carries the call; this only says who calls it.
        if errand.claimed.swap(true, Relaxed) {
            return;
        }
        with_current(|worker| match worker {
            Some(worker) if action == Action::Run && ptr::eq(worker.core(), errand.core) => {
                worker.run_task(errand.call);
            }
            // SAFETY: claimed, so alive (invariant 2), in no queue, and called once.
            _ => unsafe { Task::call(errand.call, action) },
        });
    }
}

#[cfg(all(test, volt_loom))]
mod model;
