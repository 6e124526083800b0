use std::ptr;

use super::ThreadPool;
use volt_sync::internal::primitive::{Arc, explore, thread};

/// Two first uses at the same time: loom reports a core that is used before it is made.
#[test]
fn the_first_use_makes_one_core() {
    explore(|| {
        let pool = Arc::new(ThreadPool::with_threads(1));
        let threads = [pool.clone(), pool.clone()]
            .map(|pool| thread::spawn(move || ptr::from_ref(pool.core()).addr()));
        let here = ptr::from_ref(pool.core()).addr();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), here);
        }
    });
}
