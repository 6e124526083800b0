//! The record of a run: what is written as JSON, and all that a report is drawn from.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::stats::{self, Estimate, Verdict};

/// Raised when the meaning of a field changes.
pub(crate) const FORMAT: u32 = 1;

/// Fewer rounds may be two that something else held up.
const FEWEST_OF_A_KIND: usize = 3;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) format: u32,
    /// UTC, RFC 3339.
    pub(crate) started: String,
    pub(crate) seconds: f64,
    /// `quick` or `full`.
    pub(crate) mode: String,
    /// `release` or `debug`.
    pub(crate) profile: String,
    /// Commit of the measured source, `+` appended when the tree was changed.
    pub(crate) commit: String,
    /// Whether every selected row was measured.
    pub(crate) complete: bool,
    /// Volt was slowed on purpose (`VOLT_BENCH_SLOW`).
    #[serde(default)]
    pub(crate) handicapped: bool,
    pub(crate) rounds: usize,
    pub(crate) batch_ms: u64,
    pub(crate) machine: Machine,
    /// Version of each contender's package.
    pub(crate) versions: BTreeMap<String, String>,
    pub(crate) rows: Vec<RowResult>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cpus: usize,
    pub(crate) memory_mb: u64,
    pub(crate) os: String,
    pub(crate) kernel: String,
    pub(crate) arch: String,
    pub(crate) rustc: String,
}

/// What else ran on the machine meanwhile, in percent of all processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Load {
    pub(crate) others_percent: f64,
    pub(crate) stolen_percent: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RowResult {
    pub(crate) id: String,
    pub(crate) group: String,
    pub(crate) title: String,
    pub(crate) unit: String,
    pub(crate) headline: bool,
    /// Smallest difference that the measurement can show, in the row's unit.
    pub(crate) resolution: f64,
    #[serde(default)]
    pub(crate) note: String,
    /// The row that this one repeats with more workers than processors.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) repeats: String,
    pub(crate) load: Load,
    /// What a cache line took from one processor to another before each round, in nanoseconds; `null` where that could not be seen.
    #[serde(default)]
    pub(crate) transfer_ns: Vec<Option<f64>>,
    pub(crate) contenders: Vec<Contender>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// Ours.
    Volt,
    /// Does the same job.
    Peer,
    /// Does less: shows what the machine allows.
    Floor,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Contender {
    pub(crate) name: String,
    pub(crate) role: Role,
    #[serde(default)]
    pub(crate) note: String,
    pub(crate) iterations: u64,
    /// One value a round; `null` where the contender failed.
    pub(crate) rounds: Vec<Option<f64>>,
    pub(crate) extra: BTreeMap<String, f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
}

impl Contender {
    pub(crate) fn estimate(&self) -> Option<Estimate> {
        stats::estimate(&self.rounds.iter().flatten().copied().collect::<Vec<_>>())
    }
}

/// Volt against one other contender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing<'a> {
    pub(crate) other: &'a Contender,
    pub(crate) ratio: Estimate,
    pub(crate) verdict: Verdict,
}

impl RowResult {
    /// Volt's own entry: the one that stands for it in verdicts (the first, if there are several).
    pub(crate) fn volt(&self) -> Option<&Contender> {
        self.contenders.iter().find(|c| c.role == Role::Volt)
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Contender> {
        self.contenders.iter().find(|c| c.name == name)
    }

    /// The best of a role by median.
    pub(crate) fn best(&self, role: Role) -> Option<&Contender> {
        self.contenders
            .iter()
            .filter(|c| c.role == role)
            .filter_map(|c| Some((c, c.estimate()?.median)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(c, _)| c)
    }

    /// Volt's value over `other`'s, round by round.
    pub(crate) fn against<'a>(&self, other: &'a Contender) -> Option<Standing<'a>> {
        let ratio = stats::ratio(&self.volt()?.rounds, &other.rounds, self.resolution)?;
        Some(Standing { other, ratio, verdict: stats::verdict(ratio) })
    }

    /// The rounds in which a cache line was fast between the processors and those in which it was slow, where both are
    /// there: at least [`FEWEST_OF_A_KIND`] of each, on either side of the geometric mean of two times that are
    /// more than twice apart.
    pub(crate) fn near_and_far(&self) -> Option<[Vec<usize>; 2]> {
        let times: Vec<(usize, f64)> =
            (0..).zip(&self.transfer_ns).filter_map(|(round, ns)| Some((round, (*ns)?))).collect();
        let low = times.iter().map(|time| time.1).reduce(f64::min)?;
        let high = times.iter().map(|time| time.1).reduce(f64::max)?;
        let border = (low * high).sqrt();
        let of = |near| {
            let those = times.iter().filter(|time| (time.1 < border) == near);
            those.map(|time| time.0).collect::<Vec<_>>()
        };
        let (near, far) = (of(true), of(false));
        let both = high > 2.0 * low && near.len().min(far.len()) >= FEWEST_OF_A_KIND;
        both.then_some([near, far])
    }

    /// The row's verdict: Volt against the best peer.
    pub(crate) fn standing(&self) -> Option<Standing<'_>> {
        self.against(self.best(Role::Peer)?)
    }
}

impl Record {
    /// The groups in the order of their first row.
    pub(crate) fn groups(&self) -> Vec<(&str, Vec<&RowResult>)> {
        let mut groups: Vec<(&str, Vec<&RowResult>)> = Vec::new();
        for row in &self.rows {
            match groups.iter_mut().find(|(name, _)| *name == row.group) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((&row.group, vec![row])),
            }
        }
        groups
    }

    /// The mean load of others over the rows.
    pub(crate) fn load(&self) -> Load {
        let mean = |f: fn(&Load) -> f64| {
            self.rows.iter().map(|row| f(&row.load)).sum::<f64>() / self.rows.len().max(1) as f64
        };
        Load {
            others_percent: mean(|l| l.others_percent),
            stolen_percent: mean(|l| l.stolen_percent),
        }
    }

    /// Rows ahead, even and behind.
    pub(crate) fn tally(&self) -> (usize, usize, usize) {
        self.rows.iter().filter_map(RowResult::standing).fold((0, 0, 0), |(a, e, b), s| {
            match s.verdict {
                Verdict::Ahead => (a + 1, e, b),
                Verdict::Even => (a, e + 1, b),
                Verdict::Behind => (a, e, b + 1),
            }
        })
    }

    pub(crate) fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self)
            .expect("a record has only string keys and finite numbers");
        json.push('\n');
        json
    }

    /// Reads a record; the error names the file.
    pub(crate) fn read(path: &Path) -> Result<Record, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        let record: Record = serde_json::from_str(&text)
            .map_err(|e| format!("{} is not a record of this command: {e}", path.display()))?;
        if record.format == FORMAT {
            Ok(record)
        } else {
            Err(format!(
                "{} has format {}, this command reads format {FORMAT}",
                path.display(),
                record.format
            ))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn contender(name: &str, role: Role, rounds: &[f64]) -> Contender {
        Contender {
            name: name.into(),
            role,
            note: String::new(),
            iterations: 1000,
            rounds: rounds.iter().copied().map(Some).collect(),
            extra: BTreeMap::new(),
            failure: None,
        }
    }

    /// A small record with a row of each kind: ahead, behind, failed.
    pub(crate) fn example() -> Record {
        let row = |id: &str, title: &str, contenders| RowResult {
            id: id.into(),
            group: id.split('/').next().unwrap().into(),
            title: title.into(),
            unit: "ns".into(),
            headline: true,
            resolution: 0.0,
            note: String::new(),
            repeats: String::new(),
            load: Load { others_percent: 1.0, stolen_percent: 0.0 },
            transfer_ns: vec![Some(35.0); 9],
            contenders,
        };
        let nine = |v: f64| [v, v * 1.01, v * 0.99, v, v * 1.02, v * 0.98, v, v, v];
        let mut crashed = contender("flume", Role::Peer, &[]);
        crashed.failure = Some("calibration: exit status: 101 (assertion failed <x>)".into());
        let mut tokio = contender("tokio", Role::Peer, &nine(200.0));
        tokio.extra.insert("allocations_per_op".into(), 2.0);
        tokio.extra.insert("wait_p50_ns".into(), 1_500.0);
        tokio.extra.insert("wait_p99.9_ns".into(), 81_000.0);
        tokio.extra.insert("share_max_over_min".into(), 1.25);
        let mut barging = contender("async-lock", Role::Peer, &nine(50.0));
        barging.note = "lets newcomers pass the queue".into();
        Record {
            format: FORMAT,
            started: "2026-01-02T03:04:05Z".into(),
            seconds: 12.5,
            mode: "quick".into(),
            profile: "release".into(),
            commit: "abcdef0".into(),
            complete: true,
            handicapped: false,
            rounds: 9,
            batch_ms: 8,
            machine: Machine {
                cpu: "Example CPU".into(),
                cpus: 2,
                memory_mb: 4096,
                os: "linux".into(),
                kernel: "6.1".into(),
                arch: "x86_64".into(),
                rustc: "1.95.0".into(),
            },
            versions: BTreeMap::from([
                ("tokio".into(), "1.54.1".into()),
                ("flume".into(), "0.12.0".into()),
            ]),
            rows: vec![
                row(
                    "sync/mutex",
                    "Mutex: lock, unlock",
                    vec![
                        contender("volt", Role::Volt, &nine(10.0)),
                        contender("tokio", Role::Peer, &nine(20.0)),
                        contender("parking_lot", Role::Floor, &nine(9.5)),
                    ],
                ),
                row(
                    "contended/mutex",
                    "Mutex, 4 tasks",
                    vec![contender("volt", Role::Volt, &nine(75.0)), tokio, barging],
                ),
                row(
                    "channel/send",
                    "Send",
                    vec![contender("kanal", Role::Peer, &nine(5.5)), crashed],
                ),
            ],
        }
    }

    #[test]
    fn json_round_trip() {
        let mut record = example();
        record.rows[0].contenders[0].rounds[3] = None;
        let back: Record = serde_json::from_str(&record.to_json()).unwrap();
        assert_eq!(back, record);
    }

    #[test]
    fn another_format_is_refused_by_name() {
        let mut record = example();
        record.format = 99;
        let path =
            std::env::temp_dir().join(format!("volt-bench-format-{}.json", std::process::id()));
        std::fs::write(&path, record.to_json()).unwrap();
        let error = Record::read(&path).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert!(error.contains("format 99"), "{error}");
    }

    #[test]
    fn standing_is_against_the_best_peer_not_the_floor() {
        let record = example();
        let sync = record.rows[0].standing().unwrap();
        assert_eq!((sync.other.name.as_str(), sync.verdict), ("tokio", Verdict::Ahead));
        let contended = record.rows[1].standing().unwrap();
        assert_eq!(
            (contended.other.name.as_str(), contended.verdict),
            ("async-lock", Verdict::Behind)
        );
        assert!(record.rows[2].standing().is_none());
        assert_eq!(record.tally(), (1, 0, 1));
    }
}
