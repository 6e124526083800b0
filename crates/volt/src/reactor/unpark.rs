//! Makes the thread that waits in the reactor return, with a system call only if it does wait.
//!
//! | State    | `begin` (before a wait)       | `end` (after it) | `unpark`                    |
//! |----------|-------------------------------|------------------|-----------------------------|
//! | RUNNING  | to WAITING, may wait          | (not here)       | to NOTIFIED                 |
//! | WAITING  | (not here)                    | to RUNNING       | to NOTIFIED, and must ring  |
//! | NOTIFIED | to RUNNING, must not wait     | to RUNNING       | nothing                     |
//!
//! "Ring" is a write to an eventfd (or its like) that the wait watches.
//!
//! Beside the state there are notes, one bit for each group of chunks, that reads were put off in there
//! (`slab`). `begin` refuses while there is one, and a note is refused while somebody waits: so
//! nobody waits while a read is put off, and who has noted one has a look of the reactor to come.
//! A note stays until a look has left nothing put off in its group ([`end_note`](Unpark::end_note)).
//! While messages go to and fro there is always a read that is put off, so the note that is there stands for
//! the next one, and a load is enough. Rejected: each look takes the notes (2 read-modify-writes a
//! message, on a word that all members write).
//!
//! | Edge  | Release side     | Acquire side               | Carries | Model |
//! |-------|------------------|----------------------------|---------|-------|
//! | [RU1] | `Unpark::unpark` | `Unpark::end` (also from `begin`) | what the waker did before | `unpark_carries_the_writes_before_it` |
//! | [RU2] | `Unpark::note` | `Unpark::notes` | the chunk's own notes | none: what a look misses is found when the note ends, by [RU3] |
//! | [RU3] | `Unpark::end_note`, `Key::put_off` | `Unpark::note`, `View::has_notes` | one total order: the end of a note against a read that finds it there | none: under loom the fences of [RU4] carry it; the accesses are those of [IS1] and [ID3] of `idle.rs` |
//! | [RU4] | `total_order` | `total_order` | under loom only: [RU3] | `reads_of_two_sources_of_a_chunk_are_put_off` |
//!
//! [RU3] are SeqCst accesses: the reader notes its read in the chunk, then loads this word; the
//! reactor's thread ends the note, then loads the chunk's word. One of them sees the other (Dekker).
//!
//! Progress: an `unpark` is consumed by an RMW of the waiting thread only, as in the parker
//! (finding K4). One that finds RUNNING makes the next `begin` refuse; one that finds WAITING rings,
//! and a ring stays pending until a wait returns for it. A ring that comes late, when the wait has
//! ended for another reason, costs one wait that returns at once.
//!
//! Cost: 1 RMW each; a note that is there already 1 load.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use volt_sync::internal::primitive::AtomicU64;

const RUNNING: u64 = 0;
const WAITING: u64 = 1;
const NOTIFIED: u64 = 2;
const STATE: u64 = 3;
const NOTES_SHIFT: u32 = 2;
/// How many notes there are.
pub(crate) const NOTES: usize = 62;

#[derive(Debug)]
pub(crate) struct Unpark(AtomicU64);

impl Unpark {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(RUNNING))
    }

    /// Announces a wait. False if there is a notification, which this consumes, or a note, which it
    /// leaves: do not wait.
    #[must_use]
    pub(crate) fn begin(&self) -> bool {
        // ORD relaxed: to announce a wait carries nothing, and a notification is read by `end`.
        match self.0.compare_exchange(RUNNING, WAITING, Relaxed, Relaxed) {
            Ok(_) => true,
            Err(_) => {
                self.end();
                false
            }
        }
    }

    /// The wait is over.
    pub(crate) fn end(&self) {
        // ORD[RU1] acquire: a notification carries its sender's writes.
        self.0.fetch_and(!STATE, Acquire);
    }

    /// Makes the current wait, or the next, end. True if the caller has to ring.
    #[must_use]
    pub(crate) fn unpark(&self) -> bool {
        // ORD[RU1] release: what the caller did before is seen by the thread that returns.
        self.0.fetch_or(NOTIFIED, Release) & STATE == WAITING
    }

    /// True if a note would be refused now.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        // ORD relaxed: a hint, `note` decides.
        self.0.load(Relaxed) & WAITING != 0
    }

    /// Makes the thread that turns the reactor look after the chunks of group `group` before it
    /// waits. False if it waits already. The caller has noted its read in the chunk, SeqCst.
    #[must_use]
    #[inline]
    pub(crate) fn note(&self, group: usize) -> bool {
        let note = 1 << (NOTES_SHIFT as usize + group);
        total_order();
        // ORD[RU3] acquire: SeqCst, after the note in the chunk.
        if self.0.load(SeqCst) & (note | WAITING) == note {
            return true;
        }
        // ORD[RU2] release: the note in the chunk.
        self.0.fetch_or(note, Release) & WAITING == 0
    }

    /// True if there seems to be a note.
    #[inline]
    pub(crate) fn has_notes(&self) -> bool {
        // ORD relaxed: a hint; a note that it misses is seen by `begin`.
        self.0.load(Relaxed) & !STATE != 0
    }

    /// The notes: a bit for each group.
    #[inline]
    pub(crate) fn notes(&self) -> u64 {
        // ORD[RU2] acquire: the notes in the chunks.
        self.0.load(Acquire) >> NOTES_SHIFT
    }

    /// Ends the note of group `group`. The caller, who turns the reactor, then looks into its chunks
    /// once more: who found the note there has relied on it.
    pub(crate) fn end_note(&self, group: usize) {
        // ORD[RU3] release: SeqCst, before a look into the chunks.
        self.0.fetch_and(!(1 << (NOTES_SHIFT as usize + group)), SeqCst);
        total_order();
    }
}

/// Stands where the total order of SeqCst accesses is needed that loom does not give.
#[inline(always)]
fn total_order() {
    #[cfg(volt_loom)]
    // ORD[RU4] release: with the fence of the other side, what the total order of the SeqCst
    // ORD[RU4] acquire: accesses gives outside of loom.
    volt_sync::internal::primitive::fence(SeqCst);
}

#[cfg(all(test, volt_loom))]
mod model {
    use std::sync::atomic::Ordering::Relaxed;

    use volt_sync::internal::primitive::{Arc, AtomicU32, Condvar, Mutex, thread};

    use super::Unpark;

    /// The wait of the reactor: a bell that stays rung until a wait returns for it.
    use volt_sync::internal::primitive::explore;
    #[derive(Default)]
    struct Bell(Mutex<bool>, Condvar);

    impl Bell {
        fn ring(&self) {
            *self.0.lock().unwrap() = true;
            self.1.notify_one();
        }

        fn wait(&self) {
            let mut rung = self.0.lock().unwrap();
            while !*rung {
                rung = self.1.wait(rung).unwrap();
            }
            *rung = false;
        }
    }

    fn turn(state: &(Unpark, Bell, AtomicU32)) {
        if state.0.begin() {
            state.1.wait();
            state.0.end();
        }
    }

    /// Every unpark ends the current wait or the next one: with none lost, the reader of the
    /// counter reaches it, and loom reports no deadlock.
    #[test]
    fn unpark_carries_the_writes_before_it() {
        explore(|| {
            let state = Arc::new((Unpark::new(), Bell::default(), AtomicU32::new(0)));
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let state = state.clone();
                    thread::spawn(move || {
                        state.2.fetch_add(1, Relaxed);
                        if state.0.unpark() {
                            state.1.ring();
                        }
                    })
                })
                .collect();
            while state.2.load(Relaxed) < 2 {
                turn(&state);
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}
