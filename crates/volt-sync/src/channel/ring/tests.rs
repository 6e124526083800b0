use super::{CLOSED, ONE, RESERVED_ONE, Ring, Tail, WAITERS};
use crate::channel::{Nothing, Refused};

/// Sends without anybody to wake.
fn send<T>(ring: &Ring<T>, value: T) -> Result<(), Refused> {
    let at = ring.claim_tail()?;
    at.publish(value);
    Ok(())
}

fn recv<T>(ring: &Ring<T>) -> Result<T, Nothing> {
    let at = ring.claim_head()?;
    Ok(at.take())
}

#[test]
fn every_capacity_holds_exactly_as_many_over_many_laps() {
    for capacity in 1..=9 {
        let ring = Ring::new(capacity);
        for lap in 0..20 {
            for i in 0..capacity {
                send(&ring, lap * 100 + i).unwrap();
            }
            assert_eq!(send(&ring, 0), Err(Refused::Full));
            assert_eq!(ring.snapshot(), (capacity, 0));
            for i in 0..capacity {
                assert_eq!(recv(&ring), Ok(lap * 100 + i));
            }
            assert_eq!(recv(&ring), Err(Nothing::Empty));
            assert_eq!(ring.snapshot(), (0, capacity));
        }
    }
}

/// Finding C8.
#[test]
fn a_stale_tail_is_not_a_full_ring() {
    let ring = Ring::new(3);
    let stale = ring.tail();
    send(&ring, 1).unwrap();
    recv(&ring).unwrap();
    assert_eq!(stale.ahead_of(ONE), None, "head is ahead of the old tail");
    assert_eq!(ring.room(stale), None, "out of date, not full");
    assert_eq!(ring.room(ring.tail()), Some(3));
}

#[test]
fn positions_wrap_around() {
    let mut ring = Ring::new(2);
    let near_the_end = 0u64.wrapping_sub(2 * ONE);
    *ring.tail = super::cursor::Cursor::new(near_the_end);
    *ring.head = super::cursor::Cursor::new(near_the_end);
    for place in &ring.places {
        place.stamp.store(near_the_end & ring.lap_mask, std::sync::atomic::Ordering::Relaxed);
    }
    for i in 0..6 {
        send(&ring, i).unwrap();
        send(&ring, i).unwrap();
        assert_eq!(send(&ring, i), Err(Refused::Full));
        assert_eq!((recv(&ring), recv(&ring)), (Ok(i), Ok(i)));
        assert_eq!(recv(&ring), Err(Nothing::Empty));
    }
}

#[test]
fn a_claimed_place_is_busy_until_it_is_published() {
    let ring = Ring::new(2);
    let at = ring.claim_tail().unwrap();
    assert!(matches!(ring.claim_head(), Err(Nothing::Busy)));
    assert_eq!(ring.look(), Some(Nothing::Busy));
    at.publish(7);
    assert_eq!(recv(&ring), Ok(7));
    assert_eq!(ring.look(), None);
}

#[test]
fn a_place_that_is_being_left_is_busy_not_full() {
    let ring = Ring::new(1);
    send(&ring, 1).unwrap();
    let at = ring.claim_head().unwrap();
    assert_eq!(send(&ring, 2), Err(Refused::Busy));
    assert_eq!(at.take(), 1);
    assert_eq!(send(&ring, 2), Ok(()));
}

#[test]
fn reserved_places_are_kept_for_their_owner() {
    let ring = Ring::new(4);
    ring.reserve(3, false).unwrap();
    send(&ring, 1).unwrap();
    assert_eq!(send(&ring, 2), Err(Refused::Full));
    assert_eq!(ring.reserve(1, true), Err(Refused::Full));
    let (at, before) = ring.claim_reserved(true).unwrap();
    assert_eq!(before.reserved(), 3);
    at.publish(3);
    assert_eq!(ring.unreserve(2).reserved(), 2);
    send(&ring, 4).unwrap();
    assert_eq!((recv(&ring), recv(&ring), recv(&ring)), (Ok(1), Ok(3), Ok(4)));
}

#[test]
fn waiters_refuse_newcomers_but_not_their_own_service() {
    let ring = Ring::<()>::new(2);
    ring.set_waiters(true);
    assert_eq!(send(&ring, ()), Err(Refused::Full));
    assert_eq!(ring.reserve(1, false), Err(Refused::Full));
    assert_eq!(ring.reserve(1, true), Ok(()));
    ring.set_waiters(false);
    assert_eq!(send(&ring, ()), Ok(()));
}

/// Finding C7: closed is not yet finished.
#[test]
fn closed_means_nothing_left_and_nothing_reserved() {
    let ring = Ring::new(2);
    send(&ring, 1).unwrap();
    ring.reserve(1, false).unwrap();
    assert!(!ring.close().is_closed());
    assert!(ring.close().is_closed());
    assert_eq!(send(&ring, 2), Err(Refused::Closed));
    assert_eq!(ring.reserve(1, true), Err(Refused::Closed));
    assert_eq!(recv(&ring), Ok(1));
    assert_eq!(recv(&ring), Err(Nothing::Empty));
    ring.unreserve(1);
    assert_eq!(recv(&ring), Err(Nothing::Closed));
    assert_eq!(ring.look(), Some(Nothing::Closed));
}

#[test]
fn the_bits_of_the_tail_do_not_touch() {
    let full = Tail(((1 << 26) - 1) * RESERVED_ONE);
    assert_eq!(full.reserved(), super::MAX_CAPACITY);
    assert_eq!((full.position(), full.is_closed(), full.has_waiters()), (0, false, false));
    assert_eq!(full.0 | CLOSED | WAITERS, ONE - 1);
}

#[test]
fn many_are_taken_with_one_move_of_the_head() {
    let ring = Ring::new(4);
    let mut into = Vec::new();
    for lap in 0..5 {
        for i in 0..4 {
            send(&ring, lap * 4 + i).unwrap();
        }
        // SAFETY: one thread, so the only receiver.
        assert_eq!(unsafe { ring.take_many(&mut into, 3) }, Ok(3));
        // SAFETY: as above, one thread only.
        assert_eq!(unsafe { ring.take_many(&mut into, 3) }, Ok(1));
        // SAFETY: as above, one thread only.
        assert_eq!(unsafe { ring.take_many(&mut into, 3) }, Err(Nothing::Empty));
    }
    assert_eq!(into, (0..20).collect::<Vec<_>>());
}

/// What a sender leaves that was overtaken between its claim and its publication is an old guess. What has
/// changed since is not missed.
#[test]
fn an_old_guess_of_the_tail_sends_nothing_that_is_refused() {
    type Change = fn(&Ring<i32>);
    let changes: [(Change, Refused); 4] = [
        (|ring| assert!(!ring.set_waiters(true).has_waiters()), Refused::Full),
        (|ring| assert!(!ring.close().is_closed()), Refused::Closed),
        (|ring| ring.reserve(2, false).unwrap(), Refused::Full),
        (|ring| (1..3).for_each(|value| send(ring, value).unwrap()), Refused::Full),
    ];
    // The third message is the last for which there is room: also where the ring has four places.
    for (capacity, also_reserved) in [(3, true), (3, false), (4, true), (4, false)] {
        for (change, refused) in changes {
            let ring = Ring::new(capacity);
            if capacity == 4 {
                ring.reserve(1, false).unwrap();
            }
            let overtaken = ring.claim_tail().unwrap();
            change(&ring);
            overtaken.publish(0);
            assert!(ring.claim_tail_once(also_reserved).is_none());
            assert_eq!(send(&ring, 3), Err(refused));
        }
    }
}

/// As above, with receivers: each message is received once, in its order, and also when the ring is dropped.
#[test]
fn an_old_guess_of_the_head_receives_nothing_twice() {
    use std::rc::Rc;
    let alive = Rc::new(());
    let ring = Ring::new(4);
    let sent = |ring: &Ring<_>, value| send(ring, (value, alive.clone())).unwrap();
    (0..4).for_each(|value| sent(&ring, value));
    let (overtaken, overtakes) = (ring.claim_head_once().unwrap(), ring.claim_head().unwrap());
    assert!(ring.claim_head_once().is_none(), "expects the message that `overtaken` has claimed");
    assert_eq!(overtakes.take().0, 1);
    assert_eq!(overtaken.take().0, 0);
    assert!(ring.claim_head_once().is_none(), "expects the message that `overtakes` has taken");
    assert_eq!(recv(&ring).unwrap().0, 2);
    assert_eq!(ring.claim_head_once().unwrap().take().0, 3, "the guess is right again");
    (4..8).for_each(|value| sent(&ring, value));
    let (overtaken, overtakes) = (ring.claim_head().unwrap(), ring.claim_head().unwrap());
    drop((overtakes.take(), overtaken.take()));
    assert_eq!(Rc::strong_count(&alive), 3);
    drop(ring);
    assert_eq!(Rc::strong_count(&alive), 1);
}

/// One thread, on which claims end in any order, so that most guesses are old ones.
#[test]
fn claims_that_end_in_any_order_keep_capacity_and_order() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as usize % below
    };
    for capacity in 1..=6 {
        let ring = Ring::new(capacity);
        let (mut sending, mut receiving) = (Vec::new(), Vec::new());
        // What the tail is to be: claimed, reserved, waiters; and the claims of the head.
        let (mut sent, mut received, mut reserved, mut waiters) = (0, 0, 0, false);
        for _ in 0..40_000 {
            let room = capacity - (sent - received) - reserved;
            let refused = waiters || room == 0;
            match random(12) {
                way @ 0..=3 => {
                    let at = match way {
                        0 => ring.claim_tail().ok(),
                        1 => ring.claim_tail_once(false),
                        _ => ring.claim_tail_once(true),
                    };
                    if let Some(at) = at {
                        assert!(!refused);
                        sending.push((at, sent));
                        sent += 1;
                    }
                }
                4 | 5 if !sending.is_empty() => {
                    let (at, value) = sending.swap_remove(random(sending.len()));
                    at.publish(value);
                }
                way @ 6..=8 => {
                    let at = if way == 6 { ring.claim_head().ok() } else { ring.claim_head_once() };
                    if let Some(at) = at {
                        receiving.push((at, received));
                        received += 1;
                        assert!(received <= sent);
                    }
                }
                9 | 10 if !receiving.is_empty() => {
                    let (at, value) = receiving.swap_remove(random(receiving.len()));
                    assert_eq!(at.take(), value);
                }
                11 => match random(8) {
                    0 => {
                        assert_eq!(ring.reserve(1, false).is_ok(), !refused);
                        reserved += usize::from(!refused);
                    }
                    1 if reserved > 0 => {
                        ring.unreserve(1);
                        reserved -= 1;
                    }
                    2 if reserved > 0 => {
                        if let Ok((at, _)) = ring.claim_reserved(false) {
                            sending.push((at, sent));
                            (sent, reserved) = (sent + 1, reserved - 1);
                        }
                    }
                    3 => {
                        waiters = !waiters;
                        ring.set_waiters(waiters);
                    }
                    _ => {}
                },
                _ => {}
            }
            assert_eq!(ring.tail().reserved(), reserved);
        }
        assert!(received > 500, "{received} messages only");
    }
}

#[test]
fn a_dropped_ring_drops_what_is_in_it_also_past_a_panic() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;
    struct Bomb(#[expect(dead_code, reason = "counts what is alive")] Rc<()>, bool);
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(!self.1, "boom");
        }
    }
    let alive = Rc::new(());
    let ring = Ring::new(4);
    for i in 0..4 {
        assert!(send(&ring, Bomb(alive.clone(), i == 1)).is_ok());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| drop(ring))).is_err());
    assert_eq!(Rc::strong_count(&alive), 1);
}

#[test]
#[should_panic(expected = "above zero")]
fn a_capacity_of_zero_panics() {
    Ring::<()>::new(0);
}

#[test]
#[should_panic(expected = "at most")]
fn a_capacity_above_the_maximum_panics() {
    Ring::<()>::new(super::MAX_CAPACITY + 1);
}

/// Pages of `memory` that are in memory.
#[cfg(all(target_os = "linux", not(volt_tsan)))]
fn resident<T>(memory: &[T]) -> usize {
    const PAGE: usize = 4096;
    let start = memory.as_ptr().addr().next_multiple_of(PAGE);
    let length = memory.as_ptr_range().end.addr() - start;
    let mut pages = vec![0_u8; length.div_ceil(PAGE)];
    // SAFETY: the range is mapped, it lies within the slice, and there is a byte for each page.
    let result = unsafe { libc::mincore(start as *mut _, length, pages.as_mut_ptr()) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    pages.iter().filter(|page| **page & 1 == 1).count()
}

/// Not for ThreadSanitizer, whose allocator writes the zeros.
#[cfg(all(target_os = "linux", not(volt_tsan)))]
#[test]
fn a_large_ring_is_not_touched_when_it_is_made() {
    let ring = Ring::<[u8; 56]>::new(1 << 20);
    let before = resident(&ring.places);
    assert!(before < 1024, "64 MiB of address space, and {before} of its 16,384 pages in memory");
    for place in &ring.places {
        place.stamp.store(0, std::sync::atomic::Ordering::Relaxed);
    }
    assert!(resident(&ring.places) > 16_000, "what the test looks at does change");
}
