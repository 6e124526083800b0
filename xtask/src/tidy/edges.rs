//! Ordering edges: every tag is declared once, both of its ends are in the code, and every atomic
//! operation says why its ordering is what it is.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, Violation, code, has_word};

const ORDERINGS: [&str; 5] = ["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"];

/// How far above an operation its ORD comment may begin.
const REACH: usize = 14;

/// A row of a header's table: `| [LQ1] | release side | acquire side | carries | model |`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) tag: String,
    pub(crate) path: String,
    pub(crate) package: String,
    /// The model tests of which one fails when an end is weakened; empty if the row names none.
    pub(crate) model: String,
}

/// One end of an edge in the code: `// ORD[LQ1] release: reason`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) tag: String,
    /// "release", "acquire" or another word, which is a violation.
    pub(crate) end: String,
    pub(crate) path: String,
    /// Counted from zero.
    pub(crate) line: usize,
}

/// All declared edges.
pub(crate) fn edges(sources: &[Source]) -> Vec<Edge> {
    let mut edges = Vec::new();
    for source in sources.iter().filter(|source| source.is_production()) {
        for line in source.header() {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let Some(tag) = cells.get(1).and_then(|cell| tag_of(cell)) else { continue };
            edges.push(Edge {
                tag: tag.to_owned(),
                path: source.path.clone(),
                package: source.package().to_owned(),
                model: cells.get(5).map_or("", |cell| cell.trim_matches('`')).to_owned(),
            });
        }
    }
    edges
}

/// All tagged ends. A comment may carry several tags: `// ORD[A1] release, ORD[B2] acquire: ...`.
pub(crate) fn sites(sources: &[Source]) -> Vec<Site> {
    let mut sites = Vec::new();
    for source in sources.iter().filter(|source| source.is_production()) {
        for (at, line) in source.shipped_lines().iter().enumerate() {
            if line.starts_with("//!") || !line.contains("//") {
                continue;
            }
            for part in line.split("ORD[").skip(1) {
                let Some((tag, rest)) = part.split_once(']') else { continue };
                let end = rest.split_whitespace().next().unwrap_or_default();
                sites.push(Site {
                    tag: tag.to_owned(),
                    end: end.trim_matches([':', ',', ';']).to_owned(),
                    path: source.path.clone(),
                    line: at,
                });
            }
        }
    }
    sites
}

/// Checks declarations against ends, and operations against comments.
pub(super) fn check(sources: &[Source]) -> Vec<Violation> {
    let (edges, sites) = (edges(sources), sites(sources));
    let mut violations = Vec::new();
    let mut declared = BTreeMap::new();
    for edge in &edges {
        if let Some(other) = declared.insert(&edge.tag, &edge.path) {
            violations.push(format!("{}:1: [{}] is declared in {other} too", edge.path, edge.tag));
        }
    }
    let ends: BTreeSet<(&str, &str)> =
        sites.iter().map(|site| (site.tag.as_str(), site.end.as_str())).collect();
    for edge in &edges {
        for end in ["release", "acquire"] {
            if !ends.contains(&(edge.tag.as_str(), end)) {
                violations.push(format!("{}:1: [{}] has no {end} end", edge.path, edge.tag));
            }
        }
    }
    for site in &sites {
        let place = format!("{}:{}", site.path, site.line + 1);
        if !declared.contains_key(&site.tag) {
            violations.push(format!("{place}: [{}] is declared in no header", site.tag));
        }
        if !["release", "acquire"].contains(&site.end.as_str()) {
            violations.push(format!("{place}: `ORD[{}] {}` names no end", site.tag, site.end));
        }
    }
    for source in sources.iter().filter(|source| source.is_production()) {
        violations.extend(unexplained(source));
    }
    violations.extend(edges.iter().filter_map(|edge| no_such_model(edge, sources)));
    violations
}

/// The models of a row's cell, which may name several: a mutant is killed by any of them.
pub(crate) fn names(models: &str) -> impl Iterator<Item = &str> {
    models.split(',').map(|name| name.trim_matches(['`', ' '])).filter(|name| !name.is_empty())
}

/// A row's model, or the test that a reason for having none names, is gone or was never there.
fn no_such_model(edge: &Edge, sources: &[Source]) -> Option<Violation> {
    let named: Vec<&str> = match edge.model.strip_prefix("none:") {
        Some(reason) => {
            reason.split('`').skip(1).step_by(2).filter(|it| it.contains("::")).collect()
        }
        // `-` is a survivor of `xtask weaken`.
        None if matches!(edge.model.as_str(), "" | "-") => return None,
        None => names(&edge.model).collect(),
    };
    let exists = |name: &str| {
        let last = name.trim_end_matches("::").rsplit("::").next().unwrap_or_default();
        let (function, module) = (format!("fn {last}("), format!("/{last}.rs"));
        sources.iter().any(|source| {
            source.path.ends_with(&module)
                || source.lines.iter().any(|line| line.contains(&function))
        })
    };
    let missing = named.into_iter().find(|name| !exists(name))?;
    Some(format!("{}:1: [{}] names `{missing}`, which does not exist", edge.path, edge.tag))
}

/// Atomic operations without an ORD comment of their own.
fn unexplained(source: &Source) -> Vec<Violation> {
    let lines = source.shipped_lines();
    let mut violations = Vec::new();
    let mut in_use = false;
    for (at, line) in lines.iter().enumerate() {
        let text = code(line);
        in_use |=
            text.trim_start().starts_with("use ") || text.trim_start().starts_with("pub use ");
        let names_ordering = ORDERINGS.iter().any(|word| has_word(text, word));
        let skip = in_use || line.trim_start().starts_with("//");
        in_use &= !text.contains(';');
        if skip || !names_ordering || explained(lines, at) {
            continue;
        }
        violations.push(format!("{}:{}: an ordering without an ORD comment", source.path, at + 1));
    }
    violations
}

/// Looks upwards for the comment, but not past an earlier operation that ended.
fn explained(lines: &[String], at: usize) -> bool {
    if lines[at].contains("// ORD") {
        return true;
    }
    for line in lines[..at].iter().rev().take(REACH) {
        if line.contains("// ORD") {
            return true;
        }
        let text = code(line);
        if text.trim_end().ends_with(';') && ORDERINGS.iter().any(|word| has_word(text, word)) {
            return false;
        }
    }
    false
}

/// `[LQ1]`: capital letters, then digits.
fn tag_of(cell: &str) -> Option<&str> {
    let tag = cell.strip_prefix('[')?.strip_suffix(']')?;
    let digits = tag.trim_start_matches(|it: char| it.is_ascii_uppercase());
    let valid = digits.len() < tag.len()
        && !digits.is_empty()
        && digits.chars().all(|it| it.is_ascii_digit());
    valid.then_some(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "//! | [AB1] | `f` | `g` | x | `a::model::t` |\n";
    const RELEASE: &str = "// ORD[AB1] release: publishes x.\na.store(1, Release);\n";
    const ACQUIRE: &str = "// ORD[AB1] acquire: sees x.\na.load(Acquire);\n";

    fn check_text(text: &str) -> Vec<Violation> {
        let model = Source::new("crates/volt-sync/src/a/model.rs", "#[test]\nfn t() {}\n");
        check(&[Source::new("crates/volt-sync/src/x.rs", text), model])
    }

    #[test]
    fn a_complete_edge_is_accepted_and_read() {
        let text = format!("{HEADER}{RELEASE}{ACQUIRE}");
        assert_eq!(check_text(&text), Vec::<String>::new());
        let edge = &edges(&[Source::new("crates/volt/src/x.rs", &text)])[0];
        assert_eq!((edge.model.as_str(), edge.package.as_str()), ("a::model::t", "volt-rt"));
    }

    #[test]
    fn each_planted_violation_is_found() {
        let planted = [
            (format!("{HEADER}{RELEASE}"), "[AB1] has no acquire end"),
            (format!("{RELEASE}{ACQUIRE}"), "[AB1] is declared in no header"),
            (format!("{HEADER}{HEADER}{RELEASE}{ACQUIRE}"), "is declared in"),
            (format!("{HEADER}{RELEASE}{ACQUIRE}a.load(Acquire);\n"), "without an ORD comment"),
            (format!("{HEADER}{RELEASE}{ACQUIRE}// ORD[AB1] sideways: x\n"), "names no end"),
        ];
        for (text, expected) in planted {
            let violations = check_text(&text);
            assert!(
                violations.iter().any(|it| it.contains(expected)),
                "{expected}: {violations:?}"
            );
        }
    }

    #[test]
    fn a_model_that_does_not_exist_is_found() {
        for (cell, found) in [
            ("`a::model::t`", 0),
            ("`a::model`", 0),
            ("none: as `b::t` shows", 0),
            ("-", 0),
            ("`a::model::gone`", 1),
            ("`a::model::t`, `a::model`", 0),
            ("`a::model::gone`, `a::model::t`", 1),
            ("none: as `b::gone` shows", 1),
        ] {
            let header = format!("//! | [AB1] | `f` | `g` | x | {cell} |\n");
            let violations = check_text(&format!("{header}{RELEASE}{ACQUIRE}"));
            assert_eq!(violations.len(), found, "{cell}: {violations:?}");
        }
    }

    #[test]
    fn imports_and_comments_are_no_operations() {
        let text =
            "use std::sync::atomic::Ordering::{\n    Acquire, Relaxed,\n};\n// An Acquire load.\n";
        assert_eq!(check_text(text), Vec::<String>::new());
    }
}
