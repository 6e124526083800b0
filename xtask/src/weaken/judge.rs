//! Runs a mutant's models until one fails, and remembers what came of it.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use super::build::{CHOICE, Copy, failed};
use super::mutants::{Change, Mutant};
use crate::command::root;
use crate::loom;
use crate::program::Program;
use crate::tidy::names;

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// By this model.
    Killed(String),
    /// With the row's reason.
    Explained(String),
    /// Nothing failed, or nothing was named.
    Survived(String),
}

/// A model may take this long, and a few times as long as without the mutant. One that takes longer
/// does not end: that kills, too.
const LEAST_TIME: Duration = Duration::from_secs(60);
const TIMES_AS_LONG: u32 = 10;

/// A program that was built, and the hash of its bytes.
#[derive(Clone)]
struct Built {
    program: Program,
    hash: u64,
}

/// Builds, runs and remembers.
pub(super) struct Judge {
    copy: Copy,
    programs: BTreeMap<String, Built>,
    /// How long a model takes without a mutant.
    times: BTreeMap<String, Duration>,
    log: Log,
}

impl Judge {
    pub(super) fn new(copy: Copy) -> Result<Self, String> {
        let log = Log::open(root().join("target/weaken/log"))?;
        Ok(Self { copy, programs: BTreeMap::new(), times: BTreeMap::new(), log })
    }

    /// What becomes of `mutant`.
    pub(super) fn verdict(&mut self, mutant: &Mutant) -> Result<Verdict, String> {
        if let Some(verdict) = without_a_run(&mutant.model) {
            return Ok(verdict);
        }
        let sound = self.program(&mutant.package)?;
        // A mutant's number changes with every mutant that comes before it; its hash holds both.
        let key = hash(&(sound.hash, &mutant.name, &mutant.model));
        if let Some(known) = self.log.verdicts.get(&key) {
            return Ok(known.clone());
        }
        let models = match named(&mutant.model, &sound.program.tests) {
            Ok(models) => models,
            Err(missing) => {
                return Ok(Verdict::Survived(format!("no model's path contains `{missing}`")));
            }
        };
        let (program, choice) = match &mutant.change {
            Change::Drop(name) => (self.copy.build_without(mutant, name)?, String::new()),
            Change::Ordering(ordering) => (sound.program.path.clone(), ordering.number.to_string()),
        };
        let mut verdict = Verdict::Survived(format!("{} models pass", models.len()));
        for model in models {
            let limit = match self.time(&sound.program, &model)? {
                Ok(time) => time * TIMES_AS_LONG + LEAST_TIME,
                Err(why) => return Ok(Verdict::Survived(why)),
            };
            let output = run(&program, &model, &choice, limit)?;
            if !output.status.success() {
                verdict = Verdict::Killed(how(&model, &output));
                break;
            }
        }
        self.log.add(key, &mutant.name, &verdict)?;
        Ok(verdict)
    }

    fn program(&mut self, package: &str) -> Result<Built, String> {
        if let Some(known) = self.programs.get(package) {
            return Ok(known.clone());
        }
        let path = self.copy.build(package, package)?;
        let bytes = std::fs::read(&path).map_err(|error| failed(&path, &error))?;
        let mut program = Program::new(path)?;
        // The others would need threads where this build has loom's.
        program.tests.retain(|test| test.contains(loom::MODEL));
        let built = Built { program, hash: hash(&bytes) };
        self.programs.insert(package.to_owned(), built.clone());
        Ok(built)
    }

    /// How long `model` takes without a mutant. It has to pass, or tells why it cannot judge.
    #[allow(clippy::disallowed_methods, reason = "times a model")]
    fn time(&mut self, program: &Program, model: &str) -> Result<Result<Duration, String>, String> {
        if let Some(known) = self.times.get(model) {
            return Ok(Ok(*known));
        }
        let begin = Instant::now();
        let output = run(&program.path, model, "", Duration::from_secs(1200))?;
        if !output.status.success() {
            return Ok(Err(format!("without a mutant fails {}", how(model, &output))));
        }
        self.times.insert(model.to_owned(), begin.elapsed());
        Ok(Ok(begin.elapsed()))
    }
}

/// The tests that a row names: those whose path contains one of its names. Or a name without any.
fn named(models: &str, tests: &[String]) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for name in names(models) {
        let before = found.len();
        found.extend(tests.iter().filter(|test| test.contains(name)).cloned());
        if found.len() == before {
            return Err(name.to_owned());
        }
    }
    Ok(found)
}

/// The verdicts that need no run.
fn without_a_run(model: &str) -> Option<Verdict> {
    match model.strip_prefix("none:") {
        Some(reason) if !reason.trim().is_empty() => {
            Some(Verdict::Explained(reason.trim().to_owned()))
        }
        Some(_) => Some(Verdict::Survived("`none:` without a reason".to_owned())),
        None if matches!(model, "" | "-" | "none") => {
            Some(Verdict::Survived("its row names no model".to_owned()))
        }
        None => None,
    }
}

/// Runs one model of a program.
fn run(program: &Path, model: &str, choice: &str, limit: Duration) -> Result<Output, String> {
    let mut command = Command::new("timeout");
    command.arg(limit.as_secs().to_string()).arg(program).args(["--exact", model]);
    command.env(CHOICE, choice).env("RUST_BACKTRACE", "0");
    loom::bound(&mut command);
    command.output().map_err(|error| format!("{}: {error}", program.display()))
}

/// The model that failed, and its first word on why.
fn how(model: &str, output: &Output) -> String {
    if output.status.code() == Some(124) {
        return format!("{model} (does not end)");
    }
    let text = text(output);
    let mut lines = text.lines().skip_while(|line| !line.contains("panicked at"));
    let reason = lines.nth(1).unwrap_or("aborted").trim();
    format!("{model} ({})", reason.chars().take(80).collect::<String>())
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// One verdict a line: `HASH killed NAME: by`.
struct Log {
    file: std::fs::File,
    verdicts: BTreeMap<u64, Verdict>,
}

impl Log {
    fn open(path: PathBuf) -> Result<Self, String> {
        let mut options = std::fs::OpenOptions::new();
        let file = options.create(true).append(true).open(&path);
        let file = file.map_err(|error| failed(&path, &error))?;
        let text = std::fs::read_to_string(&path).map_err(|error| failed(&path, &error))?;
        Ok(Self { file, verdicts: text.lines().filter_map(remembered).collect() })
    }

    fn add(&mut self, key: u64, name: &str, verdict: &Verdict) -> Result<(), String> {
        let Verdict::Killed(by) = verdict else { return Ok(()) };
        writeln!(self.file, "{key:016x} killed {name}: {by}").map_err(|error| error.to_string())
    }
}

/// Only the killed are remembered: a survivor is to be looked at again.
fn remembered(line: &str) -> Option<(u64, Verdict)> {
    let (key, rest) = line.split_once(" killed ")?;
    let (_, by) = rest.split_once(": ")?;
    Some((u64::from_str_radix(key, 16).ok()?, Verdict::Killed(by.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_a_model_is_a_survivor_and_one_with_a_reason_is_explained() {
        for model in ["", "-", "none", "none:", "none: "] {
            assert!(matches!(without_a_run(model), Some(Verdict::Survived(_))), "{model}");
        }
        let explained = Verdict::Explained("loom has no such order".to_owned());
        assert_eq!(without_a_run("none: loom has no such order"), Some(explained));
        assert_eq!(without_a_run("a::model::t"), None);
    }

    #[test]
    fn a_row_may_name_several_models() {
        let tests = ["a::model::t", "a::model::t_again", "b::model::u"].map(str::to_owned);
        assert_eq!(named("b::model::u", &tests).unwrap(), ["b::model::u"]);
        let all = ["b::model::u", "a::model::t", "a::model::t_again"];
        assert_eq!(named("b::model::u`, `a::model::t", &tests).unwrap(), all);
        assert_eq!(named("b::model::u`, `c::model::v", &tests), Err("c::model::v".to_owned()));
    }

    #[test]
    fn the_log_remembers_the_killed() {
        let by = "a::model::t (assertion failed: x)";
        let line = format!("00000000000000ff killed [AB1] release at a.rs:1: {by}");
        assert_eq!(remembered(&line), Some((255, Verdict::Killed(by.to_owned()))));
        assert_eq!(remembered("nonsense"), None);
    }
}
