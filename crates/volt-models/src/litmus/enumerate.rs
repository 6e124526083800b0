//! All candidates of a program: every order of writes, and every source for every read.

use super::axioms::Candidate;
use super::relation::{MOST, Relation};
use super::{Event, Kind, Litmus, Seen};

/// Calls `visit` with the outcome of every execution that the model allows.
pub(super) fn executions(program: &Litmus, mut visit: impl FnMut(&Seen)) {
    let events = &program.events;
    let n = events.len();
    assert!(n <= MOST, "too many events");
    let program_order =
        Relation::of(n, |one, two| match (events[one].thread, events[two].thread) {
            (None, Some(_)) => true,
            (Some(thread), Some(other)) => thread == other && one < two,
            _ => false,
        });
    let writes_to = |location: usize| {
        (0..n).filter(move |&event| {
            events[event].writes() && events[event].location == Some(location)
        })
    };
    let orders: Vec<Vec<Vec<usize>>> = (0..program.locations)
        .map(|location| permutations(&writes_to(location).skip(1).collect::<Vec<_>>()))
        .collect();
    for choice in choices(&orders.iter().map(Vec::len).collect::<Vec<_>>()) {
        // For each location its writes in order, the initial one first.
        let order: Vec<Vec<usize>> = choice
            .iter()
            .enumerate()
            .map(|(location, &index)| {
                let mut order = vec![location];
                order.extend(&orders[location][index]);
                order
            })
            .collect();
        with_sources(events, &program_order, &order, &mut visit);
    }
}

/// Every source for every read, under one order of writes.
fn with_sources(
    events: &[Event],
    program_order: &Relation,
    order: &[Vec<usize>],
    visit: &mut impl FnMut(&Seen),
) {
    let n = events.len();
    let place = |event: usize| {
        let location = events[event].location?;
        order[location].iter().position(|&write| write == event)
    };
    let write_order = Relation::of(n, |one, two| {
        events[one].location.is_some()
            && events[one].location == events[two].location
            && place(one).zip(place(two)).is_some_and(|(one, two)| one < two)
    });
    let readers: Vec<usize> = (0..n).filter(|&event| events[event].reads()).collect();
    let sources: Vec<Vec<usize>> = readers
        .iter()
        .map(|&reader| {
            let writes = &order[events[reader].location.expect("a read has a location")];
            match place(reader) {
                // Atomicity: an update reads what is directly before it.
                Some(place) => vec![writes[place - 1]],
                None => writes.clone(),
            }
        })
        .collect();
    for choice in choices(&sources.iter().map(Vec::len).collect::<Vec<_>>()) {
        let mut source = vec![None; n];
        for ((&reader, sources), &index) in readers.iter().zip(&sources).zip(&choice) {
            source[reader] = Some(sources[index]);
        }
        let candidate =
            Candidate { events, program_order, write_order: &write_order, source: &source };
        if candidate.is_consistent() {
            visit(&outcome(events, &source, order));
        }
    }
}

fn outcome(events: &[Event], source: &[Option<usize>], order: &[Vec<usize>]) -> Seen {
    let read = |event: usize| source[event].map_or(0, |from| written(events, source, from));
    let last = |writes: &Vec<usize>| *writes.last().expect("the initial write");
    Seen {
        reads: (0..events.len()).map(read).collect(),
        finals: order.iter().map(|writes| written(events, source, last(writes))).collect(),
    }
}

/// The value that `event` writes. There are no cycles: values do not come out of thin air.
fn written(events: &[Event], source: &[Option<usize>], event: usize) -> i32 {
    match events[event].kind {
        Kind::Store(value) | Kind::Exchange(value) => value,
        Kind::Add(by) => by + written(events, source, source[event].expect("an update reads")),
        Kind::Load | Kind::Fence => unreachable!("it writes nothing"),
    }
}

fn permutations(items: &[usize]) -> Vec<Vec<usize>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (index, &first) in items.iter().enumerate() {
        let mut rest = items.to_vec();
        rest.remove(index);
        all.extend(permutations(&rest).into_iter().map(|mut order| {
            order.insert(0, first);
            order
        }));
    }
    all
}

/// Every vector whose elements are below `limits`.
fn choices(limits: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let limits = limits.to_vec();
    let total: usize = limits.iter().product();
    (0..total).map(move |mut number| {
        limits
            .iter()
            .map(|&limit| {
                let digit = number % limit;
                number /= limit;
                digit
            })
            .collect()
    })
}
