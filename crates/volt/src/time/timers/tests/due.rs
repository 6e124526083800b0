//! What is due before anybody looks.

use super::*;

const NANO: Duration = Duration::from_nanos(1);

/// Timers that are due at `at`, on the lowest level: of so many, the start of their slot stands for the earliest
/// deadline. The clock is paused in that slot.
fn full_slot(timers: &Timers, at: u64) -> Vec<Pin<Box<Sleep>>> {
    let start = at & !1023;
    let mut sleeps: Vec<_> = (0..40).map(|_| Box::pin(Sleep::due(at))).collect();
    let mut first = pin!(Sleep::due(start));
    for sleep in
        std::iter::once(first.as_mut()).chain(sleeps.iter_mut().map(|sleep| sleep.as_mut()))
    {
        assert!(poll(sleep, Waker::noop()).is_pending());
    }
    assert!(timers.clock().advance_to(start));
    assert_eq!(timers.fire_due(), 1);
    assert_eq!(timers.earliest(), start, "it is a bound only");
    sleeps
}

#[test]
fn blocking_work_inhibits_the_paused_clock() {
    with_paused(|timers| {
        let (_, waker) = Count::new();
        let mut timer = pin!(sleep(SECOND));
        assert!(poll(timer.as_mut(), &waker).is_pending());
        timers.clock().inhibit_auto_advance();
        assert_eq!(timers.prepare_wait(), None);
        assert_eq!(timers.auto_advance(), 0);
        timers.clock().allow_auto_advance();
        assert_eq!(timers.auto_advance(), 1);
    });
}

/// As when `pause` is called after its time has come.
#[test]
fn a_paused_clock_fires_what_is_due_though_it_may_not_advance() {
    with_paused(|timers| {
        let (count, waker) = Count::new();
        let [mut due, mut later] = [SECOND, SECOND * 2].map(|after| Box::pin(sleep(after)));
        assert!(poll(due.as_mut(), &waker).is_pending());
        assert!(poll(later.as_mut(), &waker).is_pending());
        timers.clock().inhibit_auto_advance();
        assert_eq!(timers.prepare_wait(), None);
        assert!(timers.clock().advance_to(due.deadline().to_ns()));
        assert_eq!(timers.prepare_wait(), Some(Duration::ZERO));
        assert_eq!((timers.end_wait(false, None), count.get()), (1, 1));
        assert_eq!(timers.prepare_wait(), None, "no loop");
        assert_eq!(timers.end_wait(false, None), 0);
    });
}

/// The driver would wait in a loop, if it took the start of the slot for a deadline.
#[test]
fn a_paused_clock_in_a_full_slot_is_waited_for_only_if_a_timer_is_due() {
    with_paused(|timers| {
        let clock = timers.clock();
        let at = (clock.now_ns() + (1 << 31)) | 1023;
        let sleeps = full_slot(timers, at);
        clock.inhibit_auto_advance();
        for (now, fires) in [(at - 1, 0), (at, sleeps.len())] {
            assert!(clock.advance_to(now));
            assert_eq!(timers.prepare_wait(), (fires > 0).then_some(Duration::ZERO));
            assert_eq!(timers.end_wait(false, None), fires);
        }
        assert_eq!(timers.prepare_wait(), None, "no loop");
    });
}

/// The other shard has a slot that has begun, of whose earliest deadline it knows.
#[test]
fn of_two_shards_with_full_slots_none_has_a_paused_clock_stand_still() {
    with_paused(|timers| {
        let clock = timers.clock();
        // The start of a slot of the second level.
        let start = ((clock.now_ns() >> 16) + (1 << 10)) << 16;
        let mut others: Vec<_> = (0..40).map(|_| Box::pin(Sleep::due(start + 60_000))).collect();
        for sleep in &mut others {
            assert!(
                scope::enter(timers, None, || poll(sleep.as_mut(), Waker::noop())).is_pending()
            );
        }
        let at = start + 1023;
        let sleeps = full_slot(timers, at);
        assert!(clock.advance_to(at - 1));
        clock.inhibit_auto_advance();
        assert_eq!(timers.prepare_wait(), None);
        assert_eq!(timers.next_time(), at);
        clock.allow_auto_advance();
        assert_eq!(timers.auto_advance(), sleeps.len());
        assert_eq!(timers.auto_advance(), others.len());
    });
}

#[test]
fn a_sleep_whose_time_others_have_fired_for_is_ready_at_the_first_poll() {
    with_paused(|timers| {
        let [due, too, not_yet] = [SECOND, SECOND * 2, SECOND * 2 + NANO].map(sleep);
        let mut fires = pin!(sleep(SECOND * 2));
        assert!(poll(fires.as_mut(), Waker::noop()).is_pending());
        assert_eq!(advance(timers, SECOND * 2), 1);
        for due in [due, too] {
            let (count, waker) = Count::new();
            assert!(poll(pin!(due), &waker).is_ready());
            assert_eq!((count.get(), Arc::strong_count(&count)), (0, 2));
        }
        assert_eq!(references(timers), 1, "they have never been in a wheel");
        assert!(poll(pin!(not_yet), Waker::noop()).is_pending());
        assert!(
            poll(pin!(timeout(Duration::ZERO, std::future::pending::<()>())), Waker::noop())
                .is_ready()
        );
    });
}

/// With another timer pending, and without.
#[test]
fn a_sleep_whose_time_has_come_during_a_wait_is_ready_at_the_first_poll() {
    for pending in [false, true] {
        with_paused(|timers| {
            let mut other = pin!(sleep(SECOND));
            assert!(!pending || poll(other.as_mut(), Waker::noop()).is_pending());
            let [due, not_yet] = [NANO, NANO * 2].map(sleep);
            timers.prepare_wait();
            assert!(timers.clock().advance_to(due.deadline().to_ns()));
            assert_eq!(timers.end_wait(true, None), 0);
            assert!(poll(pin!(due), Waker::noop()).is_ready());
            assert!(poll(pin!(not_yet), Waker::noop()).is_pending());
        });
    }
}

#[test]
fn no_timer_fires_early_when_the_clock_is_paused_moved_and_resumed() {
    let clock = Clock::pausable();
    let timers = Timers::new(1, clock.clone());
    let check = || {
        scope::enter(&timers, Some(0), || {
            for after in [0, 1, 100, 100_000, 1_000_000_000] {
                let at = clock.now_ns() + after;
                let mut sleep = pin!(Sleep::due(at));
                let ready = poll(sleep.as_mut(), Waker::noop()).is_ready();
                assert!(!ready || clock.now_ns() >= at, "early by {}", at - clock.now_ns());
            }
        });
    };
    for _ in 0..10 {
        assert!(clock.pause());
        timers.forget_time();
        check();
        assert!(clock.advance_to(clock.now_ns() + 70_000));
        timers.fire_due();
        check();
        timers.prepare_wait();
        timers.end_wait(false, None);
        check();
        assert!(clock.resume());
        check();
        timers.prepare_wait();
        timers.end_wait(true, None);
        check();
    }
}

/// Also if the clock is looked at, for another timer, after they were due and before anybody fired them.
#[test]
fn timers_that_are_due_at_once_fire_by_their_deadlines() {
    struct Note(u32, Arc<std::sync::Mutex<Vec<u32>>>);
    impl Wake for Note {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }
    with_paused(|timers| {
        let woken = Arc::<std::sync::Mutex<_>>::default();
        let register = |millis: u32| {
            let mut timer = Box::pin(sleep(Duration::from_millis(millis.into())));
            let waker = Waker::from(Arc::new(Note(millis, woken.clone())));
            assert!(poll(timer.as_mut(), &waker).is_pending());
            timer
        };
        let timers_due = [30, 10, 20].map(register);
        let clock = timers.clock();
        assert!(clock.advance_to(clock.now_ns() + SECOND.as_nanos() as u64));
        timers.forget_time();
        let last = register(1);
        assert_eq!(advance(timers, Duration::from_millis(1)), 4);
        assert_eq!(*woken.lock().unwrap(), [10, 20, 30, 1]);
        drop((timers_due, last));
    });
}
