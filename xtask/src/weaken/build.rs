//! A copy of the workspace in which every relaxed ordering is there at once, and is chosen when the
//! program runs: `Release` becomes `crate::weakened(7, Release, Relaxed)`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::mutants::{Change, Mutant, Ordering};
use crate::command::root;
use crate::source::Source;
use crate::{loom, program};

/// The variable that holds the chosen mutant's number.
pub(super) const CHOICE: &str = "VOLT_WEAKEN";

/// Where they are built.
const TARGET: &str = "target/weaken/build";

/// Put at the end of each crate's `lib.rs`.
const WEAKENED: &str = r#"
/// The ordering, or the weaker one if its mutant is chosen.
#[allow(dead_code)]
pub(crate) fn weakened(
    mutant: usize,
    from: std::sync::atomic::Ordering,
    to: std::sync::atomic::Ordering,
) -> std::sync::atomic::Ordering {
    static CHOSEN: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    let chosen = || std::env::var("VOLT_WEAKEN").ok().and_then(|text| text.parse().ok());
    if *CHOSEN.get_or_init(chosen) == Some(mutant) { to } else { from }
}
"#;

/// The copy.
pub(super) struct Copy {
    root: PathBuf,
}

impl Copy {
    /// Writes the copy.
    pub(super) fn new(sources: &[Source], relaxed: &[Mutant]) -> Result<Self, String> {
        let copy = Self { root: root().join("target/weaken/workspace") };
        let mut changed = BTreeMap::new();
        for source in sources {
            let here = relaxed.iter().filter(|mutant| mutant.path == source.path);
            let orderings: Vec<&Ordering> = here
                .filter_map(|mutant| match &mutant.change {
                    Change::Ordering(ordering) => Some(ordering),
                    Change::Drop(_) => None,
                })
                .collect();
            let mut text = instrumented(&source.lines, &orderings);
            if source.path.ends_with("/src/lib.rs") {
                text += WEAKENED;
            }
            changed.insert(root().join(&source.path), text);
        }
        std::fs::create_dir_all(&copy.root).map_err(|error| failed(&copy.root, &error))?;
        for name in ["Cargo.toml", "Cargo.lock", "crates", "xtask"] {
            mirror(&root().join(name), &copy.root.join(name), &changed)?;
        }
        Ok(copy)
    }

    /// Builds the models of `package`, and keeps the program under a name of its own: cargo's is
    /// overwritten by the next build.
    pub(super) fn build(&self, package: &str, name: &str) -> Result<PathBuf, String> {
        let mut command = loom::build(&[package], TARGET);
        command.current_dir(&self.root);
        let built = program::build(command).map_err(|error| format!("the mutants: {error}"))?;
        let program = built.last().ok_or_else(|| format!("{package}: no test program"))?;
        let kept = root().join("target/weaken").join(name);
        // One that still runs, left by a run that was cut short, keeps its own file.
        if kept.exists() {
            std::fs::remove_file(&kept).map_err(|error| failed(&kept, &error))?;
        }
        std::fs::copy(program, &kept).map_err(|error| failed(&kept, &error))?;
        Ok(kept)
    }

    /// Builds the models of a crate without the statements under the cfg `name`.
    pub(super) fn build_without(&self, mutant: &Mutant, name: &str) -> Result<PathBuf, String> {
        let files = self.with_cfg(&self.root.join("crates"), name)?;
        for (path, text) in &files {
            write(path, &without(text, name))?;
        }
        let built = self.build(&mutant.package, "dropped");
        for (path, text) in &files {
            write(path, text)?;
        }
        built
    }

    /// The files with this cfg in them.
    fn with_cfg(&self, folder: &Path, name: &str) -> Result<Vec<(PathBuf, String)>, String> {
        let mut files = Vec::new();
        let entries = std::fs::read_dir(folder).map_err(|error| failed(folder, &error))?;
        for entry in entries {
            let path = entry.map_err(|error| failed(folder, &error))?.path();
            if path.is_dir() {
                files.extend(self.with_cfg(&path, name)?);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = std::fs::read_to_string(&path).map_err(|error| failed(&path, &error))?;
                if text.contains(&format!("volt_mutant = \"{name}\"")) {
                    files.push((path, text));
                }
            }
        }
        Ok(files)
    }
}

/// The text in which the orderings of these mutants can be chosen. Two ends may share an ordering.
fn instrumented(lines: &[String], orderings: &[&Ordering]) -> String {
    let mut lines = lines.to_vec();
    let mut places: Vec<_> = orderings.iter().map(|it| (it.line, it.column)).collect();
    places.sort_unstable();
    places.dedup();
    // From the last, so that the columns before stay what they are.
    for (line, column) in places.into_iter().rev() {
        if lines[line].contains("fence(") {
            // There is no relaxed fence: those that have nothing weaker are dropped.
            let dropped = orderings.iter().filter(|it| it.line == line && it.to == "Relaxed");
            for it in dropped {
                let (from, to) = (path(it.from), path(it.to));
                let kept = format!("crate::weakened({}, {from}, {to}) == {from}", it.number);
                lines[line] = format!("if {kept} {{ {} }}", lines[line].trim());
            }
            if lines[line].starts_with("if ") {
                continue;
            }
        }
        let mut from = "";
        let mut text = String::new();
        for it in orderings.iter().filter(|it| (it.line, it.column) == (line, column)) {
            if text.is_empty() {
                from = it.from;
                text = path(from);
            }
            text = format!("crate::weakened({}, {text}, {})", it.number, path(it.to));
        }
        let (before, after) = lines[line].split_at(column);
        let before = before.strip_suffix("Ordering::").unwrap_or(before);
        lines[line] = format!("{before}{text}{}", &after[from.len()..]);
    }
    lines.join("\n") + "\n"
}

/// By its full path: the file may not import it.
fn path(ordering: &str) -> String {
    format!("std::sync::atomic::Ordering::{ordering}")
}

/// The text with the cfg decided: `cfg(any())` is never true, `cfg(all())` always.
fn without(text: &str, name: &str) -> String {
    let cfg = format!("volt_mutant = \"{name}\"");
    text.replace(&format!("not({cfg})"), "any()").replace(&cfg, "all()")
}

/// Copies what differs, so that cargo need not build the rest again.
fn mirror(from: &Path, to: &Path, changed: &BTreeMap<PathBuf, String>) -> Result<(), String> {
    if from.is_dir() {
        std::fs::create_dir_all(to).map_err(|error| failed(to, &error))?;
        for entry in std::fs::read_dir(from).map_err(|error| failed(from, &error))? {
            let name = entry.map_err(|error| failed(from, &error))?.file_name();
            mirror(&from.join(&name), &to.join(&name), changed)?;
        }
        return Ok(());
    }
    let wanted = match changed.get(from) {
        Some(text) => text.clone().into_bytes(),
        None => std::fs::read(from).map_err(|error| failed(from, &error))?,
    };
    if std::fs::read(to).is_ok_and(|present| present == wanted) {
        return Ok(());
    }
    std::fs::write(to, wanted).map_err(|error| failed(to, &error))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| failed(path, &error))
}

pub(super) fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orderings_become_choices() {
        let lines = ["x.swap(1, AcqRel);", "y.cas(1, 2, Ordering::Release, Acquire);"];
        let lines = lines.map(str::to_owned);
        let at = |number, line, column, from, to| Ordering { number, line, column, from, to };
        let orderings = [
            at(0, 0, 10, "AcqRel", "Acquire"),
            at(3, 0, 10, "AcqRel", "Release"),
            at(1, 1, 22, "Release", "Relaxed"),
            at(2, 1, 31, "Acquire", "Relaxed"),
        ];
        let text = instrumented(&lines, &orderings.iter().collect::<Vec<_>>());
        let text = text.replace("std::sync::atomic::Ordering::", "");
        assert_eq!(
            text,
            "x.swap(1, crate::weakened(3, crate::weakened(0, AcqRel, Acquire), Release));\n\
             y.cas(1, 2, crate::weakened(1, Release, Relaxed), crate::weakened(2, Acquire, Relaxed));\n"
        );
    }

    #[test]
    fn a_fence_without_a_weaker_one_can_be_dropped() {
        let lines = ["    fence(Acquire);".to_owned()];
        let ordering = Ordering { number: 5, line: 0, column: 10, from: "Acquire", to: "Relaxed" };
        let text = instrumented(&lines, &[&ordering]).replace("std::sync::atomic::Ordering::", "");
        assert_eq!(
            text,
            "if crate::weakened(5, Acquire, Relaxed) == Acquire { fence(Acquire); }\n"
        );
    }

    #[test]
    fn a_cfg_is_decided_for_its_own_mutant_only() {
        let text = "#[cfg(not(volt_mutant = \"a\"))]\n#[cfg(volt_mutant = \"a\")]\n\
            #[cfg(not(volt_mutant = \"b\"))]\n";
        let expected = "#[cfg(any())]\n#[cfg(all())]\n#[cfg(not(volt_mutant = \"b\"))]\n";
        assert_eq!(without(text, "a"), expected);
    }

    #[test]
    fn the_variable_has_one_name() {
        assert!(WEAKENED.contains(&format!("\"{CHOICE}\"")));
    }
}
