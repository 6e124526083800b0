//! The axioms of RC11, in the words of the paper.

use super::relation::Relation;
use super::{Event, Order};

/// One candidate: who reads from whom, and the order of the writes to each location.
pub(super) struct Candidate<'a> {
    pub(super) events: &'a [Event],
    /// sb: the order of each thread, and initialisation before everything.
    pub(super) program_order: &'a Relation,
    /// mo.
    pub(super) write_order: &'a Relation,
    /// For each event that reads: the write that it reads from.
    pub(super) source: &'a [Option<usize>],
}

impl Candidate<'_> {
    /// True if the memory model allows it. Atomicity is up to the caller.
    pub(super) fn is_consistent(&self) -> bool {
        let n = self.events.len();
        let (sb, mo) = (self.program_order, self.write_order);
        let rf = Relation::of(n, |write, read| self.source[read] == Some(write));
        let rb = Relation::of(n, |read, write| {
            read != write && self.source[read].is_some_and(|source| mo.has(source, write))
        });
        // NO-THIN-AIR
        if !sb.or(&rf).is_acyclic() {
            return false;
        }
        let hb = sb.or(&self.synchronizes(&rf)).closure();
        let eco = rf.or(mo).or(&rb).closure();
        // COHERENCE
        if !hb.then(&eco.optional()).is_irreflexive() || !eco.is_irreflexive() {
            return false;
        }
        // SC
        self.psc(&hb, &eco, &rb).is_acyclic()
    }

    /// sw = [E>=rel] ; ([F] ; sb)? ; rs ; rf ; [R>=rlx] ; (sb ; [F])? ; [E>=acq]
    fn synchronizes(&self, rf: &Relation) -> Relation {
        let (events, n, sb) = (self.events, self.events.len(), self.program_order);
        let writes = |event: usize| events[event].writes();
        // rs = [W] ; (rf ; [RMW])*, as in C++20
        let chain = rf.between(|_| true, |event| events[event].is_update()).closure();
        let rs = Relation::identity(n, writes).or(&chain.between(writes, |_| true));
        let releases =
            |event: usize| events[event].order.releases() && events[event].thread.is_some();
        let acquires = |event: usize| events[event].order.acquires();
        let stores = rs.between(releases, |_| true);
        let fenced_stores =
            sb.between(|event| events[event].is_fence() && releases(event), writes).then(&rs);
        let loads = Relation::identity(n, |event| events[event].reads() && acquires(event));
        let fenced_loads = sb.between(
            |event| events[event].reads(),
            |event| events[event].is_fence() && acquires(event),
        );
        stores.or(&fenced_stores).then(rf).then(&loads.or(&fenced_loads))
    }

    /// psc = psc_base | psc_F
    fn psc(&self, hb: &Relation, eco: &Relation, rb: &Relation) -> Relation {
        let (events, n, sb) = (self.events, self.events.len(), self.program_order);
        let same = |one: usize, two: usize| {
            events[one].location.is_some() && events[one].location == events[two].location
        };
        let sb_elsewhere = Relation::of(n, |one, two| sb.has(one, two) && !same(one, two));
        let hb_here = Relation::of(n, |one, two| hb.has(one, two) && same(one, two));
        // scb = sb | sb!=loc ; hb ; sb!=loc | hb|loc | mo | rb
        let scb = sb
            .or(&sb_elsewhere.then(hb).then(&sb_elsewhere))
            .or(&hb_here)
            .or(self.write_order)
            .or(rb);
        let sc =
            |event: usize| events[event].order == Order::SeqCst && events[event].thread.is_some();
        let e = Relation::identity(n, sc);
        let f = Relation::identity(n, |event| sc(event) && events[event].is_fence());
        let first = e.or(&f.then(&hb.optional()));
        let last = e.or(&hb.optional().then(&f));
        let base = first.then(&scb).then(&last);
        let fences = f.then(&hb.or(&hb.then(eco).then(hb))).then(&f);
        base.or(&fences)
    }
}
