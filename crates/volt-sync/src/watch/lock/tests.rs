use std::sync::Barrier;
use std::thread;

use super::{LONG, Lock, READER, TASKS, THREADS, TryRead, Word};

impl<T> Lock<T> {
    fn bits(&self) -> u32 {
        self.word.word().load(std::sync::atomic::Ordering::SeqCst)
    }
}

#[test]
fn a_short_turn_leaves_nothing() {
    let lock = Lock::new(1);
    let mut guard = lock.write();
    *guard = 2;
    assert!(matches!(lock.try_read(), TryRead::Short));
    assert!(!guard.unlock());
    assert_eq!(*lock.read(), 2);
    assert_eq!(lock.bits(), 0);
}

#[test]
fn a_long_turn_tells_of_the_tasks_that_it_refused() {
    let lock = Lock::new(1);
    assert!(!lock.write_long().unlock());
    let guard = lock.write_long();
    assert!(matches!(lock.try_read(), TryRead::Long));
    assert!(matches!(lock.try_read(), TryRead::Long));
    assert_eq!(lock.bits(), LONG | TASKS);
    assert!(guard.unlock());
    assert_eq!(lock.bits(), 0);
}

#[test]
fn readers_share_the_value_and_a_sender_waits_for_the_last() {
    let lock = Lock::new(1);
    let readers = [lock.read(), lock.read()];
    assert_eq!(lock.bits(), 2 * READER);
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut guard = lock.write();
            *guard += 1;
            guard.unlock()
        });
        while lock.bits() & LONG == 0 {
            thread::yield_now();
        }
        // From now on no reader comes; one that wants to, sleeps.
        let late = scope.spawn(|| *lock.read());
        while lock.bits() & THREADS == 0 {
            thread::yield_now();
        }
        let [first, second] = readers;
        drop(first);
        assert_eq!(*second, 1);
        drop(second);
        assert!(!sender.join().unwrap());
        assert_eq!(late.join().unwrap(), 2);
    });
    assert_eq!(lock.bits(), 0);
}

#[test]
fn all_who_sleep_are_woken() {
    let lock = Lock::new(1);
    let guard = lock.write_long();
    thread::scope(|scope| {
        let readers = [(); 3].map(|()| scope.spawn(|| *lock.read()));
        let senders = [(); 3].map(|()| scope.spawn(|| lock.write_long().unlock()));
        while lock.bits() & THREADS == 0 {
            thread::yield_now();
        }
        // So that all sleep: nothing tells of it.
        thread::sleep(std::time::Duration::from_millis(50));
        assert!(!guard.unlock());
        readers.into_iter().for_each(|reader| assert_eq!(reader.join().unwrap(), 1));
        senders.into_iter().for_each(|sender| assert!(!sender.join().unwrap()));
    });
    assert_eq!(lock.bits(), 0);
}

/// Behind one that sends on and on it would find a short turn every time.
#[test]
fn who_tries_for_a_while_makes_senders_stand_back() {
    let starving = |lock: &Lock<i32>| lock.starving.load(std::sync::atomic::Ordering::SeqCst);
    let lock = Lock::new(1);
    thread::scope(|scope| {
        let guard = lock.write();
        let look = scope.spawn(|| *lock.read());
        let sender = scope.spawn(|| lock.write_long().unlock());
        while starving(&lock) < 2 {
            thread::yield_now();
        }
        assert!(!guard.unlock());
        assert_eq!(look.join().unwrap(), 1);
        assert!(!sender.join().unwrap());
    });
    assert_eq!(starving(&lock), 0);

    lock.starving.store(1, std::sync::atomic::Ordering::SeqCst);
    let guard = lock.write();
    assert_eq!(lock.bits(), LONG);
    assert!(!guard.unlock());
}

#[test]
#[should_panic(expected = "too many looks at the value of a watch channel")]
fn more_looks_than_can_be_counted_are_refused() {
    let _ = Word(u32::MAX / READER * READER).with_reader();
}

#[test]
fn threads_see_whole_values() {
    const THREADS: u64 = 4;
    const TURNS: u64 = 20_000;
    let lock = Lock::new((0_u64, 0_u64));
    let start = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (lock, start) = (&lock, &start);
            scope.spawn(move || {
                start.wait();
                for turn in 0..TURNS {
                    if (turn + thread) % 3 == 0 {
                        let value = lock.read();
                        assert_eq!(value.0, value.1);
                    } else {
                        let long = turn % 16 == 0;
                        let mut value = if long { lock.write_long() } else { lock.write() };
                        value.0 += 1;
                        value.1 += 1;
                        assert!(!value.unlock());
                    }
                }
            });
        }
    });
    let changes: u64 = (0..THREADS)
        .map(|thread| (0..TURNS).filter(|turn| (turn + thread) % 3 != 0).count() as u64)
        .sum();
    assert_eq!(*lock.read(), (changes, changes));
    assert_eq!(lock.bits(), 0);
}
