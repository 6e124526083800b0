//! Makes the thread that waits in the reactor return, with a system call only if it does wait.
//!
//! | State    | `begin` (before a wait)       | `end` (after it) | `unpark`                    |
//! |----------|-------------------------------|------------------|-----------------------------|
//! | RUNNING  | to WAITING, may wait          | (not here)       | to NOTIFIED                 |
//! | WAITING  | (not here)                    | to RUNNING       | to NOTIFIED, and must ring  |
//! | NOTIFIED | to RUNNING, must not wait     | to RUNNING       | nothing                     |
//!
//! "Ring" is a write to an eventfd (or its like) that the wait watches.
//!
//! | Edge  | Release side     | Acquire side               | Carries | Model |
//! |-------|------------------|----------------------------|---------|-------|
//! | [RU1] | `Unpark::unpark` | `Unpark::end` (also from `begin`) | what the waker did before | `unpark_carries_the_writes_before_it` |
//!
//! Progress: an `unpark` is consumed by an RMW of the waiting thread only, as in the parker
//! (finding K4). One that finds RUNNING makes the next `begin` refuse; one that finds WAITING rings,
//! and a ring stays pending until a wait returns for it. A ring that comes late, when the wait has
//! ended for another reason, costs one wait that returns at once.
//!
//! Cost: 1 RMW each.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use volt_sync::internal::primitive::AtomicU32;

const RUNNING: u32 = 0;
const WAITING: u32 = 1;
const NOTIFIED: u32 = 2;

#[derive(Debug)]
pub(crate) struct Unpark(AtomicU32);

impl Unpark {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(RUNNING))
    }

    /// Announces a wait. False if there is a notification, which this consumes: do not wait.
    #[must_use]
    pub(crate) fn begin(&self) -> bool {
        // ORD relaxed: to announce a wait carries nothing, and a notification is read by `end`.
        match self.0.compare_exchange(RUNNING, WAITING, Relaxed, Relaxed) {
            Ok(_) => true,
            Err(_) => {
                self.end();
                false
            }
        }
    }

    /// The wait is over.
    pub(crate) fn end(&self) {
        // ORD[RU1] acquire: a notification carries its sender's writes.
        self.0.swap(RUNNING, Acquire);
    }

    /// Makes the current wait, or the next, end. True if the caller has to ring.
    #[must_use]
    pub(crate) fn unpark(&self) -> bool {
        // ORD[RU1] release: what the caller did before is seen by the thread that returns.
        self.0.swap(NOTIFIED, Release) == WAITING
    }
}

#[cfg(all(test, volt_loom))]
mod model {
    use std::sync::atomic::Ordering::Relaxed;

    use volt_sync::internal::primitive::{Arc, AtomicU32, Condvar, Mutex, thread};

    use super::Unpark;

    /// The wait of the reactor: a bell that stays rung until a wait returns for it.
    #[derive(Default)]
    struct Bell(Mutex<bool>, Condvar);

    impl Bell {
        fn ring(&self) {
            *self.0.lock().unwrap() = true;
            self.1.notify_one();
        }

        fn wait(&self) {
            let mut rung = self.0.lock().unwrap();
            while !*rung {
                rung = self.1.wait(rung).unwrap();
            }
            *rung = false;
        }
    }

    fn turn(state: &(Unpark, Bell, AtomicU32)) {
        if state.0.begin() {
            state.1.wait();
            state.0.end();
        }
    }

    /// Every unpark ends the current wait or the next one: with none lost, the reader of the
    /// counter reaches it, and loom reports no deadlock.
    #[test]
    fn unpark_carries_the_writes_before_it() {
        loom::model(|| {
            let state = Arc::new((Unpark::new(), Bell::default(), AtomicU32::new(0)));
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let state = state.clone();
                    thread::spawn(move || {
                        state.2.fetch_add(1, Relaxed);
                        if state.0.unpark() {
                            state.1.ring();
                        }
                    })
                })
                .collect();
            while state.2.load(Relaxed) < 2 {
                turn(&state);
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}
