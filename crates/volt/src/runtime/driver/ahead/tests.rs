//! What has a beat, and which timers are set when.

use super::{Beat, NEAR_NS, PERIODS_NS, REPEATS};

const MS: u64 = 1_000_000;

/// A member that waits for timers, a millisecond from its look at the clock to the end of each wait.
#[derive(Default)]
struct Member {
    beat: Beat,
    /// How much sooner than its timer a wait is told to end.
    lead: u64,
}

impl Member {
    /// Waits for a timer that is `due`, from `now` on: when the kernel ends the wait by itself, and which timers were set for
    /// when.
    fn waits_from(&mut self, now: u64, due: u64) -> (Option<u64>, Vec<(usize, u64)>) {
        let mut set = Vec::new();
        let Some(period) = self.beat.period(due) else { return (None, set) };
        let sets = |turn, at| {
            assert!(at > now);
            set.push((turn, at));
            true
        };
        (self.beat.begin(now, due - self.lead, period, sets), set)
    }

    fn waits(&mut self, due: u64) -> (Option<u64>, Vec<(usize, u64)>) {
        self.waits_from(due - MS / 2, due)
    }

    /// The waits of a beat, by the end of which it is known.
    fn learns(&mut self, period: u64) -> u64 {
        let first = 1_000 * MS;
        for wait in 0..=u64::from(REPEATS) {
            assert_eq!(self.waits_from(first, first + (1 + wait) * period), (None, vec![]));
        }
        first + u64::from(REPEATS + 1) * period
    }
}

#[test]
fn each_wait_of_a_beat_is_for_a_timer_that_the_one_before_has_set() {
    let mut member = Member::default();
    let last = member.learns(MS);
    let due = |wait| last + wait * MS;
    let (ends, set) = member.waits(due(1));
    assert_eq!((ends, set.len()), (Some(due(1)), 2));
    let mut turns = set.iter().map(|&(turn, _)| turn).collect::<Vec<_>>();
    for wait in 2..10 {
        let (ends, set) = member.waits(due(wait));
        assert_eq!((ends, set.len()), (Some(due(wait)), 1));
        let (turn, at) = set[0];
        assert_eq!(at, due(wait + 1));
        turns.push(turn);
    }
    assert!(turns.windows(2).all(|two| two[0] != two[1]), "they take turns: {turns:?}");
}

#[test]
fn a_wait_that_goes_on_after_an_event_sets_nothing() {
    let mut member = Member::default();
    let due = member.learns(MS) + MS;
    for (now, sets) in [(due - MS / 2, 2), (due - MS / 3, 0), (due - 1, 0)] {
        let (ends, set) = member.waits_from(now, due);
        assert_eq!((ends, set.len()), (Some(due), sets));
    }
}

/// Its event may have been taken.
#[test]
fn a_timer_that_has_gone_off_is_set_anew_however_near_it_is() {
    let mut member = Member { lead: 5_000, ..Member::default() };
    let due = member.learns(MS) + MS;
    assert_eq!(member.waits(due).1.len(), 2);
    for (now, lead, sets) in [(due - 5_001, 4_000, 0), (due - 5_000, 4_000, 1), (due - 1, 0, 1)] {
        member.lead = lead;
        let (ends, set) = member.waits_from(now, due);
        let expected = if sets > 0 { due - lead } else { due - 5_000 };
        assert_eq!((ends, set.len()), (Some(expected), sets));
    }
}

#[test]
fn a_lead_that_changes_sets_no_timer_anew_unless_by_much() {
    let mut member = Member { lead: 50_000, ..Member::default() };
    let last = member.learns(MS);
    assert_eq!(member.waits(last + MS).1.len(), 2);
    member.lead -= NEAR_NS;
    let (ends, set) = member.waits(last + 2 * MS);
    assert_eq!((ends, set.len()), (Some(last + 2 * MS - 50_000), 1), "as it was set");
    member.lead -= NEAR_NS + 1;
    let (ends, set) = member.waits(last + 3 * MS);
    assert_eq!((ends, set.len()), (Some(last + 3 * MS - member.lead), 2));
}

#[test]
fn timers_at_other_distances_have_no_beat() {
    for period in [PERIODS_NS.start() - 1, PERIODS_NS.end() + 1] {
        let mut member = Member::default();
        let last = member.learns(period);
        assert_eq!(member.waits_from(last, last + period), (None, vec![]));
    }
    let mut member = Member::default();
    let mut due = member.learns(MS);
    for period in [MS, MS, MS + 1, MS, MS, MS, MS] {
        due += period;
        let has_beat = member.waits(due).0.is_some();
        assert_eq!(has_beat, member.beat.repeats >= REPEATS);
    }
    assert_eq!(member.beat.repeats, REPEATS, "counted from the last one that was none");
    // One that comes before all others.
    assert_eq!(member.waits(due - MS / 3), (None, vec![]));
}

#[test]
fn a_timer_that_is_refused_is_not_relied_on() {
    let mut member = Member::default();
    let due = member.learns(MS) + MS;
    let period = member.beat.period(due).expect("a beat");
    for works in 0..2 {
        let mut calls = 0;
        let refuses = |_, _| {
            calls += 1;
            calls <= works
        };
        assert_eq!(member.beat.begin(due - MS, due, period, refuses), None);
        member.beat.set_for = [0; 2];
    }
}

#[test]
fn the_end_of_time_is_no_wait_of_a_beat() {
    let mut beat = Beat::default();
    assert_eq!(beat.begin(0, u64::MAX, 1, |_, _| unreachable!("there is none after it")), None);
}

#[cfg(target_os = "linux")]
mod with_a_kernel {
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::time::Duration;

    use super::super::imp::{Timers, goes_by};
    use super::{MS, REPEATS};
    use crate::runtime::driver::timer_fd::TimerFd;
    use crate::runtime::driver::{Driver, Handle};
    use crate::time::{Clock, Instant, machine_ns, reading_at, sleep_until, with_timers};

    const PERIOD: Duration = Duration::from_millis(1);

    /// How many waits it takes until a timer that is due at `due` has fired; 0 if it was due before the first one.
    fn waits(driver: &mut Driver, handle: &Handle, due: Instant) -> usize {
        with_timers(&handle.timers, Some(0), || {
            let mut sleep = pin!(sleep_until(due));
            let mut cx = Context::from_waker(Waker::noop());
            let mut waits = 0;
            while sleep.as_mut().poll(&mut cx).is_pending() {
                driver.wait(handle, None, || true, || ());
                waits += 1;
            }
            assert!(Instant::now() >= due, "never early");
            waits
        })
    }

    /// Waits for timers at equal distances, until so many in a row took one wait each. (A thread that had no processor meanwhile
    /// may find that another one is due.)
    fn ticks(driver: &mut Driver, handle: &Handle, count: usize) -> Instant {
        let (mut due, mut in_a_row) = (Instant::now(), 0);
        for _ in 0..10_000 {
            due += PERIOD;
            in_a_row = if waits(driver, handle, due) == 1 { in_a_row + 1 } else { 0 };
            if in_a_row == count {
                return due;
            }
        }
        panic!("never {count} ticks in a row that took one wait each");
    }

    #[test]
    fn the_timers_of_a_beat_end_waits_and_what_is_left_of_them_ends_one_more() {
        let (mut driver, handle) = Driver::new(1, Clock::real()).unwrap();
        assert!(matches!(driver.ahead.timers, Timers::Unused));
        let last = ticks(&mut driver, &handle, 50);
        assert!(matches!(driver.ahead.timers, Timers::Made(_)));
        for after in [20, 25] {
            let took = waits(&mut driver, &handle, last + after * PERIOD);
            // The next of the beat, and a lead that was too long.
            assert!(took <= 3, "{took} waits for one timer");
        }
        ticks(&mut driver, &handle, 50);
    }

    #[test]
    fn a_wait_of_a_beat_ends_for_others_as_well() {
        let (mut driver, handle) = Driver::new(1, Clock::real()).unwrap();
        let mut due = ticks(&mut driver, &handle, 50);
        let ended_before = (0..1_000).any(|_| {
            due += PERIOD;
            handle.unpark();
            waits(&mut driver, &handle, due) > 1
        });
        assert!(ended_before);
        ticks(&mut driver, &handle, 50);
    }

    /// A thread ends it that comes much later.
    #[test]
    fn a_wait_of_a_beat_ends_by_the_timer_that_was_set_before_and_by_no_timeout() {
        const LONG: Duration = Duration::from_millis(20);
        // A thread without a processor may come after the beat.
        let was_set = (0..10).any(|_| {
            let (mut driver, handle) = Driver::new(1, Clock::real()).unwrap();
            let due = ticks(&mut driver, &handle, 50) + PERIOD;
            with_timers(&handle.timers, Some(0), || {
                let mut sleep = pin!(sleep_until(due));
                let mut cx = Context::from_waker(Waker::noop());
                if sleep.as_mut().poll(&mut cx).is_ready() {
                    return false;
                }
                handle.unpark();
                driver.wait(&handle, None, || true, || ());
                let Timers::Made(timers) = &driver.ahead.timers else {
                    panic!("it has had a beat");
                };
                timers.iter().for_each(|timer| assert!(timer.set(None)));
                std::thread::scope(|scope| {
                    let other = scope.spawn(|| {
                        std::thread::sleep(LONG);
                        handle.unpark();
                    });
                    let start = Instant::now();
                    driver.wait(&handle, None, || true, || ());
                    let was_set = start.elapsed() >= LONG / 2;
                    // The end of a scope is nothing that a sanitizer sees.
                    other.join().unwrap();
                    was_set
                })
            })
        });
        assert!(was_set, "always told when to end");
    }

    /// What is set may have gone off while it stood still.
    #[test]
    fn a_clock_that_has_stood_still_has_no_beat() {
        let clock = Clock::pausable();
        let (mut driver, handle) = Driver::new(1, clock.clone()).unwrap();
        with_timers(&handle.timers, Some(0), || {
            let mut sleep = pin!(sleep_until(Instant::now()));
            let mut cx = Context::from_waker(Waker::noop());
            // A thread without a processor may find that it is due already.
            let mut sets = || loop {
                sleep.as_mut().reset(Instant::now() + PERIOD);
                assert!(sleep.as_mut().poll(&mut cx).is_pending());
                let wait = handle.timers.prepare_wait().expect("a timer");
                handle.timers.end_wait(false, None);
                let _ = driver.ahead.beat.period(handle.timers.asked_and_due().1);
                (driver.ahead.beat.repeats, driver.ahead.beat.period) = (REPEATS, MS);
                if !wait.is_zero() {
                    return driver.sets_ahead(&handle.timers, wait);
                }
            };
            assert!(sets());
            assert!(clock.pause() && clock.resume());
            assert!(!sets());
        });
    }

    /// `libfaketime` shows a program a clock, and sets its timers by another one: with an offset, a wait of a beat was for ever.
    /// (What it is off by here is more than a thread may be without a processor.)
    #[test]
    fn a_clock_that_is_not_the_kernels_is_told_from_it() {
        const HOUR: u64 = 3_600_000 * MS;
        let timer = TimerFd::new().unwrap();
        let reading = || reading_at(machine_ns()).unwrap();
        assert!(goes_by(&timer, || Some(reading())));
        assert!(!goes_by(&timer, || None));
        assert!(!goes_by(&timer, || Some(reading() + HOUR)));
        assert!(!goes_by(&timer, || reading().checked_sub(HOUR)));
        assert!(!goes_by(&timer, || Some(u64::MAX)));
        // One that has been twice as fast for half of the machine's time.
        let start = reading() / 2;
        assert!(!goes_by(&timer, || Some(start + 2 * (reading() - start))));
    }

    /// As if there were none.
    #[test]
    fn without_timers_of_the_kernel_the_waits_are_told_when_to_end() {
        let (mut driver, handle) = Driver::new(1, Clock::real()).unwrap();
        driver.ahead.timers = Timers::Refused;
        ticks(&mut driver, &handle, 50);
        assert!(matches!(driver.ahead.timers, Timers::Refused));
    }
}
