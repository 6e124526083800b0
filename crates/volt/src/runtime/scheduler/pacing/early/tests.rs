use std::io::Write;
use std::os::unix::net::UnixStream;

use crate::reactor::Why;
use crate::runtime::config::Config;
use crate::runtime::context;
use crate::runtime::driver::Driver;
use crate::runtime::scheduler::by_hand::with_members;
use crate::runtime::scheduler::pacing::early::{FEW, MANY};
use crate::runtime::scheduler::shared::Shared;
use crate::runtime::scheduler::worker::{Step, Worker};
use crate::time::Clock;

/// What was ready in the driver when `FEW` of the tasks that were found before are left: whether the member has found
/// it by then. None if it has run by then as well: the system may stop the thread in a poll, and what is found after a
/// long one may overtake the others.
fn finds_early(workers: usize, found: usize, poll_ns: f32) -> Option<bool> {
    let (driver, handle) = Driver::new(workers, Clock::real()).unwrap();
    let shared = Shared::new(Config::default(), workers, driver, handle);
    let parks: Vec<_> = (0..workers).map(|index| shared.park_of(index)).collect();
    let members: Vec<_> =
        parks.iter().enumerate().map(|(index, park)| Worker::new(&shared, index, park)).collect();
    let sockets: Vec<_> = (0..=found).map(|_| UnixStream::pair().unwrap()).collect();
    let (ours, mut theirs): (Vec<_>, Vec<_>) = sockets.into_iter().unzip();
    let found_early = context::with_worker(&members[0], || {
        let mut readers: Vec<_> = ours
            .into_iter()
            .map(|ours| {
                ours.set_nonblocking(true).unwrap();
                shared.spawn(async move {
                    let ours = crate::net::UnixStream::from_std(ours).unwrap();
                    ours.readable().await.unwrap();
                })
            })
            .collect();
        // Each of them waits for its message.
        for _ in 0..=found {
            assert_eq!(members[0].step(), Step::Continue);
        }
        let last = readers.pop().unwrap();
        let mut last_theirs = theirs.pop().unwrap();
        theirs.iter_mut().for_each(|theirs| theirs.write_all(b"!").unwrap());
        members[0].pace.set_poll_ns(poll_ns);
        members[0].look_at_driver(Why::Due);
        assert_eq!(members[0].slot.ring.len(), found);
        last_theirs.write_all(b"!").unwrap();
        while members[0].slot.ring.len() > FEW {
            assert!(readers.iter().any(|reader| !reader.is_finished()));
            members[0].pace.set_poll_ns(poll_ns);
            assert_eq!(members[0].step(), Step::Continue);
        }
        members[0].pace.set_poll_ns(poll_ns);
        assert_eq!(members[0].step(), Step::Continue);
        let found_early = members[0].slot.ring.len() == FEW;
        assert!(found_early || members[0].slot.ring.len() == FEW - 1);
        (!last.is_finished()).then_some(found_early)
    });
    shared.begin_shutdown();
    for worker in &members {
        context::with_worker(worker, || worker.end());
    }
    found_early
}

/// A look of the tick comes in between, and finds little.
#[test]
fn what_is_left_of_much_is_not_forgotten() {
    with_members(|shared, [member, ..]| {
        member.found_many.set(true);
        context::with_worker(member, || (0..=FEW + 1).for_each(|_| drop(shared.spawn(async {}))));
        assert_eq!(member.slot.ring.len(), FEW + 1);
        member.note_what_was_found();
        assert!(member.found_many.get());
        drop(member.slot.ring.pop().map(|task| member.adopt(task)));
        member.note_what_was_found();
        assert!(!member.found_many.get());
    });
}

#[test]
fn who_has_found_much_looks_again_before_the_last_of_it() {
    // After a poll in which the thread was stopped there is another look, sooner or later than this one: that is
    // not so in each try. And what was found goes behind those that were there, or there is no answer.
    let comes = |early, workers, found, poll_ns| {
        (0..20).any(|_| finds_early(workers, found, poll_ns) == Some(early))
    };
    assert!(comes(true, 2, MANY, 5_000.0));
    assert!(comes(false, 2, MANY - 1, 5_000.0), "there was not much");
    assert!(comes(false, 2, MANY, 1_000.0), "the polls are short");
    assert!(comes(false, 1, MANY, 5_000.0), "nobody else runs");
}
