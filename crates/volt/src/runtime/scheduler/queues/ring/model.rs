//! Tasks are loom cells here: loom checks that whoever takes one is ordered after its writer, and
//! after whoever had it before.

use std::ptr::NonNull;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::{Arc, UnsafeCell, explore, thread};

use super::{Pushed, Ring};

struct Task {
    runs: UnsafeCell<usize>,
}

type Four = Ring<Task, 4>;

struct World {
    tasks: Vec<Task>,
    /// Not loom's: when it is counted makes no difference.
    ran: AtomicUsize,
}

impl World {
    fn new(tasks: usize) -> Arc<Self> {
        let task = || Task { runs: UnsafeCell::new(0) };
        let world = Self { tasks: (0..tasks).map(|_| task()).collect(), ran: AtomicUsize::new(0) };
        Arc::new(world)
    }

    /// Prepares task `index`, as a spawn would.
    fn task(&self, index: usize) -> NonNull<Task> {
        // SAFETY: nobody else has the task before it is pushed.
        self.tasks[index].runs.with_mut(|runs| unsafe { *runs = 1 });
        NonNull::from(&self.tasks[index])
    }

    fn run(&self, task: NonNull<Task>) {
        // SAFETY: the world outlives the rings.
        let task = unsafe { task.as_ref() };
        task.runs.with_mut(|runs| {
            // SAFETY: a task that was taken is the taker's.
            let runs = unsafe { &mut *runs };
            assert_eq!(*runs, 1, "a task ran twice");
            *runs = 2;
        });
        self.ran.fetch_add(1, Relaxed);
    }

    fn push(&self, ring: &Four, index: usize) {
        // SAFETY: the models push from one thread.
        match unsafe { ring.push(self.task(index), |taken| taken.collect::<Vec<_>>()) } {
            Pushed::Stored => {}
            // Stands for the injector.
            Pushed::Overflowed(batch) => batch.into_iter().for_each(|task| self.run(task)),
            Pushed::Refused(task) => self.run(task),
        }
    }

    fn drain(&self, ring: &Four) {
        while let Some(task) = ring.pop() {
            self.run(task);
        }
    }

    /// A thief with a ring of its own.
    fn steal(&self, from: &Four) {
        let own = Four::new();
        // SAFETY: `own` is this thread's.
        if let Some((oldest, _)) = unsafe { from.steal_into(&own) } {
            self.run(oldest);
            self.drain(&own);
        }
    }

    fn check(&self) {
        assert_eq!(self.ran.load(Relaxed), self.tasks.len(), "a task was lost");
    }
}

/// Finding P5: the third phase is retried while the owner pops.
#[test]
fn push_pop_steal() {
    explore(|| {
        let (world, ring) = (World::new(4), Arc::new(Four::new()));
        let thief = thread::spawn({
            let (world, ring) = (world.clone(), ring.clone());
            move || world.steal(&ring)
        });
        for index in 0..3 {
            world.push(&ring, index);
        }
        if let Some(task) = ring.pop() {
            world.run(task);
        }
        world.push(&ring, 3);
        world.drain(&ring);
        thief.join().unwrap();
        world.drain(&ring);
        world.check();
        assert_eq!(ring.room(), 4, "places were lost");
    });
}

/// Finding P7: "full" is judged by the steal head, and an overflow during a steal moves only the
/// new task.
#[test]
fn overflow_against_a_thief() {
    explore(|| {
        let (world, ring) = (World::new(6), Arc::new(Four::new()));
        for index in 0..4 {
            world.push(&ring, index);
        }
        let thief = thread::spawn({
            let (world, ring) = (world.clone(), ring.clone());
            move || world.steal(&ring)
        });
        world.push(&ring, 4);
        world.push(&ring, 5);
        world.drain(&ring);
        thief.join().unwrap();
        world.drain(&ring);
        world.check();
    });
}

/// Finding P6: the owner does not steal into places that a thief is still reading.
#[test]
fn stealing_into_a_ring_that_is_stolen_from() {
    explore(|| {
        let (world, ring, other) = (World::new(6), Arc::new(Four::new()), Four::new());
        for index in 0..4 {
            world.push(&ring, index);
        }
        for index in 4..6 {
            world.push(&other, index);
        }
        let thief = thread::spawn({
            let (world, ring) = (world.clone(), ring.clone());
            move || world.steal(&ring)
        });
        world.drain(&ring);
        // SAFETY: this thread owns `ring`.
        if let Some((oldest, _)) = unsafe { other.steal_into(&ring) } {
            world.run(oldest);
        }
        world.drain(&ring);
        world.drain(&other);
        thief.join().unwrap();
        world.drain(&ring);
        world.check();
    });
}

/// Finding P7: a second thief refuses while the first one copies.
#[test]
fn two_thieves() {
    explore(|| {
        let (world, ring) = (World::new(7), Arc::new(Four::new()));
        for index in 0..3 {
            world.push(&ring, index);
        }
        let thieves = [(); 2].map(|()| {
            let (world, ring) = (world.clone(), ring.clone());
            thread::spawn(move || world.steal(&ring))
        });
        // As far as the place of the second one's task.
        for index in 3..7 {
            world.push(&ring, index);
        }
        thieves.into_iter().for_each(|thief| thief.join().unwrap());
        world.drain(&ring);
        world.check();
    });
}

/// Finding P8: the owner goes around the ring while a thief is between its loads and its claim.
#[test]
fn thief_and_wrapping_owner() {
    explore(|| {
        let (world, ring) = (World::new(7), Arc::new(Four::starting_at(u32::MAX - 2)));
        world.push(&ring, 0);
        let thief = thread::spawn({
            let (world, ring) = (world.clone(), ring.clone());
            move || world.steal(&ring)
        });
        for index in 1..7 {
            if let Some(task) = ring.pop() {
                world.run(task);
            }
            world.push(&ring, index);
        }
        thief.join().unwrap();
        world.drain(&ring);
        world.check();
    });
}

/// A thread that is not the owner pops, as at shutdown, what was pushed quietly.
#[test]
fn a_stranger_pops_what_was_pushed_quietly() {
    explore(|| {
        let (world, ring) = (World::new(2), Arc::new(Four::new()));
        let stranger = thread::spawn({
            let (world, ring) = (world.clone(), ring.clone());
            move || world.drain(&ring)
        });
        for index in 0..2 {
            // SAFETY: this thread owns the ring, which has room.
            unsafe { ring.push_quiet(world.task(index)) };
        }
        stranger.join().unwrap();
        world.drain(&ring);
        world.check();
    });
}

/// What a thief has moved into its own ring can be stolen from there.
#[test]
fn stolen_tasks_are_stolen_again() {
    explore(|| {
        let (world, ring, thiefs) = (World::new(4), Four::new(), Arc::new(Four::new()));
        for index in 0..4 {
            world.push(&ring, index);
        }
        let second = thread::spawn({
            let (world, thiefs) = (world.clone(), thiefs.clone());
            move || world.steal(&thiefs)
        });
        // SAFETY: this thread owns the thief's ring.
        let (oldest, _) = unsafe { ring.steal_into(&thiefs) }.expect("four tasks, nobody else");
        world.run(oldest);
        world.drain(&ring);
        second.join().unwrap();
        world.drain(&thiefs);
        world.check();
    });
}

/// A stranger whose claim fails sees the tail that the owner's newer head goes with: with an older
/// one it would take what is not there.
#[test]
fn a_stranger_and_the_owner_pop() {
    explore(|| {
        let (world, ring) = (World::new(2), Arc::new(Four::new()));
        let stranger = thread::spawn({
            let (world, ring) = (world.clone(), ring.clone());
            move || world.drain(&ring)
        });
        for index in 0..2 {
            world.push(&ring, index);
            world.drain(&ring);
        }
        stranger.join().unwrap();
        world.check();
    });
}
