//! What continuous integration runs, stage by stage.

use std::process::Command;
use std::thread;
use std::time::Instant;

use crate::command::{Tests, cargo, optimised, run as run_command, run_tests};
use crate::sanitize::{self, Sanitizer};
use crate::source::{Source, has_word, rust_files};
use crate::{count, deny, ecosystem, idle, loom, tidy, variants};

type Stage = (&'static str, fn() -> Result<Tests, String>);

/// Cheap checks first, so that a mistake shows early. Those of one line of the outer list run at the same time.
const STAGES: &[&[Stage]] = &[
    &[("fmt", || none(run_command(&mut cargo(&["fmt", "--all", "--check"]))))],
    &[("tidy", || none(tidy::run()))],
    &[("deny", || none(deny::run()))],
    &[("clippy", || none(clippy()))],
    // The README's command, to the letter.
    &[("test", || run_tests(&mut cargo(&["test", "--workspace"])))],
    &[("stress", || run_tests(&mut stress(&rust_files()?)))],
    &[("doc", || none(doc()))],
    // Mostly compilers that wait for each other's results, each in a folder of its own, and no test that is about time:
    // together they fill both processors.
    &[
        ("features", features),
        ("lists", variants::lists),
        ("minimal", || none(variants::minimal())),
        ("oldest", || none(variants::oldest())),
    ],
    &[("ecosystem", ecosystem::run)],
    &[("loom", || loom::run(None))],
    &[("tsan", || sanitize::run(Sanitizer::Thread))],
    &[("asan", || sanitize::run(Sanitizer::Address))],
    &[("count", || none(count::run(None)))],
    &[("idle", || none(idle::run()))],
    &[("crowds", || run_tests(&mut release(&["sync_crowds", "rt_fair", "rt_long_polls"])))],
    &[("soak", || none(soak("30")))],
];

/// Runs all stages or the `named` ones, and stops at the first that fails, when those beside it have ended.
///
/// # Errors
/// Names the stage and what failed.
pub(crate) fn run(named: &[&str]) -> Result<(), String> {
    let known: Vec<_> = STAGES.iter().copied().flatten().map(|stage| stage.0).collect();
    if let Some(unknown) = named.iter().find(|name| !known.contains(name)) {
        return Err(format!("unknown stage `{unknown}`; there are {}", known.join(", ")));
    }
    let mut total = Tests::default();
    let mut summary = Vec::new();
    for stages in STAGES {
        let stages = stages.iter().filter(|stage| named.is_empty() || named.contains(&stage.0));
        let ended: Vec<_> = thread::scope(|scope| {
            let started: Vec<_> = stages.map(|stage| scope.spawn(|| timed(stage))).collect();
            started.into_iter().map(|stage| stage.join().expect("errors are values here")).collect()
        });
        for ended in ended {
            let (line, tests) = ended?;
            summary.push(line);
            total += tests;
        }
    }
    println!("\n{}", summary.join("\n"));
    println!("{} passed, {} failed", total.passed, total.failed);
    Ok(())
}

/// Runs one stage. Its line of the summary, and its tests.
#[allow(clippy::disallowed_methods, reason = "times the stages of a script")]
fn timed((name, stage): &Stage) -> Result<(String, Tests), String> {
    println!("==> {name}");
    let start = Instant::now();
    let tests = stage().map_err(|error| {
        let error = format!("stage {name}: {error}");
        // Others may still run.
        eprintln!("==> {error}");
        error
    })?;
    let seconds = start.elapsed().as_secs();
    println!("==> {name}: ok, {} tests, {seconds} s", tests.passed);
    Ok((format!("{name:<10} {:>6} tests {seconds:>5} s", tests.passed), tests))
}

/// The feature that changes what a task is, and the suite that needs it. Always with the whole workspace, so that what
/// it depends on is that of the other stages, and built already.
const TRACING: &str = "volt-rt/tracing";
const TRACING_TEST: &str = "rt_tracing";

/// Not `--all-features`: one peer of the comparison asks for a newer compiler. The libraries' features
/// are on in `volt-rt`'s tests, but for `tracing`, for which the code that has to do with it has a second run.
fn clippy() -> Result<(), String> {
    let lint = |what: &[&str]| {
        run_command(cargo(&["clippy", "--workspace"]).args(what).args(["--", "-Dwarnings"]))
    };
    lint(&["--all-targets"])?;
    lint(&["--features", TRACING, "--lib", "--test", TRACING_TEST])
}

fn doc() -> Result<(), String> {
    let all = ["doc", "--workspace", "--no-deps", "--exclude", "volt-bench", "--all-features"];
    run_command(cargo(&all).env("RUSTDOCFLAGS", "-Dwarnings"))
}

fn features() -> Result<Tests, String> {
    variants::features()?;
    // The only feature that changes what a task is: the tests of the others run without it.
    let traced = ["test", "--workspace", "--features", TRACING, "--test", TRACING_TEST];
    run_tests(&mut cargo(&traced))
}

/// By what the stage `stress` multiplies the rounds: some 30 s then.
const STRESS: &str = "2";

/// The integration tests that have stress variants, with more rounds. All of a file's tests run, also
/// those without rounds: they are built already, and short.
fn stress(sources: &[Source]) -> Command {
    let mut command = cargo(&["test", "--workspace"]);
    for suite in stressed(sources) {
        command.args(["--test", suite]);
    }
    command.env("VOLT_STRESS", STRESS);
    command
}

/// The names of the integration tests that scale with `VOLT_STRESS`, by themselves or by way of the
/// function `stress` of what they share.
fn stressed(sources: &[Source]) -> Vec<&str> {
    let calls = |line: &str| line.contains("stress(") && has_word(line, "stress");
    let scales = |line: &String| has_word(line, "VOLT_STRESS") || calls(line);
    let found = sources.iter().filter(|source| source.lines.iter().any(scales));
    found.filter_map(Source::suite).collect()
}

/// Mixed load with faults for `seconds`. Without the feature `tracing`, as tasks mostly are.
///
/// # Errors
/// A violated invariant, named by the soak test itself.
pub(crate) fn soak(seconds: &str) -> Result<(), String> {
    if seconds.parse::<u32>().is_err() {
        return Err(format!("soak wants a number of seconds, not `{seconds}`"));
    }
    let mut command = release(&["soak"]);
    command.args(["--", "--nocapture"]).env("VOLT_SOAK_SECONDS", seconds);
    run_command(&mut command)
}

/// Suites of the runtime's, optimised, as its users have it: what a crowd or a load does, and who has a turn when, depends
/// on how long a poll takes, and which tasks are of one kind on where the compiler has put their functions.
fn release(suites: &[&str]) -> Command {
    let mut command = optimised(&["test", "-p", "volt-rt"]);
    for suite in suites {
        command.args(["--test", suite]);
    }
    command.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    command
}

fn none(result: Result<(), String>) -> Result<Tests, String> {
    result.map(|()| Tests::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suites_that_scale_are_found() {
        let source = Source::new;
        let sources = [
            source("crates/a/tests/reads.rs", "let rounds = var(\"VOLT_STRESS\");\n"),
            source("crates/b/tests/shares.rs", "for _ in 0..stress(20) {\n"),
            source(
                "crates/b/tests/support/net.rs",
                "pub fn stress(count: usize) { \"VOLT_STRESS\"\n",
            ),
            source("crates/b/tests/none.rs", "fn distress() { stress_of(1) }\n"),
            source("crates/b/src/x/tests.rs", "\"VOLT_STRESS\"\n"),
        ];
        assert_eq!(stressed(&sources), ["reads", "shares"]);
        let command = stress(&sources);
        let arguments: Vec<_> = command.get_args().filter_map(|it| it.to_str()).collect();
        assert_eq!(arguments, ["test", "--workspace", "--test", "reads", "--test", "shares"]);
        let (name, value) = command.get_envs().find(|(name, _)| *name == "VOLT_STRESS").unwrap();
        assert_eq!(
            (name.to_str(), value.and_then(|it| it.to_str())),
            (Some("VOLT_STRESS"), Some(STRESS))
        );
    }

    #[test]
    fn there_are_suites_that_scale() {
        let sources = rust_files().unwrap();
        let found = stressed(&sources);
        for name in ["hostile", "fs_system", "process_command", "channel_stress"] {
            assert!(found.contains(&name), "{name}: {found:?}");
        }
    }
}
