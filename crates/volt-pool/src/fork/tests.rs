use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{FORKS, Worker};
use crate::engine::processors;
use crate::offer::OFFERS;
use crate::worker::with_current;
use crate::{Builder, ThreadPool};

fn depth(worker: &Worker) -> usize {
    worker.fork.tail.get()
}

#[test]
fn the_stack_is_empty_after_joins_and_panics() {
    let pool = ThreadPool::with_threads(1);
    pool.install(|| {
        with_current(|worker| {
            let worker = worker.unwrap();
            assert_eq!(worker.join(|| depth(worker), || depth(worker)), (1, 0));
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                worker.join(|| panic!("first"), || ())
            }));
            assert!(result.is_err());
            assert_eq!(depth(worker), 0);
        });
    });
}

#[test]
fn forks_deeper_than_the_stack_run_in_sequence() {
    fn nest(worker: &Worker, depth: usize) -> usize {
        if depth == 0 { 0 } else { worker.join(|| nest(worker, depth - 1), || 1).0 + 1 }
    }
    let pool = Builder::new().threads(1).stack_size(8 << 20).build().unwrap();
    let deep = 3 * FORKS;
    assert_eq!(pool.install(|| with_current(|worker| nest(worker.unwrap(), deep))), deep);
}

/// While it waits for a processor, nobody reaches what it has not offered.
#[test]
fn a_thread_that_may_lack_a_processor_offers_more() {
    fn offered(worker: &Worker, depth: usize) -> usize {
        if depth == 0 {
            return worker.offer.len();
        }
        worker.join(|| offered(worker, depth - 1), || 0).0
    }
    let by_one_of = |threads| {
        // Nobody takes anything.
        let pool = Builder::new().threads(threads).fail_start(|_| true).build().unwrap();
        pool.core().as_guest(|worker| offered(worker.unwrap(), OFFERS + 2))
    };
    // One for the only thread, which is still to be started.
    assert_eq!(by_one_of(1), 1);
    assert_eq!(by_one_of(processors() as usize + 1), OFFERS);
}

/// Nobody takes any of the forks; the innermost first half panics.
#[test]
fn a_panic_takes_back_all_that_is_offered() {
    struct Dropped<'a>(&'a Cell<usize>);

    impl Drop for Dropped<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    fn run(_: Dropped<'_>) {
        panic!("the first half of this fork panics");
    }

    fn nest(worker: &Worker, depth: usize, dropped: &Cell<usize>) {
        if depth == 0 {
            assert_eq!(worker.offer.len(), OFFERS);
            panic!("innermost");
        }
        let second = Dropped(dropped);
        worker.join(|| nest(worker, depth - 1, dropped), move || run(second));
    }

    let threads = processors() as usize + 1;
    let pool = Builder::new().threads(threads).fail_start(|_| true).build().unwrap();
    pool.core().as_guest(|worker| {
        let worker = worker.unwrap();
        for _ in 0..2 {
            let dropped = Cell::new(0);
            let nested = AssertUnwindSafe(|| nest(worker, OFFERS + 2, &dropped));
            let panic = catch_unwind(nested).unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&"innermost"));
            assert_eq!(dropped.get(), OFFERS + 2);
            assert_eq!((depth(worker), worker.offer.len()), (0, 0));
        }
    });
}
