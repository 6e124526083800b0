//! What other processes did to the machine while we measured, from `/proc/stat`.
#![forbid(unsafe_code)]

use std::time::Instant;

use crate::bench::Usage;
use crate::record::Load;

/// A point in time of all processors, and of this command's own children.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    ticks: Option<Ticks>,
    own_cpu_ns: u64,
    at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    busy: u64,
    stolen: u64,
    total: u64,
}

impl Mark {
    pub(crate) fn now() -> Self {
        let own = Usage::children().cpu_ns + Usage::now().cpu_ns;
        let ticks = std::fs::read_to_string("/proc/stat").ok().and_then(|text| parse(&text));
        Mark { ticks, own_cpu_ns: own, at: Instant::now() }
    }

    /// The load of others since this mark; zero where the system does not tell.
    pub(crate) fn load(self) -> Load {
        let now = Mark::now();
        let (Some(before), Some(after)) = (self.ticks, now.ticks) else { return Load::default() };
        let total = after.total.saturating_sub(before.total) as f64;
        let wall = now.at.duration_since(self.at).as_nanos() as f64;
        if total < 1.0 || wall < 1.0 {
            return Load::default();
        }
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let own = (now.own_cpu_ns - self.own_cpu_ns) as f64 / (wall * cpus) * 100.0;
        let busy = after.busy.saturating_sub(before.busy) as f64 / total * 100.0;
        let stolen = after.stolen.saturating_sub(before.stolen) as f64 / total * 100.0;
        Load { others_percent: (busy - own).max(0.0), stolen_percent: stolen }
    }
}

/// The first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
fn parse(text: &str) -> Option<Ticks> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line.split_whitespace().take(8).filter_map(|f| f.parse().ok()).collect();
    let &[user, nice, system, idle, iowait, irq, softirq, stolen] = fields.as_slice() else {
        return None;
    };
    let busy = user + nice + system + irq + softirq;
    Some(Ticks { busy, stolen, total: busy + idle + iowait + stolen })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_is_parsed_and_others_refused() {
        let ticks = parse("cpu  10 20 30 400 50 6 7 8 0 0\ncpu0 1 2 3\n").unwrap();
        assert_eq!(ticks, Ticks { busy: 73, stolen: 8, total: 531 });
        assert!(parse("cpu0 1 2 3 4 5 6 7 8\n").is_none());
        assert!(parse("cpu  1 2 3\n").is_none());
        assert!(parse("").is_none());
    }

    #[test]
    fn load_stays_within_bounds() {
        let mark = Mark::now();
        let start = Instant::now();
        while start.elapsed().as_millis() < 60 {
            std::hint::spin_loop();
        }
        let load = mark.load();
        assert!((0.0..=100.0).contains(&load.others_percent), "{load:?}");
    }
}
