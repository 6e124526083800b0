//! Crates of others that were written for Tokio, on Volt: the workspace `ecosystem`.

use serde_json::Value;

use crate::command::{Tests, cargo, run as run_command, run_tests};
use crate::variants::metadata;

/// For cargo: which workspace.
pub(crate) const MANIFEST: [&str; 2] = ["--manifest-path", "ecosystem/Cargo.toml"];

/// Checks the package that takes Tokio's place, and runs the tests of what runs on it.
///
/// # Errors
/// Names what failed.
pub(crate) fn run() -> Result<Tests, String> {
    let metadata = metadata(&MANIFEST)?;
    let place = Place::of(&metadata)?;
    place.has_all_features()?;
    place.is_taken(&metadata)?;
    let own = |command: &str| {
        let mut command = cargo(&[command]);
        command.args(MANIFEST);
        command
    };
    run_command(own("fmt").args(["--all", "--check"]))?;
    // Clippy is a compiler that says more: what the tests depend on is compiled once, not once more for it.
    let mut tests = own("test");
    tests.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver").env("RUSTFLAGS", "-Dwarnings");
    run_tests(tests.args(["--workspace", "--locked"]))
}

/// Both packages called `tokio`.
struct Place<'a> {
    ours: &'a Value,
    theirs: &'a Value,
}

impl<'a> Place<'a> {
    fn of(metadata: &'a Value) -> Result<Self, String> {
        let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
        let find = |here: bool| {
            let is_it = |it: &&Value| it["name"] == "tokio" && it["source"].is_null() == here;
            packages.iter().find(is_it).ok_or(format!("ecosystem: no tokio, ours: {here}"))
        };
        Ok(Self { ours: find(true)?, theirs: find(false)? })
    }

    /// Somebody may ask for each that Tokio has, and get no program if there is none.
    fn has_all_features(&self) -> Result<(), String> {
        let theirs = self.theirs["features"].as_object().ok_or("Tokio has no features")?;
        match theirs.keys().find(|name| self.ours["features"].get(name).is_none()) {
            Some(missing) => {
                Err(format!("ecosystem/tokio has no feature {missing}, which Tokio has"))
            }
            None => Ok(()),
        }
    }

    /// Nobody but `volt-rt` uses Tokio's own, for its traits.
    fn is_taken(&self, metadata: &Value) -> Result<(), String> {
        let nodes =
            metadata["resolve"]["nodes"].as_array().ok_or("cargo metadata resolves nothing")?;
        let uses = |node: &&Value| {
            let theirs = |dependency: &Value| *dependency == self.theirs["id"];
            node["dependencies"].as_array().is_some_and(|all| all.iter().any(theirs))
        };
        let users: Vec<_> = nodes.iter().filter(uses).filter_map(|it| it["id"].as_str()).collect();
        match users[..] {
            [volt] if volt.contains("#volt-rt@") => Ok(()),
            _ => Err(format!("Tokio's own crate is used by: {}", users.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn packages(ours: &[&str], users: &[&str]) -> Value {
        let features = |names: &[&str]| -> Value {
            names.iter().map(|name| ((*name).to_owned(), json!([]))).collect()
        };
        let node = |id: &&str| json!({ "id": id, "dependencies": ["theirs"] });
        json!({
            "packages": [
                { "name": "tokio", "id": "ours", "source": null, "features": features(ours) },
                { "name": "tokio", "id": "theirs", "source": "registry+x", "features": features(&["rt", "net"]) },
            ],
            "resolve": { "nodes": users.iter().map(node).collect::<Vec<_>>() },
        })
    }

    #[test]
    fn a_feature_that_is_missing_is_named() {
        let good = packages(&["net", "rt", "more"], &[]);
        assert_eq!(Place::of(&good).unwrap().has_all_features(), Ok(()));
        let bad = packages(&["net"], &[]);
        let message = Place::of(&bad).unwrap().has_all_features().unwrap_err();
        assert!(message.contains("no feature rt"), "{message}");
    }

    #[test]
    fn who_uses_the_other_one_is_named() {
        let good = packages(&[], &["path+file:///crates/volt#volt-rt@0.1.0"]);
        assert_eq!(Place::of(&good).unwrap().is_taken(&good), Ok(()));
        for users in [&["x#volt-rt@0.1.0", "hyper@1"][..], &["hyper@1"], &[]] {
            let bad = packages(&[], users);
            let message = Place::of(&bad).unwrap().is_taken(&bad).unwrap_err();
            assert!(message.ends_with(&users.join(", ")), "{message}");
        }
    }
}
