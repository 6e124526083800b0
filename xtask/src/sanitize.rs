//! The concurrency tests under the sanitizers of the nightly compiler.

use crate::command::{Tests, cargo, run_tests};
use crate::source::{Source, rust_files};

/// Which sanitizer.
#[derive(Clone, Copy)]
pub(crate) enum Sanitizer {
    /// Data races.
    Thread,
    /// Memory errors, and leaks at exit.
    Address,
}

/// The integration tests of `volt-rt` for ThreadSanitizer. The others stand mostly on code that is not
/// ours (hyper, child processes), whose use of the standard library's locks the tool does not see.
const INSTRUMENTED: [&str; 10] = [
    "rt_basic",
    "rt_api",
    "rt_join",
    "rt_stall",
    "task_api",
    "time_sleep",
    "time_clock",
    "time_due",
    "net_streams",
    "net_datagrams",
];

/// Those that only AddressSanitizer runs.
const MORE_FOR_ADDRESS: [&str; 6] =
    ["hostile", "fs_files", "fs_system", "process_command", "process_sigchld", "process_signal"];

/// Tests of one thread, which has nobody to race with.
const ONE_THREAD: [&str; 3] = ["channel_model", "channel_model_unbounded", "lock_model"];

/// Runs the unit and integration tests of the concurrent crates under `sanitizer`.
///
/// # Errors
/// If a test fails or the sanitizer reports anything.
pub(crate) fn run(sanitizer: Sanitizer) -> Result<Tests, String> {
    let (name, options, cfg) = match sanitizer {
        Sanitizer::Thread => ("thread", "halt_on_error=0 history_size=4", "--cfg volt_tsan"),
        Sanitizer::Address => {
            // `join` helps as deep as there is stack: it wants to know the real one.
            ("address", "detect_leaks=1:detect_stack_use_after_return=0", "--cfg volt_asan")
        }
    };
    // One build for all: what they share is compiled once.
    let mut command = cargo(&["+nightly", "test", "--lib"]);
    for package in crate::loom::CRATES {
        command.args(["-p", package]);
    }
    for suite in suites(sanitizer, &rust_files()?) {
        command.args(["--test", suite]);
    }
    command
        // The flags are for the target's code only: build scripts and macros serve both sanitizers.
        .args(["--target", &host()?, "--target-dir", "target/sanitize"])
        // The prebuilt standard library is not instrumented; the allowance says that we know.
        .env("RUSTFLAGS", format!("-Zsanitizer={name} -Cunsafe-allow-abi-mismatch=sanitizer {cfg}"))
        // The suppressions name functions that are in line in the standard library.
        .env("CARGO_PROFILE_DEV_STRIP", "none")
        // The sanitizers slow everything down several times: smaller stress.
        .env("VOLT_STRESS", "1")
        // Panics are part of the tests; printing their backtraces is the standard library's.
        .env("RUST_BACKTRACE", "0")
        .env("TSAN_OPTIONS", format!("{options} suppressions={}", file("tsan.supp")))
        .env("ASAN_OPTIONS", options)
        .env("LSAN_OPTIONS", format!("print_suppressions=0 suppressions={}", file("lsan.supp")))
        // libtest captures output, that of panics too, behind a lock of the standard library.
        .args(["--", "--nocapture"]);
    run_tests(&mut command)
}

/// The integration tests for `sanitizer`: all of the crates below the runtime, and the runtime's chosen ones.
fn suites(sanitizer: Sanitizer, sources: &[Source]) -> Vec<&str> {
    let below = |source: &&Source| ["volt-sync", "volt-pool"].contains(&source.package());
    let below = sources.iter().filter(below).filter_map(Source::suite);
    let mut suites: Vec<&str> = below.chain(INSTRUMENTED).collect();
    match sanitizer {
        Sanitizer::Thread => suites.retain(|suite| !ONE_THREAD.contains(suite)),
        Sanitizer::Address => suites.extend(MORE_FOR_ADDRESS),
    }
    suites
}

/// The path of a file beside this crate's manifest.
fn file(name: &str) -> String {
    crate::command::root().join("xtask").join(name).display().to_string()
}

/// The target triple of this machine; sanitizers want it named.
fn host() -> Result<String, String> {
    let output = std::process::Command::new("rustc")
        .args(["-vV"])
        .output()
        .map_err(|error| format!("rustc -vV: {error}"))?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("host: ").map(str::to_owned))
        .ok_or_else(|| "rustc -vV names no host".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_suite() {
        let sources = rust_files().unwrap();
        let all: Vec<&str> = sources.iter().filter_map(Source::suite).collect();
        for name in INSTRUMENTED.iter().chain(&MORE_FOR_ADDRESS).chain(&ONE_THREAD) {
            assert!(all.contains(name), "{name}: {all:?}");
        }
        let thread = suites(Sanitizer::Thread, &sources);
        assert!(thread.contains(&"pool_life") && !thread.contains(&"lock_model"), "{thread:?}");
        let address = suites(Sanitizer::Address, &sources);
        assert!(address.contains(&"lock_model") && address.contains(&"hostile"), "{address:?}");
    }
}
