//! The loom models: `cargo test` with `--cfg volt_loom`, only the tests in modules named `model`.

use std::process::Command;

use crate::command::{Tests, cargo, root, run_tests};

/// The crates that have models.
pub(crate) const CRATES: [&str; 3] = ["volt-sync", "volt-pool", "volt-rt"];

/// Where models are built: the cfg would otherwise invalidate the ordinary build's cache.
const TARGET: &str = "target/loom";

/// Runs the models whose path contains `name`, or all.
///
/// # Errors
/// If a model fails, or if `name` matches none.
pub(crate) fn run(name: Option<&str>) -> Result<Tests, String> {
    let mut total = Tests::default();
    for package in CRATES {
        total += run_tests(&mut command(package, name.unwrap_or("model::")))?;
    }
    match name {
        Some(name) if total.passed == 0 => Err(format!("no model's path contains `{name}`")),
        _ => Ok(total),
    }
}

/// The command that runs the models of `package` whose path contains `filter`.
fn command(package: &str, filter: &str) -> Command {
    let mut command = build(package);
    command.args(["--", filter]);
    bound(&mut command);
    command
}

/// Builds and runs the models of `package`, or with `--no-run` only builds them.
pub(crate) fn build(package: &str) -> Command {
    let mut command = cargo(&["test", "-p", package, "--lib", "--profile", "model"]);
    command.env("RUSTFLAGS", "--cfg volt_loom");
    command.arg("--target-dir").arg(root().join(TARGET));
    command
}

/// Two preemptions find the known defects (each has a test that shows it); more is for `xtask loom
/// NAME` by hand.
pub(crate) fn bound(command: &mut Command) {
    if std::env::var_os("LOOM_MAX_PREEMPTIONS").is_none() {
        command.env("LOOM_MAX_PREEMPTIONS", "2");
    }
}
