use std::ptr;
use std::sync::Arc;

use super::{Help, Worker};
use crate::engine::{Config, Core};
use crate::fork::Promoted;
use crate::frame::{Frame, Lineage};
use crate::parking;

/// What a thread waits for, as a part of the frame `parent`.
fn part_of(parent: &Frame) -> Promoted {
    // SAFETY: the tests keep the parent.
    Promoted::new(unsafe { Frame::new(parent, parking::mine(), ptr::null()) })
}

/// A waiting thread leaves what its thief offers where it is, if that is no part of what it waits
/// for, so that others find it: also if both are parts of one call.
#[test]
fn an_offer_of_no_descendant_stays_on_offer() {
    let fail_start: Arc<dyn Fn(usize) -> bool + Send + Sync> = Arc::new(|_| true);
    let core = Core::new(Config { threads: 2, fail_start: Some(fail_start), ..Config::default() });
    let [thief, waiting] = [0, 1].map(|index| Worker::new(Arc::as_ptr(&core), index, Some(index)));
    // SAFETY: a null parent is allowed.
    let call = unsafe { Frame::new(ptr::null(), parking::mine(), ptr::null()) };
    let stolen = part_of(&call);
    // Many, of which nearly all are told from the stolen one by the filter.
    let others: Vec<Promoted> = (0..32).map(|_| part_of(&call)).collect();
    let help = |promoted: &Promoted| {
        promoted.set_thief(&thief);
        waiting.help(&promoted.frame, &Help::Thief(promoted))
    };
    let offered = || {
        let lineage = part_of(&stolen.frame).frame.lineage();
        let told = others.iter().filter(|other| !lineage.may_include(Lineage::of(&other.frame)));
        let mut count = 0;
        for other in told {
            assert!(!help(other), "a part of the same call");
            assert_eq!(thief.offer.len(), 1, "it stays on offer");
            count += 1;
        }
        assert!(count > 16, "{count} of 32");
        assert!(help(&stolen), "a descendant");
        assert!(thief.offer.is_empty());
    };
    let frame: *const Frame = &raw const stolen.frame;
    // Asked from the start, so this fork is offered.
    let joined = thief.within(frame, || thief.join(offered, || 2));
    assert_eq!(joined, ((), 2));
}
