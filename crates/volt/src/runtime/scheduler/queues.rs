//! Where tasks wait. `runnable.rs`: which queue one goes to; `schedule.rs`: what a task asks for; `ring.rs` and
//! `lifo.rs`: a member's own; `injector.rs`: everybody's; `fetch.rs`: between the two; `steal.rs`: from others.

pub(crate) mod fetch;
pub(crate) mod injector;
pub(crate) mod lifo;
pub(crate) mod ring;
pub(crate) mod runnable;
pub(crate) mod schedule;
pub(crate) mod steal;
