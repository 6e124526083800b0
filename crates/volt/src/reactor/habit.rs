//! Whether it is any use to ask a source for more after a read that may have left something.
//!
//! A read that filled its buffer, or took one datagram, does not tell whether there is more, and where
//! messages are awaited one by one there never is: the next read fails, which costs as much as a
//! system call. After [`TRUST`] of those in a row the next read is put off instead: an event says when
//! there is something, as after a read that has found nothing. What had been left in there makes no
//! event, so the reactor's thread sees to it that the read is made before it waits (`View::remind`).
//! If that finds something, the habit is unlearned. It is as well if somebody asks again before there was
//! an event: then nobody waits for one here, and a read that fails is an answer. If it finds nothing,
//! then perhaps waiting for events is the rule here, and to put a read off costs more than it saves;
//! or the reactor's thread had nothing to do just now. The latter is so if reads that were put off have
//! had their events before ([`KEPT`]): then a part is to be learned anew, and otherwise all.
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
/// What is left of it after a read that was put off in vain, by how many events came before while it was
/// complete: the first of them before any read was put off.
const KEPT: [u32; 4] = [0, 0, 48, 56];
/// The low bits are the tick of the last read that may have left something, the next ones count, and
/// the highest are an index of [`KEPT`].
const TICK: u32 = 0xff_ffff;
const ONE: u32 = TICK + 1;
const PROVEN: u32 = ONE << 6;

const fn trust(habit: u32) -> u32 {
    habit / ONE % (PROVEN / ONE)
}
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
        trust(habit) == TRUST && habit & TICK == event.tick() && !event.is_reminder()
    }

    /// A read after `event` has found something and may have left more.
    #[inline]
    pub(super) fn took(&self, event: Event) {
        if EVENTS_WITHOUT_FAILURE {
            let (habit, tick) = (self.load(), event.tick());
            // Without an event since the last such read, that one had left this.
            if habit & TICK == tick || event.is_reminder() {
                return self.store(tick);
            }
            let proves = trust(habit) == TRUST && habit / PROVEN < KEPT.len() as u32 - 1;
            self.store((habit & !TICK | tick) + if proves { PROVEN } else { 0 });
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
        if event.is_reminder() {
            return self.unlearn();
        }
        self.asked_again(event.tick());
    }

    /// A read after `event` has found nothing.
    #[inline]
    pub(super) fn failed(&self, event: Event) {
        let habit = self.load();
        if event.is_reminder() {
            let proven = habit / PROVEN;
            // The next event counts without a read that was put off; so where all are put off in vain,
            // nothing is kept soon.
            let left = proven.saturating_sub(2);
            return self.store((left * PROVEN) | (KEPT[proven as usize] * ONE) | habit & TICK);
        }
        if habit & TICK == event.tick() && trust(habit) < TRUST {
            self.store(habit + ONE);
        }
    }
}
