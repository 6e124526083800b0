use super::RwLock;
use crate::block_on::block_on;
use crate::primitive::{Arc, UnsafeCell, explore, thread};

type Cell = RwLock<UnsafeCell<u32>>;

fn shared() -> Arc<Cell> {
    Arc::new(RwLock::with_max_readers(UnsafeCell::new(0), 2))
}

fn read(lock: &Cell) -> u32 {
    let guard = block_on(lock.read());
    // SAFETY: checked by loom.
    guard.with(|value| unsafe { *value })
}

fn write(lock: &Cell) {
    let guard = block_on(lock.write());
    // SAFETY: checked by loom.
    guard.with_mut(|value| unsafe { *value += 1 });
}

#[test]
fn a_reader_and_a_writer_exclude_each_other() {
    explore(|| {
        let lock = shared();
        let other = lock.clone();
        let thread = thread::spawn(move || write(&other));
        assert!(read(&lock) <= 1);
        thread.join().unwrap();
        assert_eq!(read(&lock), 1);
    });
}

#[test]
fn nobody_writes_between_a_downgrade_and_its_read() {
    explore(|| {
        let lock = shared();
        let other = lock.clone();
        let thread = thread::spawn(move || write(&other));
        let writer = block_on(lock.write());
        // SAFETY: checked by loom.
        let before = writer.with(|value| unsafe { *value });
        let reader = writer.downgrade();
        // SAFETY: checked by loom.
        assert_eq!(reader.with(|value| unsafe { *value }), before);
        drop(reader);
        thread.join().unwrap();
        assert_eq!(read(&lock), 1);
    });
}
