//! Reads that are put off, against the reactor's thread, which looks, or waits in `epoll_wait`.
//!
//! What a reader is after lies in the socket already, so there will be no event for it: if the
//! reactor's thread waits, nobody ends the wait, and loom reports a deadlock.

use std::future::poll_fn;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use volt_sync::internal::block_on;
use volt_sync::internal::primitive::{
    Arc, AtomicU32, Condvar, Mutex, explore, explore_preempted, thread,
};

use super::{Key, Patience, Slab, View};
use crate::io::Ready;
use crate::reactor::guess::Failures;
use crate::reactor::source::Direction;
use crate::reactor::unpark::Unpark;

struct World {
    unpark: Unpark,
    failures: Failures,
    /// The eventfd.
    bell: (Mutex<bool>, Condvar),
    left: AtomicU32,
    done: AtomicU32,
}

impl World {
    fn new(left: u32) -> Arc<Self> {
        Arc::new(Self {
            unpark: Unpark::new(),
            failures: Failures::new(),
            bell: (Mutex::new(false), Condvar::new()),
            left: AtomicU32::new(left),
            done: AtomicU32::new(0),
        })
    }

    /// A look at the time of which the system had `events` of other sources, or a wait, as in
    /// `Reactor::turn`.
    fn turn(&self, view: &mut View, events: usize) {
        if self.unpark.has_notes() || !self.unpark.begin() {
            if !view.guess(&self.unpark, &self.failures, || 0) {
                view.remind(&self.unpark, events, None);
            }
            return;
        }
        let mut rung = self.bell.0.lock().unwrap();
        while !*rung {
            rung = self.bell.1.wait(rung).unwrap();
        }
        *rung = false;
        drop(rung);
        self.unpark.end();
    }

    /// The loop of `Registration::poll_io`: puts one read off, and takes what is there when it
    /// may. Ends with `wanted`.
    fn read(&self, key: &Key, patience: Patience, wanted: u32) {
        let source = key.source();
        let first = source.look(Ready::READ).expect("the event came before");
        let mut put_off = key.put_off(first, patience, &self.unpark);
        let mut taken = 0;
        block_on(async {
            while taken < wanted {
                let event = if std::mem::take(&mut put_off) {
                    poll_fn(|cx| source.poll_ready(Direction::Read, cx)).await
                } else {
                    match source.look_to_try(Ready::READ) {
                        Some(event) => event,
                        None => poll_fn(|cx| source.poll_ready(Direction::Read, cx)).await,
                    }
                };
                match self.left.swap(0, AcqRel) {
                    0 => drop(source.clear(event, Ready::READ)),
                    found => taken += found,
                }
            }
        });
        self.finish();
    }

    /// A reader has what it wants.
    fn finish(&self) {
        self.done.fetch_add(1, Release);
        if self.unpark.unpark() {
            *self.bell.0.lock().unwrap() = true;
            self.bell.1.notify_one();
        }
    }

    /// Turns the reactor until `readers` have what they want.
    fn drive(&self, view: &mut View, readers: u32, events: usize) {
        while self.done.load(Acquire) < readers {
            self.turn(view, events);
            thread::yield_now();
        }
    }
}

fn ready_key(slab: &Slab, view: &mut View) -> Key {
    let key = slab.insert(Ready::EMPTY, false).unwrap();
    assert!(view.deliver(slab, key.token, Ready::READABLE));
    key
}

/// One reader; the looks have `events` of other sources.
fn one_reader(patience: Patience, events: usize) {
    explore(move || {
        let (slab, mut view, world) = (Slab::new(), View::default(), World::new(1));
        let key = ready_key(&slab, &mut view);
        let reader = {
            let world = world.clone();
            thread::spawn(move || {
                world.read(&key, patience, 1);
                key
            })
        };
        world.drive(&mut view, 1, events);
        slab.remove(&reader.join().unwrap());
    });
}

#[test]
fn a_read_that_was_put_off_is_made_before_the_wait() {
    one_reader(Patience::Stream, 0);
}

#[test]
fn a_read_of_a_message_that_was_put_off_is_made_at_the_second_look_beside_other_events() {
    one_reader(Patience::Messages, 1);
}

#[test]
fn a_read_of_a_stream_that_was_put_off_is_made_at_a_later_look_beside_other_events() {
    one_reader(Patience::Stream, 1);
}

/// Half of the data lies in the socket, half comes with an event while the first read is put off.
#[test]
fn an_event_against_a_read_that_is_put_off() {
    explore(|| {
        let (slab, mut view, world) = (Slab::new(), View::default(), World::new(1));
        let key = ready_key(&slab, &mut view);
        let token = key.token;
        let reader = {
            let world = world.clone();
            thread::spawn(move || {
                world.read(&key, Patience::Stream, 2);
                key
            })
        };
        world.left.fetch_add(1, Release);
        assert!(view.deliver(&slab, token, Ready::READABLE));
        view.remind(&world.unpark, 1, None);
        world.drive(&mut view, 1, 0);
        slab.remove(&reader.join().unwrap());
    });
}

/// Two reads are put off, and the older one is guessed to have an event. Then the younger one has its own, if
/// `event`, and is put off anew; or it is reminded before the wait.
fn a_guess_beside_a_read(event: bool) {
    explore_preempted(3, move || {
        let (slab, mut view, world) = (Slab::new(), View::default(), World::new(1));
        let (older, younger) = (ready_key(&slab, &mut view), ready_key(&slab, &mut view));
        for key in [&older, &younger] {
            let event = key.source().look(Ready::READ).unwrap();
            assert!(key.put_off(event, Patience::Stream, &world.unpark));
            // A look that has the event that was expected.
            view.useful = 1;
            view.remind(&world.unpark, 1, view.last_read);
        }
        let token = younger.token;
        let reader = {
            let world = world.clone();
            thread::spawn(move || {
                let source = younger.source();
                block_on(poll_fn(|cx| source.poll_ready(Direction::Read, cx)));
                if event {
                    world.read(&younger, Patience::Stream, 1);
                } else {
                    world.finish();
                }
                younger
            })
        };
        if event {
            assert!(view.deliver(&slab, token, Ready::READABLE));
        }
        // If the younger one is not put off anew yet, there is nobody who would have answered.
        let guessed = view.guess(&world.unpark, &world.failures, || 0);
        assert!(guessed || event);
        assert!(!guessed || older.source().look(Ready::READ).unwrap().is_guess());
        world.drive(&mut view, 1, 0);
        slab.remove(&reader.join().unwrap());
        slab.remove(&older);
    });
}

#[test]
fn a_guess_leaves_the_other_read_put_off() {
    a_guess_beside_a_read(false);
}

#[test]
fn a_guess_against_a_read_that_is_put_off_anew() {
    a_guess_beside_a_read(true);
}

/// The note of one source may be taken together with that of another one of the same chunk.
#[test]
fn reads_of_two_sources_of_a_chunk_are_put_off() {
    explore_preempted(2, || {
        let (slab, mut view, world) = (Slab::new(), View::default(), World::new(0));
        let keys = Arc::new([ready_key(&slab, &mut view), ready_key(&slab, &mut view)]);
        let patience = [Patience::Stream, Patience::Messages];
        let readers = [0, 1].map(|number| {
            let (keys, world) = (keys.clone(), world.clone());
            thread::spawn(move || {
                let key = &keys[number];
                if key.put_off(
                    key.source().look(Ready::READ).unwrap(),
                    patience[number],
                    &world.unpark,
                ) {
                    block_on(poll_fn(|cx| key.source().poll_ready(Direction::Read, cx)));
                }
                if world.done.fetch_add(1, Relaxed) == 1 && world.unpark.unpark() {
                    *world.bell.0.lock().unwrap() = true;
                    world.bell.1.notify_one();
                }
            })
        });
        world.drive(&mut view, 2, 0);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        keys.iter().for_each(|key| slab.remove(key));
    });
}
