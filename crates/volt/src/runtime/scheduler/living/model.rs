//! The counts on loom's threads.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use volt_sync::internal::primitive::{Arc, AtomicBool, thread};

use super::Tally;

/// [LV1]: a member spawns a task, another one ends it, a thread outside a second one, while a third
/// thread counts: it never sees more ended than spawned.
#[test]
fn nothing_finishes_before_it_is_spawned() {
    loom::model(|| {
        let tallies = Arc::new([Tally::new(), Tally::new()]);
        let queued = Arc::new(AtomicBool::new(false));
        let spawner = thread::spawn({
            let (tallies, queued) = (tallies.clone(), queued.clone());
            move || {
                tallies[0].spawn();
                tallies[0].spawn();
                queued.store(true, Release);
            }
        });
        let runner = thread::spawn({
            let tallies = tallies.clone();
            move || {
                if queued.load(Acquire) {
                    tallies[1].finish();
                    tallies[1].finish_shared();
                }
            }
        });
        assert!(Tally::alive(tallies.iter(), Tally::spawned) <= 2);
        spawner.join().unwrap();
        runner.join().unwrap();
    });
}

/// [LV2]: a guest spawns while the runtime is closed: it is refused, or whoever closed it waits for it.
#[test]
fn a_spawn_is_counted_or_refused() {
    loom::model(|| {
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
