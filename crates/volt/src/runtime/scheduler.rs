//! The scheduler. `idle.rs` has its vocabulary and the protocol; `worker.rs` the loop; `shared.rs`
//! the way of a task into it from outside. The folders, by what they are about:
//!
//! | folder       | about                                              |
//! |--------------|----------------------------------------------------|
//! | `queues/`    | where tasks wait                                   |
//! | `pacing/`    | how long a member does something, how often it looks |
//! | `parking/`   | sleeping, and who waits in the driver              |
//! | `stalls/`    | who does not come back                             |
//! | `guests/`    | threads in `block_on` and `join`                   |
//! | `lifecycle/` | beginning and end of members and runtimes          |
//!
//! For tests: `sim.rs`, `by_hand.rs`.

#[cfg(all(test, not(volt_loom)))]
mod by_hand;
pub(crate) mod guests;
pub(crate) mod idle;
pub(crate) mod lifecycle;
pub(crate) mod pacing;
pub(crate) mod parking;
pub(crate) mod queues;
pub(crate) mod shared;
#[cfg(all(any(test, feature = "test-util"), not(volt_loom)))]
pub(crate) mod sim;
pub(crate) mod stalls;
pub(crate) mod worker;
