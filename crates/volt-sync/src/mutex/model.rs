use super::Mutex;
use crate::block_on::block_on;
use crate::primitive::{Arc, UnsafeCell, explore, thread};

/// The value is a checked cell: loom reports two guards at once, or a missing ordering.
#[test]
fn guards_exclude_each_other() {
    explore(|| {
        let mutex = Arc::new(Mutex::new(UnsafeCell::new(0)));
        let other = mutex.clone();
        let bump = |mutex: &Mutex<UnsafeCell<u32>>| {
            let guard = block_on(mutex.lock());
            // SAFETY: checked by loom.
            guard.with_mut(|value| unsafe { *value += 1 });
        };
        let thread = thread::spawn(move || bump(&other));
        bump(&mutex);
        thread.join().unwrap();
        // SAFETY: checked by loom.
        assert_eq!(mutex.try_lock().unwrap().with(|value| unsafe { *value }), 2);
    });
}
