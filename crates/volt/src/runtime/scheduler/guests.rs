//! Threads in `block_on` and `join`. `guest.rs`: alone; `beside.rs`: beside workers; `helping.rs`: in `join`; `visits.rs`:
//! for a moment; `waiting.rs`: without a place; `below.rs`: on top of tasks; `shy.rs` and `vain.rs`: who better leaves tasks
//! to others.

pub(crate) mod below;
pub(crate) mod beside;
pub(crate) mod guest;
pub(crate) mod helping;
pub(crate) mod shy;
pub(crate) mod vain;
pub(crate) mod visits;
pub(crate) mod waiting;
