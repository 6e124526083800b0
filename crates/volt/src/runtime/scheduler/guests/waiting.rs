//! Threads that sleep beside a runtime until something changes in it: until the place of a current-thread
//! runtime's guest may be free, or until a shutdown begins.
//!
//! Of the threads that want the place, those in `Runtime::block_on` go before the others (`beside.rs`): one of these that
//! has it is asked to leave, and takes no task any more that came after that.
//!
//! State: a list of their places to sleep. A thread is on it from before its last look until it is awake
//! again, so a list is as long as there are threads that wait. And how many claim the place, and who visits it.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::{Arc, AtomicBool, Mutex, MutexGuard};

use crate::runtime::scheduler::parking::park::{Park, ROOT};

/// The list.
pub(crate) struct Waiting {
    list: Mutex<List>,
    /// The visitor is asked to leave.
    asked: AtomicBool,
}

struct List {
    parks: Vec<Arc<Park>>,
    /// Threads in `Runtime::block_on` that have found the place taken.
    claims: usize,
    /// Who has it, if that is another thread's visitor.
    visitor: Option<Arc<Park>>,
}

impl Waiting {
    pub(crate) fn new() -> Self {
        let list = Mutex::new(List { parks: Vec::new(), claims: 0, visitor: None });
        Self { list, asked: AtomicBool::new(false) }
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// `park` is woken at the next [`wake_all`](Self::wake_all), unless it is removed before.
    pub(crate) fn add(&self, park: &Arc<Park>) {
        let mut list = self.lock();
        if !list.parks.iter().any(|other| Arc::ptr_eq(other, park)) {
            list.parks.push(park.clone());
        }
    }

    /// The thread of `park` is awake.
    pub(crate) fn remove(&self, park: &Arc<Park>) {
        self.lock().parks.retain(|other| !Arc::ptr_eq(other, park));
    }

    /// Has everybody look again.
    pub(crate) fn wake_all(&self) {
        let woken = std::mem::take(&mut self.lock().parks);
        woken.iter().for_each(|park| park.unpark(ROOT));
    }

    /// A thread in `Runtime::block_on` has found the place taken. A visitor leaves it soon, and does not run what that thread
    /// spawns after this.
    pub(crate) fn claim(&self) {
        let mut list = self.lock();
        list.claims += 1;
        self.ask(&list);
    }

    /// The same thread has the place, or does not want it any more.
    pub(crate) fn end_claim(&self) {
        self.lock().claims -= 1;
    }

    /// A visitor would be asked to leave at once.
    pub(crate) fn is_claimed(&self) -> bool {
        self.lock().claims > 0
    }

    /// The thread of `park` has the place, and leaves it if another one claims that.
    pub(crate) fn begin_visit(&self, park: &Arc<Park>) {
        let mut list = self.lock();
        list.visitor = Some(park.clone());
        // Killed by `runtime::scheduler::guests::waiting::model::a_visitor_runs_nothing_of_the_thread_that_claims_its_place`.
        #[cfg(not(volt_mutant = "visits_unasked"))]
        if list.claims > 0 {
            self.ask(&list);
        }
    }

    /// The visitor leaves.
    pub(crate) fn end_visit(&self) {
        self.lock().visitor = None;
        // ORD relaxed: only a visitor looks at it, and the next one is asked by itself, or after a look at the list.
        self.asked.store(false, Relaxed);
    }

    fn ask(&self, list: &List) {
        if let Some(visitor) = &list.visitor {
            // ORD relaxed: a lock of the injector carries it with what is spawned after this.
            self.asked.store(true, Relaxed);
            visitor.unpark(ROOT);
        }
    }

    /// Looks after it has taken tasks. If so, they may not be for the visitor, which looks.
    pub(crate) fn asks_visitor(&self) -> bool {
        // ORD relaxed: see `ask`.
        self.asked.load(Relaxed)
    }

    #[cfg(all(test, not(volt_loom)))]
    pub(crate) fn len(&self) -> usize {
        self.lock().parks.len()
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
