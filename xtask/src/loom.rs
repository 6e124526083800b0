//! The loom models: the unit tests, built with `--cfg volt_loom`, in modules named `model`.

use std::process::Command;

use crate::command::{LIMIT, Tests, cargo, limited, root};
use crate::program::{self, Program};

/// The crates that have models.
pub(crate) const CRATES: [&str; 3] = ["volt-rt", "volt-sync", "volt-pool"];

/// Where models are built: the cfg would otherwise invalidate the ordinary build's cache.
const TARGET: &str = "target/loom";

/// What the path of each model contains.
pub(crate) const MODEL: &str = "model::";

/// Runs the models whose path contains `name`, or all.
///
/// # Errors
/// If a model fails, or if `name` matches none.
pub(crate) fn run(name: Option<&str>) -> Result<Tests, String> {
    let wanted =
        |test: &String| test.contains(MODEL) && name.is_none_or(|name| test.contains(name));
    let limit = std::env::var_os(LIMIT);
    let mut commands = Vec::new();
    for path in program::build(build(&CRATES, TARGET))? {
        let program = Program::new(path)?;
        for test in program.tests.iter().filter(|test| wanted(test)) {
            let mut command = program.command(test);
            bound(&mut command);
            commands.push((test.clone(), limited(&command, limit.clone())));
        }
    }
    match name {
        Some(name) if commands.is_empty() => Err(format!("no model's path contains `{name}`")),
        _ => program::run_all(commands),
    }
}

/// Builds the models of the `packages` in the folder `target`. (Each copy of the sources wants one of its own: of
/// two, cargo takes what the one has built for the other's.)
pub(crate) fn build(packages: &[&str], target: &str) -> Command {
    let mut command = cargo(&["test", "--lib", "--profile", "model"]);
    for package in packages {
        command.args(["-p", package]);
    }
    command.args(["--features", "loom"]);
    // The models use a part of the code, and mutants less.
    command.env("RUSTFLAGS", "--cfg volt_loom -A dead_code -A unused_imports");
    command.arg("--target-dir").arg(root().join(target));
    command
}

/// Two preemptions find the known defects (each has a test that shows it); more is for `xtask loom
/// NAME` by hand.
pub(crate) fn bound(command: &mut Command) {
    if std::env::var_os("LOOM_MAX_PREEMPTIONS").is_none() {
        command.env("LOOM_MAX_PREEMPTIONS", "2");
    }
}
