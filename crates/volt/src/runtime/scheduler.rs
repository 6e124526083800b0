//! The scheduler. `idle.rs` has its vocabulary and the protocol; `worker.rs` the loop; `shared.rs`
//! the way of a task into it.

mod below;
#[cfg(all(test, not(volt_loom)))]
mod by_hand;
mod cancel;
mod crowd;
mod doze;
mod early;
mod fetch;
pub(crate) mod guest;
pub(crate) mod idle;
mod injector;
mod lifo;
mod living;
mod maintain;
mod pace;
pub(crate) mod park;
mod quick;
mod registry;
mod ring;
mod round;
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
