//! Facts about the machine, the build and the moment.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::record::Machine;

/// What the record says about this machine; a fact that cannot be found is "unknown".
pub(crate) fn facts() -> Machine {
    let field = |file: &str, key: &str| {
        std::fs::read_to_string(file).ok().and_then(|text| {
            text.lines()
                .find(|l| l.starts_with(key))
                .and_then(|l| Some(l.split_once(':')?.1.trim().to_owned()))
        })
    };
    let unknown = || "unknown".to_owned();
    let memory_kb = field("/proc/meminfo", "MemTotal")
        .and_then(|v| v.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()));
    Machine {
        cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
        cpus: std::thread::available_parallelism().map_or(0, usize::from),
        memory_mb: memory_kb.unwrap_or(0) / 1024,
        os: std::env::consts::OS.to_owned(),
        kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .map_or_else(|_| unknown(), |s| s.trim().to_owned()),
        arch: std::env::consts::ARCH.to_owned(),
        rustc: output("rustc", &["--version"])
            .map_or_else(unknown, |s| s.trim_start_matches("rustc ").to_owned()),
    }
}

/// The commit that this binary was built from, with a `+` if tracked files had been changed since.
pub(crate) fn commit() -> String {
    option_env!("VOLT_BENCH_COMMIT").unwrap_or("unknown").to_owned()
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The versions of the contenders' packages, from the lock file that this binary was built with.
pub(crate) fn versions() -> BTreeMap<String, String> {
    let lock = include_str!("../../../Cargo.lock");
    let manifest = include_str!("../Cargo.toml");
    let dependencies =
        manifest.split("[dependencies]").nth(1).and_then(|s| s.split("\n[").next()).unwrap_or("");
    let wanted = |name: &str| {
        dependencies.lines().any(|l| l.split(['=', '.', ' ']).next().is_some_and(|d| d == name))
            && !name.starts_with("volt-")
            && !["clap", "indicatif", "libc", "serde", "serde_json"].contains(&name)
    };
    let mut versions = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            package
                .lines()
                .find_map(|l| l.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'))
        };
        if let (Some(name), Some(version)) = (value("name"), value("version"))
            && wanted(name)
            && (cfg!(feature = "forte") || name != "forte")
        {
            // The lock file is sorted by version: of two, the newer one is ours.
            versions.insert(name.to_owned(), version.to_owned());
        }
    }
    versions
}

/// The present moment in UTC, RFC 3339, to the second.
pub(crate) fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    rfc3339(seconds)
}

fn rfc3339(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Civil date from days since 1970-01-01, in years that begin in March.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        rest / 3_600,
        rest / 60 % 60,
        rest % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_around_leap_days() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(rfc3339(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn versions_name_the_peers_and_nothing_else() {
        let versions = versions();
        for peer in ["tokio", "kanal", "rayon", "asyncband", "hyper"] {
            assert!(versions.contains_key(peer), "{peer} missing: {versions:?}");
        }
        assert!(!versions.contains_key("clap"));
        assert!(versions["parking_lot"].starts_with("0.13"), "the newest of two: {versions:?}");
    }
}
