//! The scheduler. `idle.rs` has its vocabulary and the protocol; `worker.rs` the loop; `shared.rs`
//! the way of a task into it from outside. The other files, by what they are about:
//!
//! | about                         | files |
//! |-------------------------------|-------|
//! | queues                        | `runnable.rs` (which one a task goes to), `schedule.rs` (what a task asks for), `ring.rs` and `lifo.rs` (a member's own), `injector.rs` (everybody's), `fetch.rs` (between the two), `steal.rs` (from others) |
//! | how long, how often           | `pace.rs` (ticks), `maintain.rs` (between two), `early.rs` and `yields.rs` (sooner), `quick.rs` (which tasks are quick), `round.rs` (when `block_on`'s future is next) |
//! | sleeping                      | `sleep.rs` (the way there and back), `park.rs` (where), `wish.rs` (who waits in the driver) |
//! | who does not come back        | `stall.rs` (a watcher looks after others), `doze.rs` (and seldom while all is calm), `crowd.rs` (other programs have the processors) |
//! | threads in `block_on`, `join` | `guest.rs`, `beside.rs`, `helping.rs`, `visits.rs` (for a moment), `waiting.rs` (no place), `below.rs` (on top of tasks), `shy.rs` and `vain.rs` (better leave tasks to others) |
//! | beginning and end             | `threads.rs`, `hooks.rs`, `living.rs`, `registry.rs`, `cancel.rs` |
//! | for tests                     | `sim.rs`, `by_hand.rs` |

mod below;
mod beside;
#[cfg(all(test, not(volt_loom)))]
mod by_hand;
mod cancel;
mod crowd;
mod distrust;
mod doze;
mod early;
mod fetch;
pub(crate) mod guest;
pub(crate) mod helping;
mod hooks;
pub(crate) mod idle;
mod injector;
mod lifo;
mod living;
mod maintain;
mod pace;
pub(crate) mod park;
mod quick;
pub(crate) mod registry;
mod ring;
mod round;
mod runnable;
mod schedule;
pub(crate) mod shared;
mod shy;
#[cfg(all(any(test, feature = "test-util"), not(volt_loom)))]
pub(crate) mod sim;
mod sleep;
mod stall;
mod steal;
pub(crate) mod threads;
mod vain;
mod visits;
mod waiting;
mod wish;
pub(crate) mod worker;
mod yields;
