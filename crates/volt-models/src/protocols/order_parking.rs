//! Parking against new work: `runtime::scheduler::idle` and `queues`, the timers' `prepare_wait`, and the pool's
//! `sync_word`.

use crate::litmus::Litmus;
use crate::litmus::Order::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

/// How one side publishes, and then looks.
#[derive(Clone, Copy)]
struct Side {
    update: bool,
    publish: Order,
    fence: bool,
    look: Order,
}

const fn store(publish: Order, look: Order) -> Side {
    Side { update: false, publish, fence: false, look }
}

const fn update(publish: Order, look: Order) -> Side {
    Side { update: true, publish, fence: false, look }
}

const fn fenced(side: Side) -> Side {
    Side { fence: true, ..side }
}

/// True if two sides, each of which publishes and then looks at what the other publishes, can miss
/// each other.
fn miss(one: Side, other: Side) -> bool {
    let mut program = Litmus::new();
    let [x, y] = program.locations();
    let mut looks = Vec::new();
    for (side, mine, theirs) in [(one, x, y), (other, y, x)] {
        let mut thread = program.thread();
        if side.update {
            thread.add(mine, 1, side.publish);
        } else {
            thread.store(mine, 1, side.publish);
        }
        if side.fence {
            thread.fence(SeqCst);
        }
        looks.push(thread.load(theirs, side.look));
    }
    program.allows(|seen| looks.iter().all(|&look| seen[look] == 0))
}

/// Finding P1 in C++20, edges ID3 and IS1. Poster: SeqCst store of the ring's tail
/// (`Ring::publish`, `Ring::steal_into`), or addition to the injector's length, then a SeqCst load of the summary
/// (`Idle::notify`). Sleeper: SeqCst exchange of the summary (`Idle::park`), then SeqCst loads of
/// the queues (`Ring::is_empty`, `Injector::is_empty_for`).
#[test]
fn a_poster_and_a_parking_member_do_not_miss_each_other() {
    assert!(!miss(store(SeqCst, SeqCst), update(SeqCst, SeqCst)));
    assert!(!miss(update(SeqCst, SeqCst), update(SeqCst, SeqCst)));
}

/// The injector's length is added to (`Injector::publish`), and another member that takes what was there before subtracts
/// from it, relaxed (here: sets another bit): the sleeper that comes after the addition sees it all the same.
#[test]
fn a_relaxed_subtraction_hides_no_addition() {
    let mut program = Litmus::new();
    let [len, summary] = program.locations();
    let mut poster = program.thread();
    poster.add(len, 1, SeqCst);
    let saw_parked = poster.load(summary, SeqCst);
    let mut sleeper = program.thread();
    sleeper.add(summary, 1, SeqCst);
    let saw_len = sleeper.load(len, SeqCst);
    program.thread().add(len, 2, Relaxed);
    program.assert_forbids(|seen| seen[saw_parked] == 0 && seen[saw_len] & 1 == 0);
}

/// Each of the four accesses has to be SeqCst; an exchange that is only AcqRel does not do.
#[test]
fn weak_orders_of_the_summary_or_the_queues_lose_a_task() {
    let (poster, sleeper) = (store(SeqCst, SeqCst), update(SeqCst, SeqCst));
    assert!(miss(store(Release, SeqCst), sleeper));
    assert!(miss(store(SeqCst, Acquire), sleeper));
    assert!(miss(poster, update(AcqRel, SeqCst)));
    assert!(miss(poster, update(SeqCst, Acquire)));
    // The seed's, and with an exchange on both sides.
    assert!(miss(store(Release, Acquire), update(AcqRel, Acquire)));
    assert!(miss(update(AcqRel, Acquire), update(AcqRel, Acquire)));
}

/// `Ring::is_empty` loads the head after the tail, relaxed. What a poster pushed is in the tail that
/// the sleeper reads, and the head that the sleeper then reads is at most the poster's tail; so the
/// ring looks empty only if somebody took the task. (Head 1: somebody took the task at 0.)
#[test]
fn a_relaxed_head_does_not_make_a_full_ring_look_empty() {
    let mut program = Litmus::new();
    let [tail, head, summary] = program.locations();
    let mut poster = program.thread();
    poster.store(tail, 1, SeqCst);
    let saw_parked = poster.load(summary, SeqCst);
    let mut sleeper = program.thread();
    sleeper.add(summary, 1, SeqCst);
    let saw_tail = sleeper.load(tail, SeqCst);
    let saw_head = sleeper.load(head, Relaxed);
    let mut thief = program.thread();
    let thief_tail = thief.load(tail, Acquire);
    thief.add(head, 1, AcqRel);
    // A thief takes only what it saw. The sleeper finds the ring empty, though nobody took the task.
    program.assert_forbids(|seen| {
        seen[saw_parked] == 0 && seen[saw_tail] == seen[saw_head] && seen[saw_head] == 0
    });
    program.assert_forbids(|seen| {
        seen[thief_tail] == 0 && seen[saw_parked] == 0 && seen[saw_tail] == 0
    });
}

/// Edge LF2: the owner pushes into its LIFO slot (a SeqCst swap), then loads the summary: is there a
/// watcher? The watcher retires (a SeqCst exchange), then loads the slots (`Worker::watch_expired`).
#[test]
fn a_lifo_push_and_a_retiring_watcher_do_not_miss_each_other() {
    assert!(!miss(update(SeqCst, SeqCst), update(SeqCst, SeqCst)));
    assert!(miss(update(AcqRel, SeqCst), update(SeqCst, SeqCst)), "weak push");
    assert!(miss(update(SeqCst, SeqCst), update(SeqCst, Acquire)), "weak second look");
}

/// Edge CR1: who becomes the attended member of a crowd says so (an exchange), pushes to its ring, and
/// loads the summary: is there a watcher? The watcher retires, then loads who is attended
/// (`Shared::relies_on_a_watcher`).
#[test]
fn who_becomes_attended_and_a_retiring_watcher_do_not_miss_each_other() {
    let misses = |attend| {
        let mut program = Litmus::new();
        let [word, ring, summary] = program.locations();
        let mut member = program.thread();
        member.add(word, 1, attend);
        member.store(ring, 1, SeqCst);
        let retired = member.load(summary, SeqCst);
        let mut watcher = program.thread();
        watcher.add(summary, 1, SeqCst);
        let attended = watcher.load(word, SeqCst);
        program.allows(|seen| seen[retired] == 0 && seen[attended] == 0)
    };
    assert!(!misses(SeqCst));
    assert!(misses(Relaxed), "what comes after it in its own thread does not order it");
}

/// Edges TW1 and TW2: the registrar lowers `next` and looks at `sleeping_until`; the waiter stores
/// that and looks at `next`; both relaxed, with a fence in between (`Shard::announce`,
/// `Timers::prepare_wait`).
#[test]
fn a_new_timer_and_the_waiter_do_not_miss_each_other() {
    let side = fenced(store(Relaxed, Relaxed));
    assert!(!miss(side, side));
    assert!(miss(side, store(Relaxed, Relaxed)), "fence on one side only");
}

/// Finding T7: a look at the Sync word that finds `notified` set ends a notification without a
/// read-modify-write. Pushing thread: a push, a fence, a look (`SyncWord::notify`). Thread that
/// consumes the bit: an acquire exchange, a fence, a look at the queues (`SyncWord::wait`, `found`,
/// `start_failed`).
#[test]
fn a_notification_that_is_skipped_is_not_lost() {
    let (buffer, queue) = (store(Release, Relaxed), update(Release, Relaxed));
    let consumer = update(Acquire, Relaxed);
    for push in [buffer, queue] {
        assert!(!miss(fenced(push), fenced(consumer)));
        assert!(miss(push, fenced(consumer)), "seed, finding T7: no fence in notify");
        assert!(miss(fenced(push), consumer), "no fence after the bit was consumed");
    }
}

/// Edge SY1: a notification that does write the word releases the push to whoever consumes it.
#[test]
fn a_notification_carries_the_push() {
    let loses = |notify, consume| {
        let mut program = Litmus::new();
        let [queue, word] = program.locations();
        let mut pusher = program.thread();
        pusher.store(queue, 1, Relaxed);
        pusher.add(word, 1, notify);
        let mut thread = program.thread();
        let consumed = thread.swap(word, 0, consume);
        let found = thread.load(queue, Relaxed);
        program.allows(|seen| seen[consumed] == 1 && seen[found] == 0)
    };
    assert!(!loses(Release, Acquire));
    assert!(loses(Relaxed, Acquire));
    assert!(loses(Release, Relaxed));
}
