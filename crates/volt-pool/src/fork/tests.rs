use super::{FORKS, Worker};
use crate::ThreadPool;
use crate::worker::with_current;

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
    let pool = crate::Builder::new().threads(1).stack_size(8 << 20).build().unwrap();
    let deep = 3 * FORKS;
    assert_eq!(pool.install(|| with_current(|worker| nest(worker.unwrap(), deep))), deep);
}
