//! Tells the program which commit it is built from: a record names it, and is often made elsewhere than
//! in the source tree. Outside of the project's own git repository it is built without.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Everything that is built into the program, and says whether files have been changed.
    println!("cargo::rerun-if-changed=..");
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    if let Some(commit) = commit() {
        println!("cargo::rustc-env=VOLT_BENCH_COMMIT={commit}");
    }
}

fn commit() -> Option<String> {
    // The sources may lie in a repository that is another project's.
    let top = git(&["rev-parse", "--show-toplevel"])?;
    // Not `env!`: a build script that another checkout has left in the target folder would name that one.
    let workspace = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR")?).join("../..");
    if Path::new(&top).canonicalize().ok()? != workspace.canonicalize().ok()? {
        return None;
    }
    // It grows with each commit and each checkout. (One that is not there would count as changed.)
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    let id = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { id } else { id + "+" })
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
