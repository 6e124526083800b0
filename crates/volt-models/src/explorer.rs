//! Explores every interleaving of a few threads, breadth first.
//!
//! A [`Machine`] has shared [`Word`]s and threads. A thread is a list of labelled steps; a step is a
//! closure that makes at most one access to memory that others race for, and says where to go on
//! ([`Flow`]). Accesses by [`Turn::peek`] and [`Turn::poke`] are free: for what a lock protects, and
//! for what only the model counts.
//!
//! Two memories ([`Memory`]): in the first each access takes effect at once; in the second each
//! thread's stores wait in a queue of their own, from which they go to memory one by one at any time.
//! Read-modify-writes and fences wait until the thread's queue is empty; its loads see its queue.
//!
//! ```
//! use volt_models::explorer::{Flow, Machine, Memory};
//!
//! let mut machine = Machine::new();
//! let (x, y) = (machine.word("x", 0), machine.word("y", 0));
//! let seen = [machine.word("left saw", 1), machine.word("right saw", 1)];
//! for (name, mine, other, seen) in [("left", x, y, seen[0]), ("right", y, x, seen[1])] {
//!     let mut thread = machine.thread(name);
//!     thread.step("store", move |turn| turn.then(|turn| turn.store(mine, 1)));
//!     thread.step("load", move |turn| {
//!         let value = turn.load(other);
//!         turn.poke(seen, value);
//!         Flow::Next
//!     });
//! }
//! machine.at_rest(move |view| {
//!     let missed = seen.iter().all(|&seen| view.get(seen) == 0);
//!     if missed { Err("both missed the other".into()) } else { Ok(()) }
//! });
//! machine.explore(Memory::Sequential).assert_holds();
//! machine.explore(Memory::StoreBuffers).assert_fails("both missed");
//! ```

mod machine;
mod outcome;
mod search;
mod turn;

pub use machine::{Label, Machine, Register, ThreadBuilder, View, Word};
pub use outcome::Outcome;
pub use turn::{Flow, Turn};

/// What a store does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// It takes effect at once: sequential consistency.
    Sequential,
    /// It waits in the thread's queue: x86-TSO.
    StoreBuffers,
}

/// Both memories, for what must hold in each.
pub const BOTH: [Memory; 2] = [Memory::Sequential, Memory::StoreBuffers];
