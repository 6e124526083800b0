use proptest::prelude::*;

use super::super::entry::NEW;
use super::*;

fn entry(deadline: u64) -> Box<Entry> {
    Box::new(Entry::new(NEW, deadline))
}

fn link(wheel: &mut Wheel, entry: &Entry) {
    // SAFETY: the tests keep entries boxed and unlink them before they drop them.
    unsafe { wheel.insert(NonNull::from(entry)) };
}

/// Everything that is due at `now`, by deadline.
fn pop_all(wheel: &mut Wheel, now: u64) -> Vec<u64> {
    let mut due = Vec::new();
    loop {
        // A small budget: more rounds.
        match wheel.pop_due(now, &mut 3) {
            // SAFETY: the tests keep the entries alive.
            Due::Timer(node) => due.push(unsafe { node.as_ref() }.deadline()),
            Due::More => {}
            Due::None => return due,
        }
    }
}

#[test]
fn an_empty_wheel_has_nothing_due() {
    let mut wheel = Wheel::new(5);
    assert_eq!(wheel.next(), NEVER);
    assert!(pop_all(&mut wheel, NEVER).is_empty());
    assert!(wheel.pop_any().is_none());
}

#[test]
fn deadlines_are_exact_to_the_nanosecond() {
    for deadline in [1, 1023, 1024, 65_536, 1_000_000, 4_194_304, 1 << 40, u64::MAX - 1] {
        let mut wheel = Wheel::new(0);
        let timer = entry(deadline);
        link(&mut wheel, &timer);
        assert_eq!(wheel.next(), deadline);
        assert!(pop_all(&mut wheel, deadline - 1).is_empty());
        assert_eq!(wheel.next(), deadline);
        assert_eq!(pop_all(&mut wheel, deadline), [deadline]);
        assert_eq!(wheel.next(), NEVER);
    }
}

#[test]
fn a_deadline_in_the_past_is_due_at_once() {
    let mut wheel = Wheel::new(1 << 30);
    let timer = entry(3);
    link(&mut wheel, &timer);
    assert!(wheel.next() <= 1 << 30);
    assert_eq!(pop_all(&mut wheel, 1 << 30), [3]);
}

#[test]
fn equal_deadlines_fire_in_the_order_of_their_insertion() {
    let mut wheel = Wheel::new(0);
    let timers: Vec<_> = (0..100).map(|_| entry(1 << 33)).collect();
    timers.iter().for_each(|timer| link(&mut wheel, timer));
    for timer in &timers {
        loop {
            match wheel.pop_due(1 << 33, &mut 7) {
                Due::Timer(node) => break assert_eq!(node, NonNull::from(&**timer)),
                Due::More => {}
                Due::None => panic!("all are due"),
            }
        }
    }
}

/// So a time limit that is not reached costs little.
#[test]
fn a_timer_that_is_removed_soon_is_never_placed() {
    let mut wheel = Wheel::new(0);
    let timers: Vec<_> = (0..2 * RECENT as u64).map(|i| entry((1 << 30) - i)).collect();
    for timer in &timers {
        link(&mut wheel, timer);
        assert_eq!(wheel.first(), None);
        // SAFETY: it is linked in this wheel.
        unsafe { wheel.remove(NonNull::from(&**timer)) };
    }
    assert!(wheel.pop_any().is_none());
    timers.iter().for_each(|timer| link(&mut wheel, timer));
    let placed: u32 = wheel.busy_slots.iter().map(|slots| slots.count_ones()).sum();
    assert!(placed > 0 && wheel.recent_len == RECENT, "the older ones are");
    assert!(wheel.next() <= timers.last().unwrap().deadline());
    assert_eq!(wheel.recent_len, 0);
    assert_eq!(pop_all(&mut wheel, 1 << 30).len(), timers.len());
}

#[test]
fn a_timer_can_be_removed_while_its_slot_is_moved_down() {
    let mut wheel = Wheel::new(0);
    let timers: Vec<_> = (0..5).map(|i| entry((1 << 33) + (i << 20))).collect();
    timers.iter().for_each(|timer| link(&mut wheel, timer));
    assert!(matches!(wheel.pop_due(1 << 33, &mut 1), Due::More));
    for timer in &timers[1..4] {
        // SAFETY: it is linked in this wheel.
        unsafe { wheel.remove(NonNull::from(&**timer)) };
    }
    assert_eq!(wheel.next(), 1 << 33);
    let expected: Vec<_> = [&timers[0], &timers[4]].map(|timer| timer.deadline()).into();
    assert_eq!(pop_all(&mut wheel, 1 << 34), expected);
}

#[test]
fn a_deadline_moved_later_does_not_hide_others() {
    let mut wheel = Wheel::new(0);
    let (moved, other) = (entry(1 << 20), entry(1 << 26));
    link(&mut wheel, &moved);
    link(&mut wheel, &other);
    assert_eq!(wheel.next(), 1 << 20, "which places them");
    moved.set_deadline(1 << 40);
    assert!(wheel.next() <= 1 << 26);
    assert_eq!(pop_all(&mut wheel, (1 << 40) - 1), [1 << 26]);
    assert_eq!(wheel.next(), 1 << 40);
    assert_eq!(pop_all(&mut wheel, 1 << 40), [1 << 40]);
}

#[test]
fn a_full_slot_is_due_no_later_than_its_earliest_timer() {
    let mut wheel = Wheel::new(0);
    let timers: Vec<_> = (0..1000).map(|i| entry((1 << 34) + 5 + i)).collect();
    timers.iter().for_each(|timer| link(&mut wheel, timer));
    assert!(wheel.next() <= (1 << 34) + 5);
    assert_eq!(pop_all(&mut wheel, 1 << 35).len(), 1000);
}

/// Nothing else would lead out of such a slot: it is not moved down.
#[test]
fn in_a_full_slot_of_the_lowest_level_the_earliest_is_found() {
    let at = (1 << 40) + 500;
    let mut wheel = Wheel::new(0);
    let timers: Vec<_> = (0..=SEARCH as u64).map(|i| entry(at + i)).collect();
    timers.iter().rev().for_each(|timer| link(&mut wheel, timer));
    let mut times = vec![0];
    while *times.last().unwrap() < at {
        let now = wheel.next_exactly();
        assert!(now > *times.last().unwrap(), "it goes on: {times:?}");
        times.push(now);
        let due = pop_all(&mut wheel, now);
        assert_eq!(due, if now == at { vec![at] } else { vec![] });
    }
    assert_eq!(times.last(), Some(&at));
    pop_all(&mut wheel, NEVER);
}

/// Each is looked at once, however many are not due, and whoever fires them may stop after each.
#[test]
fn a_pass_through_a_full_slot_looks_at_each_timer_once_and_in_bounded_steps() {
    let mut wheel = Wheel::new(0);
    let timers: Vec<_> = (0..2000).map(|i| entry(if i < 1000 { 300 } else { 100 })).collect();
    timers.iter().for_each(|timer| link(&mut wheel, timer));
    for (now, passes, fires) in
        [(50, 2000_usize, 0), (100, 1000, 1000), (200, 1000, 0), (300, 0, 1000)]
    {
        let (mut passed, mut fired) = (0, 0);
        loop {
            match wheel.pop_due(now, &mut 1) {
                Due::More => passed += 1,
                Due::Timer(_) => fired += 1,
                Due::None => break,
            }
            assert!(passed <= 2000 && fired <= 2000, "{now}: {passed} {fired}");
        }
        // The budget is used up by the one that is passed before.
        assert_eq!(fired, fires, "{now}");
        assert!(passed <= passes && passed >= passes.saturating_sub(1), "{now}: {passed}");
    }
    assert_eq!(wheel.next(), NEVER);
}

/// What the others do while a pass is interrupted.
#[test]
fn timers_come_and_go_while_their_slot_is_looked_at() {
    let mut wheel = Wheel::new(0);
    let timers: Vec<_> = [300, 301, 302, 100, 303, 101].map(entry).into();
    timers.iter().for_each(|timer| link(&mut wheel, timer));
    let unlink = |wheel: &mut Wheel, index: usize| {
        // SAFETY: it is linked in this wheel.
        unsafe { wheel.remove(NonNull::from(&*timers[index])) };
    };
    assert!(matches!(wheel.pop_due(150, &mut 2), Due::More), "it stops before the third");
    unlink(&mut wheel, 2);
    unlink(&mut wheel, 0);
    let late = entry(99);
    link(&mut wheel, &late);
    // A reader of an older clock goes on with the pass of the newer.
    assert_eq!(pop_all(&mut wheel, 120), [100, 101, 99]);
    assert_eq!(wheel.next(), 301);

    assert!(matches!(wheel.pop_due(301, &mut 0), Due::Timer(_)));
    assert!(matches!(wheel.pop_due(301, &mut 0), Due::More));
    // One with a newer clock begins anew.
    link(&mut wheel, &timers[1]);
    assert_eq!(pop_all(&mut wheel, 303), [303, 301]);
    assert_eq!(wheel.next(), NEVER);
}

/// The end of a pass is not taken for that of the slot's next turn.
#[test]
fn a_slot_is_looked_at_anew_in_its_next_turn() {
    for cancel in [false, true] {
        let mut wheel = Wheel::new(0);
        let (now, again) = (70 << 10, (64 + 5) << 10);
        let timers = [5 << 10, again].map(entry);
        timers.iter().for_each(|timer| link(&mut wheel, timer));
        assert!(matches!(wheel.pop_due(now, &mut 9), Due::Timer(_)));
        if cancel {
            let other = entry(5 << 10);
            link(&mut wheel, &other);
            assert_eq!(wheel.next(), other.deadline(), "which places it");
            other.set_deadline(1 << 40);
            assert!(matches!(wheel.pop_due(now, &mut 0), Due::More));
            // SAFETY: it is linked in this wheel.
            unsafe { wheel.remove(NonNull::from(&*other)) };
        }
        assert_eq!(pop_all(&mut wheel, now), [again]);
    }
}

#[test]
fn the_latest_by_a_time_is_found_in_any_slot() {
    for [first, second] in
        [[70_000, 70_000], [1_000, 65_000], [500, 70_000], [65_535, 65_536], [5, 1 << 22]]
    {
        let mut wheel = Wheel::new(0);
        let timers = [first, second].map(entry);
        assert_eq!(wheel.latest_until(NEVER), 0);
        link(&mut wheel, &timers[0]);
        assert_eq!(wheel.latest_until(NEVER), first);
        link(&mut wheel, &timers[1]);
        assert_eq!(wheel.latest_until(NEVER), second);
        assert_eq!(wheel.latest_until(second), second);
        assert_eq!(wheel.latest_until(second - 1), if first < second { first } else { 0 });
        assert_eq!(wheel.latest_until(first - 1), 0);
        timers[1].set_deadline(1 << 30);
        assert_eq!(wheel.latest_until(second), first, "it was moved to a later time");
        assert_eq!(pop_all(&mut wheel, 1 << 30).len(), 2);
        assert_eq!(wheel.latest_until(NEVER), 0);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Insert(u64),
    Remove(usize),
    MoveLater(usize, u64),
    Advance(u64),
    /// As `Advance`, by someone who stops after some steps.
    Begin(u64, usize),
    CatchUp(u64),
    /// For what is next, which places all.
    Look,
}

/// Spans of all magnitudes.
fn span() -> impl Strategy<Value = u64> {
    (0..50_u32, any::<u64>()).prop_map(|(bits, value)| value & ((1 << bits) - 1))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => span().prop_map(Step::Insert),
        1 => any::<usize>().prop_map(Step::Remove),
        1 => (any::<usize>(), span()).prop_map(|(i, by)| Step::MoveLater(i, by)),
        3 => span().prop_map(Step::Advance),
        2 => (span(), 0..20_usize).prop_map(|(by, steps)| Step::Begin(by, steps)),
        1 => span().prop_map(Step::CatchUp),
        2 => Just(Step::Look),
    ]
}

/// One thread has no races to find.
const CASES: u32 = if cfg!(volt_tsan) { 32 } else { 512 };

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    /// Against a naive model: never early, never late, in order, cancelled ones never.
    #[test]
    fn agrees_with_a_sorted_list(steps in proptest::collection::vec(step(), 1..200)) {
        let mut now = 1_000;
        let mut wheel = Wheel::new(now);
        let mut pending: Vec<Box<Entry>> = Vec::new();
        for step in steps.into_iter().chain([Step::Look]) {
            let looks = matches!(step, Step::Advance(_) | Step::Look);
            match step {
                Step::Insert(after) => {
                    let timer = entry(now + after);
                    link(&mut wheel, &timer);
                    pending.push(timer);
                }
                Step::Remove(i) if !pending.is_empty() => {
                    let timer = pending.swap_remove(i % pending.len());
                    // SAFETY: it is linked in this wheel.
                    unsafe { wheel.remove(NonNull::from(&*timer)) };
                }
                Step::MoveLater(i, by) if !pending.is_empty() => {
                    let timer = &pending[i % pending.len()];
                    timer.set_deadline(timer.deadline() + by);
                }
                Step::Advance(by) => {
                    now += by;
                    let due = pop_all(&mut wheel, now);
                    let (ended, rest): (Vec<_>, Vec<_>) =
                        pending.into_iter().partition(|timer| timer.deadline() <= now);
                    pending = rest;
                    let mut expected: Vec<_> = ended.iter().map(|timer| timer.deadline()).collect();
                    prop_assert!(due.is_sorted_by_key(|deadline| deadline >> 10), "order {:?}", due);
                    let mut sorted = due;
                    sorted.sort_unstable();
                    expected.sort_unstable();
                    prop_assert_eq!(sorted, expected);
                }
                Step::Begin(by, steps) => {
                    now += by;
                    for _ in 0..steps {
                        match wheel.pop_due(now, &mut 1) {
                            Due::Timer(node) => {
                                let found = pending.iter().position(|timer| NonNull::from(&**timer) == node);
                                let timer = pending.swap_remove(found.expect("it was linked"));
                                prop_assert!(timer.deadline() <= now, "early");
                            }
                            Due::More => {}
                            Due::None => break,
                        }
                    }
                }
                Step::CatchUp(by) => {
                    let earliest = pending.iter().map(|timer| timer.deadline()).min();
                    // The clock may pass deadlines before anybody fires them.
                    now += by.min(earliest.unwrap_or(1 << 60).saturating_sub(now) + 5_000);
                    wheel.catch_up(now.min(earliest.unwrap_or(NEVER)));
                }
                Step::Remove(_) | Step::MoveLater(..) | Step::Look => {}
            }
            if !looks {
                continue;
            }
            let earliest = pending.iter().map(|timer| timer.deadline()).min();
            prop_assert!(wheel.next() <= earliest.unwrap_or(NEVER));
            prop_assert_eq!(wheel.next() == NEVER, pending.is_empty());
            let until = now + (earliest.unwrap_or(0).saturating_sub(now)).saturating_mul(2);
            let by_then = pending.iter().map(|timer| timer.deadline()).filter(|at| *at <= until);
            let latest = by_then.max().unwrap_or(0);
            let found = wheel.latest_until(until);
            // Not all are looked at.
            prop_assert!(found <= until && (pending.len() > SEARCH || found == latest));
        }
        let mut left = 0;
        while wheel.pop_any().is_some() {
            left += 1;
        }
        prop_assert_eq!(left, pending.len());
    }
}
