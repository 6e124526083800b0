//! Readiness against waits, clears, changes of the waker, the end of a registration, and shutdown.
//!
//! The kernel is an atomic flag `data`: the "system" thread sets it and then delivers the event, as
//! edge-triggered notification does; a reader takes it, or finds nothing and clears.

use std::future::poll_fn;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::task::{Context, Poll, Waker};

use volt_sync::internal::block_on;
use volt_sync::internal::primitive::{Arc, AtomicBool, AtomicU32, explore, thread};

use super::{Direction, Source};
use crate::io::{Interest, Ready};
use crate::reactor::slab::{Slab, View, shut_down};

#[derive(Clone)]
struct World(Arc<(Source, AtomicU32)>);

impl World {
    fn new() -> Self {
        Self(Arc::new((Source::new(), AtomicU32::new(0))))
    }

    fn source(&self) -> &Source {
        &self.0.0
    }

    /// Data arrives, and the reactor hears of it.
    fn arrive(&self) {
        self.0.1.fetch_add(1, Release);
        assert!(self.source().set(0, Ready::READABLE));
        self.source().wake(Ready::READABLE);
    }

    /// Takes everything that has arrived.
    fn take(&self) -> u32 {
        self.0.1.swap(0, AcqRel)
    }

    /// The loop of `Registration::poll_io`.
    fn poll_read(&self, cx: &mut Context<'_>) -> Poll<u32> {
        loop {
            let Poll::Ready(event) = self.source().poll_ready(Direction::Read, cx) else {
                return Poll::Pending;
            };
            match self.take() {
                0 => drop(self.source().clear(event, Ready::READ)),
                taken => return Poll::Ready(taken),
            }
        }
    }

    /// The loop of `Registration::async_io`.
    async fn read(&self) -> u32 {
        loop {
            let event = self.source().readiness(Ready::READ).await;
            match self.take() {
                0 => drop(self.source().clear(event, Ready::READ)),
                taken => return taken,
            }
        }
    }
}

#[test]
fn an_event_carries_what_came_before_it() {
    explore(|| {
        let world = Arc::new((Source::new(), AtomicU32::new(0)));
        let system = {
            let world = world.clone();
            thread::spawn(move || {
                world.1.store(1, Relaxed);
                world.0.set(0, Ready::READABLE);
            })
        };
        let reader = {
            let world = world.clone();
            thread::spawn(move || {
                // More than one look: loom gives each a choice of the writes that it may see.
                for _ in 0..2 {
                    if world.0.look(Ready::READ).is_some() {
                        assert_eq!(world.1.load(Relaxed), 1);
                    }
                }
            })
        };
        system.join().unwrap();
        reader.join().unwrap();
    });
}

#[test]
fn an_event_after_a_clear_still_carries_what_came_before_the_first() {
    explore(|| {
        let world = Arc::new((Source::new(), AtomicU32::new(0)));
        let system = {
            let world = world.clone();
            thread::spawn(move || {
                world.1.store(1, Relaxed);
                world.0.set(0, Ready::READABLE | Ready::WRITABLE);
            })
        };
        let clearer = {
            let world = world.clone();
            thread::spawn(move || {
                if let Some(event) = world.0.look(Ready::READ) {
                    world.0.clear(event, Ready::READ);
                }
            })
        };
        if world.0.look(Ready::WRITE).is_some() {
            assert_eq!(world.1.load(Relaxed), 1);
        }
        system.join().unwrap();
        clearer.join().unwrap();
    });
}

#[test]
fn two_arrivals_are_read_whatever_is_cleared_between() {
    explore(|| {
        let world = World::new();
        let system = {
            let world = world.clone();
            thread::spawn(move || {
                world.arrive();
                world.arrive();
            })
        };
        block_on(async {
            let mut taken = 0;
            while taken < 2 {
                taken += poll_fn(|cx| world.poll_read(cx)).await;
            }
        });
        system.join().unwrap();
    });
}

#[test]
fn a_waiter_in_the_list_reads_two_arrivals() {
    explore(|| {
        let world = World::new();
        let system = {
            let world = world.clone();
            thread::spawn(move || {
                world.arrive();
                world.arrive();
            })
        };
        block_on(async {
            let mut taken = 0;
            while taken < 2 {
                taken += world.read().await;
            }
        });
        system.join().unwrap();
    });
}

#[test]
fn a_changed_waker_is_the_one_that_is_woken() {
    explore(|| {
        let world = World::new();
        let system = {
            let world = world.clone();
            thread::spawn(move || world.arrive())
        };
        let mut wait = Box::pin(world.source().readiness(Ready::READ));
        // The first poll is by another task, which gives the future away.
        let polled = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let slot = world.poll_read(&mut Context::from_waker(Waker::noop()));
        if polled.is_pending() && slot.is_pending() {
            block_on(async {
                wait.await;
                assert_eq!(poll_fn(|cx| world.poll_read(cx)).await, 1);
            });
        }
        system.join().unwrap();
    });
}

#[test]
fn a_dropped_wait_takes_no_wake_up_from_another() {
    explore(|| {
        let world = World::new();
        let system = {
            let world = world.clone();
            thread::spawn(move || world.arrive())
        };
        let canceller = {
            let world = world.clone();
            thread::spawn(move || {
                let mut wait = Box::pin(world.source().readiness(Ready::READ));
                let _ = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            })
        };
        block_on(world.source().readiness(Ready::READ));
        system.join().unwrap();
        canceller.join().unwrap();
    });
}

#[test]
fn an_event_in_flight_never_reaches_the_next_registration_of_the_slot() {
    explore(|| {
        let slab = Arc::new(Slab::new());
        let first = slab.insert(Ready::EMPTY, false).unwrap();
        let token = first.token;
        let system = {
            let slab = slab.clone();
            thread::spawn(move || View::default().deliver(&slab, token, Ready::READABLE))
        };
        slab.remove(&first);
        let second = slab.insert(Ready::EMPTY, false).unwrap();
        system.join().unwrap();
        assert!(second.source().look(Ready::ALL).is_none());
        slab.remove(&second);
    });
}

/// The reactor's thread lets go of a chunk while it is filled again: whichever comes first, the
/// registration gets its event.
#[test]
fn trimming_races_with_registering() {
    explore(|| {
        let slab = Arc::new(Slab::new());
        let mut view = View::default();
        // Two chunks, both empty: one is a spare.
        let keys: Vec<_> = (0..3).map(|_| slab.insert(Ready::EMPTY, false).unwrap()).collect();
        assert!(view.deliver(&slab, keys[2].token, Ready::READABLE));
        keys.iter().for_each(|key| slab.remove(key));
        drop(keys);
        let inserter = {
            let slab = slab.clone();
            thread::spawn(move || slab.insert(Ready::EMPTY, false).unwrap())
        };
        slab.trim(&mut view);
        let key = inserter.join().unwrap();
        assert!(view.deliver(&slab, key.token, Ready::READABLE));
        assert!(key.source().look(Ready::READ).is_some());
        slab.remove(&key);
    });
}

#[test]
fn shutdown_ends_every_wait_and_every_later_registration() {
    explore(|| {
        let slab = Arc::new(Slab::new());
        let closed = Arc::new(AtomicBool::new(false));
        let stopper = {
            let (slab, closed) = (slab.clone(), closed.clone());
            thread::spawn(move || {
                shut_down(&slab.close());
                closed.store(true, Release);
            })
        };
        let after = closed.load(Acquire);
        match slab.insert(Ready::EMPTY, false) {
            None => {}
            Some(key) => {
                assert!(!after);
                block_on(async {
                    assert!(key.source().readiness(Ready::READ).await.is_shutdown());
                    let write = poll_fn(|cx| key.source().poll_ready(Direction::Write, cx));
                    assert!(write.await.is_shutdown());
                });
                slab.remove(&key);
            }
        }
        stopper.join().unwrap();
    });
}
