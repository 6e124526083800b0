//! How long, and how often. `pace.rs`: ticks; `maintain.rs`: between two; `early.rs` and `yields.rs`: sooner; `quick.rs`:
//! which tasks are quick; `distrust.rs`: and which are not always; `round.rs`: when `block_on`'s future is next.

pub(crate) mod distrust;
pub(crate) mod early;
pub(crate) mod maintain;
pub(crate) mod pace;
pub(crate) mod quick;
pub(crate) mod round;
pub(crate) mod yields;
