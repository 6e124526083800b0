//! How often a thread looks for permits before it queues.
//!
//! Short critical sections end within a few looks, and queueing behind one costs two task switches.
//! Long ones, as of a lock that is held across an `.await`, make every look a waste. So each thread
//! learns: looks that paid make it more patient, looks that did not less. A look takes about 25 ns.
//!
//! A task of a runtime with a budget takes few in any case. Its thread has others to run, and its place
//! in the queue takes it to the holder's thread: there the tasks have the permits one after the other,
//! and their cache line to themselves, for as long as nobody queues (`permits/convoy.rs`). Two threads
//! that look for long stay apart, and take the line from each other for each operation: four tasks on
//! two threads took 35 to 40 ns, and 19 to 24 so.
//!
//! Rejected: a fixed number (48): a wait behind a long hold began with a microsecond for nothing. A
//! number in each lock: a word more for each, and one more write to a contended cache line.
#![forbid(unsafe_code)]

#[cfg(not(volt_loom))]
use crate::coop;

/// Enough to notice that sections have become short.
#[cfg(not(volt_loom))]
const LEAST: u8 = 2;
/// About a microsecond: less than a wake-up of a thread.
#[cfg(not(volt_loom))]
const MOST: u8 = 48;
/// Enough for a section that is about to end.
#[cfg(not(volt_loom))]
const MOST_OF_A_TASK: u8 = 3;

#[cfg(not(volt_loom))]
std::thread_local! {
    static LOOKS: std::cell::Cell<u8> = const { std::cell::Cell::new(16) };
}

/// How many looks this thread takes now.
#[cfg(not(volt_loom))]
pub(super) fn get() -> u8 {
    let looks = LOOKS.with(std::cell::Cell::get);
    if coop::is_limited() { looks.min(MOST_OF_A_TASK) } else { looks }
}

/// Of `looks`, one found the permits.
#[cfg(not(volt_loom))]
pub(super) fn paid(looks: u8) {
    set((looks * 2 + 2).min(MOST));
}

/// None of `looks` found the permits.
#[cfg(not(volt_loom))]
pub(super) fn wasted(looks: u8) {
    set((looks - looks / 4 - 1).max(LEAST));
}

/// The few looks of a task say nothing of how many others should take.
#[cfg(not(volt_loom))]
fn set(looks: u8) {
    if !coop::is_limited() {
        LOOKS.with(|cell| cell.set(looks));
    }
}

/// Models take one look: more would only multiply the schedules.
#[cfg(volt_loom)]
pub(super) fn get() -> u8 {
    1
}

#[cfg(volt_loom)]
pub(super) fn paid(_looks: u8) {}

#[cfg(volt_loom)]
pub(super) fn wasted(_looks: u8) {}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::{LEAST, MOST, MOST_OF_A_TASK, get, paid, wasted};
    use crate::coop;

    #[test]
    fn patience_grows_and_shrinks_within_its_bounds() {
        for _ in 0..20 {
            wasted(get());
        }
        assert_eq!(get(), LEAST);
        paid(get());
        assert!(get() > LEAST);
        for _ in 0..20 {
            paid(get());
        }
        assert_eq!(get(), MOST);
        coop::with_budget(Some(9), || {
            for _ in 0..20 {
                assert_eq!(get(), MOST_OF_A_TASK);
                wasted(get());
                paid(get());
            }
        });
        assert_eq!(get(), MOST, "a task teaches nothing");
    }
}
