//! The measuring instrument that a workload is handed, inside the child process.
//!
//! A workload is a function from `&mut Bench`: it sets up, hands a closure over "run this many
//! iterations" to [`Bench::iter`] (or a value that it measured itself to [`Bench::value`]), and
//! checks its results with assertions; a failed one ends the child, and the contender is reported
//! as failed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::{alloc, stats};

/// What the child is asked to do with the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
    /// Find the number of iterations that fills the asked time.
    Calibrate,
    /// Warm up, then time three batches.
    Time,
    /// Count allocations instead of time.
    Alloc,
    /// Fairness and tail latency instead of throughput.
    Detail,
    /// Run the iterations once and nothing else (for an instruction counter outside).
    Count,
}

/// What one child reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// The row's value (for most rows: nanoseconds per operation); lower is better.
    pub(crate) value: Option<f64>,
    /// Iterations of each batch.
    pub(crate) iterations: u64,
    /// Operations in an iteration.
    pub(crate) ops: u64,
    /// Everything else that was seen.
    pub(crate) extra: BTreeMap<String, f64>,
}

/// What the child was started with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    pub(crate) iterations: u64,
    /// How long a batch should take (calibration), or how long a workload that decides for itself
    /// should measure.
    pub(crate) batch: Duration,
    /// Make every operation take so many times its time in addition: the instrument must be seen
    /// to notice.
    pub(crate) slow: u32,
}

/// Timed batches in one child; the middle one counts.
const BATCHES: u32 = 3;

#[derive(Debug)]
pub(crate) struct Bench {
    settings: Settings,
    sample: Sample,
}

impl Bench {
    pub(crate) fn new(settings: Settings) -> Self {
        Bench { settings, sample: Sample::default() }
    }

    /// The report, once the workload has returned.
    pub(crate) fn finish(self) -> Sample {
        self.sample
    }

    /// Times `run(n)`, which performs `n` iterations of one operation each.
    pub(crate) fn iter(&mut self, run: impl FnMut(u64)) {
        self.iter_ops(1, run);
    }

    /// Times `run(n)`, which performs `n` iterations of `ops` operations each.
    pub(crate) fn iter_ops(&mut self, ops: u64, mut run: impl FnMut(u64)) {
        self.iter_timed(ops, |n| {
            let start = Instant::now();
            run(n);
            start.elapsed()
        });
    }

    /// As [`Bench::iter_ops`], for a closure that times the part of its work that counts.
    pub(crate) fn iter_timed(&mut self, ops: u64, mut run: impl FnMut(u64) -> Duration) {
        self.sample.ops = ops;
        let slow = self.settings.slow;
        let mut run = |n| {
            let elapsed = run(n);
            elapsed + spin(elapsed * slow)
        };
        let n = self.settings.iterations;
        match self.settings.mode {
            Mode::Calibrate => self.sample.iterations = calibrate(self.settings.batch, run),
            Mode::Time => self.time(n, ops, run),
            Mode::Count => {
                run(n);
                self.sample.iterations = n;
            }
            Mode::Alloc | Mode::Detail => {
                let n = (n / 4).clamp(1, 100_000);
                run(n);
                alloc::start();
                run(n);
                let counts = alloc::stop();
                let per = (n * ops) as f64;
                self.extra("allocations_per_op", counts.allocations as f64 / per);
                self.extra("bytes_per_op", counts.bytes as f64 / per);
            }
        }
    }

    fn time(&mut self, n: u64, ops: u64, mut run: impl FnMut(u64) -> Duration) {
        run((n / 4).max(1));
        let (before, counted) = (Usage::now(), crate::on_volt::statistics());
        let batches: Vec<f64> =
            (0..BATCHES).map(|_| run(n).as_nanos() as f64 / (n * ops) as f64).collect();
        let used = Usage::now().since(before);
        let total = (n * ops) as f64 * f64::from(BATCHES);
        self.sample.value = stats::median(&batches);
        self.sample.iterations = n;
        for ((name, now), (_, then)) in crate::on_volt::statistics().into_iter().zip(counted) {
            self.extra(name, (now - then) as f64 / total);
        }
        self.extra("cpu_ns_per_op", used.cpu_ns as f64 / total);
        self.extra("context_switches_per_op", used.switches as f64 / total);
    }

    /// Reports a value that the workload measured in its own way.
    pub(crate) fn value(&mut self, value: f64) {
        self.sample.value = Some(value * f64::from(1 + self.settings.slow));
        self.sample.ops = self.sample.ops.max(1);
        self.sample.iterations = self.sample.iterations.max(1);
    }

    /// Reports something beside the row's value.
    pub(crate) fn extra(&mut self, name: &str, value: f64) {
        self.sample.extra.insert(name.to_owned(), value);
    }

    /// Whether fairness and tail latency are asked for, instead of time.
    pub(crate) fn detail(&self) -> bool {
        self.settings.mode == Mode::Detail
    }

    /// Only the first look at a contender, whose value is not kept: a workload that measures in its
    /// own way may do less.
    pub(crate) fn rehearsal(&self) -> bool {
        matches!(self.settings.mode, Mode::Calibrate | Mode::Alloc)
    }

    /// How long a workload that decides for itself should measure (all batches together).
    pub(crate) fn duration(&self) -> Duration {
        self.settings.batch * BATCHES
    }

    /// Reports the wait times (nanoseconds) and the shares of the tasks that competed.
    pub(crate) fn fairness(&mut self, waits: Vec<u64>, shares: &[u64]) {
        self.waits(waits);
        let most = shares.iter().copied().max().unwrap_or(0);
        let least = shares.iter().copied().min().unwrap_or(0);
        self.extra("share_max_over_min", most as f64 / least.max(1) as f64);
    }

    /// Reports wait times (nanoseconds).
    pub(crate) fn waits(&mut self, mut waits: Vec<u64>) {
        waits.sort_unstable();
        self.extra("wait_p50_ns", stats::quantile_sorted(&waits, 0.5) as f64);
        self.extra("wait_p99_ns", stats::quantile_sorted(&waits, 0.99) as f64);
        self.extra("wait_p99.9_ns", stats::quantile_sorted(&waits, 0.999) as f64);
        self.extra("wait_max_ns", waits.last().copied().unwrap_or(0) as f64);
    }
}

/// The number of iterations that takes about `target`.
fn calibrate(target: Duration, mut run: impl FnMut(u64) -> Duration) -> u64 {
    let target = target.as_nanos() as f64;
    let mut n = 1_u64;
    loop {
        // A run that seems to be long enough may only have been interrupted: the best of three is
        // believed.
        let mut took = f64::INFINITY;
        for _ in 0..3 {
            took = took.min((run(n).as_nanos() as f64).max(1.0));
            if took * 2.0 < target {
                break;
            }
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and bounded by the growth below"
        )]
        let wanted = ((n as f64 * target / took) as u64).max(1);
        // What a run costs beside its iterations must not pass for their cost.
        if took * 2.0 >= target {
            return wanted;
        }
        n = wanted.clamp(n + 1, n * 10);
    }
}

fn spin(time: Duration) -> Duration {
    if time.is_zero() {
        return time;
    }
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
    start.elapsed()
}

/// Processor time and context switches of this process so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) cpu_ns: u64,
    pub(crate) switches: u64,
}

impl Usage {
    pub(crate) fn now() -> Self {
        Self::of(libc::RUSAGE_SELF)
    }

    /// Of the children that have ended.
    pub(crate) fn children() -> Self {
        Self::of(libc::RUSAGE_CHILDREN)
    }

    fn of(who: libc::c_int) -> Self {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is to a whole `rusage`, which the call fills.
        let failed = unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
        assert_eq!(failed, 0, "getrusage failed");
        // SAFETY: zeroed above, and all-zero is a value of this plain struct of integers.
        let usage = unsafe { usage.assume_init() };
        let ns = |time: libc::timeval| {
            time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1_000
        };
        Usage {
            cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
            switches: usage.ru_nvcsw.unsigned_abs() + usage.ru_nivcsw.unsigned_abs(),
        }
    }

    pub(crate) fn since(self, before: Usage) -> Usage {
        Usage { cpu_ns: self.cpu_ns - before.cpu_ns, switches: self.switches - before.switches }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(mode: Mode, iterations: u64, slow: u32) -> Settings {
        Settings { mode, iterations, batch: Duration::from_millis(2), slow }
    }

    #[test]
    fn calibration_fills_the_asked_time() {
        let n = calibrate(Duration::from_millis(10), |n| Duration::from_micros(n * 5));
        assert!((1900..=2100).contains(&n), "{n}");
        assert_eq!(calibrate(Duration::from_millis(10), |_| Duration::from_secs(1)), 1);
        // Every other run is interrupted for longer than the whole batch.
        let mut runs = 0;
        let n = calibrate(Duration::from_millis(10), |n| {
            runs += 1;
            Duration::from_micros(n * 5 + 50_000 * (runs % 2))
        });
        assert!((1900..=2100).contains(&n), "{n}");
    }

    #[test]
    fn time_is_per_operation_and_more_when_slowed() {
        for (slow, low, high) in [(0, 9.0, 11.0), (1, 18.0, 1e9), (4, 45.0, 1e9)] {
            let mut bench = Bench::new(settings(Mode::Time, 1000, slow));
            bench.iter_timed(10, |n| Duration::from_nanos(n * 100));
            let sample = bench.finish();
            let value = sample.value.unwrap();
            assert!((low..=high).contains(&value), "{value}");
            assert_eq!((sample.iterations, sample.ops), (1000, 10));
        }
    }

    #[test]
    fn count_mode_runs_exactly_what_was_asked_once() {
        let mut ran = Vec::new();
        Bench::new(settings(Mode::Count, 12345, 0)).iter(|n| ran.push(n));
        assert_eq!(ran, [12345]);
    }

    #[test]
    fn fairness_reports_shares_and_tails() {
        let mut bench = Bench::new(settings(Mode::Detail, 1, 0));
        bench.fairness((1..=1000).rev().collect(), &[10, 30, 20]);
        let extra = bench.finish().extra;
        assert_eq!(extra["share_max_over_min"], 3.0);
        assert_eq!(extra["wait_p99.9_ns"], 999.0);
        assert_eq!(extra["wait_max_ns"], 1000.0);
    }
}
