//! Whether it is any use to ask a source for more after a read that may have left something.
//!
//! A read that filled its buffer, or took one datagram, does not tell whether there is more, and where
//! messages are awaited one by one there never is: the next read fails, which costs as much as a
//! system call. After [`TRUST`] of those in a row the next read is put off instead: an event says when
//! there is something, as after a read that has found nothing. What had been left in there makes no
//! event, so the reactor's thread sees to it that the read is made before it waits (`View::remind`).
//! If that was necessary, the habit is unlearned: there was something left, or waiting for events
//! is the rule here, and then to put a read off costs more than it saves. It is as well if somebody asks
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

use volt_sync::internal::primitive::AtomicU32;

use super::source::Event;

/// After so many reads in vain the next one is put off: what learning again costs is spread over as
/// many messages.
const TRUST: u32 = 63;
/// After so many reads in a row that were put off, and had an event, one is made all the same: an event does not
/// tell whether a read before it has left something, and else what is left could grow for ever.
const PUT_OFF: u32 = 32;
/// The low bits are the tick of the last read that may have left something, the others count.
const TICK: u32 = 0xff_ffff;
const ONE: u32 = TICK + 1;
/// Whether data makes an event although no read has failed since the last: epoll does, and `mio`'s
/// Windows does not.
const EVENTS_WITHOUT_FAILURE: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// See the module's documentation. One for each registration.
#[derive(Debug)]
pub(super) struct Habit(AtomicU32);

impl Habit {
    pub(super) fn new() -> Self {
        // Not the tick of a source that has had no event.
        Self(AtomicU32::new(TICK))
    }

    #[inline]
    fn load(&self) -> u32 {
        // ORD relaxed: see the module's documentation; the stores below likewise.
        self.0.load(Relaxed)
    }

    #[inline]
    fn store(&self, habit: u32) {
        // ORD relaxed: see `load`.
        self.0.store(habit, Relaxed);
    }

    /// Whether the read after `event` will find nothing, going by those before.
    #[inline]
    pub(super) fn expects_nothing(&self, event: Event) -> bool {
        let habit = self.load();
        if habit / ONE < TRUST || habit / ONE > TRUST + PUT_OFF {
            return false;
        }
        if event.is_reminder() {
            self.unlearn();
            return false;
        }
        habit & TICK == event.tick()
    }

    /// A read after `event` has found something and may have left more.
    #[inline]
    pub(super) fn took(&self, event: Event) {
        if EVENTS_WITHOUT_FAILURE {
            let (habit, tick) = (self.load(), event.tick());
            // Without an event since the last such read, that one had left this.
            let trust = if habit & TICK == tick { 0 } else { habit & !TICK };
            let counts = (TRUST..=TRUST + PUT_OFF).contains(&(habit / ONE)) && trust != 0;
            self.store((trust | tick) + if counts { ONE } else { 0 });
        }
    }

    /// Somebody asks again, and there was no event since `tick`.
    #[inline]
    pub(super) fn asked_again(&self, tick: u32) {
        let habit = self.load();
        if habit & TICK == tick && habit > TICK {
            self.unlearn();
        }
    }

    /// What was learnt does not hold.
    pub(super) fn unlearn(&self) {
        self.store(0);
    }

    /// A read after `event` has found something and left nothing.
    #[inline]
    pub(super) fn emptied(&self, event: Event) {
        self.asked_again(event.tick());
    }

    /// A read after `event` has found nothing.
    #[inline]
    pub(super) fn failed(&self, event: Event) {
        let habit = self.load();
        if habit & TICK == event.tick() {
            self.store((habit + ONE).min((TRUST * ONE) | (habit & TICK)));
        }
    }
}
