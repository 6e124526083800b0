//! The central rows again, with more workers than processors: nothing may collapse when the kernel
//! takes the processor from a worker that others wait for.
#![forbid(unsafe_code)]

use crate::record::Role;
use crate::registry::Row;

/// The same row with four and with eight workers.
macro_rules! repeat {
    ($($group:literal $name:literal $title:literal;)*) => {
        [$(
            Repeat {
                base: concat!($group, "/", $name),
                variants: [
                    (4, concat!("oversubscribed/", $name, "_w4"), concat!($title, "; 4 workers")),
                    (8, concat!("oversubscribed/", $name, "_w8"), concat!($title, "; 8 workers")),
                ],
            },
        )*]
    };
}

struct Repeat {
    base: &'static str,
    variants: [(usize, &'static str, &'static str); 2],
}

const REPEATED: [Repeat; 8] = repeat! {
    "contended" "mutex_4" "Mutex, 4 tasks";
    "contended" "mutex_64" "Mutex, 64 tasks";
    "contended" "mpmc_4x4_1024" "MPMC 4 to 4, capacity 1024";
    "tasks" "tree" "Tree of 2^16 spawned tasks (per task)";
    "tasks" "ping_pong" "Two tasks and two oneshots, 1,000 pairs (per pair)";
    "pool" "fib" "fib(20) by join (per join)";
    "pool" "quicksort" "Quicksort of 1 M (per element)";
    "pool" "tiny_100k" "100,000 tiny tasks from one outside thread (per task)";
};

/// Repeats rows of `all`, without the floors, which have no workers.
pub(crate) fn rows(all: &[Row]) -> Vec<Row> {
    let mut rows = Vec::new();
    for Repeat { base, variants } in REPEATED {
        let base = all.iter().find(|row| row.id == base).expect("only known rows are repeated");
        for (workers, id, title) in variants {
            let mut row = Row::new(id, title).repeats(base.id, workers);
            (row.unit, row.resolution) = (base.unit, base.resolution);
            row.contenders.extend(base.contenders.iter().filter(|c| c.role != Role::Floor));
            rows.push(row);
        }
    }
    rows
}
