//! When the alarm of a drowsy watcher is set, put off, and turned off.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::{CALM_LOOK, Doze, HALF, Rhythm, SKIPS, STALL_NS};
use crate::runtime::scheduler::by_hand;
use crate::runtime::scheduler::idle::SelfUnpark;

const MS: u64 = 1_000_000;

/// A watcher's place to sleep, and what the alarm was set to since that was asked last.
struct Bed(Doze, Cell<Option<Option<Duration>>>);

impl Bed {
    fn new() -> Self {
        Self(Doze::new(), Cell::new(None))
    }

    fn set(&self) -> impl Fn(Option<Duration>) {
        |after| assert_eq!(self.1.replace(Some(after)), None, "set twice")
    }

    fn put_off(&self, now: u64, goes_on: bool) -> Option<Option<Duration>> {
        self.0.put_off(|| now, || goes_on, self.set());
        self.1.take()
    }

    fn begin(&self, now: u64, interval: Option<Duration>) {
        self.0.begin(now, interval, || true, self.set());
        assert_eq!(self.1.take(), Some(interval));
    }

    /// Whether it rests from now on.
    fn rest(&self) -> bool {
        let rests = self.0.rest(|| unreachable!("nobody gets up"), || true, self.set());
        assert_eq!(self.1.take(), rests.then_some(None));
        rests
    }
}

#[test]
fn nothing_is_set_while_no_watcher_dozes() {
    let bed = Bed::new();
    assert_eq!(bed.put_off(MS, true), None);
    assert!(!bed.rest());
    bed.begin(MS, Some(CALM_LOOK));
    bed.0.end();
    assert_eq!(bed.put_off(100 * MS, true), None);
    assert!(!bed.rest());
}

#[test]
fn it_is_put_off_once_in_half_of_the_time_and_only_if_all_goes_on() {
    let bed = Bed::new();
    bed.begin(0, Some(CALM_LOOK));
    assert_eq!(bed.put_off(HALF, true), None);
    assert_eq!(bed.put_off(HALF + 1, false), None);
    assert_eq!(bed.put_off(HALF + 1, true), Some(Some(CALM_LOOK)));
    assert_eq!(bed.put_off(HALF + MS, true), None);
    // As well if it is late.
    assert_eq!(bed.put_off(1000 * MS, true), Some(Some(CALM_LOOK)));
    bed.0.put_off(|| unreachable!("no time would change anything"), || false, bed.set());
}

#[test]
fn whoever_gets_up_ends_a_rest() {
    for goes_on in [false, true] {
        let bed = Bed::new();
        bed.begin(MS, None);
        assert!(!bed.rest(), "it does already");
        assert_eq!(bed.put_off(2 * MS, goes_on), Some(Some(CALM_LOOK)));
        assert!(bed.rest());
        assert_eq!(bed.put_off(3 * MS, goes_on), Some(Some(CALM_LOOK)));
    }
}

/// The watcher, member 0, dozes; the others get up and lie down again.
#[test]
fn the_watcher_rests_only_while_all_are_parked() {
    by_hand::with_members(|shared, members| {
        for index in 0..3 {
            let _ = shared.idle.park(index, false, index == 1);
        }
        let rests = || shared.sleep.doze.load() == super::RESTS;
        shared.sleep.doze.begin(members[0].now_ns(), Some(CALM_LOOK), || true, |_| {});
        assert_eq!(shared.idle.unpark_self(1, false), SelfUnpark::Up);
        members[1].rhythm.woke(HALF);
        members[2].rhythm.woke(HALF);
        members[2].let_watcher_rest();
        assert!(!rests(), "member 1 runs");
        let _ = shared.idle.park(1, false, true);
        members[1].let_watcher_rest();
        assert!(rests());
        assert_eq!(shared.idle.unpark_self(1, false), SelfUnpark::Up);
        members[1].put_off_watcher(|| members[1].now_ns());
        assert!(!rests());
        shared.sleep.doze.end();
        assert_eq!(shared.idle.unpark_self(2, false), SelfUnpark::Up);
        assert_eq!(shared.idle.unpark_self(0, false), SelfUnpark::Up);
    });
}

#[test]
fn who_does_several_things_at_a_time_tries_seldom() {
    let rhythm = Rhythm::new();
    let wakes = |since| {
        rhythm.woke(since);
        let tries = rhythm.is_slow();
        if tries {
            rhythm.rests();
        }
        tries
    };
    assert!((0..100).all(|_| wakes(HALF)), "one thing at a time");
    assert!(!wakes(HALF - 1));
    // Two things at a time, again and again.
    let tries = (0..10 * (SKIPS + 1)).filter(|_| wakes(HALF) | wakes(1)).count();
    assert!((9..=11).contains(&tries), "{tries}");
    // And one at a time again.
    assert!((0..100).filter(|_| wakes(HALF)).count() >= 100 - SKIPS as usize);
}

/// Two members at work: one that is in a long poll must not be hidden by the other.
#[test]
fn nobody_puts_it_off_for_others() {
    by_hand::with_members(|shared, members| {
        let _ = shared.idle.park(0, false, false);
        let long_ago = members[0].now_ns() - 20 * MS;
        shared.sleep.doze.begin(long_ago, Some(CALM_LOOK), || false, |_| {});
        let until = shared.sleep.doze.load();
        members[1].put_off_watcher(|| members[1].now_ns());
        assert_eq!(shared.sleep.doze.load(), until, "member 2 runs as well");
        let _ = shared.idle.park(2, false, false);
        members[1].put_off_watcher(|| members[1].now_ns());
        assert!(shared.sleep.doze.load() > until);
        shared.sleep.doze.end();
        assert_eq!(shared.idle.unpark_self(2, false), SelfUnpark::Up);
        assert_eq!(shared.idle.unpark_self(0, false), SelfUnpark::Up);
    });
}

/// It ended before the watcher's sleep did: the member itself sees it.
#[test]
fn who_parks_after_one_long_poll_tells_its_kind() {
    by_hand::with_members(|shared, members| {
        let member = members[1];
        let runs = |polls: u32, took: Duration| {
            let _ = member.run.begin(member.now_ns(), member.slot.polls());
            member.slot.kind.store(by_hand::QUICK, Relaxed);
            (0..polls).for_each(|_| member.count_poll());
            std::thread::sleep(took);
            member.judge_run();
        };
        let is_known = || {
            let tables = [&shared.quick, &shared.untimed];
            let [quick, untimed] = tables.map(|table| table.knows(by_hand::QUICK));
            assert_eq!(quick, untimed);
            quick
        };
        let long = Duration::from_nanos(2 * STALL_NS);
        shared.untimed.learn(by_hand::QUICK);
        runs(1, long);
        assert!(is_known(), "no watcher dozes");
        shared.sleep.doze.begin(members[0].now_ns(), Some(CALM_LOOK), || false, |_| {});
        members[2].count_poll();
        members[2].judge_run();
        assert_eq!(members[2].slot.metrics.slow_polls.get(), 0, "it has not slept yet");
        runs(0, long);
        assert!(is_known() && !member.run.takes_timed());
        runs(2, long);
        assert!(is_known(), "it may have been another one");
        assert!(member.run.takes_timed());
        runs(1, long);
        assert!(!is_known());
        assert_eq!(member.slot.metrics.slow_polls.get(), 1);
        assert!(!shared.caught.knows(by_hand::QUICK), "it may just have had no processor");
        shared.sleep.doze.end();
    });
}

/// What else a member does for long is not a slow poll of the kind that it has polled.
#[test]
fn what_is_no_poll_alone_blames_no_kind() {
    by_hand::with_members(|shared, members| {
        let member = members[1];
        let begin = || {
            let _ = member.run.begin(member.now_ns(), member.slot.polls());
            member.slot.kind.store(by_hand::QUICK, Relaxed);
            member.slot.steps()
        };
        let long = Duration::from_nanos(2 * STALL_NS);
        shared.sleep.doze.begin(members[0].now_ns(), Some(CALM_LOOK), || false, |_| {});
        // It has run others meanwhile.
        let steps = begin();
        (0..2).for_each(|_| member.count_poll());
        member.judge_poll(2 * STALL_NS, steps + 1, by_hand::QUICK);
        // The one below a join goes on.
        begin();
        member.count_poll();
        member.run.poll_goes_on();
        std::thread::sleep(long);
        member.judge_run();
        assert!(member.run.takes_timed());
        // The hook after a sleep.
        begin();
        member.call_unpark_hook(&move || std::thread::sleep(long));
        member.count_poll();
        member.judge_run();
        assert!(shared.quick.knows(by_hand::QUICK));
        assert_eq!(member.slot.metrics.slow_polls.get(), 0);
        // The watcher, which sees it stand still in the hook.
        member.call_unpark_hook(&|| ());
        assert!(!member.slot.watched.is_news(member.slot.polls()));
        // And one that is.
        let steps = begin();
        member.count_poll();
        member.judge_poll(2 * STALL_NS, steps + 1, by_hand::QUICK);
        assert!(!shared.quick.knows(by_hand::QUICK));
        shared.sleep.doze.end();
    });
}
