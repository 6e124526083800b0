//! The concurrency tests under the sanitizers of the nightly compiler.

use crate::command::{Tests, cargo, run_tests};

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
const INSTRUMENTED: [&str; 18] = [
    "--test",
    "rt_basic",
    "--test",
    "rt_api",
    "--test",
    "rt_join",
    "--test",
    "rt_stall",
    "--test",
    "task_api",
    "--test",
    "time_sleep",
    "--test",
    "time_clock",
    "--test",
    "net_streams",
    "--test",
    "net_datagrams",
];

/// Those that only AddressSanitizer runs.
const MORE_FOR_ADDRESS: [&str; 12] = [
    "--test",
    "hostile",
    "--test",
    "fs_files",
    "--test",
    "fs_system",
    "--test",
    "process_command",
    "--test",
    "process_sigchld",
    "--test",
    "process_signal",
];

/// Runs the unit and integration tests of the concurrent crates under `sanitizer`.
///
/// # Errors
/// If a test fails or the sanitizer reports anything.
pub(crate) fn run(sanitizer: Sanitizer) -> Result<Tests, String> {
    let (name, options, cfg) = match sanitizer {
        Sanitizer::Thread => ("thread", "halt_on_error=0 history_size=4", "--cfg volt_tsan"),
        Sanitizer::Address => {
            // `join` helps as deep as there is stack: it wants to know the real one.
            ("address", "detect_leaks=1:detect_stack_use_after_return=0", "")
        }
    };
    let mut total = Tests::default();
    for package in crate::loom::CRATES {
        let mut command = cargo(&["+nightly", "test", "-p", package, "--lib"]);
        match (sanitizer, package) {
            (Sanitizer::Thread, "volt-rt") => command.args(INSTRUMENTED),
            (Sanitizer::Address, "volt-rt") => command.args(INSTRUMENTED).args(MORE_FOR_ADDRESS),
            _ => command.arg("--tests"),
        };
        command
            .args(["--target", &host()?, "--target-dir", &format!("target/{name}")])
            // The prebuilt standard library is not instrumented; the allowance says that we know.
            .env(
                "RUSTFLAGS",
                format!("-Zsanitizer={name} -Cunsafe-allow-abi-mismatch=sanitizer {cfg}"),
            )
            // The sanitizers slow everything down several times: smaller stress.
            .env("VOLT_STRESS", "1")
            // Panics are part of the tests; printing their backtraces is the standard library's.
            .env("RUST_BACKTRACE", "0")
            .env("TSAN_OPTIONS", format!("{options} suppressions={}", file("tsan.supp")))
            .env("ASAN_OPTIONS", options)
            .env("LSAN_OPTIONS", format!("print_suppressions=0 suppressions={}", file("lsan.supp")))
            // libtest captures output, that of panics too, behind a lock of the standard library.
            .args(["--", "--nocapture"]);
        total += run_tests(&mut command)?;
    }
    Ok(total)
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
