use super::crowd::CROWD;
use super::pace::{DELAY_NS, GONE, TIMED};
use super::rest::{FEWEST, LONGER, LONGEST, MOST, SHORTEST, SLOWER, WORTH};
use super::round::Round;
use super::{Lesson, PLACES, place};

/// How many turns are given at the next `opportunities`, if none pays.
fn in_vain(lesson: &Lesson, opportunities: u32) -> u32 {
    (0..opportunities).filter(|_| lesson.give(0, 0)).count() as u32
}

#[test]
fn turns_in_vain_become_rare() {
    let lesson = Lesson::new();
    let (mut most, mut rest) = (u32::from(FEWEST), SHORTEST);
    while rest < LONGEST {
        assert_eq!(in_vain(&lesson, most), most);
        assert_eq!(in_vain(&lesson, rest), 0);
        most = (most * u32::from(LONGER)).min(u32::from(MOST));
        rest *= SLOWER;
    }
    assert_eq!(in_vain(&lesson, 5 * (u32::from(MOST) + LONGEST)), 5 * u32::from(MOST));
}

/// How many turns are given at so many opportunities, of which one in `one_in` pays.
fn given(lesson: &Lesson, opportunities: u32, one_in: u32) -> u32 {
    let mut given = 0;
    for _ in 0..opportunities {
        if lesson.give(0, 0) {
            given += 1;
            if given % one_in == 0 {
                lesson.paid(0);
            }
        }
    }
    given
}

#[test]
fn while_turns_pay_none_is_let_pass() {
    assert_eq!(given(&Lesson::new(), 10_000, u32::from(WORTH)), 10_000);
}

/// With one that paid, they would all be given again.
#[test]
fn turns_that_pay_less_than_they_cost_become_rare() {
    let lesson = Lesson::new();
    given(&lesson, 20_000, u32::from(8 * WORTH));
    assert!(given(&lesson, 100_000, u32::from(8 * WORTH)) < 20_000);
}

#[test]
fn what_was_given_before_a_rest_does_not_end_it() {
    let lesson = Lesson::new();
    assert_eq!(in_vain(&lesson, u32::from(FEWEST)), u32::from(FEWEST));
    lesson.paid(0);
    assert_eq!(in_vain(&lesson, SHORTEST), 0);
}

#[test]
fn a_turn_that_paid_undoes_one_doubling_of_the_rest_and_leaves_turns_one_in_eight() {
    let lesson = Lesson::new();
    while lesson.rest.length() < LONGEST {
        in_vain(&lesson, 1);
    }
    assert_eq!(in_vain(&lesson, LONGEST / SLOWER), 0);
    lesson.paid(0);
    let most = u32::from(MOST);
    assert_eq!(in_vain(&lesson, most + LONGEST / 2), most);
    (0..30).for_each(|_| lesson.paid(0));
    assert_eq!(in_vain(&lesson, most + 8 * most), most);
}

/// Twice, so that it is believed.
fn take(lesson: &Lesson, ns: u32) {
    lesson.took(ns);
    lesson.took(ns);
}

#[test]
fn turns_that_take_long_become_rare_whether_they_pay_or_not() {
    let lesson = Lesson::new();
    assert!(lesson.give(0, 0));
    take(&lesson, DELAY_NS + 1);
    let mut rest = SHORTEST;
    for _ in 0..5 {
        lesson.paid(1);
        assert_eq!(in_vain(&lesson, rest), 0);
        rest = (rest * SLOWER).min(LONGEST);
        lesson.paid(1);
        assert_eq!(in_vain(&lesson, 1), 1, "one, to see");
        lesson.took(DELAY_NS + 1);
    }
    assert_eq!(in_vain(&lesson, rest), 0);
    rest = (rest * SLOWER).min(LONGEST);
    assert_eq!(in_vain(&lesson, 1), 1, "one, to see");
    // It never came back: so the next one is after a rest as well.
    assert_eq!(in_vain(&lesson, rest), 0);
    assert_eq!(in_vain(&lesson, 1), 1, "one, to see");
    lesson.took(DELAY_NS);
    assert_eq!(in_vain(&lesson, 1), 1, "another at once: the next one will tell");
    lesson.took(DELAY_NS);
    assert_eq!(in_vain(&lesson, 4), 4);
    lesson.paid(1);
    assert_eq!(in_vain(&lesson, 4), 4);
}

/// The system takes a thread off its processor now and then, in the middle of a turn.
#[test]
fn one_long_turn_between_short_ones_says_nothing() {
    let lesson = Lesson::new();
    for _ in 0..100 {
        lesson.took(1_000);
        lesson.took(100 * DELAY_NS);
        assert_eq!(in_vain(&lesson, 1), 1);
        assert_eq!(lesson.pace.timed(), Some(0), "the next one will tell");
        lesson.took(DELAY_NS / 100);
        assert!(lesson.give(7, 100));
        assert!(!lesson.give(7, 200));
        lesson.paid(7);
        assert!(lesson.pace.ends(0).is_some());
    }
}

#[test]
fn a_wait_has_the_turns_that_fit_into_the_delay() {
    let lesson = Lesson::new();
    let turns = |ns: u32| {
        take(&lesson, ns);
        lesson.rest.know(FEWEST);
        (0..8).take_while(|given| lesson.give(1, *given)).count()
    };
    lesson.pace.never();
    assert_eq!(turns(1_000), 8);
    lesson.pace.never();
    assert_eq!(turns(DELAY_NS / 4), 5);
    lesson.pace.never();
    assert_eq!(turns(DELAY_NS), 2);
}

/// One in [`TIMED`]; and only if it ends on this thread.
#[test]
fn turns_are_timed_until_the_task_comes_back() {
    let lesson = Lesson::new();
    lesson.took(1);
    for _ in 0..3 {
        assert!(lesson.give(7, 0));
        assert_eq!(lesson.pace.timed(), Some(7));
        for other in 8..8 + usize::from(TIMED) {
            assert!(lesson.give(other, 0));
            lesson.paid(other);
            assert_eq!(lesson.pace.timed(), Some(7), "those were other waits");
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(lesson.pace.ends(7).is_some_and(|ns| ns >= 1_000_000));
        assert_eq!(lesson.pace.timed(), None);
        for _ in 1..TIMED {
            assert!(lesson.give(7, 0) && lesson.pace.timed().is_none());
            lesson.paid(7);
        }
    }
    assert!(lesson.give(7, 0) && lesson.pace.timed().is_some());
    std::thread::sleep(std::time::Duration::from_millis(1));
    assert!(lesson.give(7, 0), "a wait that begins anew: nobody knows how long the turn was");
    assert!(lesson.pace.has_time(u8::MAX));
}

#[test]
fn a_timed_turn_that_never_comes_back_is_given_up() {
    let lesson = Lesson::new();
    let mut others = (8..=9).cycle();
    let mut another = || {
        assert!(lesson.give(others.next().unwrap(), 0));
        lesson.paid(0);
    };
    assert!(lesson.give(7, 0));
    (1..GONE).for_each(|_| another());
    assert_eq!(lesson.pace.timed(), Some(7));
    another();
    assert_ne!(lesson.pace.timed(), Some(7));
    assert!(lesson.pace.timed().is_some());
}

#[test]
fn a_crowd_is_many_in_turn_for_the_same() {
    let lesson = Lesson::new();
    let mut tasks = (1..=3).cycle();
    let mut wants = |address| lesson.in_a_crowd(address, tasks.next().unwrap());
    for _ in 0..3 {
        assert!((0..CROWD).all(|_| !wants(1)));
        assert!((0..100).all(|_| wants(1)));
        assert!(!wants(2), "another channel in the same place");
    }
    assert!((0..100).all(|_| !lesson.in_a_crowd(1, 4)), "one alone is no crowd");
}

#[test]
fn a_round_of_many_is_known_for_a_while() {
    let round = Round::new();
    let rounds = |tasks: usize, times: usize| {
        (0..times).for_each(|_| (1..=tasks).for_each(|task| round.gives(task * 256)));
        round.was_of_many()
    };
    assert!(!rounds(8, 100));
    assert!(rounds(64, 2) && rounds(2, 4));
    assert!(!rounds(2, 60));
    // The first wait is over: nothing is learnt until a new round is full.
    (0..600).for_each(|wait| round.gives(1024 + wait % 3 * 256));
    assert!(!round.was_of_many());
}

#[test]
fn locks_in_a_row_are_spread_over_the_places() {
    for words in 3..70 {
        let mut locks = [0; PLACES];
        for i in 0..100 {
            locks[place(0x1234_5000 + i * words * size_of::<usize>())] += 1;
        }
        assert!(locks.iter().all(|locks| *locks < 50), "{words} words apart: {locks:?}");
    }
}

/// Four waits: one gives turns seldom, the others several in between.
#[test]
fn a_few_that_give_many_turns_are_no_crowd() {
    let round = Round::new();
    for _ in 0..3 {
        round.gives(1);
        for _ in 0..3 {
            (2..=4).for_each(|wait| round.gives(wait));
        }
    }
    assert!(!round.was_of_many(), "four tasks");
    let round = Round::new();
    for _ in 0..3 {
        round.gives(1);
        (0..8).for_each(|_| round.gives(2));
    }
    assert!(!round.was_of_many(), "two tasks");
}

/// A task of the thread computes for 50 ms in every second poll.
#[test]
fn turns_of_which_every_second_is_long_become_rare() {
    let lesson = Lesson::new();
    let (mut turns, mut long) = (0_u32, 0_u32);
    let mut longest_wait = 0;
    for _ in 0..1000 {
        let mut waited = 0;
        for given in 0..64 {
            if !lesson.give(7, given) {
                break;
            }
            let ns = if turns % 2 == 0 { 50 * DELAY_NS } else { 1_000 };
            turns += 1;
            long += u32::from(ns > DELAY_NS);
            waited += ns / 1000;
            if lesson.pace.ends(7).is_some() {
                lesson.took(ns);
            }
        }
        lesson.paid(7);
        longest_wait = longest_wait.max(waited);
    }
    assert!(
        long < 100,
        "{long} of {turns} turns took 50 ms; one wait was delayed by {} ms",
        longest_wait / 1000
    );
}
