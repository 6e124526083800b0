//! The sleepers of a bounded channel against its data path: `volt_sync::channel::bounded` and
//! `volt_sync::channel::ring`, edges BW1, BW2, RG3, RG4.
//!
//! As built: a sender moves the tail by a SeqCst exchange, publishes the stamp with a release store,
//! and loads the receivers' flag with SeqCst (`Bounded::published`). A receiver that is about to
//! sleep stores the flag with SeqCst, and loads head and tail with SeqCst (`Ring::look`). Loom takes
//! these accesses for weaker than they are, so only here are they checked without extra fences.

use crate::litmus::Order::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::litmus::{Litmus, Order};

/// The orders of the four accesses.
#[derive(Clone, Copy)]
struct Orders {
    /// The move of the tail (or of the head).
    moved: Order,
    /// The load of the flag after it.
    look: Order,
    /// The store of the flag.
    flag: Order,
    /// The sleeper's last look.
    last_look: Order,
}

const AS_BUILT: Orders = Orders { moved: SeqCst, look: SeqCst, flag: SeqCst, last_look: SeqCst };

/// True if a message and a sleeping receiver can miss each other. `look_at_stamp`: the receiver's
/// last look is at the place's stamp, as in the seed, instead of the tail.
fn loses(orders: Orders, look_at_stamp: bool) -> bool {
    let mut program = Litmus::new();
    let [tail, stamp, flag] = program.locations();
    let mut sender = program.thread();
    sender.add(tail, 1, orders.moved);
    sender.store(stamp, 1, Release);
    let saw_flag = sender.load(flag, orders.look);
    let mut receiver = program.thread();
    receiver.store(flag, 1, orders.flag);
    let looked = if look_at_stamp { stamp } else { tail };
    let saw_message = receiver.load(looked, orders.last_look);
    program.allows(|seen| seen[saw_flag] == 0 && seen[saw_message] == 0)
}

/// Finding C1, as built: edges BW1 and RG3, and by symmetry (the head instead of the tail, the
/// senders' flag instead of the receivers') BW2 and RG4.
#[test]
fn a_sleeping_receiver_or_its_message_is_seen() {
    assert!(!loses(AS_BUILT, false));
}

/// Every one of the four SeqCst is needed.
#[test]
fn weak_orders_of_the_flag_or_the_tail_lose_a_wake_up() {
    for weak in [
        Orders { moved: AcqRel, ..AS_BUILT },
        Orders { look: Acquire, ..AS_BUILT },
        Orders { flag: Release, ..AS_BUILT },
        Orders { last_look: Acquire, ..AS_BUILT },
    ] {
        assert!(loses(weak, false));
    }
}

/// Finding C1: the seed's receiver looks at the stamp again, whose store may be late, however strong
/// the look is.
#[test]
fn seed_c1_a_second_look_at_the_stamp_loses_a_wake_up() {
    assert!(loses(AS_BUILT, true));
    assert!(loses(Orders { moved: AcqRel, last_look: Acquire, ..AS_BUILT }, true));
}

/// The only receiver moves the head with a SeqCst store instead of an exchange
/// (`Ring::claim_only_head`, `Ring::take_many`): a sleeping sender (`Bounded::enqueue_sender`, whose
/// last look is in `Ring::reserve`) sees it all the same.
#[test]
fn a_sleeping_sender_or_the_only_receivers_free_place_is_seen() {
    let loses = |moved| {
        let mut program = Litmus::new();
        let [head, stamp, flag, tail] = program.locations();
        let mut receiver = program.thread();
        receiver.store(head, 1, moved);
        receiver.store(stamp, 1, Release);
        let saw_flag = receiver.load(flag, SeqCst);
        let mut sender = program.thread();
        sender.store(flag, 1, SeqCst);
        sender.load(tail, SeqCst);
        let saw_place = sender.load(head, SeqCst);
        program.allows(|seen| seen[saw_flag] == 0 && seen[saw_place] == 0)
    };
    assert!(!loses(SeqCst));
    assert!(loses(Release));
}

/// Senders that queue behind another do not set the flag again (`Bounded::enqueue_sender`): what
/// they need follows from the first one's flag through the lock. The first (A) sets the flag and
/// unlocks; the next holder of the lock (B: `Bounded::serve`, after A was cancelled) looks at the
/// head. A receiver that missed A's flag has moved the head before, so B sees it.
#[test]
fn the_flag_of_the_first_sender_serves_those_behind_it() {
    let loses = |unlock, lock_order| {
        let mut program = Litmus::new();
        let [head, flag, lock] = program.locations();
        let mut receiver = program.thread();
        receiver.add(head, 1, SeqCst);
        let saw_flag = receiver.load(flag, SeqCst);
        let mut first = program.thread();
        first.store(flag, 1, SeqCst);
        first.store(lock, 1, unlock);
        let mut next = program.thread();
        let locked = next.swap(lock, 2, lock_order);
        let saw_place = next.load(head, SeqCst);
        program.allows(|seen| seen[locked] == 1 && seen[saw_flag] == 0 && seen[saw_place] == 0)
    };
    assert!(!loses(Release, Acquire));
    assert!(loses(Relaxed, Relaxed), "edge SL1 is part of the argument");
}

/// The flag is cleared by a relaxed store under the lock (`Bounded::settle_receivers`), which stands
/// between an older flag and the one of the receiver that comes next. A sender that reads the
/// cleared flag is still ordered before that receiver's last look.
#[test]
fn a_relaxed_clear_between_two_receivers_hides_no_message() {
    let mut program = Litmus::new();
    let [tail, flag, lock] = program.locations();
    let mut sender = program.thread();
    sender.add(tail, 1, SeqCst);
    let saw_flag = sender.load(flag, SeqCst);
    let mut waker = program.thread();
    waker.store(flag, 2, Relaxed);
    waker.store(lock, 1, Release);
    let mut receiver = program.thread();
    let locked = receiver.swap(lock, 2, Acquire);
    receiver.store(flag, 1, SeqCst);
    let saw_message = receiver.load(tail, SeqCst);
    // 2 stands for the cleared flag, 0 for what was before it.
    program
        .assert_forbids(|seen| seen[locked] == 1 && seen[saw_flag] != 1 && seen[saw_message] == 0);
}

/// `Ring::reserve` moves the tail with a relaxed exchange. A receiver that reads the tail behind it
/// sees the claims before it, and one that reads an older tail is ordered before all of them.
#[test]
fn a_relaxed_reservation_behind_a_claim_hides_no_message() {
    let mut program = Litmus::new();
    let [tail, flag] = program.locations();
    let mut sender = program.thread();
    sender.add(tail, 1, SeqCst);
    let saw_flag = sender.load(flag, SeqCst);
    program.thread().add(tail, 100, Relaxed);
    let mut receiver = program.thread();
    receiver.store(flag, 1, SeqCst);
    let saw_tail = receiver.load(tail, SeqCst);
    program.assert_forbids(|seen| seen[saw_flag] == 0 && seen[saw_tail] % 100 == 0);
}

/// Finding C7 and edge RG3: the closer sets CLOSED in the tail, so whoever sees the bit sees the
/// position of every message that was sent before it.
#[test]
fn whoever_sees_the_close_sees_the_last_position() {
    let mut program = Litmus::new();
    let [tail] = program.locations();
    program.thread().add(tail, 1, Relaxed);
    let mut closer = program.thread();
    let before = closer.add(tail, 100, SeqCst);
    let mut receiver = program.thread();
    let saw = receiver.load(tail, SeqCst);
    program.assert_forbids(|seen| seen[before] == 1 && seen[saw] == 100);
}
