//! The counts on loom's threads.

use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::{Arc, AtomicBool, UnsafeCell, explore, thread};

use super::Tally;

/// [LV1]: who counts a task as finished, on a member's thread or on another one, has seen that it was
/// spawned; so has who sees that count. (The cells stand for the counts of spawns: loom reads the newest
/// of those after a yield.)
#[test]
fn nothing_finishes_before_it_is_spawned() {
    explore(|| {
        let tallies = Arc::new([Tally::new(), Tally::new()]);
        let spawned = Arc::new([UnsafeCell::new(0), UnsafeCell::new(0)]);
        let runner = thread::spawn({
            let (tallies, spawned) = (tallies.clone(), spawned.clone());
            move || {
                // SAFETY: nobody reads it before the task was counted.
                spawned[0].with_mut(|count| unsafe { *count = 1 });
                tallies[0].finish();
                // SAFETY: nobody reads this one before its task was counted.
                spawned[1].with_mut(|count| unsafe { *count = 1 });
                tallies[1].finish_shared();
            }
        });
        for (tally, spawned) in tallies.iter().zip(spawned.iter()) {
            while tally.finished() == 0 {
                thread::yield_now();
            }
            // SAFETY: written before that was counted.
            assert_eq!(spawned.with(|count| unsafe { *count }), 1);
        }
        runner.join().unwrap();
    });
}

/// [LV2]: a guest spawns while the runtime is closed: it is refused, or whoever closed it waits for it.
#[test]
fn a_spawn_is_counted_or_refused() {
    explore(|| {
        let tally = Arc::new(Tally::new());
        let closed = Arc::new(AtomicBool::new(false));
        let guest = thread::spawn({
            let (tally, closed) = (tally.clone(), closed.clone());
            move || {
                tally.spawn_visibly();
                let accepted = !closed.load(Relaxed);
                if !accepted {
                    tally.finish();
                }
                accepted
            }
        });
        closed.store(true, Relaxed);
        let none = Tally::alive([&*tally].into_iter(), Tally::spawned_exactly) == 0;
        let accepted = guest.join().unwrap();
        assert!(!(none && accepted), "a task was spawned after the last one had ended");
        assert_eq!(
            Tally::alive([&*tally].into_iter(), Tally::spawned_exactly),
            u64::from(accepted)
        );
    });
}
