//! Two or three threads, bounded by `LOOM_MAX_PREEMPTIONS`.

use super::{Lock, TryRead, WriteGuard};
use crate::primitive::{Arc, UnsafeCell, explore, thread};

type Checked = Lock<UnsafeCell<u32>>;

fn look(value: &UnsafeCell<u32>) -> u32 {
    // SAFETY: checked by loom.
    value.with(|value| unsafe { *value })
}

fn add_one(guard: WriteGuard<'_, UnsafeCell<u32>>) -> bool {
    // SAFETY: checked by loom.
    guard.with_mut(|value| unsafe { *value += 1 });
    guard.unlock()
}

fn short(lock: &Checked) {
    let _tasks = add_one(lock.write());
}

fn long(lock: &Checked) {
    let _tasks = add_one(lock.write_long());
}

fn read(lock: &Checked) {
    assert!(look(&lock.read()) <= 2);
}

/// Each `turn` is on a thread of its own; all of them have ended with `sum` changes.
fn beside<const N: usize>(turns: [fn(&Checked); N], sum: u32) {
    let lock = Arc::new(Lock::new(UnsafeCell::new(0)));
    let [first, others @ ..] = &turns[..] else { unreachable!("there are two or three") };
    let threads: Vec<_> = others
        .iter()
        .map(|&turn| {
            let lock = lock.clone();
            thread::spawn(move || turn(&lock))
        })
        .collect();
    first(&lock);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(look(&lock.read()), sum);
}

#[test]
fn short_turns_carry_the_value() {
    explore(|| beside([read, short], 1));
    explore(|| beside([short, short], 2));
    explore(|| beside([long, short], 2));
    // The second look enters beside the first.
    explore(|| beside([read, read, short], 1));
}

#[test]
fn long_turns_carry_the_value() {
    explore(|| beside([read, long], 1));
    explore(|| beside([long, long], 2));
    explore(|| beside([short, long], 2));
    explore(|| beside([read, read, long], 1));
}

#[test]
fn a_turn_comes_after_the_looks_before_it() {
    explore(|| beside([short, read], 1));
    explore(|| beside([long, read], 1));
}

/// The sender sleeps until both have left, and who comes meanwhile until the sender has.
#[test]
fn sleepers_are_woken() {
    explore(|| beside([read, read, long], 1));
    explore(|| beside([long, read, short], 2));
}

/// A task that finds a long turn is told of by the one who ends it.
#[test]
fn a_task_that_is_refused_is_told_of() {
    explore(|| {
        let lock = Arc::new(Checked::new(UnsafeCell::new(0)));
        let other = lock.clone();
        let sender = thread::spawn(move || add_one(other.write_long()));
        let refused = match lock.try_read() {
            TryRead::Locked(value) => {
                assert!(look(&value) <= 1);
                false
            }
            TryRead::Short => unreachable!("there is no short turn"),
            TryRead::Long => true,
        };
        assert_eq!(sender.join().unwrap(), refused);
    });
}
