//! What continuous integration runs, stage by stage.

use std::time::Instant;

use crate::command::{Tests, cargo, run as run_command, run_tests};
use crate::sanitize::{self, Sanitizer};
use crate::{count, deny, idle, loom, tidy, variants};

type Stage = (&'static str, fn() -> Result<Tests, String>);

/// Cheap checks first, so that a mistake shows early.
const STAGES: &[Stage] = &[
    ("fmt", || none(run_command(&mut cargo(&["fmt", "--all", "--check"])))),
    ("tidy", || none(tidy::run())),
    ("deny", || none(deny::run())),
    ("clippy", || none(clippy())),
    // The README's command, to the letter.
    ("test", || run_tests(&mut cargo(&["test", "--workspace"]))),
    ("doc", || {
        none(run_command(
            cargo(&[
                "doc",
                "--workspace",
                "--no-deps",
                "--exclude",
                "volt-bench",
                "--all-features",
            ])
            .env("RUSTDOCFLAGS", "-Dwarnings"),
        ))
    }),
    ("features", || {
        variants::features()?;
        // The only feature that changes what a task is: the tests of the others run without it.
        run_tests(&mut cargo(&[
            "test",
            "-p",
            "volt-rt",
            "--features",
            "tracing",
            "--test",
            "rt_tracing",
        ]))
    }),
    ("minimal", || none(variants::minimal())),
    ("loom", || loom::run(None)),
    ("tsan", || sanitize::run(Sanitizer::Thread)),
    ("asan", || sanitize::run(Sanitizer::Address)),
    ("count", || none(count::run(None))),
    ("idle", || none(idle::run())),
    ("soak", || none(soak("60"))),
];

/// Runs all stages or the `named` ones, and stops at the first that fails.
///
/// # Errors
/// Names the stage and what failed.
#[allow(clippy::disallowed_methods, reason = "times the stages of a script")]
pub(crate) fn run(named: &[&str]) -> Result<(), String> {
    if let Some(unknown) = named.iter().find(|name| STAGES.iter().all(|stage| stage.0 != **name)) {
        let known: Vec<_> = STAGES.iter().map(|stage| stage.0).collect();
        return Err(format!("unknown stage `{unknown}`; there are {}", known.join(", ")));
    }
    let mut total = Tests::default();
    let mut summary = Vec::new();
    for (name, stage) in STAGES.iter().filter(|stage| named.is_empty() || named.contains(&stage.0))
    {
        println!("==> {name}");
        let start = Instant::now();
        let tests = stage().map_err(|error| format!("stage {name}: {error}"))?;
        total += tests;
        let seconds = start.elapsed().as_secs();
        println!("==> {name}: ok, {} tests, {seconds} s", tests.passed);
        summary.push(format!("{name:<10} {:>6} tests {seconds:>5} s", tests.passed));
    }
    println!("\n{}", summary.join("\n"));
    println!("{} passed, {} failed", total.passed, total.failed);
    Ok(())
}

/// Not `--all-features`: one peer of the comparison asks for a newer compiler. The libraries' features
/// are on in `volt-rt`'s tests, but for `tracing`, which changes what a task is: it has a second run.
fn clippy() -> Result<(), String> {
    let lint = |what: &[&str]| {
        run_command(cargo(&["clippy"]).args(what).args(["--all-targets", "--", "-Dwarnings"]))
    };
    lint(&["--workspace"])?;
    lint(&["-p", "volt-rt", "--features", "tracing"])
}

/// Mixed load with faults for `seconds`.
///
/// # Errors
/// A violated invariant, named by the soak test itself.
pub(crate) fn soak(seconds: &str) -> Result<(), String> {
    if seconds.parse::<u32>().is_err() {
        return Err(format!("soak wants a number of seconds, not `{seconds}`"));
    }
    run_command(
        cargo(&["test", "--release", "-p", "volt-rt", "--all-features", "--test", "soak"])
            .args(["--", "--nocapture"])
            .env("VOLT_SOAK_SECONDS", seconds),
    )
}

fn none(result: Result<(), String>) -> Result<Tests, String> {
    result.map(|()| Tests::default())
}
