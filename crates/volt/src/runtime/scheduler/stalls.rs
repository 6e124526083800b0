//! Who does not come back. `stall.rs`: a watcher looks after others; `doze.rs`: and seldom while all is calm;
//! `crowd.rs`: other programs have the processors.

pub(crate) mod crowd;
pub(crate) mod doze;
pub(crate) mod stall;
