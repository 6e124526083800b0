use super::SetOnce;
use crate::block_on::block_on;
use crate::primitive::{Arc, UnsafeCell, explore, explore_preempted, thread};

#[test]
fn who_waits_sees_the_value_that_was_set() {
    explore(|| {
        let cell = Arc::new(SetOnce::new());
        let other = cell.clone();
        let thread = thread::spawn(move || {
            let value = UnsafeCell::new(0);
            // SAFETY: not shared yet.
            value.with_mut(|value| unsafe { *value = 1 });
            other.set(value).unwrap_or_else(|_| panic!("set twice"));
        });
        // SAFETY: checked by loom.
        assert_eq!(block_on(cell.wait()).with(|value| unsafe { *value }), 1);
        thread.join().unwrap();
    });
}

#[test]
fn of_two_setters_one_wins_whoever_waits() {
    explore_preempted(2, || {
        let cell = Arc::new(SetOnce::new());
        let threads = [1, 2].map(|value| {
            let other = cell.clone();
            thread::spawn(move || other.set(value).is_ok())
        });
        let value = *block_on(cell.wait());
        let won = threads.map(|thread| thread.join().unwrap());
        assert_eq!(won, [value == 1, value == 2]);
    });
}
