//! The sources of a reactor, in chunks that are reused and, when a burst is over, freed.
//!
//! Purpose: an event names its source by a number, and may arrive after the source has gone. The
//! number is a slot and a generation: the slot's memory is kept by whoever looks at it (an `Arc` of
//! its chunk), and a generation that has passed makes the event void. So no event in flight
//! delays the end of a registration, and a descriptor that was duplicated or closed behind our back
//! costs a void event, not memory safety.
//!
//! Rejected: the address of an `Arc` as the number (the memory may be freed only after the
//! reactor's thread has said that it holds no event of it: a list of pending releases and a wake-up
//! when it grows); a slab that never shrinks.
//!
//! Invariants:
//! 1. A chunk is listed in `vacant` if and only if it has a free slot.
//! 2. A slot is free, or belongs to exactly one `Key` that was not removed yet.
//! 3. The reactor's thread alone drops chunks from the table (`Slab::trim`), so that its own copy of
//!    the table stays right; a chunk that it does not know is one that was added since.
//!
//! | Edge  | Release side   | Acquire side   | Carries | Model |
//! |-------|----------------|----------------|---------|-------|
//! | [RL1] | `Key::put_off` | `View::remind_group` | that the source's read was put off | `reads_of_two_sources_of_a_chunk_are_put_off` |
//!
//! Progress: all under one lock that is held for a few loads and stores. After `close`, `insert`
//! fails, so the list of sources that `close` returns is complete.
//!
//! Cost: insert and remove 2 RMWs for the lock and one each for the chunk's `Arc`; an event's
//! look-up none; a read that is put off 2 or 3 (`Unpark::note`), and one in the look after it. An allocation
//! for each 64 sources.
#![forbid(unsafe_code)]

use std::sync::PoisonError;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use volt_sync::internal::primitive::{Arc, AtomicU64, AtomicUsize, Mutex, MutexGuard};

use super::Why;
use super::guess::{self, Failures, Guess};
use super::source::{Event, Source};
use super::unpark::{NOTES, Unpark};
use crate::io::Ready;

/// Slots of a chunk: 4 KiB of them.
const SLOTS: usize = if cfg!(volt_loom) { 2 } else { 64 };
const ALL_FREE: u64 = if SLOTS == 64 { u64::MAX } else { (1 << SLOTS) - 1 };
/// Empty chunks that are kept for the next burst.
const SPARE_CHUNKS: usize = 1;
/// How the bits of a token are divided: 2^40 slots and 2^24 generations, or 2^20 and 2^12.
const INDEX_BITS: u32 = if usize::BITS == 64 { 40 } else { 20 };
const GENERATION_MASK: u32 = if usize::BITS == 64 { 0xff_ffff } else { 0xfff };

/// The name of a registration: slot and generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token(pub(crate) usize);

impl Token {
    const fn new(index: usize, generation: u32) -> Self {
        Self(((generation & GENERATION_MASK) as usize) << INDEX_BITS | index)
    }

    const fn index(self) -> usize {
        self.0 & ((1 << INDEX_BITS) - 1)
    }

    pub(crate) const fn generation(self) -> u32 {
        (self.0 >> INDEX_BITS) as u32
    }
}

pub(crate) struct Chunk {
    sources: [Source; SLOTS],
    /// One bit for each slot whose source may have a read that was put off: of a stream, and of others.
    put_off: [AtomicU64; 2],
}

/// How long a read may be put off while the looks have events of other sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Until the fourth look, where polls are long the second: nothing is lost meanwhile.
    Stream,
    /// Until the second look: datagrams are lost if nobody takes them.
    Messages,
}

impl Chunk {
    fn new() -> Arc<Self> {
        let sources = std::array::from_fn(|_| Source::new());
        Arc::new(Self { sources, put_off: [AtomicU64::new(0), AtomicU64::new(0)] })
    }
}

/// A registration's hold on its source.
pub(crate) struct Key {
    chunk: Arc<Chunk>,
    pub(crate) token: Token,
}

impl Key {
    #[inline]
    pub(crate) fn source(&self) -> &Source {
        &self.chunk.sources[self.token.index() % SLOTS]
    }

    /// Puts the read after `event` off, until there is another event, or until the reactor's thread
    /// has looked ([`View::remind`]) or guesses that there is one. False, if that thread waits already or there is
    /// more to know than `event`.
    pub(crate) fn put_off(&self, event: Event, patience: Patience, unpark: &Unpark) -> bool {
        if unpark.is_waiting() || !self.source().put_off(event) {
            return false;
        }
        let (place, slot) = (self.token.index() / SLOTS, self.token.index() % SLOTS);
        // ORD[RL1] release: that the source's read was put off.
        // ORD[RU3] release: SeqCst, before the look at the notes of the groups.
        self.chunk.put_off[patience as usize].fetch_or(1 << slot, SeqCst);
        let noted = unpark.note(place % NOTES);
        if !noted {
            self.source().remind();
        }
        noted
    }
}

/// See the module's documentation.
pub(crate) struct Slab {
    table: Mutex<Table>,
    /// How many registrations there are; changed under the lock.
    live: AtomicUsize,
    /// How many chunks are wholly free; changed under the lock.
    empty: AtomicUsize,
}

#[derive(Default)]
struct Table {
    chunks: Vec<Option<Entry>>,
    /// Chunks with free slots.
    vacant: Vec<usize>,
    /// Places of `chunks` that are `None`.
    holes: Vec<usize>,
    generation: u32,
    closed: bool,
}

struct Entry {
    chunk: Arc<Chunk>,
    /// One bit a slot.
    free: u64,
}

impl Slab {
    pub(crate) fn new() -> Self {
        Self {
            table: Mutex::new(Table::default()),
            live: AtomicUsize::new(0),
            empty: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Every change under the lock is complete before anything that can panic.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many registrations there are.
    pub(crate) fn len(&self) -> usize {
        // ORD relaxed: a statistic, and a hint: an event for a registration that the reader does
        // not count yet is delivered by the operating system when it looks again.
        self.live.load(Relaxed)
    }

    /// A slot for a new registration; `None` after [`close`](Self::close).
    pub(crate) fn insert(&self, ready: Ready, fresh: bool) -> Option<Key> {
        let mut table = self.lock();
        if table.closed {
            return None;
        }
        let place = match table.vacant.last() {
            Some(&place) => place,
            None => self.grow(&mut table),
        };
        table.generation = table.generation.wrapping_add(1) & GENERATION_MASK;
        let generation = table.generation;
        let entry = table.chunks[place].as_mut().expect("a vacant chunk is in the table");
        if entry.free == ALL_FREE {
            // ORD relaxed: changed under the lock only; read outside as a hint.
            self.empty.fetch_sub(1, Relaxed);
        }
        let slot = entry.free.trailing_zeros() as usize;
        entry.free &= !(1 << slot);
        let (chunk, full) = (entry.chunk.clone(), entry.free == 0);
        if full {
            table.vacant.pop();
        }
        // ORD relaxed: changed under the lock only; read outside as a hint.
        self.live.fetch_add(1, Relaxed);
        let key = Key { chunk, token: Token::new(place * SLOTS + slot, generation) };
        key.source().reset(generation, ready, fresh);
        Some(key)
    }

    #[cold]
    fn grow(&self, table: &mut Table) -> usize {
        let place = table.holes.pop().unwrap_or_else(|| {
            table.chunks.push(None);
            table.chunks.len() - 1
        });
        table.chunks[place] = Some(Entry { chunk: Chunk::new(), free: ALL_FREE });
        table.vacant.push(place);
        // ORD relaxed: changed under the lock only; read outside as a hint.
        self.empty.fetch_add(1, Relaxed);
        place
    }

    /// Ends a registration.
    pub(crate) fn remove(&self, key: &Key) {
        key.source().retire(key.token.generation().wrapping_add(1) & GENERATION_MASK);
        let (place, slot) = (key.token.index() / SLOTS, key.token.index() % SLOTS);
        let mut table = self.lock();
        let entry = table.chunks[place].as_mut().expect("the chunk of a live key is in the table");
        debug_assert_eq!(entry.free & (1 << slot), 0, "a key is removed once");
        let was_full = entry.free == 0;
        entry.free |= 1 << slot;
        if entry.free == ALL_FREE {
            // ORD relaxed: changed under the lock only; read outside as a hint.
            self.empty.fetch_add(1, Relaxed);
        }
        if was_full {
            table.vacant.push(place);
        }
        // ORD relaxed: changed under the lock only; read outside as a hint.
        self.live.fetch_sub(1, Relaxed);
    }

    /// Refuses registrations from now on, and returns the chunks of all that exist.
    pub(crate) fn close(&self) -> Vec<Arc<Chunk>> {
        let mut table = self.lock();
        table.closed = true;
        table.chunks.iter().flatten().map(|entry| entry.chunk.clone()).collect()
    }

    /// Lets go of empty chunks, but for a spare one. Only for the reactor's thread.
    #[inline]
    pub(crate) fn trim(&self, view: &mut View) {
        // ORD relaxed: a hint; what it misses is found at the next turn.
        if self.empty.load(Relaxed) > SPARE_CHUNKS {
            self.trim_slow(view);
        }
    }

    #[cold]
    fn trim_slow(&self, view: &mut View) {
        let mut table = self.lock();
        let Table { chunks, vacant, holes, .. } = &mut *table;
        let empty = |place: usize| chunks[place].as_ref().is_some_and(|e| e.free == ALL_FREE);
        let surplus: Vec<usize> =
            vacant.iter().copied().filter(|&place| empty(place)).skip(SPARE_CHUNKS).collect();
        let mut freed = Vec::new();
        for &place in &surplus {
            freed.extend(chunks[place].take().map(|entry| entry.chunk));
            freed.extend(view.chunks.get_mut(place).and_then(Option::take));
            holes.push(place);
        }
        vacant.retain(|&place| chunks[place].is_some());
        // ORD relaxed: changed under the lock only; read outside as a hint.
        self.empty.fetch_sub(surplus.len(), Relaxed);
        drop(table);
        drop(freed);
    }
}

/// Ends the waits of all sources of the chunks that [`Slab::close`] returned.
pub(crate) fn shut_down(chunks: &[Arc<Chunk>]) {
    chunks.iter().flat_map(|chunk| &chunk.sources).for_each(Source::shut_down);
}

/// The places of the ones in `word`, from the lowest.
#[inline]
fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (word != 0).then(|| word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(place)
    })
}

/// The reactor's own copy of the table, which it reads without the lock.
#[derive(Default)]
pub(crate) struct View {
    chunks: Vec<Option<Arc<Chunk>>>,
    /// The reads that had been put off when the last looks ended. While there is one, its group is noted.
    old: Vec<Old>,
    /// For the next look.
    why: Why,
    guess: Guess,
    /// The events since the last look or wait began that were of reading, and those for somebody who waited for
    /// something else.
    useful: usize,
    /// The index of the slot of the last of the former.
    last_read: Option<usize>,
}

/// The reads of a chunk that were put off before the last look, the one before that, and a third one: a bit for
/// each slot, in one of them.
#[derive(Clone, Copy, Default)]
struct Old {
    last: u64,
    second: u64,
    third: u64,
}

impl Old {
    /// After a look, before which `stream` and `messages` were put off. Returns what is due.
    #[inline]
    fn age(&mut self, stream: u64, messages: u64, hurried: bool) -> u64 {
        // What is put off anew has had its event in time.
        let new = stream | messages;
        let [last, second, third] = [self.last, self.second, self.third].map(|old| old & !new);
        let (due, old) = if hurried {
            (second | third, Self { last: 0, second: stream, third: last | messages })
        } else {
            (third, Self { last: stream, second: last, third: second | messages })
        };
        *self = old;
        due
    }

    /// These reads have had their event.
    #[inline]
    fn forget(&mut self, slots: u64) {
        self.last &= !slots;
        self.second &= !slots;
        self.third &= !slots;
    }

    #[inline]
    fn all(self) -> u64 {
        self.last | self.second | self.third
    }

    /// The read that is guessed to have the next event, if `new` were put off since: a bit, or nothing.
    #[inline]
    fn expected(self, new: u64) -> u64 {
        guess::expected(new, [self.third, self.second, self.last].map(|old| old & !new))
    }
}

impl View {
    /// Delivers an event. Returns false if its registration has gone.
    #[inline]
    pub(crate) fn deliver(&mut self, slab: &Slab, token: Token, ready: Ready) -> bool {
        let place = token.index() / SLOTS;
        if !matches!(self.chunks.get(place), Some(Some(_))) {
            self.refresh(slab);
        }
        let Some(Some(chunk)) = self.chunks.get(place) else { return false };
        let slot = token.index() % SLOTS;
        let source = &chunk.sources[slot];
        let current = source.set(token.generation(), ready);
        if current {
            if ready.intersects(Ready::READ) {
                self.useful += 1;
                self.last_read = Some(token.index());
                self.old[place].forget(1 << slot);
            }
            self.useful += usize::from(source.wake(ready));
        }
        current
    }

    /// A look is next.
    pub(crate) fn looks(&mut self, why: Why) {
        self.why = why;
    }

    /// After a look that has delivered `events`, before which one was [`expected`](Self::expected): makes the
    /// reads that have been put off for long enough ([`Patience`]) worth a try; all of them if there was no
    /// event, since then the thread may be about to sleep; none in an early look. Returns how many.
    #[inline]
    pub(crate) fn remind(
        &mut self,
        unpark: &Unpark,
        events: usize,
        expected: Option<usize>,
    ) -> usize {
        let why = std::mem::take(&mut self.why);
        self.guess.looked(self.useful, self.last_read, expected);
        if why == Why::Early {
            return 0;
        }
        let (hurried, all) = (why == Why::Hurry, events == 0);
        ones(unpark.notes()).map(|group| self.remind_group(unpark, group, hurried, all)).sum()
    }

    /// A look or a wait begins.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.useful = 0;
        self.last_read = None;
    }

    /// The index of the slot whose read was put off and is guessed to have the next event, if there is one.
    #[inline]
    pub(crate) fn expected(&self, unpark: &Unpark) -> Option<usize> {
        let notes = unpark.notes();
        if !notes.is_power_of_two() || self.chunks.len() > NOTES {
            return None;
        }
        let place = notes.trailing_zeros() as usize;
        let (chunk, old) = (self.chunks.get(place)?.as_ref()?, self.old.get(place)?);
        // ORD relaxed: a hint.
        let [stream, messages] = chunk.put_off.each_ref().map(|new| new.load(Relaxed));
        let read = old.expected(stream | messages);
        (read != 0).then(|| place * SLOTS + read.trailing_zeros() as usize)
    }

    /// Instead of a look: makes the read that is expected to have an event worth a try, and those that a look
    /// would. False if none is, or it is time for a look.
    pub(crate) fn guess(
        &mut self,
        unpark: &Unpark,
        failures: &Failures,
        now: impl FnOnce() -> u64,
    ) -> bool {
        if !self.guess.spares_a_look(now, failures) {
            return false;
        }
        let Some(index) = self.expected(unpark) else { return false };
        let (place, slot) = (index / SLOTS, index % SLOTS);
        self.old[place].forget(1 << slot);
        let guessed = self.chunks[place].as_ref().is_some_and(|chunk| chunk.sources[slot].guess());
        if guessed {
            // Killed by `reactor::slab::model::a_guess_against_a_read_that_is_put_off_anew`.
            #[cfg(not(volt_mutant = "guess_drops_notes"))]
            self.remind_group(unpark, place, false, false);
            #[cfg(volt_mutant = "guess_drops_notes")]
            self.chunks[place].iter().flat_map(|chunk| &chunk.put_off).for_each(|new| {
                // ORD relaxed: of a mutant.
                new.swap(0, Relaxed);
            });
        }
        guessed
    }

    fn remind_group(&mut self, unpark: &Unpark, group: usize, hurried: bool, all: bool) -> usize {
        let (mut reminded, mut left, mut place) = (0, 0, group);
        // A read is put off after an event, so the chunk of each that was is known here.
        while let Some((chunk, old)) = self.chunks.get(place).zip(self.old.get_mut(place)) {
            place += NOTES;
            let Some(chunk) = chunk else { continue };
            let [stream, messages] = chunk.put_off.each_ref().map(|new| {
                // ORD relaxed: one that comes after this look is found by the next, for which there is a note.
                // ORD[RL1] acquire: that the reads were put off.
                if new.load(Relaxed) == 0 { 0 } else { new.swap(0, Acquire) }
            });
            let mut due = old.age(stream, messages, hurried);
            if all {
                due |= std::mem::take(old).all();
            }
            left |= old.all();
            reminded += ones(due).filter(|&slot| chunk.sources[slot].remind()).count();
        }
        if left == 0 {
            self.end_note(unpark, group);
        }
        reminded
    }

    /// Nothing was left in the group: the next read that is put off has to note it again.
    fn end_note(&self, unpark: &Unpark, group: usize) {
        unpark.end_note(group);
        // Killed by `reactor::slab::model::reads_of_two_sources_of_a_chunk_are_put_off`.
        #[cfg(not(volt_mutant = "note_ends_without_a_look"))]
        if self.has_notes(group) {
            // Nobody waits while this thread looks, so the note is taken.
            let _taken = unpark.note(group);
        }
    }

    /// Whether a read of the group was put off since the last look into its chunks.
    fn has_notes(&self, group: usize) -> bool {
        let chunks = self.chunks.iter().skip(group).step_by(NOTES).flatten();
        // ORD[RU3] acquire: SeqCst, after the end of the group's note.
        chunks.into_iter().flat_map(|chunk| &chunk.put_off).any(|new| new.load(SeqCst) != 0)
    }

    #[cold]
    fn refresh(&mut self, slab: &Slab) {
        let table = slab.lock();
        self.chunks.resize(table.chunks.len(), None);
        self.old.resize(table.chunks.len(), Old::default());
        for (known, entry) in self.chunks.iter_mut().zip(&table.chunks) {
            if known.is_none() {
                *known = entry.as_ref().map(|entry| entry.chunk.clone());
            }
        }
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_burst_is_given_back_but_for_a_spare_chunk() {
        let (slab, mut view) = (Slab::new(), View::default());
        let mut keys: Vec<Key> =
            (0..10 * SLOTS).map(|_| slab.insert(Ready::EMPTY, false).unwrap()).collect();
        assert_eq!(slab.len(), 10 * SLOTS);
        for key in &keys {
            assert!(view.deliver(&slab, key.token, Ready::READABLE));
        }
        let kept = keys.remove(5 * SLOTS + 3);
        keys.iter().for_each(|key| slab.remove(key));
        slab.trim(&mut view);
        let chunks = slab.lock().chunks.iter().flatten().count();
        assert_eq!(chunks, 1 + SPARE_CHUNKS);
        assert_eq!(view.chunks.iter().flatten().count(), chunks);
        // Only the keys of the test still hold the second chunk.
        assert_eq!(Arc::strong_count(&keys[SLOTS].chunk), SLOTS);
        assert!(kept.source().look(Ready::READ).is_some());
        // The places are used again.
        drop(keys);
        let keys: Vec<Key> =
            (0..10 * SLOTS).map(|_| slab.insert(Ready::EMPTY, false).unwrap()).collect();
        assert!(slab.lock().chunks.len() <= 11);
        keys.iter().for_each(|key| assert!(view.deliver(&slab, key.token, Ready::WRITABLE)));
    }

    #[test]
    fn an_event_for_an_earlier_registration_of_the_slot_is_void() {
        let (slab, mut view) = (Slab::new(), View::default());
        let first = slab.insert(Ready::EMPTY, false).unwrap();
        slab.remove(&first);
        let second = slab.insert(Ready::EMPTY, false).unwrap();
        assert_eq!(first.token.index(), second.token.index());
        assert!(!view.deliver(&slab, first.token, Ready::READABLE));
        assert!(second.source().look(Ready::READ).is_none());
        assert!(view.deliver(&slab, second.token, Ready::READABLE));
        assert!(!view.deliver(&slab, Token::new(1_000_000, 0), Ready::READABLE));
    }

    /// After how many looks with events a read of `patience` is made that was put off before the first one.
    fn looks_until_due(patience: Patience, hurried: bool) -> usize {
        let (slab, mut view, unpark) = (Slab::new(), View::default(), Unpark::new());
        let (key, other) = (slab.insert(Ready::EMPTY, false), slab.insert(Ready::EMPTY, false));
        let (key, other) = (key.unwrap(), other.unwrap());
        let put_off = |view: &mut View, key: &Key, patience| {
            assert!(view.deliver(&slab, key.token, Ready::READABLE));
            assert!(key.put_off(key.source().look(Ready::READ).unwrap(), patience, &unpark));
        };
        put_off(&mut view, &other, Patience::Stream);
        assert_eq!(view.remind(&unpark, 1, None), 0);
        put_off(&mut view, &key, patience);
        for looks in 1.. {
            // The other one has its event in time, and is put off anew.
            put_off(&mut view, &other, Patience::Stream);
            view.looks(if hurried { Why::Hurry } else { Why::Due });
            match view.remind(&unpark, 1, None) {
                0 => assert!(key.source().look(Ready::READ).is_none()),
                _ => {
                    assert!(key.source().look(Ready::READ).unwrap().is_reminder());
                    assert!(other.source().look(Ready::READ).is_none());
                    assert_eq!(view.remind(&unpark, 0, None), 1, "the other one, before a wait");
                    assert!(!unpark.has_notes());
                    slab.remove(&key);
                    slab.remove(&other);
                    return looks;
                }
            }
        }
        unreachable!()
    }

    #[test]
    fn a_read_of_a_stream_is_put_off_for_longer_than_one_of_a_message() {
        assert_eq!(looks_until_due(Patience::Messages, false), 2);
        assert_eq!(looks_until_due(Patience::Messages, true), 2);
        assert_eq!(looks_until_due(Patience::Stream, false), 4);
        assert_eq!(looks_until_due(Patience::Stream, true), 2);
    }

    #[test]
    fn nothing_is_inserted_after_the_close() {
        let slab = Slab::new();
        let key = slab.insert(Ready::EMPTY, false).unwrap();
        shut_down(&slab.close());
        assert!(key.source().look(Ready::EMPTY).unwrap().is_shutdown());
        assert!(slab.insert(Ready::EMPTY, false).is_none());
        slab.remove(&key);
        assert_eq!(slab.len(), 0);
    }
}
