//! A member's pace by a clock of the test's.

use super::*;

const MS: u64 = 1_000_000;

struct Member {
    pace: Pace,
    now: u64,
    looked: u64,
    clock_reads: u32,
}

impl Member {
    fn new() -> Self {
        Self { pace: Pace::new(&Config::default()), now: 1, looked: 1, clock_reads: 0 }
    }

    /// Polls `polls` times; the longest time between two looks at the driver.
    fn poll(&mut self, polls: u32, each_ns: u64) -> u64 {
        let longest = (0..polls).map(|_| self.poll_one(each_ns, false, 0)).max();
        longest.unwrap_or(0).max(self.now - self.looked)
    }

    /// Polls `polls` tasks of a batch from the injector.
    fn poll_fetched(&mut self, polls: u32, each_ns: u64) {
        // The first one is run as it is fetched.
        let queued = |poll| if poll == 0 { 0 } else { polls - poll };
        (0..polls).for_each(|poll| _ = self.poll_one(each_ns, true, queued(poll) as usize));
    }

    /// The time since the last look, if there was one now.
    fn poll_one(&mut self, each_ns: u64, fetched: bool, queued: usize) -> u64 {
        let mut since = 0;
        if self.pace.is_over() {
            self.clock_reads += 1;
            if self.pace.tick(self.now, queued).look {
                since = self.now - self.looked;
                self.looked = self.now;
            }
        }
        if fetched {
            self.pace.count_fetched();
        }
        self.pace.count();
        self.now += each_ns;
        since
    }
}

#[test]
fn after_a_sleep_long_polls_of_unknown_length_are_noticed_early() {
    let mut member = Member::new();
    member.poll(100_000, 100);
    member.pace.woke(member.now, true);
    member.looked = member.now;
    assert!(member.poll(100, 5 * MS) <= u64::from(FIRST) * 5 * MS);
    assert!(member.poll(100, 5 * MS) <= 5 * MS);
}

#[test]
fn looks_of_a_member_that_has_nothing_to_run_cost_few_clock_reads_and_no_more_looks() {
    // As ever, a tick has as many polls as fit.
    for (each_ns, most) in [(100, 1_010), (3_000, 1_010), (100_000, 4_010), (240_000, 8_000)] {
        let mut member = Member::new();
        for _ in 0..8_000 {
            assert_eq!(member.poll_one(each_ns, false, 0), 0, "a look at the end of a tick");
            member.pace.looked();
            member.looked = member.now;
        }
        assert!(member.clock_reads <= most, "{each_ns}: {}", member.clock_reads);
    }
}

#[test]
fn after_a_look_long_polls_of_unknown_length_are_noticed_in_two_ticks() {
    let mut member = Member::new();
    for polls in 0..200 {
        member.poll(100_000, 100);
        member.poll(polls, 100);
        member.pace.looked();
        member.looked = member.now;
        assert!(member.poll(100, 5 * MS) <= u64::from(2 * FIRST) * 5 * MS, "{polls}");
        assert!(member.poll(100, 5 * MS) <= 5 * MS);
    }
}

#[test]
fn a_poll_that_was_seen_to_be_long_is_followed_by_a_look() {
    let mut member = Member::new();
    member.poll(100_000, 100);
    member.pace.count();
    member.now += 5 * MS;
    member.pace.hurry();
    assert!(member.pace.is_over());
    let tick = member.pace.tick(member.now, 0);
    assert!(tick.look);
    assert_eq!(tick.long_ns, None, "other polls were part of that tick");
    member.pace.count();
    member.now += 5 * MS;
    assert!(member.pace.is_over(), "ticks are short from now on");
    assert_eq!(member.pace.tick(member.now, 0).long_ns, Some(5 * MS));
}

#[test]
fn polls_that_become_long_are_noticed_once_and_the_pace_comes_back() {
    let mut member = Member::new();
    member.poll(100_000, 100);
    assert!(member.poll(200, 5 * MS) <= u64::from(2 * BUDGET) * 5 * MS);
    assert!(member.poll(200, 5 * MS) <= 5 * MS);
    member.poll(2_000, 100);
    member.clock_reads = 0;
    member.poll(128_000, 100);
    assert!(member.clock_reads <= 1_001, "{}", member.clock_reads);
}

#[test]
fn looks_are_by_time_for_polls_of_any_length() {
    for each_ns in [1, 100, 1_000, 3_000, 10_000, 100_000, MS] {
        let mut member = Member::new();
        member.poll(10_000, each_ns);
        let longest = member.poll(10_000, each_ns);
        // The first tick may end just before it is time.
        assert!(longest <= 2 * LOOK_NS + each_ns, "{each_ns}: {longest}");
    }
}

/// So many of 10,000 polls of the member's own are turns of an injector that is never empty.
fn turns(member: &mut Member, round: u32, empty: bool, each_ns: u64) -> u32 {
    let mut had = 0;
    for _ in 0..10_000 {
        if member.pace.injector_has_its_turn() {
            member.pace.injector_had_its_turn(round, empty);
            had += 1;
        } else {
            member.poll(1, each_ns);
        }
    }
    had
}

#[test]
fn the_injector_has_its_turn_by_time() {
    for (each_ns, most, least) in
        [(10, 39..=40, 39..=40), (100, 39..=40, 96..=100), (10_000, 370..=400, 4_980..=5_000)]
    {
        let mut member = Member::new();
        member.poll(10_000, each_ns);
        let had = turns(&mut member, u32::MAX, false, each_ns);
        assert!(most.contains(&had), "{each_ns}: {had}");
        // It was emptied, and there are no others.
        let had = turns(&mut member, 0, true, each_ns);
        assert!(least.contains(&had), "{each_ns}: {had}");
    }
}

#[test]
fn the_injector_has_its_turn_after_a_round_of_few_tasks() {
    let mut member = Member::new();
    member.poll(10_000, 100);
    assert!((2_430..=2_500).contains(&turns(&mut member, 3, false, 100)), "but for the first");
    // Not without one of the member's own in between.
    assert!((4_980..=5_000).contains(&turns(&mut member, 0, false, 100)));
}

#[test]
fn an_empty_injector_is_looked_at_until_it_is_not() {
    let mut member = Member::new();
    member.poll(10_000, 100);
    assert!(turns(&mut member, 0, true, 100) > 0);
    let mut polls = 0;
    while !member.pace.injector_has_its_turn() {
        polls += 1;
    }
    assert!(polls <= 100, "{polls}");
    assert!(member.pace.injector_has_its_turn());
}

/// How many polls of the member's own, of `own_ns`, come between two batches of a flood.
fn between_batches(member: &mut Member, round: u32, own_ns: u64, fetched: (u32, u64)) -> u32 {
    let mut own = 0;
    for _ in 0..1_000 {
        while !member.pace.injector_has_its_turn() {
            member.poll(1, own_ns);
            own += 1;
        }
        member.pace.injector_had_its_turn(round, false);
        member.poll_fetched(fetched.0, fetched.1);
    }
    own / 1_000
}

/// A flood of short ones from outside does not make the others look short, or they would make it wait.
#[test]
fn what_came_from_the_injector_does_not_count_as_the_members_own() {
    for fetched in [(4, 10), (16, 100), (33, 100), (60, 100)] {
        let mut member = Member::new();
        member.poll(10_000, 10_000);
        let between = between_batches(&mut member, 200, 10_000, fetched);
        assert!((24..=25).contains(&between), "{fetched:?}: {between}");
        // They become shorter meanwhile.
        between_batches(&mut member, 200, 1_000, fetched);
        let between = between_batches(&mut member, 200, 1_000, fetched);
        assert!(between > 100, "{fetched:?}: {between}");
    }
}

/// A flood of long ones does not make the others look long, or each would wait for a batch.
#[test]
fn long_polls_of_what_came_from_the_injector_do_not_make_the_members_own_long() {
    for fetched in [(1, 1_000_000), (4, 100_000), (33, 100_000), (64, 7_000)] {
        let mut member = Member::new();
        member.poll(10_000, 1_000);
        let between = between_batches(&mut member, 100, 1_000, fetched);
        assert!((99..=101).contains(&between), "{fetched:?}: {between}");
    }
}

/// The longest time between two turns of an injector that is flooded, during `polls` of the member's own.
fn longest_between_batches(
    member: &mut Member,
    polls: u32,
    round: u32,
    own_ns: u64,
    fetched: (u32, u64),
) -> u64 {
    let (mut own, mut longest) = (0, 0);
    while own < polls {
        let start = member.now;
        while !member.pace.injector_has_its_turn() {
            member.poll(1, own_ns);
            own += 1;
        }
        longest = longest.max(member.now - start);
        member.pace.injector_had_its_turn(round, false);
        member.poll_fetched(fetched.0, fetched.1);
    }
    longest
}

/// Each tick before has some of the flood, so that nothing raises the mean at first.
#[test]
fn polls_that_become_longer_beside_a_flood_hold_the_injector_up_once() {
    for (round, fetched) in [(20, (1, 10)), (50, (4, 10)), (100, (33, 100)), (250, (60, 1_000))] {
        for own_ns in [2_000, 4_000, 10_000, 100_000, MS] {
            let mut member = Member::new();
            member.poll(10_000, 1_000);
            longest_between_batches(&mut member, 10_000, round, 1_000, fetched);
            // The tick that is under way, and those that the mean takes to follow.
            longest_between_batches(&mut member, 10 * BUDGET, round, own_ns, fetched);
            let longest = longest_between_batches(&mut member, 10_000, round, own_ns, fetched);
            assert!(longest <= 2 * LOOK_NS + own_ns, "{round} {fetched:?} {own_ns}: {longest}");
        }
    }
}

/// It has no polls of its own from which ticks become longer again.
#[test]
fn a_flood_after_a_long_poll_does_not_have_the_clock_read_each_time() {
    let mut member = Member::new();
    for _ in 0..3 {
        member.poll(10, 5 * MS);
        member.clock_reads = 0;
        (0..4_000).for_each(|_| member.poll_fetched(32, 200));
        // As the batch is fetched, when it is over, and for a look at the driver.
        let most = 2 * 4_000 + 4_000 * 32 / BUDGET + 5;
        assert!(member.clock_reads <= most, "{}", member.clock_reads);
        member.pace.woke(member.now, true);
    }
}

#[test]
fn a_fixed_interval_stays() {
    let config =
        Config { global_queue_interval: Some(7), event_interval: Some(3), ..Config::default() };
    let mut member = Member { pace: Pace::new(&config), ..Member::new() };
    for each_ns in [10, MS] {
        member.poll(100, each_ns);
        assert_eq!(turns(&mut member, 1, true, each_ns), 10_000 / 8);
    }
    member.clock_reads = 0;
    member.poll(99, 10);
    assert!(member.clock_reads >= 33);
}

#[test]
fn long_polls_give_the_lifo_slot_a_share_or_take_it() {
    let tick = |long_ns| Tick { look: true, long_ns, overran: false, surplus: 0 };
    assert_eq!(tick(None).lifo_run(Waited::Ring), None);
    assert_eq!(tick(Some(MS)).lifo_run(Waited::Ring), Some(100));
    assert_eq!(tick(Some(u64::MAX)).lifo_run(Waited::Ring), Some(512));
    assert_eq!(tick(Some(MS)).lifo_run(Waited::Lifo), Some(0));
    assert_eq!(tick(Some(MS)).lifo_run(Waited::Elsewhere), None);
}

#[test]
fn longer_polls_take_more_of_the_share_of_the_lifo_slot() {
    for (poll_ns, used) in [(500, 0), (1_000, 0), (5_000, 4), (20_000, 19), (100_000, 99)] {
        let pace = Pace::new(&Config::default());
        let _first = pace.tick(MS, 0);
        let polls = pace.tick.get();
        let tick = pace.tick(MS + u64::from(polls) * poll_ns, 0);
        let left = |waited, of| tick.lifo_left(waited, of, 3);
        assert_eq!(left(Waited::Lifo, 512), 512_u32.saturating_sub(used * polls).max(3));
        assert_eq!(left(Waited::Lifo, 2), 2, "it takes none that others have by right");
        assert_eq!(left(Waited::Ring, 512), 512);
    }
}

/// Some of its polls were longer than those before: which ones is found by timing the next.
#[test]
fn a_tick_that_takes_twice_as_long_as_it_should_overran() {
    for (each_ns, overran) in
        [(1_000, false), (LOOK_NS / 8, false), (LOOK_NS / 4, true), (MS, true)]
    {
        let pace = Pace::new(&Config::default());
        pace.woke(1, true);
        while !pace.is_over() {
            pace.count();
        }
        assert_eq!(pace.tick(1 + 8 * each_ns, 0).overran, overran, "{each_ns}");
    }
}

/// It sleeps after each poll, so that no tick ends.
#[test]
fn a_member_that_sleeps_after_each_poll_knows_how_long_they_are() {
    let pace = Pace::new(&Config::default());
    pace.woke(1, false);
    pace.ran_out(MS);
    assert_eq!(pace.poll_ns(), 0.0, "it has polled nothing");
    let poll = |ns| {
        pace.woke(2 * MS, false);
        pace.count();
        pace.ran_out(2 * MS + ns);
    };
    poll(4_000);
    assert!(!pace.polls_are_short());
    poll(40_000);
    assert_eq!(pace.poll_ns(), 4_000.0, "it may have looked for tasks for that long");
    (0..8).for_each(|_| poll(400));
    assert!(pace.polls_are_short());
    assert!(
        (0..8).filter(|_| pace.times_this_run()).count() == 1,
        "the clock is not read each time"
    );
    poll(160_000);
    assert!(!pace.polls_are_short(), "no search takes that long");
    (0..8).for_each(|_| poll(160_000));
    assert!(pace.poll_ns() > 80_000.0);
    assert!((0..8).all(|_| pace.times_this_run()));
}

#[test]
fn who_has_not_begun_a_tick_for_long_is_rested() {
    let pace = Pace::new(&Config::default());
    let _ = pace.woke(MS, true);
    assert!(!pace.woke(MS + REST_NS - 1, true));
    assert!(pace.woke(MS + 2 * REST_NS, true));
    let _ = pace.tick(9 * MS, 0);
    assert!(!pace.woke(9 * MS + 1, true), "it was not asleep");
}

#[test]
fn a_guest_goes_on_where_the_last_one_was_on_the_way_to_the_injector() {
    let first = Pace::new(&Config::default());
    let polls = MAX_INTERVAL - 3;
    assert!((0..polls).all(|_| !first.injector_has_its_turn()));
    let second = Pace::new(&Config::default());
    second.goes_on(first.until_injector());
    assert!((0..3).all(|_| !second.injector_has_its_turn()));
    assert!(second.injector_has_its_turn());
    second.goes_on(MAX_INTERVAL);
    assert!(second.injector_has_its_turn(), "never later");
}
