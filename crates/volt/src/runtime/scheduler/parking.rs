//! Sleeping. `sleep.rs`: the way there and back; `park.rs`: where; `wish.rs`: who waits in the driver.

pub(crate) mod park;
pub(crate) mod sleep;
pub(crate) mod wish;
