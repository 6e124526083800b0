//! Enumerates the executions that C++20 allows for a few atomic accesses.
//!
//! The model is RC11 (O. Lahav, V. Vafeiadis, J. Kang, C.-K. Hur, D. Dreyer, "Repairing sequential
//! consistency in C/C++11", PLDI 2017), which C++20 adopted for its SeqCst accesses: coherence,
//! atomicity, no values out of thin air, and an acyclic order of SeqCst events. Release sequences
//! are those of C++20: a store and the read-modify-writes that follow it.
//!
//! Threads are straight lines: a branch is a condition on the outcome. A compare-and-swap that
//! succeeds is an exchange whose result, as the condition says, was the expected value.
//!
//! ```
//! use volt_models::litmus::{Litmus, Order::{Relaxed, SeqCst}};
//!
//! // Each thread stores to one location and loads the other: can both loads miss the stores?
//! let store_load = |order| {
//!     let mut program = Litmus::new();
//!     let [x, y] = program.locations();
//!     let mut left = program.thread();
//!     left.store(x, 1, order);
//!     let left = left.load(y, order);
//!     let mut right = program.thread();
//!     right.store(y, 1, order);
//!     let right = right.load(x, order);
//!     program.allows(|seen| seen[left] == 0 && seen[right] == 0)
//! };
//! assert!(store_load(Relaxed));
//! assert!(!store_load(SeqCst));
//! ```

mod axioms;
mod enumerate;
mod relation;

use std::ops::Index;

/// How strong an access is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Coherence only.
    Relaxed,
    /// Sees what came before the release store that it reads.
    Acquire,
    /// Shows what came before to an acquire load that reads it.
    Release,
    /// Both.
    AcqRel,
    /// Both, and in one total order.
    SeqCst,
}

impl Order {
    fn acquires(self) -> bool {
        matches!(self, Self::Acquire | Self::AcqRel | Self::SeqCst)
    }

    fn releases(self) -> bool {
        matches!(self, Self::Release | Self::AcqRel | Self::SeqCst)
    }
}

/// An atomic location, zero at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location(usize);

/// The value that a load or a read-modify-write reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read(usize);

/// What an event does.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Load,
    Store(i32),
    Exchange(i32),
    Add(i32),
    Fence,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    /// None: it initialises its location.
    thread: Option<usize>,
    /// None for fences.
    location: Option<usize>,
    kind: Kind,
    order: Order,
}

impl Event {
    fn reads(&self) -> bool {
        matches!(self.kind, Kind::Load | Kind::Exchange(_) | Kind::Add(_))
    }

    fn writes(&self) -> bool {
        matches!(self.kind, Kind::Store(_) | Kind::Exchange(_) | Kind::Add(_))
    }

    fn is_fence(&self) -> bool {
        matches!(self.kind, Kind::Fence)
    }

    fn is_update(&self) -> bool {
        self.reads() && self.writes()
    }
}

/// A small program.
#[derive(Debug, Default)]
pub struct Litmus {
    /// The events that initialise the locations come first.
    events: Vec<Event>,
    locations: usize,
    threads: usize,
}

impl Litmus {
    /// Without locations and threads.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes `N` locations. Once, before the threads.
    ///
    /// # Panics
    /// If there are locations already.
    pub fn locations<const N: usize>(&mut self) -> [Location; N] {
        assert!(self.events.is_empty(), "the locations are made first, and once");
        let order = Order::Relaxed;
        self.events.extend((0..N).map(|location| Event {
            thread: None,
            location: Some(location),
            kind: Kind::Store(0),
            order,
        }));
        self.locations = N;
        std::array::from_fn(Location)
    }

    /// Adds a thread; the result appends to it.
    pub fn thread(&mut self) -> Thread<'_> {
        self.threads += 1;
        Thread { thread: self.threads - 1, program: self }
    }

    /// True if some execution has an outcome that meets `condition`.
    #[must_use]
    pub fn allows(&self, condition: impl Fn(&Seen) -> bool) -> bool {
        let mut allowed = false;
        enumerate::executions(self, |seen| allowed |= condition(seen));
        allowed
    }

    /// Expects that some execution meets `condition`.
    ///
    /// # Panics
    /// If none does.
    #[track_caller]
    pub fn assert_allows(&self, condition: impl Fn(&Seen) -> bool) {
        assert!(self.allows(condition), "expected to be allowed, but is forbidden: {self:#?}");
    }

    /// Expects that no execution meets `condition`.
    ///
    /// # Panics
    /// If one does.
    #[track_caller]
    pub fn assert_forbids(&self, condition: impl Fn(&Seen) -> bool) {
        assert!(!self.allows(condition), "expected to be forbidden, but is allowed: {self:#?}");
    }
}

/// Appends accesses to a thread.
#[derive(Debug)]
pub struct Thread<'a> {
    thread: usize,
    program: &'a mut Litmus,
}

impl Thread<'_> {
    fn push(&mut self, location: Option<Location>, kind: Kind, order: Order) -> Read {
        let location = location.map(|location| location.0);
        self.program.events.push(Event { thread: Some(self.thread), location, kind, order });
        Read(self.program.events.len() - 1)
    }

    /// A load.
    pub fn load(&mut self, location: Location, order: Order) -> Read {
        self.push(Some(location), Kind::Load, order)
    }

    /// A store.
    pub fn store(&mut self, location: Location, value: i32, order: Order) {
        self.push(Some(location), Kind::Store(value), order);
    }

    /// A read-modify-write that writes `value`.
    pub fn swap(&mut self, location: Location, value: i32, order: Order) -> Read {
        self.push(Some(location), Kind::Exchange(value), order)
    }

    /// A read-modify-write that adds.
    pub fn add(&mut self, location: Location, by: i32, order: Order) -> Read {
        self.push(Some(location), Kind::Add(by), order)
    }

    /// A fence.
    pub fn fence(&mut self, order: Order) {
        self.push(None, Kind::Fence, order);
    }
}

/// The outcome of one execution.
#[derive(Debug)]
pub struct Seen {
    /// The value that each event read.
    reads: Vec<i32>,
    /// The last value of each location.
    finals: Vec<i32>,
}

impl Index<Read> for Seen {
    type Output = i32;
    fn index(&self, read: Read) -> &i32 {
        &self.reads[read.0]
    }
}

impl Index<Location> for Seen {
    type Output = i32;
    fn index(&self, location: Location) -> &i32 {
        &self.finals[location.0]
    }
}
