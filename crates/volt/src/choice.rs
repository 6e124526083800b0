//! The random choices that a user sees: with which branch a `select!` begins.
//!
//! Purpose: one generator for each thread, which a seed can set for some time. A simulation does so for its run,
//! which is on one thread, and a runtime that was given a seed for each of its workers, and for each `block_on`.
//!
//! Rejected: a worker's own generator, from which it chooses whom to steal from (how often it looks is a matter of
//! time, and a thread in `block_on` is no worker in the first poll of its future); Tokio's, which no seed of ours reaches.
//!
//! State: xorshift64*. 0 is no state of that: the thread has no generator yet.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher};

volt_sync::const_thread_local! {
    static STATE: Cell<u64> = Cell::new(0);
}

/// Different in each process, and each time.
pub(crate) fn random_seed() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// Numbers that are near to each other are often given as seeds, and must not begin with the same choices. The
/// finalizer of splitmix64.
fn mixed(seed: u64) -> u64 {
    let mut x = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (x ^ x >> 31).max(1)
}

#[cold]
fn first() -> u64 {
    mixed(random_seed())
}

/// A number below `bound`, or 0. If there is nothing to choose, no number of the sequence is used.
#[inline]
pub(crate) fn below(bound: u32) -> u32 {
    if bound < 2 {
        return 0;
    }
    STATE.with(|state| {
        let mut x = state.get();
        if x == 0 {
            x = first();
        }
        let random = next(&mut x) >> 32;
        state.set(x);
        ((random * u64::from(bound)) >> 32) as u32
    })
}

/// The next number of xorshift64* after `state`, which is not 0. Its higher bits are the better ones.
#[inline]
pub(crate) fn next(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_F491_4F6C_DD1D)
}

/// While it lives, all choices of this thread come from a seed. What was before goes on then.
#[derive(Debug)]
pub(crate) struct Seeded {
    before: u64,
}

impl Seeded {
    /// Not inlined, as few runtimes have a seed.
    #[cfg(any(test, feature = "test-util"))]
    #[cold]
    #[inline(never)]
    pub(crate) fn new(seed: u64) -> Self {
        Self { before: STATE.with(|state| state.replace(mixed(seed))) }
    }
}

impl Drop for Seeded {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        STATE.with(|state| state.set(self.before));
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::{Seeded, below};

    fn seeded<R>(seed: u64, f: impl FnOnce() -> R) -> R {
        let _seeded = Seeded::new(seed);
        f()
    }

    #[test]
    fn choices_are_even_and_follow_the_seed() {
        let choices = |seed| {
            let mut choices = Vec::new();
            seeded(seed, || choices.extend((0..6000).map(|_| below(3))));
            choices
        };
        for seed in [0, 1, 2, 7, u64::MAX] {
            let chosen = choices(seed);
            assert_eq!(chosen, choices(seed));
            assert_ne!(chosen, choices(seed ^ 8));
            for choice in 0..3 {
                let times = chosen.iter().filter(|&&it| it == choice).count();
                // About ten times the standard deviation from the mean.
                assert!((1600..2400).contains(&times), "seed {seed}: {times} times {choice}");
            }
        }
        let first = |seed| seeded(seed, || below(2));
        let ones: u32 = (0..1000).map(first).sum();
        assert!((300..700).contains(&ones), "{ones} of a thousand seeds begin with 1");
    }

    #[test]
    fn a_seed_counts_for_the_time_of_the_call() {
        let several = || (0..20).map(|_| below(1 << 20)).collect::<Vec<_>>();
        let inner = || seeded(5, several);
        let outer = || {
            seeded(6, || {
                let before = several();
                assert_eq!(inner(), inner());
                (before, several())
            })
        };
        let (before, after) = outer();
        assert_eq!((before.clone(), after.clone()), outer());
        let without_inner = seeded(6, || (several(), several()));
        assert_eq!((before, after), without_inner);
        assert_ne!(several(), several(), "without a seed");
    }

    #[test]
    fn where_there_is_one_there_is_no_choice() {
        assert_eq!((below(0), below(1)), (0, 0));
    }
}
