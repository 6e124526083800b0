//! Vyukov's bounded ring, with capacity that can be reserved.
//!
//! Purpose: the data path of the bounded channels, but for those of many places. One read-modify-write to send and one to
//! receive, no fence. (D. Vyukov, "Bounded MPMC queue", 1024cores.net, 2010.)
//!
//! Departures from the original and the seed:
//! * Positions are kept shifted, so that wrapping arithmetic on `u64` is exact, and the bits below
//!   carry what a send must know anyway: whether the channel is closed, whether older senders wait,
//!   and how much capacity is reserved. All are checked by the comparison that claims a place.
//! * A place's stamp is the lap in which it may be written next, and bit 0 says that it is
//!   published. "Published" and "writable again" differ for every size of ring, so that capacity 1
//!   needs no second place. All stamps begin at zero: a large ring is not touched before it is used.
//!
//! Rejected: sequence numbers stored per place as positions (the seed): capacity 1 would need two
//! places and construction would write them all; `fetch_add` to claim: cannot refuse; one loop for
//! the plain case and the others: what it kept on the stack for them delayed each operation's
//! exchange, which waits for all earlier stores (a `try_send` took 7.2 ns, now 5.7); to begin a plain
//! claim with a load of the word that the last one has changed (`ring/cursor.rs`).
//!
//! ```text
//! tail  | position: 36 | reserved: 26 | WAITERS | CLOSED |
//! head  | position: 36 |            0: 28                |   (each with a guess of it beside it)
//! stamp | lap of the place, as a position | 0 ... 0 | PUBLISHED |
//! ```
//!
//! | Stamp of the place of position p | Meaning                                  |
//! |----------------------------------|------------------------------------------|
//! | lap(p)                           | free: a sender may claim p               |
//! | lap(p) + PUBLISHED               | full: a receiver may claim p             |
//! | lap(p) + one lap                 | free for p plus the length of the ring   |
//!
//! Invariants:
//! 1. head <= tail, and tail + reserved - head <= capacity <= length of the ring.
//! 2. The value of the place of p is accessed only by whoever moved the tail from p, until it
//!    publishes, and then by whoever moved the head from p, until it frees the place.
//! 3. WAITERS and an increase of `reserved` for a waiter happen under the channel's lock.
//! 4. Once CLOSED is set, only reserved capacity is sent.
//!
//! | Edge  | Release side | Acquire side | Carries | Model that fails without it |
//! |-------|--------------|--------------|---------|-----------------------------|
//! | [RG1] | `Free::publish` | `Ring::claim_head_once`, `Ring::claim_head`, `Ring::claim_only_head`, `Ring::take_many` | the value | `channel::bounded::model::a_value_arrives_with_its_writes`, `channel::ring::model::messages_and_places_change_hands_in_every_way` |
//! | [RG2] | `Full::take`, `Ring::take_many` | `Ring::claim_tail_once`, `Ring::claim_tail`, `Ring::claim_slow`, `Ring::claim_reserved` | that the place is empty | `channel::bounded::model::a_place_is_reused_after_its_value_left`, `channel::ring::model::messages_and_places_change_hands_in_every_way`, `channel::ring::model::a_place_whose_receiver_was_overtaken_is_reused_after_it_left` |
//! | [RG3] | moves of the tail | `Ring::look` | the claimed place, for a receiver that is about to sleep | none: loom sees fences instead. Litmus test `order_channel::weak_orders_of_the_flag_or_the_tail_lose_a_wake_up` of volt-models |
//! | [RG4] | moves of the head | `Ring::claim_slow`, `Ring::reserve` | the freed place, for a sender that is about to sleep | none: as [RG3]; and `order_channel::a_sleeping_sender_or_the_only_receivers_free_place_is_seen` |
//! | [RG5] | `Full::take`, `Ring::take_many` | `Ring::has_free_place` | the move of the head, on to whoever sees the tail moved | `channel::ring::model::nobody_sees_more_messages_than_fit` |
//!
//! Progress: a sender paused between claim and publication blocks the receivers of its place, one
//! paused receiver the senders of its place one lap later: they see `Busy` and come back. Claims
//! themselves are lock-free. A stale operation would need to be paused for exactly a multiple of
//! 2^36 operations (about ten minutes at full speed) to be mistaken.
//!
//! Cost: a claim and what follows is 1 RMW and 3 stores without contention. A claim that lost to another thread
//! backs off, so that the winner does several operations with the cache lines to itself.

use std::fmt;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use self::cursor::Cursor;
pub(crate) use self::place::{Free, Full};
use self::place::{PUBLISHED, Place, places};
use super::{BackOff, Nothing, Refused};
use crate::cache_padded::{Gap, Spaced};
use crate::first_panic::FirstPanic;

const CLOSED: u64 = 1;
const WAITERS: u64 = 2;
const RESERVED_ONE: u64 = 4;
const SHIFT: u32 = 28;
/// One position.
const ONE: u64 = 1 << SHIFT;
const RESERVED: u64 = ONE - RESERVED_ONE;
/// The bits below a position.
const LOW: u64 = ONE - 1;

/// The largest capacity of a ring: all of its places can be reserved at once, and the count of the reserved ones
/// shares a word with the position of the next message.
const MAX_CAPACITY: usize = (1 << 26) - 1;

/// A copy of the tail's word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tail(u64);

impl Tail {
    pub(crate) fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    /// True if senders wait.
    pub(crate) fn has_waiters(self) -> bool {
        self.0 & WAITERS != 0
    }

    pub(crate) fn reserved(self) -> usize {
        ((self.0 & RESERVED) / RESERVED_ONE) as usize
    }

    /// True if nothing can be sent any more.
    pub(crate) fn is_final(self) -> bool {
        self.0 & (CLOSED | RESERVED) == CLOSED
    }

    fn position(self) -> u64 {
        self.0 & !LOW
    }

    /// The number of claimed places from `head` on. `None` if `head` is ahead, because the tail is
    /// older (finding C8: without this look a stale tail makes a ring "full").
    fn ahead_of(self, head: u64) -> Option<usize> {
        let distance = self.position().wrapping_sub(head);
        (distance.cast_signed_() >= 0).then_some((distance >> SHIFT) as usize)
    }
}

/// `u64::cast_signed`, which is younger than the oldest supported compiler.
trait CastSigned {
    fn cast_signed_(self) -> i64;
}

impl CastSigned for u64 {
    fn cast_signed_(self) -> i64 {
        self as i64
    }
}

#[repr(C)]
pub(crate) struct Ring<T> {
    places: Box<[Place<T>]>,
    /// The index's bits of a position, shifted down.
    mask: usize,
    /// The lap's bits of a position; as a distance, one lap backwards.
    lap_mask: u64,
    capacity: usize,
    _niche: Niche,
    _gap: Gap,
    tail: Spaced<Cursor>,
    head: Spaced<Cursor>,
}

/// A byte with one value: the others tell an enum around the ring apart, in the line that each operation loads anyway.
#[repr(u8)]
enum Niche {
    Ring,
}

// SAFETY: values move through the ring from one thread to another, one accessor at a time
// (invariant 2).
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above, for the same reason.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    /// An empty ring.
    ///
    /// # Panics
    /// If `capacity` is zero or above [`MAX_CAPACITY`].
    #[inline(always)]
    pub(crate) fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a ring needs a capacity above zero");
        assert!(capacity <= MAX_CAPACITY, "a ring holds at most {MAX_CAPACITY} messages");
        let length = capacity.next_power_of_two();
        Self {
            places: places(length),
            mask: length - 1,
            lap_mask: ((length as u64) << SHIFT).wrapping_neg(),
            capacity,
            _niche: Niche::Ring,
            _gap: Gap::GAP,
            tail: Spaced::new(Cursor::new(0)),
            head: Spaced::new(Cursor::new(0)),
        }
    }

    /// How much memory the places of such a ring take.
    pub(crate) fn bytes(capacity: usize) -> usize {
        let length = capacity.checked_next_power_of_two().unwrap_or(usize::MAX);
        length.saturating_mul(size_of::<Place<T>>())
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    #[inline]
    fn place(&self, position: u64) -> &Place<T> {
        let index = (position >> SHIFT) as usize & self.mask;
        // SAFETY: the mask is the length less one, so the index is below the length.
        unsafe { self.places.get_unchecked(index) }
    }

    /// The stamp of a place that may be written for `position`.
    #[inline]
    fn free_stamp(&self, position: u64) -> u64 {
        position & self.lap_mask
    }

    /// The stamp of a place that may be written for the position one lap behind `position`.
    #[inline]
    fn next_stamp(&self, position: u64) -> u64 {
        self.free_stamp(position).wrapping_sub(self.lap_mask)
    }

    /// What a claim makes that has made `next` of the tail, of a place with the stamp `free`.
    #[inline(always)]
    fn claimed<'a>(&'a self, place: &'a Place<T>, free: u64, next: u64) -> Free<'a, T> {
        Free { place, published: free | PUBLISHED, tail: (&self.tail, next) }
    }

    /// What a claim makes that has made `next` of the head, of a place that was free with this stamp.
    #[inline(always)]
    fn taken<'a>(&'a self, place: &'a Place<T>, free: u64, next: u64) -> Full<'a, T> {
        Full { place, free: free.wrapping_sub(self.lap_mask), head: (&self.head, next) }
    }

    // ------------------------------------------------------------------ senders

    /// Claims a place for one message if that is plain: nobody waits, nothing is reserved (or
    /// `also_reserved`: the stamps alone say that there is room behind it), the place is free, and no
    /// other sender comes in between. `None` says only that this was not so.
    #[inline]
    pub(crate) fn claim_tail_once(&self, also_reserved: bool) -> Option<Free<'_, T>> {
        let tail = self.tail.guess();
        let plain = tail & LOW == 0 && self.capacity == self.mask.wrapping_add(1);
        if !(plain || also_reserved && self.has_free_place(Tail(tail))) {
            return None;
        }
        let place = self.place(tail);
        let stamp = self.free_stamp(tail);
        // ORD[RG2] acquire: the last receiver has left the place.
        if place.stamp.load(Acquire) != stamp {
            return None;
        }
        let next = tail.wrapping_add(ONE);
        // ORD[RG3] release: SeqCst, since the sender loads the receivers' flag next.
        // ORD relaxed: a failure says nothing.
        self.tail.compare_exchange(tail, next, SeqCst, Relaxed).ok()?;
        Some(self.claimed(place, stamp, next))
    }

    /// Claims a place for one message.
    pub(crate) fn claim_tail(&self) -> Result<Free<'_, T>, Refused> {
        let mut back_off = BackOff::new();
        // ORD relaxed: a hint; the exchange below decides.
        let mut tail = self.tail.load(Relaxed);
        loop {
            if !self.has_free_place(Tail(tail)) {
                return self.claim_slow(back_off);
            }
            let place = self.place(tail);
            let stamp = self.free_stamp(tail);
            // ORD[RG2] acquire: the last receiver has left the place.
            if place.stamp.load(Acquire) != stamp {
                return self.claim_slow(back_off);
            }
            let next = tail.wrapping_add(ONE);
            // ORD[RG3] release: SeqCst, since the sender loads the receivers' flag next.
            // ORD relaxed: a failure only says where to try again.
            if self.tail.compare_exchange(tail, next, SeqCst, Relaxed).is_ok() {
                return Ok(self.claimed(place, stamp, next));
            }
            back_off.lost();
            // ORD relaxed: a hint, as above.
            tail = self.tail.load(Relaxed);
        }
    }

    /// True if, seen from the stamps alone, there is room behind what is reserved: the head need
    /// not be asked. The place that was used a capacity ago is free again, so the head has passed
    /// it.
    #[inline]
    fn has_free_place(&self, tail: Tail) -> bool {
        let used = self.capacity.wrapping_sub(tail.reserved());
        let before = tail.position().wrapping_sub((used as u64) << SHIFT);
        tail.0 & (CLOSED | WAITERS) == 0
            // ORD[RG5] acquire: the head as it was moved past that place.
            && self.place(before).stamp.load(Acquire) == self.next_stamp(before)
    }

    /// With the head asked.
    #[inline(never)]
    fn claim_slow(&self, mut back_off: BackOff) -> Result<Free<'_, T>, Refused> {
        loop {
            // ORD relaxed: read anew in the exchange below; order against the head see `room`.
            let tail = Tail(self.tail.load(SeqCst));
            if tail.is_closed() {
                // A sender that was slower than the close may have left an older one.
                self.tail.leave_guess(tail.0);
                return Err(Refused::Closed);
            }
            if tail.has_waiters() {
                return Err(Refused::Full);
            }
            match self.room(tail) {
                None => continue,
                Some(0) => return Err(Refused::Full),
                Some(_) => {}
            }
            let place = self.place(tail.0);
            let free = self.free_stamp(tail.0);
            // ORD[RG2] acquire: the last receiver has left the place.
            let stamp = place.stamp.load(Acquire);
            if stamp == free {
                let next = tail.0.wrapping_add(ONE);
                // ORD[RG3] release: SeqCst, since the sender loads the receivers' flag next.
                if self.tail.compare_exchange(tail.0, next, SeqCst, Relaxed).is_ok() {
                    return Ok(self.claimed(place, free, next));
                }
                back_off.lost();
            } else if stamp.wrapping_sub(free).cast_signed_() < 0 {
                return Err(Refused::Busy);
            }
        }
    }

    /// Places that are neither claimed nor reserved. `None` if `tail` is out of date.
    ///
    /// If it is zero, it was so when `tail` was loaded, since the head only grows.
    fn room(&self, tail: Tail) -> Option<usize> {
        // ORD[RG4] acquire: SeqCst, since a sender that is about to sleep has stored its flag.
        let head = self.head.load(SeqCst);
        // Finding C8: a head that is ahead of the tail means an old tail.
        // Killed by `channel::ring::model::a_stale_tail_is_not_a_full_ring`.
        #[cfg(not(volt_mutant = "channel_c8"))]
        let used = tail.ahead_of(head)?;
        #[cfg(volt_mutant = "channel_c8")]
        let used = tail.ahead_of(head).unwrap_or(self.capacity);
        Some(self.capacity.saturating_sub(used + tail.reserved()))
    }

    /// Reserves `count` places. Past waiting senders only none, or if it `overtake`s: for their own service.
    pub(crate) fn reserve(&self, count: usize, overtake: bool) -> Result<(), Refused> {
        loop {
            // ORD relaxed: the exchange below decides; order against the head see `room`.
            let tail = Tail(self.tail.load(SeqCst));
            if tail.is_closed() {
                return Err(Refused::Closed);
            }
            if tail.has_waiters() && !overtake && count > 0 {
                return Err(Refused::Full);
            }
            match self.room(tail) {
                None => continue,
                Some(room) if room < count => return Err(Refused::Full),
                Some(_) => {}
            }
            let next = tail.0 + count as u64 * RESERVED_ONE;
            // ORD relaxed: reserving publishes nothing; the claim that uses it does.
            if self.tail.compare_exchange_weak(tail.0, next, Relaxed, Relaxed).is_ok() {
                self.tail.leave_guess(next);
                return Ok(());
            }
        }
    }

    /// Gives reserved places back. Returns the tail as it was before.
    pub(crate) fn unreserve(&self, count: usize) -> Tail {
        // ORD[RG3] release: SeqCst, since receivers may wait for the end of the last reservation.
        Tail(self.tail.fetch_sub(count as u64 * RESERVED_ONE, SeqCst))
    }

    /// Claims a place for a message whose capacity is reserved. `Busy` if a receiver has still to
    /// leave that place; `Closed` unless the reservation outlives the close. Also returns the tail
    /// as it was before.
    ///
    /// The caller owns one reservation, which the claim uses up.
    pub(crate) fn claim_reserved(&self, also_closed: bool) -> Result<(Free<'_, T>, Tail), Refused> {
        let mut back_off = BackOff::new();
        // ORD relaxed: a hint; the exchange below decides.
        let mut tail = self.tail.load(Relaxed);
        loop {
            if tail & CLOSED != 0 && !also_closed {
                return Err(Refused::Closed);
            }
            let place = self.place(tail);
            let free = self.free_stamp(tail);
            // ORD[RG2] acquire: the last receiver has left the place.
            if place.stamp.load(Acquire) != free {
                // ORD relaxed: a hint, as above.
                let now = self.tail.load(Relaxed);
                if now == tail {
                    return Err(Refused::Busy);
                }
                tail = now;
                continue;
            }
            let next = tail.wrapping_add(ONE) - RESERVED_ONE;
            // ORD[RG3] release: SeqCst, since the sender loads the receivers' flag next.
            // ORD relaxed: a failure only says where to try again.
            if self.tail.compare_exchange(tail, next, SeqCst, Relaxed).is_ok() {
                return Ok((self.claimed(place, free, next), Tail(tail)));
            }
            back_off.lost();
            // ORD relaxed: a hint, as above.
            tail = self.tail.load(Relaxed);
        }
    }

    // ------------------------------------------------------------------ receivers

    /// Claims the oldest message if that is plain: it is published, and no other receiver comes in
    /// between. `None` says only that this was not so.
    #[inline]
    pub(crate) fn claim_head_once(&self) -> Option<Full<'_, T>> {
        let head = self.head.guess();
        let place = self.place(head);
        let stamp = self.free_stamp(head);
        // ORD[RG1] acquire: the value, if it is published.
        if place.stamp.load(Acquire) != stamp | PUBLISHED {
            return None;
        }
        let next = head.wrapping_add(ONE);
        // ORD[RG4] release: SeqCst, since the receiver loads the senders' flag next.
        // ORD relaxed: a failure says nothing.
        self.head.compare_exchange(head, next, SeqCst, Relaxed).ok()?;
        Some(self.taken(place, stamp, next))
    }

    /// Claims the oldest message, against other receivers.
    pub(crate) fn claim_head(&self) -> Result<Full<'_, T>, Nothing> {
        let mut back_off = BackOff::new();
        // ORD relaxed: a hint; the exchange below decides.
        let mut head = self.head.load(Relaxed);
        loop {
            let place = self.place(head);
            let stamp = self.free_stamp(head);
            // ORD[RG1] acquire: the value, if it is published.
            if place.stamp.load(Acquire) != stamp | PUBLISHED {
                if let Some(nothing) = self.nothing(head) {
                    return Err(nothing);
                }
            } else {
                let next = head.wrapping_add(ONE);
                // ORD[RG4] release: SeqCst, since the receiver loads the senders' flag next.
                // ORD relaxed: a failure only says where to try again.
                if self.head.compare_exchange(head, next, SeqCst, Relaxed).is_ok() {
                    return Ok(self.taken(place, stamp, next));
                }
                back_off.lost();
            }
            // ORD relaxed: a hint, as above.
            head = self.head.load(Relaxed);
        }
    }

    /// The head, for those who have the obligations of [`claim_only_head`](Self::claim_only_head), which rests on it.
    #[inline]
    fn only_head(&self) -> u64 {
        let head = self.head.guess();
        // ORD relaxed: only this thread moves it.
        debug_assert_eq!(head, self.head.load(Relaxed), "another claim is not used up");
        head
    }

    /// Claims the oldest message: as [`claim_head`](Self::claim_head), without competitors.
    ///
    /// # Safety
    /// 1. No other thread claims the head at the same time.
    /// 2. Each earlier claim of the head was used up before the next one was made, and the last one before this
    ///    call (`ring/cursor.rs`, invariant 2).
    #[inline]
    pub(crate) unsafe fn claim_only_head(&self) -> Result<Full<'_, T>, Nothing> {
        let head = self.only_head();
        let place = self.place(head);
        let stamp = self.free_stamp(head);
        // ORD[RG1] acquire: the value, if it is published.
        if place.stamp.load(Acquire) != stamp | PUBLISHED {
            return Err(self.nothing(head).unwrap_or(Nothing::Busy));
        }
        let next = head.wrapping_add(ONE);
        // ORD[RG4] release: SeqCst, since the receiver loads the senders' flag next.
        self.head.store(next, SeqCst);
        Ok(self.taken(place, stamp, next))
    }

    /// Moves up to `limit` messages into `into`, with one move of the head for all of them.
    ///
    /// # Safety
    /// 1. No other thread claims the head at the same time.
    /// 2. Each earlier claim of the head was used up before the next one was made, and the last one before this
    ///    call (`ring/cursor.rs`, invariant 2).
    pub(crate) unsafe fn take_many(
        &self,
        into: &mut Vec<T>,
        limit: usize,
    ) -> Result<usize, Nothing> {
        let first = self.only_head();
        // More may be published meanwhile; they are for the next call.
        let limit = limit.min(self.snapshot().0);
        into.reserve(limit);
        let mut head = first;
        let mut count = 0;
        while count < limit {
            let place = self.place(head);
            // ORD[RG1] acquire: the value, if it is published.
            if place.stamp.load(Acquire) != self.free_stamp(head) | PUBLISHED {
                break;
            }
            // SAFETY: published, and nobody else claims the head (obligation): the value is ours.
            let value = place.value.with(|place| unsafe { place.read() });
            // SAFETY: a published place holds a value. There is room, so this cannot panic before
            // the head moves.
            into.push(unsafe { value.assume_init() });
            head = head.wrapping_add(ONE);
            count += 1;
        }
        if count == 0 {
            return Err(self.nothing(first).unwrap_or(Nothing::Busy));
        }
        // ORD[RG4] release: SeqCst, since the receiver loads the senders' flag next.
        self.head.store(head, SeqCst);
        let mut at = first;
        while at != head {
            // ORD[RG2] release: the place is empty. The same
            // ORD[RG5] release: for those who have another place.
            self.place(at).stamp.store(self.next_stamp(at), Release);
            at = at.wrapping_add(ONE);
        }
        self.head.leave_guess(head);
        Ok(count)
    }

    /// Why there was nothing at `head`. `None` if `head` is out of date.
    #[inline(never)]
    fn nothing(&self, head: u64) -> Option<Nothing> {
        // ORD[RG3] acquire: SeqCst: a claimed place is seen before the receiver sleeps.
        let tail = Tail(self.tail.load(SeqCst));
        if tail.position() == head {
            // The head is not behind: it never passes the tail, which was here after it.
            return Some(if tail.is_final() { Nothing::Closed } else { Nothing::Empty });
        }
        // Finding C7: not "closed", although the bit may be set: there is a message left.
        // Killed by `channel::ring::model::a_message_that_is_being_written_is_not_the_end`.
        #[cfg(not(volt_mutant = "channel_c7"))]
        let closed = false;
        #[cfg(volt_mutant = "channel_c7")]
        let closed = tail.is_closed();
        if closed {
            return Some(Nothing::Closed);
        }
        // ORD relaxed: a hint; whoever is told `Busy` comes back.
        let unchanged = self.head.load(Relaxed) == head;
        // Finding C6: nor "empty".
        // Killed by `channel::bounded::model::nobody_sleeps_beside_an_unpublished_place`.
        #[cfg(not(volt_mutant = "channel_c6"))]
        let nothing = Nothing::Busy;
        #[cfg(volt_mutant = "channel_c6")]
        let nothing = Nothing::Empty;
        unchanged.then_some(nothing)
    }

    // ------------------------------------------------------------------ both

    /// What a receiver that is about to sleep must know: `None` if it may, since the ring is empty.
    pub(crate) fn look(&self) -> Option<Nothing> {
        // ORD relaxed: SeqCst only to be before the tail: an old head makes the ring non-empty.
        let head = self.head.load(SeqCst);
        // ORD[RG3] acquire: SeqCst: a place claimed by a sender that missed the flag is seen.
        let tail = Tail(self.tail.load(SeqCst));
        match tail.position() == head {
            true if tail.is_final() => Some(Nothing::Closed),
            true => None,
            // Finding C6: claimed, but not published, is no reason to sleep.
            // Killed by `channel::bounded::model::nobody_sleeps_beside_an_unpublished_place`.
            #[cfg(not(volt_mutant = "channel_c6"))]
            false => Some(Nothing::Busy),
            #[cfg(volt_mutant = "channel_c6")]
            false => None,
        }
    }

    /// The tail now.
    pub(crate) fn tail(&self) -> Tail {
        // ORD[RG3] acquire: callers read it as a snapshot.
        Tail(self.tail.load(SeqCst))
    }

    /// Sets CLOSED. Returns the tail as it was before.
    pub(crate) fn close(&self) -> Tail {
        // ORD[RG3] release: SeqCst, since the closer loads nothing but takes the lock next.
        Tail(self.tail.fetch_or(CLOSED, SeqCst))
    }

    /// Sets or clears WAITERS, under the channel's lock. Returns the tail as it was before.
    pub(crate) fn set_waiters(&self, waiters: bool) -> Tail {
        // ORD relaxed: the bit only refuses newcomers; the senders' flag and the lock order the rest.
        Tail(match waiters {
            true => self.tail.fetch_or(WAITERS, SeqCst),
            false => self.tail.fetch_and(!WAITERS, SeqCst),
        })
    }

    /// The number of messages, and of free places.
    pub(crate) fn snapshot(&self) -> (usize, usize) {
        loop {
            let tail = self.tail();
            // ORD[RG4] acquire: as the tail.
            let head = self.head.load(SeqCst);
            // ORD relaxed: repeated until the tail did not move in between.
            if Tail(self.tail.load(SeqCst)) != tail {
                continue;
            }
            let len = tail.ahead_of(head).unwrap_or(0);
            return (len, self.capacity.saturating_sub(len + tail.reserved()));
        }
    }
}

impl<T> Drop for Ring<T> {
    /// # Panics
    /// If the drop of a message does, with the first such panic, when all are gone.
    fn drop(&mut self) {
        if !std::mem::needs_drop::<T>() {
            return;
        }
        let mut panic = FirstPanic::new();
        // Not as the only receiver: of several, the slowest has left the guess.
        while let Ok(full) = self.claim_head() {
            let message = full.take();
            panic.catch(|| drop(message));
        }
        panic.resume();
    }
}

impl<T> fmt::Debug for Ring<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, free) = self.snapshot();
        let tail = self.tail();
        f.debug_struct("Ring")
            .field("capacity", &self.capacity)
            .field("len", &len)
            .field("free", &free)
            .field("closed", &tail.is_closed())
            .finish()
    }
}

mod cursor;
mod place;

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
