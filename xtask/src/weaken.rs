//! Mutation test of the protocols.
//!
//! One mutant a tagged end of an ordering edge (its ordering is relaxed), and one a statement under
//! `#[cfg(not(volt_mutant = "NAME"))]` (it is dropped). Each is built in a copy of the workspace
//! and must be killed by the model test that the edge's row, or the comment `// Killed by TEST`
//! above the cfg, names. A row that names `none: reason` is reported as an explained survivor.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{root, run as run_command};
use crate::loom;
use crate::source::{Source, has_word, rust_files};
use crate::tidy::{edges, sites};

/// One change that a model must notice.
struct Mutant {
    name: String,
    package: String,
    test: String,
    change: Change,
}

enum Change {
    /// The line at this place becomes this text.
    Line { path: String, line: usize, text: String },
    /// `--cfg volt_mutant="NAME"`.
    Cfg(String),
}

enum Verdict {
    Killed,
    Survived,
    Explained(String),
}

/// Builds and tests the mutants whose name contains `filter`, or all.
///
/// # Errors
/// Lists the survivors.
pub(crate) fn run(filter: Option<&str>) -> Result<(), String> {
    let sources = rust_files()?;
    let mut mutants = relaxed(&sources)?;
    mutants.extend(dropped(&sources));
    mutants.retain(|mutant| filter.is_none_or(|filter| mutant.name.contains(filter)));
    let copy = copy_workspace()?;
    let (mut killed, mut explained, mut survivors) = (0, 0, Vec::new());
    for mutant in &mutants {
        match judge(mutant, &copy)? {
            Verdict::Killed => {
                killed += 1;
                println!("killed    {} by {}", mutant.name, mutant.test);
            }
            Verdict::Explained(reason) => {
                explained += 1;
                println!("explained {}: {reason}", mutant.name);
            }
            Verdict::Survived => {
                println!("SURVIVED  {} against `{}`", mutant.name, mutant.test);
                survivors.push(mutant.name.as_str());
            }
        }
    }
    println!("{} mutants: {killed} killed, {explained} explained", mutants.len());
    if survivors.is_empty() { Ok(()) } else { Err(format!("survivors: {}", survivors.join(", "))) }
}

/// A mutant for each end of each edge.
fn relaxed(sources: &[Source]) -> Result<Vec<Mutant>, String> {
    let edges = edges(sources);
    let mut mutants = Vec::new();
    for site in sites(sources) {
        let source = sources.iter().find(|source| source.path == site.path);
        let source = source.ok_or("a site without its source")?;
        let edge = edges.iter().find(|edge| edge.tag == site.tag);
        let edge = edge.ok_or_else(|| format!("[{}] is declared in no header", site.tag))?;
        let change =
            source.lines[site.line + 1..].iter().take(14).enumerate().find_map(|(offset, line)| {
                let failure = source.lines[site.line].contains("failure");
                Some((site.line + 1 + offset, weaker(line, &site.end, failure)?))
            });
        let name = format!("[{}] {} at {}:{}", site.tag, site.end, site.path, site.line + 1);
        let (line, text) = change.ok_or_else(|| format!("{name}: no ordering below it"))?;
        mutants.push(Mutant {
            name,
            package: edge.package.clone(),
            test: edge.model.clone(),
            change: Change::Line { path: site.path, line, text },
        });
    }
    Ok(mutants)
}

/// The line with its first ordering of that end made weaker; the last one, a compare-exchange's
/// failure ordering, if the comment speaks of failure.
fn weaker(line: &str, end: &str, failure: bool) -> Option<String> {
    if line.trim_start().starts_with("//") {
        return None;
    }
    let replacements: &[(&str, &str)] = match end {
        "release" => &[("AcqRel", "Acquire"), ("Release", "Relaxed"), ("SeqCst", "Acquire")],
        _ => &[("AcqRel", "Release"), ("Acquire", "Relaxed"), ("SeqCst", "Release")],
    };
    let present = replacements.iter().filter(|(from, _)| has_word(line, from));
    let (from, to) = if failure {
        present.max_by_key(|(from, _)| line.rfind(from))?
    } else {
        present.min_by_key(|(from, _)| line.find(from))?
    };
    // A SeqCst fence has no one-sided weakening that keeps the edge out: drop to AcqRel. A load
    // may not be Release nor a store Acquire, so SeqCst accesses become Relaxed.
    let to = match (*from, line) {
        ("SeqCst", line) if line.contains("fence") => "AcqRel",
        ("SeqCst", line) if line.contains("load") || line.contains("store") => "Relaxed",
        _ => to,
    };
    let at = if failure { line.rfind(from)? } else { line.find(from)? };
    // By its full path: the file may not import it.
    let (before, after) = (&line[..at], &line[at + from.len()..]);
    Some(format!("{before}std::sync::atomic::Ordering::{to}{after}"))
}

/// A mutant for each cfg.
fn dropped(sources: &[Source]) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for source in sources.iter().filter(|source| source.is_production()) {
        for (at, line) in source.lines.iter().enumerate() {
            let Some((_, rest)) = line.split_once("cfg(not(volt_mutant = \"") else { continue };
            let name = rest.split('"').next().unwrap_or_default();
            let killer = source.lines[..at].iter().rev().take(6);
            let killer = killer.filter_map(|line| line.split_once("// Killed by ")).next();
            let test = killer.map_or("", |(_, test)| test.trim_matches(['`', '.', ' ']));
            mutants.push(Mutant {
                name: format!("without {name}"),
                package: source.package().to_owned(),
                test: test.to_owned(),
                change: Change::Cfg(name.to_owned()),
            });
        }
    }
    mutants
}

/// Applies the mutant, runs its test, and restores the file.
fn judge(mutant: &Mutant, copy: &Path) -> Result<Verdict, String> {
    if let Some(reason) = mutant.test.strip_prefix("none:") {
        return Ok(Verdict::Explained(reason.trim().to_owned()));
    }
    if mutant.test.is_empty() {
        return Ok(Verdict::Survived);
    }
    let mut flags = "--cfg volt_loom".to_owned();
    let mut restore = None;
    match &mutant.change {
        Change::Cfg(name) => flags += &format!(" --cfg volt_mutant=\"{name}\""),
        Change::Line { path, line, text } => {
            let path = copy.join(path);
            let original = read(&path)?;
            let mut lines: Vec<&str> = original.lines().collect();
            lines[*line] = text;
            write(&path, &(lines.join("\n") + "\n"))?;
            restore = Some((path, original));
        }
    }
    let mut test = loom::command(&mutant.package, &mutant.test);
    test.current_dir(copy)
        .env("RUSTFLAGS", flags)
        .env("CARGO_TARGET_DIR", root().join("target/weaken-build"));
    let output =
        timeout(&mut test).output().map_err(|error| format!("{}: {error}", mutant.name))?;
    if let Some((path, original)) = restore {
        write(&path, &original)?;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("could not compile") {
        return Err(format!("{}: the mutant does not compile:\n{errors}", mutant.name));
    }
    if text.contains("running 0 tests")
        && !text.contains("running 1 test")
        && output.status.success()
    {
        return Err(format!("{}: no test is named `{}`", mutant.name, mutant.test));
    }
    Ok(if output.status.success() { Verdict::Survived } else { Verdict::Killed })
}

/// A mutant may hang its test: that kills it too.
fn timeout(command: &mut Command) -> Command {
    let mut limited = Command::new("timeout");
    limited.arg("300").arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        limited.current_dir(folder);
    }
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(key, value),
            None => limited.env_remove(key),
        };
    }
    limited
}

fn copy_workspace() -> Result<PathBuf, String> {
    let copy = root().join("target/weaken");
    if copy.exists() {
        std::fs::remove_dir_all(&copy).map_err(|error| format!("{}: {error}", copy.display()))?;
    }
    std::fs::create_dir_all(&copy).map_err(|error| format!("{}: {error}", copy.display()))?;
    let mut command = Command::new("cp");
    command.arg("-r").args(["Cargo.toml", "Cargo.lock", "crates", "xtask"]).arg(&copy);
    run_command(command.current_dir(root()))?;
    Ok(copy)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_is_weakened_by_itself() {
        let weaker = |line: &str, end: &str| {
            Some(weaker(line, end, false)?.replace("std::sync::atomic::Ordering::", ""))
        };
        let cas = "    x.compare_exchange(a, b, AcqRel, Acquire)";
        assert_eq!(
            weaker(cas, "release").unwrap(),
            "    x.compare_exchange(a, b, Acquire, Acquire)"
        );
        assert_eq!(
            weaker(cas, "acquire").unwrap(),
            "    x.compare_exchange(a, b, Release, Acquire)"
        );
        assert_eq!(weaker("x.store(1, Release);", "release").unwrap(), "x.store(1, Relaxed);");
        assert_eq!(weaker("fence(SeqCst);", "acquire").unwrap(), "fence(AcqRel);");
        assert_eq!(weaker("x.load(SeqCst);", "acquire").unwrap(), "x.load(Relaxed);");
        assert!(weaker("// an Acquire load", "acquire").is_none());
        assert!(weaker("x.load(Relaxed);", "acquire").is_none());
        let failure = super::weaker(cas, "acquire", true).unwrap();
        assert!(failure.ends_with("b, AcqRel, std::sync::atomic::Ordering::Relaxed)"));
    }

    #[test]
    fn mutants_are_read_from_tags_and_cfgs() {
        let text = "//! | [AB1] | f | g | x | `a::model::t` |\n\
            // ORD[AB1] release: x\na.store(1, Release);\n// ORD[AB1] acquire: x\na.load(Acquire);\n\
            // Killed by `b::model::u`.\n#[cfg(not(volt_mutant = \"recheck\"))]\nrecheck();\n";
        let sources = [Source::new("crates/volt-sync/src/x.rs", text)];
        assert_eq!(relaxed(&sources).unwrap().len(), 2);
        let mutants = dropped(&sources);
        assert_eq!(
            (mutants[0].name.as_str(), mutants[0].test.as_str()),
            ("without recheck", "b::model::u")
        );
    }
}
