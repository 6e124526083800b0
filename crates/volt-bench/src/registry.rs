//! The rows: what is measured, by whom, in which unit.
#![forbid(unsafe_code)]

use crate::bench::Bench;
use crate::kind::WORKERS;
use crate::record::Role;
use crate::workload;

/// A function that performs a workload with one contender.
pub(crate) type Run = &'static dyn Fn(&mut Bench);

/// With the feature `counted`, only Volt's part of the rows is there, and the command that counts one.
pub(crate) const COUNTED: bool = cfg!(feature = "counted");

#[derive(Clone, Copy)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    pub(crate) note: &'static str,
    pub(crate) run: Run,
}

/// One line of the comparison. Lower values are better in every row.
pub(crate) struct Row {
    /// `group/name`.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) unit: &'static str,
    /// Part of the quick run.
    pub(crate) headline: bool,
    /// One thread, no kernel: an instruction counter outside sees the whole of it.
    pub(crate) countable: bool,
    /// Has a pass of its own for fairness and tail latency.
    pub(crate) detail: bool,
    /// Left out unless asked for by name.
    pub(crate) hidden: bool,
    /// The workload measures for a fixed time: fewer rounds.
    pub(crate) long: bool,
    /// Smallest difference that can be seen; see [`crate::record::RowResult::resolution`].
    pub(crate) resolution: f64,
    pub(crate) note: &'static str,
    /// Why Volt is behind, where it is; reports print it only when a record says so.
    pub(crate) why: &'static str,
    /// Threads of each runtime or pool.
    pub(crate) workers: usize,
    /// The row that this one repeats with more workers than processors.
    pub(crate) repeats: &'static str,
    pub(crate) contenders: Vec<Contender>,
}

impl Row {
    pub(crate) fn new(id: &'static str, title: &'static str) -> Self {
        Row {
            id,
            title,
            unit: "ns",
            headline: false,
            countable: false,
            detail: false,
            hidden: false,
            long: false,
            resolution: 0.0,
            note: "",
            why: "",
            workers: WORKERS,
            repeats: "",
            contenders: Vec::new(),
        }
    }

    pub(crate) fn group(&self) -> &'static str {
        self.id.split_once('/').map_or(self.id, |(group, _)| group)
    }

    pub(crate) fn headline(mut self) -> Self {
        self.headline = true;
        self
    }

    pub(crate) fn countable(mut self) -> Self {
        self.countable = true;
        self
    }

    pub(crate) fn detail(mut self) -> Self {
        self.detail = true;
        self
    }

    pub(crate) fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    pub(crate) fn long(mut self) -> Self {
        self.long = true;
        self
    }

    pub(crate) fn unit(mut self, unit: &'static str, resolution: f64) -> Self {
        self.unit = unit;
        self.resolution = resolution;
        self
    }

    /// Says what the reader has to know to judge the row.
    pub(crate) fn note(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }

    /// Repeats another row with so many workers.
    pub(crate) fn repeats(mut self, row: &'static str, workers: usize) -> Self {
        (self.repeats, self.workers) = (row, workers);
        self
    }

    /// Explains a loss of Volt's.
    pub(crate) fn why(mut self, why: &'static str) -> Self {
        self.why = why;
        self
    }

    pub(crate) fn volt(self, name: &'static str, run: impl Fn(&mut Bench) + 'static) -> Self {
        self.with(Role::Volt, name, run)
    }

    pub(crate) fn peer(self, name: &'static str, run: impl Fn(&mut Bench) + 'static) -> Self {
        // A function comes in a type of its own: what is not added is not compiled.
        if COUNTED { self } else { self.with(Role::Peer, name, run) }
    }

    pub(crate) fn floor(self, name: &'static str, run: impl Fn(&mut Bench) + 'static) -> Self {
        if COUNTED { self } else { self.with(Role::Floor, name, run) }
    }

    fn with(mut self, role: Role, name: &'static str, run: impl Fn(&mut Bench) + 'static) -> Self {
        // The unit tests look at the rows and run none, and do not wait until all are compiled.
        let run: Run = if cfg!(test) { &|_| unreachable!("in a unit test") } else { leaked(run) };
        self.contenders.push(Contender { name, role, note: "", run });
        self
    }

    /// A note on the contender added last.
    pub(crate) fn but(mut self, note: &'static str) -> Self {
        if let Some(last) = self.contenders.last_mut() {
            last.note = note;
        }
        self
    }
}

fn leaked(run: impl Fn(&mut Bench) + 'static) -> Run {
    // Of no size: it allocates nothing.
    Box::leak(Box::new(run))
}

/// Every row, in the order of the report.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    rows.extend(workload::sync::rows());
    rows.extend(workload::channel::rows());
    if !COUNTED {
        rows.extend(workload::contended::rows());
    }
    rows.extend(workload::tasks::rows());
    rows.extend(workload::time::rows());
    if COUNTED {
        return rows;
    }
    rows.extend(workload::net::rows());
    rows.extend(workload::http::rows());
    rows.extend(workload::hogs::rows());
    rows.extend(workload::memory::rows());
    rows.extend(workload::idle::rows());
    rows.extend(workload::pool::rows());
    rows.extend(workload::selftest::rows());
    #[cfg(feature = "forte")]
    let mut rows = crate::peers::forte::join_in(rows);
    rows.extend(workload::oversubscribed::rows(&rows));
    for contender in rows.iter_mut().flat_map(|row| &mut row.contenders) {
        if contender.note.is_empty() {
            contender.note = general_note(contender.name);
        }
    }
    rows
}

/// What explains a contender's strength wherever it takes part.
fn general_note(contender: &str) -> &'static str {
    match contender {
        "kanal" => {
            "guards its queue with a spin lock whose unlock is a plain store: one read-modify-write for \
             each operation, but a preempted holder stops everybody"
        }
        "chili" | "forte" => {
            "publishes forked work only at heartbeats, so that a local fork costs almost nothing"
        }
        "futures-lite" => "parks the thread; there is no scheduler to look into",
        _ => "",
    }
}

/// The rows that match one of the filters (an exact id, or a part of one); hidden rows only by
/// their exact id. An error names the filter that matches nothing, and what is near.
pub(crate) fn select(
    rows: Vec<Row>,
    filters: &[String],
    headline_only: bool,
) -> Result<Vec<Row>, String> {
    if filters.is_empty() {
        return Ok(rows
            .into_iter()
            .filter(|r| !r.hidden && (r.headline || !headline_only))
            .collect());
    }
    let matches = |row: &Row, filter: &String| {
        row.id == filter || (!row.hidden && row.id.contains(filter.as_str()))
    };
    for filter in filters {
        if !rows.iter().any(|row| matches(row, filter)) {
            let word = filter.rsplit('/').next().unwrap_or(filter);
            let near: Vec<&str> = rows
                .iter()
                .filter(|r| {
                    !r.hidden
                        && word.split(['_', '-', ' ']).any(|w| w.len() > 2 && r.id.contains(w))
                })
                .map(|r| r.id)
                .take(8)
                .collect();
            let hint = if near.is_empty() {
                String::new()
            } else {
                format!("; near: {}", near.join(", "))
            };
            return Err(format!("no row matches `{filter}` (`--list` shows all of them){hint}"));
        }
    }
    Ok(rows.into_iter().filter(|row| filters.iter().any(|f| matches(row, f))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_and_contenders_are_unique_and_well_formed() {
        let mut ids = HashSet::new();
        for row in rows() {
            assert!(ids.insert(row.id), "{} twice", row.id);
            assert_eq!(row.id.split('/').count(), 2, "{}", row.id);
            let names: HashSet<_> = row.contenders.iter().map(|c| c.name).collect();
            assert_eq!(names.len(), row.contenders.len(), "{}: a name twice", row.id);
            assert!(row.contenders.iter().any(|c| c.role == Role::Peer), "{} has no peer", row.id);
        }
    }

    #[test]
    fn filters_select_by_part_and_refuse_unknown_names() {
        let all = select(rows(), &["sync/".into()], true).unwrap();
        assert!(!all.is_empty() && all.iter().all(|r| r.id.contains("sync/")));
        let error = select(rows(), &["sync/mutexx_try".into()], false).err().unwrap();
        assert!(error.contains("mutexx_try") && error.contains("near"), "{error}");
        assert!(select(rows(), &[], false).unwrap().iter().all(|r| !r.hidden));
        assert!(
            select(rows(), &["selftest".into()], false).is_err(),
            "hidden rows need the whole name"
        );
        assert_eq!(select(rows(), &["selftest/spin".into()], false).unwrap().len(), 1);
    }
}
