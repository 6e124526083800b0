//! The tables beside the main one: tails and fairness, memory after a burst, oversubscription, and
//! what Volt's scheduler did.

use super::number;
use crate::record::{Contender, Record, Role, RowResult};
use crate::stats;

/// A table for every kind of report. The first two columns are text, the others numbers.
#[derive(Debug)]
pub(crate) struct Detail {
    pub(crate) title: &'static str,
    pub(crate) about: &'static str,
    pub(crate) headings: &'static [&'static str],
    pub(crate) lines: Vec<Vec<String>>,
}

/// Title of the table that the terminal shows only when asked.
pub(crate) const SCHEDULER: &str = "What Volt's scheduler did";

/// What a column shows: a key of [`Contender::extra`], and by what its value is multiplied.
type Column = (&'static str, f64);

/// Those that have anything to show.
pub(crate) fn tables(record: &Record) -> Vec<Detail> {
    let mut tables = vec![
        tails(record),
        bursts(record),
        oversubscribed(record),
        distances(record),
        scheduler(record),
    ];
    tables.retain(|table| !table.lines.is_empty());
    tables
}

fn tails(record: &Record) -> Detail {
    const US: f64 = 0.001;
    let columns = [
        ("wait_p50_ns", US),
        ("wait_p99_ns", US),
        ("wait_p99.9_ns", US),
        ("wait_max_ns", US),
        ("share_max_over_min", 1.0),
        ("hog_share", 100.0),
    ];
    Detail {
        title: "Fairness and tails",
        about: "Where throughput can be had at the cost of those who wait, a pass of its own runs for a fixed time: waits in \
                microseconds, how much more the most-served task got than the least-served, and, in rows with CPU hogs, \
                the percentage of the workers' time that these got.",
        headings: &["", "", "wait p50", "p99", "p99.9", "longest", "most / least", "hogs, %"],
        lines: lines(record, &columns, |_| true),
    }
}

fn bursts(record: &Record) -> Detail {
    let columns = [
        ("burst_heap_kib", 1.0),
        ("burst_resident_kib", 1.0),
        ("value", 1.0),
        ("kept_resident_kib", 1.0),
    ];
    Detail {
        title: "Memory in a burst and after it",
        about: "KiB more than before the burst.",
        headings: &["", "", "heap in it", "resident in it", "heap after", "resident after"],
        lines: lines(record, &columns, |c| c.extra.contains_key("burst_heap_kib")),
    }
}

fn scheduler(record: &Record) -> Detail {
    const PER: f64 = 1000.0;
    let columns = [
        ("sched_polls", PER),
        ("sched_spawns", PER),
        ("sched_lifo", PER),
        ("sched_remote", PER),
        ("sched_batches", PER),
        ("sched_stolen", PER),
        ("sched_parks", PER),
        ("sched_driver", PER),
        ("context_switches_per_op", PER),
    ];
    Detail {
        title: SCHEDULER,
        about: "For 1,000 operations: polls, spawns, polls of the task woken last, wake-ups and spawns from other threads, \
                batches from the shared queue, tasks taken from another worker's queue, workers that went to sleep, looks at the driver, context switches.",
        headings: &[
            "", "", "polls", "spawns", "last-in", "remote", "batches", "stolen", "parks", "driver",
            "switches",
        ],
        lines: lines(record, &columns, |c| {
            c.role == Role::Volt && c.extra.get("sched_polls").is_some_and(|polls| *polls > 0.0)
        }),
    }
}

/// A line for each contender that has the first column's value.
fn lines(
    record: &Record,
    columns: &[Column],
    wanted: impl Fn(&Contender) -> bool,
) -> Vec<Vec<String>> {
    let cell = |contender: &Contender, &(key, factor): &Column| {
        let value = match key {
            "value" => contender.estimate().map(|e| e.median),
            key => contender.extra.get(key).copied(),
        };
        value.map_or_else(|| "-".to_owned(), |value| number(value * factor))
    };
    let of_row = |row: &RowResult| {
        let shown = row.contenders.iter().filter(|c| c.extra.contains_key(columns[0].0));
        shown
            .filter(|c| wanted(c))
            .map(|c| {
                let mut line = vec![row.title.clone(), c.name.clone()];
                line.extend(columns.iter().map(|column| cell(c, column)));
                line
            })
            .collect::<Vec<_>>()
    };
    record.rows.iter().flat_map(of_row).collect()
}

/// Each contender against itself with two workers.
fn oversubscribed(record: &Record) -> Detail {
    let mut lines = Vec::new();
    for row in record.rows.iter().filter(|row| !row.repeats.is_empty()) {
        let Some(base) = record.rows.iter().find(|r| r.id == row.repeats) else { continue };
        for contender in &row.contenders {
            let before = base.named(&contender.name).and_then(Contender::estimate);
            let (Some(before), Some(now)) = (before, contender.estimate()) else { continue };
            lines.push(vec![
                row.title.clone(),
                contender.name.clone(),
                number(before.median),
                number(now.median),
                number(now.median / before.median),
            ]);
        }
    }
    Detail {
        title: "More workers than processors",
        about: "Each contender against itself with two workers: a factor far above 1 is a collapse that the main table would \
                hide, were all peers to collapse as well.",
        headings: &["", "", "2 workers", "these", "factor"],
        lines,
    }
}

/// Each contender in the rounds whose processors were near each other, and in those where they were not.
fn distances(record: &Record) -> Detail {
    let mut lines = Vec::new();
    for row in &record.rows {
        let Some(kinds) = row.near_and_far() else { continue };
        let of = |rounds: &[Option<f64>], kind: &[usize]| -> Vec<Option<f64>> {
            kind.iter().map(|&round| rounds.get(round).copied().flatten()).collect()
        };
        for contender in &row.contenders {
            let value = |kind: &Vec<usize>| {
                let values: Vec<f64> = of(&contender.rounds, kind).into_iter().flatten().collect();
                stats::median(&values).map_or_else(|| "-".to_owned(), number)
            };
            let ratio = |kind: &Vec<usize>| {
                let ours = &row.volt().filter(|volt| volt.name != contender.name)?.rounds;
                stats::ratio(&of(ours, kind), &of(&contender.rounds, kind), row.resolution)
            };
            let shown = |kind| ratio(kind).map_or_else(|| "-".to_owned(), |r| number(r.median));
            let mut line = vec![row.title.clone(), contender.name.clone()];
            line.extend(kinds.iter().map(value));
            line.extend(kinds.iter().map(shown));
            lines.push(line);
        }
    }
    Detail {
        title: "Near and far processors",
        about: "Of the rows in whose rounds the host moved the processors: each contender's value while a cache line was fast from \
                one to the other and while it took at least twice as long, and Volt's over it. Where threads write to the \
                same memory these are two machines, and a row's median is that of the more frequent one.",
        headings: &["", "", "near", "far", "Volt / it, near", "far"],
        lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::example;

    #[test]
    fn a_table_shows_only_who_has_its_values() {
        let mut record = example();
        record.rows[1].contenders[1].extra.insert("sched_polls".into(), 2.0);
        let tables = tables(&record);
        assert_eq!(tables.len(), 1, "the scheduler's table is Volt's alone");
        assert_eq!(
            tables[0].lines,
            [["Mutex, 4 tasks", "tokio", "1.50", "-", "81.0", "-", "1.25", "-"]]
        );
    }

    #[test]
    fn rounds_with_near_and_with_far_processors_stand_apart() {
        let mut record = example();
        assert!(distances(&record).lines.is_empty(), "the processors stayed where they were");
        let row = &mut record.rows[0];
        row.transfer_ns = [30.0, 170.0, 31.0, 29.0, 165.0, 32.0, 168.0, 30.0]
            .map(Some)
            .into_iter()
            .chain([None])
            .collect();
        for far in [1, 4, 6] {
            row.contenders[0].rounds[far] = Some(15.0);
            row.contenders[1].rounds[far] = Some(60.0);
        }
        let lines = distances(&record).lines;
        assert_eq!(lines[0][1..], ["volt", "10.0", "15.0", "-", "-"]);
        assert_eq!(lines[1][1..], ["tokio", "20.0", "60.0", "0.500", "0.250"]);
        record.rows[0].transfer_ns[6] = Some(33.0);
        assert!(distances(&record).lines.is_empty(), "two rounds are too few");
    }

    #[test]
    fn a_collapse_under_more_workers_is_a_factor() {
        let mut record = example();
        record.rows[1].repeats = record.rows[0].id.clone();
        let table = oversubscribed(&record);
        assert_eq!(table.lines[0][1..], ["volt", "10.0", "75.0", "7.50"]);
        assert_eq!(table.lines.len(), 2, "who is in both rows: {:?}", table.lines);
    }
}
