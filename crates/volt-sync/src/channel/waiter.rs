//! Futures that wait, in the order of their arrival.
//!
//! Purpose: a wait allocates nothing. The [`Waiter`] lies inside the pinned future; a [`Queue`],
//! guarded by its channel's lock, links those that sleep.
//!
//! Rejected:
//! * The seed's single-waiter slot beside the list: a waiter registered there is invisible to a
//!   waker that looks at the list (findings C2 and C3), and older waiters are overtaken.
//! * Waking under the lock: user code would run there.
//! * Reading the waker after the unlock (finding C9): the future may be gone by then.
//!
//! | State    | Set by                                   | Linked | The future's next step             |
//! |----------|------------------------------------------|--------|------------------------------------|
//! | IDLE     | `new`, `Queue::remove`, a stream or sink that waits anew | no | tries, enqueues        |
//! | WAITING  | `Queue::push`                            | yes    | stays; a new waker is exchanged    |
//! | NOTIFIED | `Queue::pop`, or itself to come back     | no     | tries, re-enqueues among the late; passes the notification on when dropped |
//! | CLOSED   | `Queue::pop` by `close`                  | no     | reports the closed channel         |
//! | DONE     | the future's completion                  | no     | panics when polled again           |
//! | YIELDED  | `Waiter::give_turn`                      | no     | as IDLE                            |
//!
//! Invariants:
//! 1. A waiter is linked if and only if it is WAITING, and then holds a waker; both are changed
//!    only under the lock of the queue's channel.
//! 2. The store of the state in `pop` is the last access to the waiter: from then on it belongs to
//!    its future again (finding C9).
//! 3. A linked waiter is pinned, and unlinked before it is freed.
//! 4. A linked waiter is among the late if and only if it has come too late at least once in this wait
//!    (`Waiter::late`). Those are popped before all others, the oldest first.
//!
//! | Edge  | Release side | Acquire side    | Carries | Model that fails without it |
//! |-------|--------------|-----------------|---------|-----------------------------|
//! | [WQ1] | `Queue::pop` | `Waiter::state` | the waiter itself, and the waker's writes | `channel::waiter::model::a_popped_waiter_belongs_to_its_future` |
//!
//! Progress: every `pop` hands out the waker, which the caller wakes after it unlocks.
//!
//! Cost: a wait is a clone of the waker and a few stores under the lock; a re-poll with the same
//! waker one load.

use std::cell::Cell;
use std::marker::PhantomPinned;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::task::{Context, Waker};

use super::lock::SpinLock;
use crate::coop::{self, Givers};
use crate::first_panic::FirstPanic;
use crate::linked_list::{Link, LinkedList, Pointers};
use crate::primitive::{AtomicU8, UnsafeCell};
use crate::turns;
use crate::wake_list::WakeList;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    Idle,
    Waiting,
    Notified,
    Closed,
    Done,
    /// It has given others a turn; in memory, that and each greater number is how many.
    Yielded,
}

const IDLE: u8 = State::Idle as u8;
const WAITING: u8 = State::Waiting as u8;
const NOTIFIED: u8 = State::Notified as u8;
const CLOSED: u8 = State::Closed as u8;
const DONE: u8 = State::Done as u8;

/// So many turns a future gives at most before it queues.
pub(crate) const TURNS: u8 = 16;

/// So often a future comes too late before it is [starved](Waiter::is_starved).
pub(crate) const LATE: u8 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Before all but those that have come too late earlier.
    Late,
    Back,
}

/// A future's place in a queue.
pub(crate) struct Waiter {
    /// Under the lock. Initialised by `prepare`. In a cell, since neighbours are linked and unlinked
    /// while the owner has a reference to the waiter.
    links: UnsafeCell<MaybeUninit<Pointers<Waiter>>>,
    /// Under the lock. Initialised while the waiter is linked.
    waker: UnsafeCell<MaybeUninit<Waker>>,
    /// Identifies the waker; only for the owner. Initialised by `prepare`.
    key: UnsafeCell<MaybeUninit<(usize, usize)>>,
    /// How many permits the waiter wants; constant while it is linked.
    need: usize,
    state: AtomicU8,
    /// How often it was notified and came too late, in this wait. Only for the owner.
    late: Cell<u8>,
    _pinned: PhantomPinned,
}

// SAFETY: wakers are `Send` and `Sync`; invariants 1 and 2 say who touches what. The key is touched
// only through `Pin<&mut Waiter>`, and `late` only by the owner.
unsafe impl Send for Waiter {}
// SAFETY: as above, for the same reason.
unsafe impl Sync for Waiter {}

// SAFETY: always the same place (obligation 1), taken without a reference (obligation 2).
unsafe impl Link for Waiter {
    unsafe fn pointers(node: NonNull<Self>) -> NonNull<Pointers<Self>> {
        // SAFETY: `node` is alive; a shared reference to a cell.
        let links = unsafe { &(*node.as_ptr()).links };
        links.with_mut(|links| {
            // SAFETY: the address of a field is not null.
            unsafe { NonNull::new_unchecked(links.cast()) }
        })
    }
}

// The cells are changed only by short steps that do not panic.
impl std::panic::UnwindSafe for Waiter {}
impl std::panic::RefUnwindSafe for Waiter {}

/// Apart from its callers, which would put `call` on their stack each time.
#[cold]
#[inline(never)]
fn polled_after_completion(call: &str) -> ! {
    panic!("the future of `{call}` was polled after completion")
}

fn key_of(waker: &Waker) -> (usize, usize) {
    (waker.data().addr(), ptr::from_ref(waker.vtable()).addr())
}

impl Waiter {
    /// Two stores: most operations never wait, and every store delays their read-modify-write.
    #[inline]
    pub(crate) fn new(need: usize) -> Self {
        Self {
            links: UnsafeCell::new(MaybeUninit::uninit()),
            waker: UnsafeCell::new(MaybeUninit::uninit()),
            key: UnsafeCell::new(MaybeUninit::uninit()),
            need,
            state: AtomicU8::new(IDLE),
            late: Cell::new(0),
            _pinned: PhantomPinned,
        }
    }

    #[inline]
    pub(crate) fn state(&self) -> State {
        // ORD[WQ1] acquire: whoever popped the waiter is done with it.
        match self.state.load(Acquire) {
            IDLE => State::Idle,
            WAITING => State::Waiting,
            NOTIFIED => State::Notified,
            CLOSED => State::Closed,
            DONE => State::Done,
            _ => State::Yielded,
        }
    }

    /// The number of permits that the waiter wants.
    pub(crate) fn need(&self) -> usize {
        self.need
    }

    /// Changes the state of a waiter that is not linked.
    #[inline]
    pub(crate) fn set_state(&self, state: State) {
        debug_assert!(self.state() != State::Waiting && state != State::Waiting);
        // ORD relaxed: not linked, so only the owner looks at it.
        self.state.store(state as u8, Relaxed);
    }

    /// Wakes the task, so that it comes back after others had a turn, if that may help, by
    /// what the thread has learnt of this channel (`turns.rs`). Otherwise, or after some of them, false: it
    /// is to queue.
    pub(crate) fn give_turn<C>(&self, channel: &C, cx: &mut Context<'_>) -> bool {
        // ORD relaxed: not linked, so only the owner looks at it.
        let given = match self.state.load(Relaxed) {
            IDLE => 0,
            // One that was notified goes back at once.
            WAITING..=DONE => return false,
            yielded => yielded - DONE,
        };
        let givers = coop::givers();
        if givers == Givers::Nobody {
            return false;
        }
        let (what, task) = (ptr::from_ref(channel).addr(), turns::task(cx));
        let gives = turns::with_lesson(what, |lesson| {
            let may = lesson.in_a_crowd(what, task) || givers == Givers::All;
            may && given < TURNS && lesson.give(self.address(), given)
        });
        if !gives {
            return false;
        }
        // ORD relaxed: as above.
        self.state.store(DONE + given + 1, Relaxed);
        // User code, which may panic: the next poll then is as after a turn.
        cx.waker().wake_by_ref();
        true
    }

    /// The operation succeeds without a place in the queue: if turns were given, they paid.
    #[inline]
    pub(crate) fn turns_paid<C>(&self, channel: &C) {
        if self.state() == State::Yielded {
            turns::with_lesson(ptr::from_ref(channel).addr(), |lesson| lesson.paid(self.address()));
        }
    }

    /// What tells this wait apart from the others of its task.
    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// True if the waiter has come too late [`LATE`] times in this wait. Only for the owner.
    #[inline]
    pub(crate) fn is_starved(&self) -> bool {
        self.late.get() >= LATE
    }

    /// True if a future with this waiter must be cancelled when it is dropped.
    #[inline]
    pub(crate) fn is_engaged(&self) -> bool {
        matches!(self.state(), State::Waiting | State::Notified)
    }

    /// The state at the start of a poll of the future of `call`.
    ///
    /// # Panics
    /// If the future has completed before.
    #[inline]
    pub(crate) fn polled(&self, call: &str) -> State {
        let state = self.state();
        if state == State::Done {
            polled_after_completion(call);
        }
        state
    }

    /// True if the future, in this use of its waiter, has neither waited nor given a turn nor completed.
    #[inline]
    pub(crate) fn is_new(&self) -> bool {
        // ORD relaxed: only the owner makes it IDLE, and only the owner changes that.
        self.state.load(Relaxed) == IDLE
    }

    /// The address under which the queue knows the waiter.
    #[inline]
    pub(crate) fn node(self: Pin<&mut Self>) -> NonNull<Self> {
        // SAFETY: nothing is moved out; the queue respects the pin (invariant 3).
        NonNull::from(unsafe { self.get_unchecked_mut() })
    }

    /// Gets a waiter that is not linked ready for `push`: notes the waker, and clones it.
    pub(crate) fn prepare(mut self: Pin<&mut Self>, waker: &Waker) -> Waker {
        debug_assert!(self.state() != State::Waiting, "prepared while it is linked");
        let clone = self.as_mut().remember(waker);
        // SAFETY: not linked, so the links are the owner's.
        self.links.with_mut(|links| unsafe { (*links).write(Pointers::new()) });
        clone
    }

    /// Notes the waker that is about to be kept, and clones it.
    fn remember(self: Pin<&mut Self>, waker: &Waker) -> Waker {
        let clone = waker.clone();
        // SAFETY: the key is only touched through an exclusive pin.
        self.key.with_mut(|key| unsafe { (*key).write(key_of(&clone)) });
        clone
    }

    /// A poll found the waiter WAITING: makes `waker` the one that is woken. `lock` guards the
    /// queue in which the waiter is.
    ///
    /// False if the waiter has been popped in the meantime.
    pub(crate) fn still_waiting<Q>(
        mut self: Pin<&mut Self>,
        lock: &SpinLock<Q>,
        waker: &Waker,
    ) -> bool {
        // SAFETY: the key is only touched through an exclusive pin.
        let key = self.key.with(|key| unsafe { *key });
        // SAFETY: the waiter was found WAITING, so it was prepared.
        if unsafe { key.assume_init() } == key_of(waker) {
            return true;
        }
        let mut waker = self.as_mut().remember(waker);
        lock.with(|_| {
            // ORD relaxed: the lock orders it against `pop`.
            let waiting = self.state.load(Relaxed) == WAITING;
            if waiting {
                // SAFETY: WAITING, and the lock is held, so there is a waker (invariant 1).
                self.waker.with_mut(|held| unsafe { held.cast::<Waker>().swap(&raw mut waker) });
            }
            waiting
        })
        // The old waker, or the one that came too late, is dropped here, outside the lock.
    }
}

impl std::fmt::Debug for Waiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiter").field("state", &self.state()).field("need", &self.need).finish()
    }
}

/// Waiters, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Those that were notified and came too late, in the order in which they came.
    late: LinkedList<Waiter>,
    /// The others.
    list: LinkedList<Waiter>,
}

impl Queue {
    pub(crate) const fn new() -> Self {
        Self { late: LinkedList::new(), list: LinkedList::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.late.is_empty() && self.list.is_empty()
    }

    /// What the oldest waiter needs.
    pub(crate) fn first_need(&self) -> Option<usize> {
        let first = self.late.front().or(self.list.front());
        // SAFETY: linked waiters are alive (invariant 3); `need` does not change.
        first.map(|node| unsafe { (*node.as_ptr()).need })
    }

    /// Links `node`, which becomes WAITING.
    ///
    /// # Safety
    /// 1. `node` is alive, pinned, not linked, and was [prepared](Waiter::prepare).
    /// 2. It is removed (or popped) before it is freed.
    pub(crate) unsafe fn push(&mut self, node: NonNull<Waiter>, waker: Waker, place: Place) {
        // SAFETY: alive (obligation 1); shared, as its owner may look at the state.
        let waiter = unsafe { node.as_ref() };
        // SAFETY: under the lock (invariant 1).
        waiter.waker.with_mut(|held| unsafe { *held = MaybeUninit::new(waker) });
        // ORD relaxed: only the owner, who calls this, looks at it without the lock.
        waiter.state.store(WAITING, Relaxed);
        let list = match place {
            Place::Back => {
                waiter.late.set(0);
                &mut self.list
            }
            Place::Late => {
                waiter.late.set(waiter.late.get().saturating_add(1));
                &mut self.late
            }
        };
        // SAFETY: obligations 1 and 2 are the list's.
        unsafe { list.push_back(node) };
    }

    /// Unlinks the oldest waiter, gives it `outcome`, and returns its waker, to be woken after the
    /// unlock.
    pub(crate) fn pop(&mut self, outcome: State) -> Option<Waker> {
        let node = self.late.pop_front().or_else(|| self.list.pop_front())?;
        // SAFETY: was linked, so alive (invariant 3) until its state changes.
        let waiter = unsafe { node.as_ref() };
        // SAFETY: was linked, under the lock: it holds a waker (invariant 1), moved out once.
        let waker = waiter.waker.with_mut(|held| unsafe { held.cast::<Waker>().read() });
        // ORD[WQ1] release: the last access; the waiter belongs to its future again.
        waiter.state.store(outcome as u8, Release);
        Some(waker)
    }

    /// Pops waiters into `wakes`, at most as many as fit. True if some are left.
    pub(crate) fn pop_into(&mut self, wakes: &mut WakeList, outcome: State) -> bool {
        while !self.is_empty() {
            if wakes.is_full() {
                return true;
            }
            if let Some(waker) = self.pop(outcome) {
                wakes.push(waker);
            }
        }
        false
    }

    /// Unlinks `node` if it is WAITING, and returns its waker, to be dropped after the unlock. It
    /// is IDLE then.
    ///
    /// # Safety
    /// `node` is alive, and if it is WAITING it is in this queue.
    pub(crate) unsafe fn remove(&mut self, node: NonNull<Waiter>) -> Option<Waker> {
        // SAFETY: the node is alive (obligation).
        let waiter = unsafe { node.as_ref() };
        // ORD relaxed: the lock orders it against `pop`.
        if waiter.state.load(Relaxed) != WAITING {
            return None;
        }
        let list = if waiter.late.get() > 0 { &mut self.late } else { &mut self.list };
        // SAFETY: WAITING, so linked, here (obligation), and in this list (invariant 4).
        unsafe { list.remove(node) };
        // ORD relaxed: only the owner, who calls this, looks at it without the lock.
        waiter.state.store(IDLE, Relaxed);
        // SAFETY: was linked, under the lock: it holds a waker (invariant 1), moved out once.
        Some(waiter.waker.with_mut(|held| unsafe { held.cast::<Waker>().read() }))
    }
}

/// Wakes any number of waiters in rounds of what fits on the stack.
///
/// `round` collects wakers under the lock and says whether there are more. Returns the first panic of a waker.
pub(crate) fn wake_in_rounds(mut round: impl FnMut(&mut WakeList) -> bool) -> FirstPanic {
    let mut panic = FirstPanic::new();
    loop {
        let mut wakes = WakeList::new();
        let more = round(&mut wakes);
        wakes.wake_all_into(&mut panic);
        if !more {
            return panic;
        }
    }
}

#[cfg(all(test, volt_loom))]
mod model {
    use std::mem::MaybeUninit;
    use std::pin::pin;
    use std::sync::Arc as StdArc;
    use std::task::{Wake, Waker};

    use super::{Place, Queue, State, Waiter};
    use crate::channel::lock::SpinLock;
    use crate::primitive::explore;
    use crate::primitive::{Arc, spin, thread};

    struct Silent;
    impl Wake for Silent {
        fn wake(self: StdArc<Self>) {}
    }

    #[test]
    fn a_popped_waiter_belongs_to_its_future() {
        explore(|| {
            let queue = Arc::new(SpinLock::new(Queue::new()));
            let other = queue.clone();
            let mut waiter = pin!(Waiter::new(1));
            let waker = Waker::from(StdArc::new(Silent));
            let held = waiter.as_mut().prepare(&waker);
            let node = waiter.as_mut().node();
            // SAFETY: pinned here, popped by the other thread before it is freed.
            queue.with(|queue| unsafe { queue.push(node, held, Place::Back) });
            let thread = thread::spawn(move || {
                drop(other.with(|queue| queue.pop(State::Notified)));
            });
            while waiter.state() == State::Waiting {
                spin(0);
            }
            // The owner may touch everything again, without the lock.
            // SAFETY: not linked any more (invariant 2).
            waiter.waker.with_mut(|waker| unsafe { *waker = MaybeUninit::uninit() });
            thread.join().unwrap();
        });
    }
}
