//! Which mutants there are, read from the sources.

use crate::source::{Source, has_word};
use crate::tidy::{Edge, Site, edges, sites};

/// How far below its comment an operation may begin.
const REACH: usize = 14;

/// One change that a model must notice.
pub(super) struct Mutant {
    pub(super) name: String,
    /// Where the change is.
    pub(super) path: String,
    /// Whose models judge it.
    pub(super) package: String,
    /// A part of the models' paths, `none: reason`, or nothing.
    pub(super) model: String,
    pub(super) change: Change,
}

pub(super) enum Change {
    Ordering(Ordering),
    /// The statement under the cfg of this name is dropped.
    Drop(String),
}

/// An ordering in the source, and what it becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ordering {
    /// Chooses the mutant among those of one build.
    pub(super) number: usize,
    /// Counted from zero.
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) from: &'static str,
    pub(super) to: &'static str,
}

impl Mutant {
    /// The directory of the change.
    pub(super) fn directory(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(directory, _)| directory)
    }
}

/// A mutant for each end of each edge.
pub(super) fn relaxed(sources: &[Source]) -> Result<Vec<Mutant>, String> {
    let edges = edges(sources);
    let sites = sites(sources).into_iter().enumerate();
    sites.map(|(number, site)| relaxed_at(number, site, sources, &edges)).collect()
}

fn relaxed_at(
    number: usize,
    site: Site,
    sources: &[Source],
    edges: &[Edge],
) -> Result<Mutant, String> {
    let name = format!("[{}] {} at {}:{}", site.tag, site.end, site.path, site.line + 1);
    let source = sources.iter().find(|source| source.path == site.path);
    let lines = &source.ok_or_else(|| format!("{name}: no such source"))?.lines;
    let edge = edges.iter().find(|edge| edge.tag == site.tag);
    let edge = edge.ok_or_else(|| format!("{name}: declared in no header"))?;
    let failure = lines[site.line].contains("failure");
    let below = lines.iter().enumerate().skip(site.line + 1).take(REACH);
    let ordering = below
        .filter_map(|(at, line)| {
            let (column, from, to) = weaker(line, &site.end, failure)?;
            Some(Ordering { number, line: at, column, from, to })
        })
        .next();
    Ok(Mutant {
        change: Change::Ordering(ordering.ok_or_else(|| format!("{name}: no ordering below it"))?),
        name,
        path: site.path,
        package: edge.package.clone(),
        model: edge.model.clone(),
    })
}

/// The column of the first ordering of that end in the line, it, and what it becomes without the
/// end; of the last one, a compare-exchange's failure ordering, if the comment speaks of failure.
fn weaker(line: &str, end: &str, failure: bool) -> Option<(usize, &'static str, &'static str)> {
    if line.trim_start().starts_with("//") {
        return None;
    }
    let replacements: &[(&'static str, &'static str)] = match end {
        "release" => &[("AcqRel", "Acquire"), ("Release", "Relaxed"), ("SeqCst", "Acquire")],
        _ => &[("AcqRel", "Release"), ("Acquire", "Relaxed"), ("SeqCst", "Release")],
    };
    let present = replacements.iter().filter(|(from, _)| has_word(line, from));
    let place = |from: &str| if failure { line.rfind(from) } else { line.find(from) };
    let (from, to) = if failure {
        *present.max_by_key(|(from, _)| place(from))?
    } else {
        *present.min_by_key(|(from, _)| place(from))?
    };
    // A SeqCst fence has no one-sided weakening that keeps the edge out: drop to AcqRel. A load
    // may not be Release nor a store Acquire, so SeqCst accesses become Relaxed.
    let to = match from {
        "SeqCst" if line.contains("fence") => "AcqRel",
        "SeqCst" if line.contains("load") || line.contains("store") => "Relaxed",
        _ => to,
    };
    Some((place(from)?, from, to))
}

/// A mutant for each cfg; a cfg that appears several times is one mutant.
pub(super) fn dropped(sources: &[Source]) -> Vec<Mutant> {
    let mut mutants: Vec<Mutant> = Vec::new();
    for source in sources.iter().filter(|source| source.is_production()) {
        for (at, line) in source.lines.iter().enumerate() {
            let Some((_, rest)) = line.split_once("cfg(not(volt_mutant = \"") else { continue };
            let cfg = rest.split('"').next().unwrap_or_default().to_owned();
            let killer = source.lines[..at].iter().rev().take(6);
            let killer = killer.filter_map(|line| line.split_once("// Killed by ")).next();
            let model = killer.map_or("", |(_, test)| test.trim_matches(['`', '.', ' ']));
            if let Some(known) = mutants
                .iter_mut()
                .find(|it| matches!(&it.change, Change::Drop(name) if *name == cfg))
            {
                if known.model.is_empty() {
                    model.clone_into(&mut known.model);
                }
                continue;
            }
            mutants.push(Mutant {
                name: format!("without {cfg} at {}:{}", source.path, at + 1),
                path: source.path.clone(),
                package: source.package().to_owned(),
                model: model.to_owned(),
                change: Change::Drop(cfg),
            });
        }
    }
    mutants
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_is_weakened_by_itself() {
        let weaker = |line: &str, end: &str, failure: bool| {
            let (column, from, to) = weaker(line, end, failure)?;
            Some(format!("{}{to}{}", &line[..column], &line[column + from.len()..]))
        };
        let cas = "x.compare_exchange(a, b, AcqRel, Acquire)";
        for (line, end, failure, expected) in [
            (cas, "release", false, "x.compare_exchange(a, b, Acquire, Acquire)"),
            (cas, "acquire", false, "x.compare_exchange(a, b, Release, Acquire)"),
            (cas, "acquire", true, "x.compare_exchange(a, b, AcqRel, Relaxed)"),
            ("x.store(1, Release);", "release", false, "x.store(1, Relaxed);"),
            ("fence(SeqCst);", "acquire", false, "fence(AcqRel);"),
            ("x.load(SeqCst);", "acquire", false, "x.load(Relaxed);"),
        ] {
            assert_eq!(weaker(line, end, failure).unwrap(), expected);
        }
        assert!(weaker("// an Acquire load", "acquire", false).is_none());
        assert!(weaker("x.load(Relaxed);", "acquire", false).is_none());
    }

    #[test]
    fn mutants_are_read_from_tags_and_cfgs() {
        let text = "//! | [AB1] | f | g | x | `a::model::t` |\n\
            // ORD[AB1] release: x\na.store(1, Release);\n// ORD[AB1] acquire: x\na.load(Acquire);\n\
            // Killed by `b::model::u`.\n#[cfg(not(volt_mutant = \"recheck\"))]\nrecheck();\n\
            #[cfg(not(volt_mutant = \"recheck\"))]\nagain();\n";
        let sources = [Source::new("crates/volt-sync/src/x.rs", text)];
        let relaxed = relaxed(&sources).unwrap();
        assert_eq!(relaxed.len(), 2);
        assert_eq!(relaxed[0].directory(), "crates/volt-sync/src");
        let dropped = dropped(&sources);
        assert_eq!(dropped.len(), 1);
        assert_eq!(dropped[0].name, "without recheck at crates/volt-sync/src/x.rs:7");
        assert_eq!(dropped[0].model, "b::model::u");
    }
}
