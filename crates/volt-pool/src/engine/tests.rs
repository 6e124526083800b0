use super::Core;
use crate::ThreadPool;
use crate::roster::RECORDS;
use crate::sync_word::MAX_THREADS;
use volt_sync::internal::primitive::thread;

/// More guests than there can be records: those without one do their work alone, and the pool's own
/// threads still find a place.
#[test]
fn guests_without_a_record_work_alone() {
    let pool = ThreadPool::with_threads(2);
    let core: &Core = pool.core();
    while core.workers.reserve_for_guest().is_some() {}
    assert_eq!(core.workers.len(), RECORDS - MAX_THREADS as usize);
    assert!(core.as_guest(|worker| worker.is_none()));
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                assert_eq!(pool.join(|| 1, || 2), (1, 2));
                let mut numbers = [1, 2, 3];
                pool.scope(|s| numbers.iter_mut().for_each(|n| s.spawn(move |_| *n *= 2)));
                assert_eq!(numbers, [2, 4, 6]);
                pool.in_place_scope(|s| s.spawn(|_| numbers[0] = 7));
                assert_eq!(numbers, [7, 4, 6]);
                let squares = pool.enter(|| crate::par::par_map_range(0..100, |i| i * i));
                assert_eq!(squares[99], 99 * 99);
            });
        }
    });
    assert_eq!(pool.install(crate::current_num_threads), 2, "a thread has a record");
    assert_eq!(pool.broadcast(|index| index), [0, 1]);
    pool.shutdown();
}
