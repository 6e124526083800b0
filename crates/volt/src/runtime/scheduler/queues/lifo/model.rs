use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::{Arc, AtomicUsize, UnsafeCell, explore, thread};

use super::Lifo;

/// A thief swaps the task out while the owner pushes and takes: each comes out once.
#[test]
fn owner_against_thief() {
    explore(|| {
        let tasks: Arc<Vec<UnsafeCell<usize>>> =
            Arc::new((0..2).map(|_| UnsafeCell::new(0)).collect());
        let shared = Arc::new((Lifo::new(), AtomicUsize::new(0)));
        let run = |shared: &(Lifo<UnsafeCell<usize>>, AtomicUsize), task: NonNull<_>| {
            // SAFETY: the tasks outlive the slot.
            let task: &UnsafeCell<usize> = unsafe { task.as_ref() };
            // SAFETY: whoever has a task has it alone.
            task.with_mut(|runs| unsafe { *runs += 1 });
            shared.1.fetch_add(1, Relaxed);
        };
        let thief = thread::spawn({
            let (shared, _tasks) = (shared.clone(), tasks.clone());
            move || {
                for _ in 0..2 {
                    if let Some(task) = shared.0.take() {
                        run(&shared, task);
                    }
                }
            }
        });
        for task in tasks.iter() {
            // SAFETY: nobody else has it yet.
            task.with_mut(|runs| unsafe { *runs = 0 });
            if let Some(evicted) = shared.0.push(NonNull::from(task)) {
                run(&shared, evicted);
            }
        }
        thief.join().unwrap();
        if let Some(task) = shared.0.take() {
            run(&shared, task);
        }
        assert_eq!(shared.1.load(Relaxed), 2);
        // SAFETY: everybody has finished.
        assert!(tasks.iter().all(|task| task.with(|runs| unsafe { *runs }) == 1));
    });
}
