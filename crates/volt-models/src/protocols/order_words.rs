//! Orders of single words: tokens of parkers, states of tasks, the version of a `watch` channel, and
//! first the model itself.

use crate::litmus::Litmus;
use crate::litmus::Order::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

/// The classical programs, with the verdicts of the literature.
#[test]
fn classical_programs_have_their_known_outcomes() {
    let message = |store: Order, load: Order| {
        let mut program = Litmus::new();
        let [data, flag] = program.locations();
        let mut one = program.thread();
        one.store(data, 1, Relaxed);
        one.store(flag, 1, store);
        let mut two = program.thread();
        let seen_flag = two.load(flag, load);
        let seen_data = two.load(data, Relaxed);
        program.allows(|seen| seen[seen_flag] == 1 && seen[seen_data] == 0)
    };
    assert!(!message(Release, Acquire));
    assert!(message(Release, Relaxed));
    assert!(message(Relaxed, Acquire));

    let independent = |order: Order| {
        let mut program = Litmus::new();
        let [x, y] = program.locations();
        program.thread().store(x, 1, order);
        program.thread().store(y, 1, order);
        let look = if order == SeqCst { SeqCst } else { Acquire };
        let mut one = program.thread();
        let (a, b) = (one.load(x, look), one.load(y, look));
        let mut two = program.thread();
        let (c, d) = (two.load(y, look), two.load(x, look));
        program.allows(|seen| [seen[a], seen[b], seen[c], seen[d]] == [1, 0, 1, 0])
    };
    assert!(!independent(SeqCst));
    assert!(independent(Release));

    // Load buffering: forbidden, since values do not come out of thin air.
    let mut program = Litmus::new();
    let [x, y] = program.locations();
    let mut one = program.thread();
    let a = one.load(x, Relaxed);
    one.store(y, 1, Relaxed);
    let mut two = program.thread();
    let b = two.load(y, Relaxed);
    two.store(x, 1, Relaxed);
    program.assert_forbids(|seen| seen[a] == 1 && seen[b] == 1);
    program.assert_allows(|seen| seen[a] == 1 && seen[b] == 0);
}

/// Updates are atomic, coherence holds, and a release sequence goes on through the updates of
/// others, but not through their stores.
#[test]
fn updates_are_atomic_and_continue_release_sequences() {
    let mut program = Litmus::new();
    let [count] = program.locations();
    let a = program.thread().add(count, 1, Relaxed);
    let b = program.thread().add(count, 1, Relaxed);
    program.assert_forbids(|seen| seen[a] == seen[b] || seen[count] != 2);

    let sequence = |by_update: bool| {
        let mut program = Litmus::new();
        let [data, flag] = program.locations();
        let mut one = program.thread();
        one.store(data, 1, Relaxed);
        one.store(flag, 1, Release);
        let mut two = program.thread();
        let before = if by_update {
            two.add(flag, 1, Relaxed)
        } else {
            let before = two.load(flag, Relaxed);
            two.store(flag, 2, Relaxed);
            before
        };
        let mut three = program.thread();
        let seen_flag = three.load(flag, Acquire);
        let seen_data = three.load(data, Relaxed);
        program.allows(|seen| seen[before] == 1 && seen[seen_flag] == 2 && seen[seen_data] == 0)
    };
    assert!(!sequence(true));
    assert!(sequence(false));
}

/// Finding K4, edges PK1 and SP1: a sleeper resets its token by a swap (`Parker::begin`,
/// `Park::take`), which either reports the token with what the waker did, or comes before it, and
/// then the token is still there. A store can come after the token without seeing it.
#[test]
fn seed_k4_a_plain_reset_erases_a_token() {
    const TOKEN: i32 = 2;
    const RESET: i32 = 1;
    let mut program = Litmus::new();
    let [work, token] = program.locations();
    let mut waker = program.thread();
    waker.store(work, 1, Relaxed);
    waker.swap(token, TOKEN, Release);
    let mut sleeper = program.thread();
    let reported = sleeper.swap(token, RESET, Acquire);
    let found = sleeper.load(work, Relaxed);
    program.assert_forbids(|seen| seen[reported] == TOKEN && seen[found] == 0);
    program.assert_forbids(|seen| seen[reported] != TOKEN && seen[token] != TOKEN);

    let mut program = Litmus::new();
    let [work, token] = program.locations();
    let mut waker = program.thread();
    waker.store(work, 1, SeqCst);
    waker.swap(token, TOKEN, SeqCst);
    let mut sleeper = program.thread();
    sleeper.store(token, RESET, Release);
    let found = sleeper.load(work, Acquire);
    program.assert_allows(|seen| seen[token] == RESET && seen[found] == 0);
}

/// Finding K8 (`task::state`, `wake_by_ref`): a waker that finds its task notified already writes the
/// state all the same, so that the poll which takes the notification sees what the waker did. A look
/// that ends the wake-up shows the poll nothing.
#[test]
fn seed_k8_a_wake_up_that_only_looks_hides_what_the_waker_did() {
    let hidden = |wake: Option<Order>| {
        let mut program = Litmus::new();
        let [data, state] = program.locations();
        let mut waker = program.thread();
        waker.store(data, 1, Relaxed);
        let notified = match wake {
            Some(order) => waker.add(state, 0, order),
            None => waker.load(state, Acquire),
        };
        let mut runner = program.thread();
        // 0: notified; 1: running.
        runner.add(state, 1, AcqRel);
        let polled = runner.load(data, Relaxed);
        program.allows(|seen| seen[notified] == 0 && seen[polled] == 0)
    };
    assert!(!hidden(Some(AcqRel)));
    assert!(hidden(Some(Relaxed)));
    assert!(hidden(None));
}

/// Edge WA4 (`watch::Sender::drop`): the version is changed by plain stores under the write lock; the
/// CLOSED bit is set by an update without the lock, by the last sender. That sender's decrement of
/// the count sees the other's, and with it the other's last store to the version; otherwise the
/// store can come after the bit, and erase it.
#[test]
fn a_watch_channels_last_store_does_not_erase_the_close() {
    const STEP: i32 = 2;
    const CLOSED: i32 = 1;
    let erased = |leave: Order| {
        let mut program = Litmus::new();
        let [version, left] = program.locations();
        let mut one = program.thread();
        one.store(version, STEP, Release);
        one.add(left, 1, leave);
        let mut last = program.thread();
        let others = last.add(left, 1, leave);
        last.add(version, CLOSED, Release);
        program.allows(|seen| seen[others] == 1 && seen[version] & CLOSED == 0)
    };
    assert!(!erased(AcqRel));
    for weak in [Relaxed, Acquire, Release] {
        assert!(erased(weak));
    }
}

/// Edge RQ3: a thief copies the places and gives them back by a release of the steal head; the owner
/// acquires that head before it writes them. So a thief never reads a task of the next lap.
#[test]
fn a_thief_does_not_read_what_the_owner_writes_later() {
    let mut program = Litmus::new();
    let [place, head] = program.locations();
    let mut thief = program.thread();
    let copied = thief.load(place, Relaxed);
    thief.add(head, 1, AcqRel);
    let mut owner = program.thread();
    let given_back = owner.load(head, Acquire);
    owner.store(place, 7, Relaxed);
    program.assert_forbids(|seen| seen[given_back] == 1 && seen[copied] == 7);
    program.assert_allows(|seen| seen[given_back] == 0 && seen[copied] == 7);
}
