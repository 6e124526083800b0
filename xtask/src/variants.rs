//! Builds beside the default one: feature combinations, the oldest allowed dependencies, and the oldest compiler.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::command::{Tests, cargo, limited, root, run, run_tests};

/// The crates that others depend on.
const LIBRARIES: [&str; 4] = ["volt-sync", "volt-pool", "volt-macros", "volt-rt"];

/// Checks each library without default features, with each feature alone, and with all; and that there are
/// the features of Tokio that people ask for.
///
/// # Errors
/// Names the combination that does not build, or the feature that there is not.
pub(crate) fn features() -> Result<(), String> {
    let all = features_of(&metadata(&[])?)?;
    let habit = habit(&all)?;
    for package in LIBRARIES {
        let features = all.get(package).ok_or(format!("there is no {package}"))?.keys();
        let features: Vec<_> = features.filter(|name| *name != "default").collect();
        let mut combinations = vec![vec!["--no-default-features"], vec!["--all-features"]];
        // Those for habit enable nothing.
        for feature in features.iter().filter(|feature| !habit.contains(**feature)) {
            combinations.push(vec!["--no-default-features", "--features", feature]);
        }
        for combination in combinations {
            run(cargo(&["check", "--quiet", "-p", package]).args(combination))?;
        }
        println!("{package}: {} features", features.len());
    }
    Ok(())
}

/// The tests of channels with every bounded one a list, also the small ones. (Those of turns are about rings.)
///
/// # Errors
/// If one of them fails.
pub(crate) fn lists() -> Result<Tests, String> {
    let test = |what: &[&str]| {
        let mut command = cargo(&["test", "-p", "volt-sync", "--all-features"]);
        command
            .env("RUSTFLAGS", "--cfg volt_list")
            .arg("--target-dir")
            .arg(root().join("target/list"));
        run_tests(command.args(what))
    };
    let mut tests = test(&["--lib", "--", "mpsc::", "mpmc::", "first_poll::", "limited::"])?;
    tests += test(&["--test", "channel_model", "--test", "channel_fairness"])?;
    Ok(tests)
}

/// Checks the libraries with the lowest versions that their manifests allow, in a lock file of its
/// own, so that a requirement that is too low shows.
///
/// # Errors
/// If they do not build.
pub(crate) fn minimal() -> Result<(), String> {
    let scratch = root().join("target/minimal");
    copy_manifests(&scratch)?;
    run(cargo(&["+nightly", "generate-lockfile", "-Zdirect-minimal-versions"])
        .current_dir(&scratch))?;
    let mut check = cargo(&["check", "--quiet", "--all-features"]);
    for package in LIBRARIES {
        check.args(["-p", package]);
    }
    check.args(["--target-dir", "../minimal-build"]);
    run(check.current_dir(&scratch))
}

/// Checks the libraries and their examples with the oldest compiler that the workspace says is enough, and without a
/// warning. (A lint about it knows functions of the standard library, and no rules of the language.)
///
/// Where that compiler is not installed, and `rustup` cannot fetch it, this is said, and nothing checked.
///
/// # Errors
/// If they do not build.
pub(crate) fn oldest() -> Result<(), String> {
    let manifest = root().join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).map_err(|error| format!("{error}"))?;
    let version = rust_version(&text).ok_or("the workspace has no rust-version")?;
    let toolchain = format!("+{version}");
    let mut rustup = Command::new("rustup");
    rustup.args(["toolchain", "install", version, "--profile", "minimal", "--no-self-update"]);
    let is_here = run(&mut cargo(&[&toolchain, "--version"])).is_ok();
    if !is_here && run(&mut limited(&rustup, Some("180".into()))).is_err() {
        println!("NOT CHECKED: there is no compiler {version} here, and it cannot be fetched");
        return Ok(());
    }
    let mut check =
        cargo(&[&toolchain, "check", "--quiet", "--all-features", "--lib", "--examples"]);
    for package in LIBRARIES {
        check.args(["-p", package]);
    }
    check.env("RUSTFLAGS", "-Dwarnings").args(["--target-dir", "target/oldest"]);
    run(&mut check)
}

/// What the manifest of a workspace says of its packages.
fn rust_version(manifest: &str) -> Option<&str> {
    let value = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "))?;
    Some(value.trim_matches('"'))
}

/// A copy of the libraries' sources whose dev-dependencies do not count.
fn copy_manifests(scratch: &std::path::Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", scratch.display());
    if scratch.exists() {
        std::fs::remove_dir_all(scratch).map_err(failed)?;
    }
    std::fs::create_dir_all(scratch.join("crates")).map_err(failed)?;
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).map_err(failed)?;
    let mut text = String::new();
    for line in manifest.lines() {
        // Only the libraries: the comparison pins the newest versions of the peers.
        let line = match line {
            line if line.starts_with("members") => "members = [\"crates/*\"]",
            line if line.starts_with("default-members") => "",
            line => line,
        };
        text += &format!("{line}\n");
    }
    std::fs::write(scratch.join("Cargo.toml"), text).map_err(failed)?;
    let directories = ["volt-sync", "volt-pool", "volt-macros", "volt"];
    for directory in directories {
        let (from, to) = (root().join("crates").join(directory), scratch.join("crates"));
        run(Command::new("cp").arg("-r").arg(&from).arg(&to))?;
        let path = to.join(directory).join("Cargo.toml");
        let text = std::fs::read_to_string(&path).map_err(failed)?;
        std::fs::write(&path, without_dev(&text)).map_err(failed)?;
        // Examples, tests and benches need the dev-dependencies.
        for folder in ["examples", "tests", "benches"] {
            let folder = to.join(directory).join(folder);
            if folder.exists() {
                std::fs::remove_dir_all(folder).map_err(failed)?;
            }
        }
    }
    Ok(())
}

/// The manifest without dev-dependencies and the targets that use them.
fn without_dev(manifest: &str) -> String {
    let mut keep = true;
    let mut text = String::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            let dev = line.contains("dev-dependencies");
            let target = ["[[example", "[[test", "[[bench"].iter().any(|it| line.starts_with(it));
            keep = !dev && !target;
        }
        if keep {
            text += &format!("{line}\n");
        }
    }
    text
}

/// The features of each package, and what each enables.
type Features = BTreeMap<String, BTreeMap<String, Vec<String>>>;

fn features_of(metadata: &Value) -> Result<Features, String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let of = |package: &Value| {
        let name = package["name"].as_str().unwrap_or_default().to_owned();
        serde_json::from_value(package["features"].clone()).map(|features| (name, features))
    };
    let features: Result<_, _> = packages.iter().map(of).collect();
    features.map_err(|error| format!("cargo metadata: {error}"))
}

/// What Tokio's `full` enables, and `full`: the features that Volt has for habit.
fn habit(all: &Features) -> Result<BTreeSet<String>, String> {
    let full = all.get("tokio").and_then(|features| features.get("full"));
    let mut habit: BTreeSet<String> =
        full.ok_or("tokio has no feature full")?.iter().cloned().collect();
    habit.insert("full".to_owned());
    match habit.iter().find(|name| !all["volt-rt"].contains_key(*name)) {
        Some(missing) => Err(format!("volt-rt has no feature {missing}, which Tokio has")),
        None => Ok(habit),
    }
}

/// `cargo metadata`.
pub(crate) fn metadata(arguments: &[&str]) -> Result<Value, String> {
    let output = cargo(&["metadata", "--format-version", "1", "--locked"])
        .args(arguments)
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_compiler_is_that_of_the_workspace() {
        let manifest = "[workspace.package]\nedition = \"2024\"\nrust-version = \"1.85\"\n";
        assert_eq!(rust_version(manifest), Some("1.85"));
        assert_eq!(rust_version("[workspace]\n"), None);
    }

    #[test]
    fn dev_dependencies_and_their_targets_are_left_out() {
        let manifest = "[package]\nname = \"x\"\n[dev-dependencies]\na = \"1\"\n[[test]]\nname = \"t\"\n[features]\nf = []\n";
        assert_eq!(without_dev(manifest), "[package]\nname = \"x\"\n[features]\nf = []\n");
    }
}
