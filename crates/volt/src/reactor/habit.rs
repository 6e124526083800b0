//! Whether it is any use to ask a source for more after a read that may have left something.
//!
//! A read that filled its buffer, or took one datagram, does not tell whether there is more, and where
//! messages are awaited one by one there never is: the next read fails, which costs as much as a
//! system call. After some of those in a row ([`TRUST`]) the next read is put off instead: an event says when
//! there is something, as after a read that has found nothing. What had been left in there makes no
//! event, so the reactor's thread sees to it that the read is made before it waits (`View::remind`).
//! If that is often necessary, the habit is unlearned: there is something left, or waiting for events
//! is the rule here, and then to put a read off costs more than it saves. An event before the reminder, or a guess that
//! stands for one, earns a credit of 1, a reminder costs [`PRICE`]. What is found after one tells nothing: it may
//! have come meanwhile. (So who needs two reads for each fifth message keeps the habit, and makes the second of
//! these when it is reminded.)
//! The habit is unlearned at once if somebody asks
//! again before there was an event: then nobody waits for one here, and a read that fails is an answer.
//!
//! Rejected: one habit for all sources of a reactor (one that waits long would teach the others);
//! `TCP_INQ`, FIONREAD and level-triggered events, see `docs/design/net.md`.
//!
//! Ordering: all relaxed and without read-modify-writes, since it only decides when to ask; readers at
//! the same time may lose each other's changes.
//!
//! Cost: a load and a store each.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::AtomicU64;

use super::slab::Patience;
use super::source::Event;

/// After so many reads in vain the next one is put off, at first and at most: each time that the habit is
/// unlearned it takes twice as many, since what learning again costs is spread over as many messages. More than one
/// at first, since a message that is read in parts (its length, then the rest) has one in vain as well.
const TRUST: std::ops::RangeInclusive<u8> = 3..=63;
/// After so many reads in a row that were put off, and had an event, one is made all the same: an event does not
/// tell whether a read before it has left something, and else what is left could grow for ever.
const PUT_OFF: u8 = 32;
/// What a reminder costs, in events. So reads are put off where four of five have an event in time: one that is
/// made in vain costs less than twice what one saves that is not made.
const PRICE: u8 = 4;
/// The most credit: so a few reminders in a row end the habit that had the best of reputations.
const MOST_CREDIT: u8 = 8 * PRICE;
/// Whether data makes an event although no read has failed since the last: epoll does, and `mio`'s
/// Windows does not.
const EVENTS_WITHOUT_FAILURE: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// See the module's documentation. One for each registration.
#[derive(Debug)]
pub(super) struct Habit(AtomicU64);

/// What it has in its word.
#[derive(Clone, Copy)]
struct State {
    /// Of the last event after which a read may have left something; 24 bits.
    tick: u32,
    /// Reads in vain up to `trust`, and beyond it those that were put off in a row.
    count: u8,
    trust: u8,
    credit: u8,
    /// What a read leaves waits in a stream, where nothing is lost meanwhile.
    stream: bool,
}

impl State {
    #[inline]
    const fn is_trusted(self) -> bool {
        self.count >= self.trust && self.count <= self.trust + PUT_OFF
    }

    /// Nothing is known, and it takes `trust` reads in vain to learn.
    const fn new(trust: u8) -> Self {
        Self { tick: 0, count: 0, trust, credit: 0, stream: false }
    }

    /// What was learnt does not hold.
    fn unlearnt(self) -> Self {
        let learnt = self.count >= self.trust;
        let trust = if learnt { 2 * self.trust + 1 } else { self.trust };
        Self::new(trust.min(*TRUST.end()))
    }
}

impl Habit {
    pub(super) fn new() -> Self {
        let habit = Self(AtomicU64::new(0));
        // Not the tick of a source that has had no event.
        habit.store(State { tick: 0xff_ffff, ..State::new(*TRUST.start()) });
        habit
    }

    #[inline]
    fn load(&self) -> State {
        // ORD relaxed: see the module's documentation; the store below likewise.
        let [t0, t1, t2, count, credit, stream, trust, _] = self.0.load(Relaxed).to_le_bytes();
        let tick = u32::from_le_bytes([t0, t1, t2, 0]);
        State { tick, count, trust, credit, stream: stream != 0 }
    }

    #[inline]
    fn store(&self, State { tick, count, trust, credit, stream }: State) {
        let [t0, t1, t2, _] = tick.to_le_bytes();
        let word = [t0, t1, t2, count, credit, u8::from(stream), trust, 0];
        // ORD relaxed: see `load`.
        self.0.store(u64::from_le_bytes(word), Relaxed);
    }

    /// Whether the read after `event` will find nothing, going by those before.
    #[inline]
    pub(super) fn expects_nothing(&self, event: Event) -> bool {
        let habit = self.load();
        if !habit.is_trusted() {
            return false;
        }
        let taken = habit.tick == event.tick();
        if !event.is_reminder() {
            return taken;
        }
        if !taken {
            self.pay(habit);
        }
        false
    }

    /// There was a reminder.
    #[cold]
    fn pay(&self, habit: State) {
        match habit.credit.checked_sub(PRICE) {
            Some(credit) => self.store(State { credit, ..habit }),
            None => self.unlearn(),
        }
    }

    /// How long a read may be put off.
    #[inline]
    pub(super) fn patience(&self) -> Patience {
        if self.load().stream { Patience::Stream } else { Patience::Messages }
    }

    /// A read after `event` has found something and may have left more.
    #[inline]
    pub(super) fn took(&self, event: Event, patience: Patience) {
        if !EVENTS_WITHOUT_FAILURE {
            return;
        }
        let (habit, tick, stream) = (self.load(), event.tick(), patience == Patience::Stream);
        if habit.tick == tick {
            // Without an event since the last such read, that one had left this.
            return self.store(State { tick, stream, ..habit.unlearnt() });
        }
        let earned = habit.is_trusted();
        let credit = habit.credit + u8::from(earned && !event.is_reminder());
        let credit = credit.min(MOST_CREDIT);
        let count = habit.count + u8::from(earned);
        self.store(State { tick, count, credit, stream, ..habit });
    }

    /// Somebody asks again, and there was no event since `tick`.
    #[inline]
    pub(super) fn asked_again(&self, tick: u32) {
        let habit = self.load();
        if habit.tick == tick && habit.count > 0 {
            self.unlearn();
        }
    }

    /// What was learnt does not hold.
    pub(super) fn unlearn(&self) {
        self.store(self.load().unlearnt());
    }

    /// A read after `event` has found something and left nothing.
    #[inline]
    pub(super) fn emptied(&self, event: Event) {
        self.asked_again(event.tick());
    }

    /// A read after `event` has found nothing. Returns whether one before it had found something.
    #[inline]
    pub(super) fn failed(&self, event: Event) -> bool {
        let habit = self.load();
        let had_taken = habit.tick == event.tick();
        if had_taken {
            let credit = if habit.count < habit.trust { PRICE } else { habit.credit };
            self.store(State { count: habit.trust.min(habit.count + 1), credit, ..habit });
        }
        had_taken
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::super::source::Source;
    use super::*;
    use crate::io::Ready;

    /// A source from which one reader awaits messages of exactly the size of its buffer.
    struct Reader {
        source: Source,
        habit: Habit,
    }

    impl Reader {
        /// One that has just learnt to put reads off.
        fn trained() -> Self {
            let reader = Self { source: Source::new(), habit: Habit::new() };
            for _ in 0..*TRUST.start() {
                assert!(!reader.takes_a_message(), "not before it has learnt");
                reader.asks_in_vain();
            }
            reader
        }

        fn event(&self) -> Event {
            self.source.look(Ready::READ).expect("readable")
        }

        /// An event, and the read of its message. Returns whether the next read is put off.
        fn takes_a_message(&self) -> bool {
            self.source.set(0, Ready::READABLE);
            assert!(!self.habit.expects_nothing(self.event()), "there is a new event");
            self.habit.took(self.event(), Patience::Stream);
            let event = self.event();
            self.habit.expects_nothing(event) && self.source.put_off(event)
        }

        /// Messages whose reads are put off, and whose successors come in time.
        fn takes_messages(&self, count: u8) {
            for k in 0..count {
                assert!(self.takes_a_message(), "after {k} messages");
            }
        }

        /// A read that finds nothing.
        fn asks_in_vain(&self) {
            let event = self.event();
            self.habit.failed(event);
            self.source.clear(event, Ready::READABLE);
        }

        /// No event in time: the read that was put off is made, in vain.
        fn is_reminded(&self) {
            assert!(self.source.remind(), "a read was put off");
            assert!(!self.habit.expects_nothing(self.event()), "a reminder is followed by a read");
            self.asks_in_vain();
        }
    }

    #[test]
    fn a_reminder_for_every_four_events_in_time_does_not_end_the_habit() {
        let reader = Reader::trained();
        let (mut put_off, rounds) = (0, 100);
        for _ in 0..rounds {
            for _ in 0..PRICE {
                if reader.takes_a_message() {
                    put_off += 1;
                } else {
                    reader.asks_in_vain();
                }
            }
            if reader.takes_a_message() {
                put_off += 1;
                reader.is_reminded();
            } else {
                reader.asks_in_vain();
            }
        }
        // One of each 33 is made all the same.
        let all = rounds * (u32::from(PRICE) + 1);
        assert!(put_off >= all - all / 32 - 1, "{put_off} of {all}");
    }

    #[test]
    fn reminders_in_a_row_end_the_habit() {
        // The message before each reminder earns 1.
        for (messages, expected) in [(0, 2), (8, 5), (20, 9)] {
            let reader = Reader::trained();
            reader.takes_messages(messages);
            let mut reminders = 0;
            while reader.takes_a_message() {
                reader.is_reminded();
                reminders += 1;
                assert!(reminders <= expected, "after {messages} messages");
            }
            assert_eq!(reminders, expected, "after {messages} messages");
            reader.asks_in_vain();
            assert!(!reader.takes_a_message(), "it learns anew");
        }
    }

    #[test]
    fn it_takes_twice_as_long_to_learn_again() {
        let reader = Reader::trained();
        for expected in [7, 15, 31, 63, 63] {
            while reader.takes_a_message() {
                reader.is_reminded();
            }
            let mut in_vain = 0;
            loop {
                reader.asks_in_vain();
                in_vain += 1;
                if reader.takes_a_message() {
                    break;
                }
            }
            assert_eq!(in_vain, expected);
            reader.is_reminded();
        }
    }

    #[test]
    fn what_a_read_has_left_ends_the_habit_at_once() {
        let reader = Reader::trained();
        reader.takes_messages(3);
        // A second read after the same event finds something.
        reader.source.set(0, Ready::READABLE);
        reader.habit.took(reader.event(), Patience::Stream);
        reader.habit.took(reader.event(), Patience::Stream);
        reader.asks_in_vain();
        assert!(!reader.takes_a_message());
    }

    #[test]
    fn messages_in_two_parts_teach_nothing() {
        let reader = Reader { source: Source::new(), habit: Habit::new() };
        for _ in 0..100 {
            assert!(!reader.takes_a_message(), "its length");
            reader.habit.took(reader.event(), Patience::Stream);
            assert!(!reader.habit.expects_nothing(reader.event()), "after the rest of it");
            reader.asks_in_vain();
        }
    }

    #[test]
    fn who_asks_again_without_an_event_ends_the_habit_at_once() {
        let reader = Reader::trained();
        reader.takes_messages(3);
        let tick = reader.source.unreadable_since().expect("its read was put off");
        reader.habit.asked_again(tick);
        assert!(!reader.takes_a_message());
    }
}
