//! The house rules of STYLE.md that a program can check.
//!
//! Each rule is a function from source files to violations, and has a test that plants one.

use crate::source::{Source, code, documents, has_word, rust_files};

mod edges;
mod examples;
mod facade;
mod symbols;

pub(crate) use edges::{Edge, Site, edges, names, sites};

/// One broken rule, as `path:line: what`.
type Violation = String;

/// The most lines that a file of ours may have, tests included.
const MOST_LINES: usize = 700;

/// Words that say nothing (slogans), or that mark unfinished work.
const BANNED: [&str; 14] = [
    "blazing",
    "blazingly",
    "lightning-fast",
    "obviously",
    "simply",
    "trivially",
    "TODO",
    "FIXME",
    "XXX",
    "HACK",
    "todo!",
    "unimplemented!",
    "#[ignore]",
    "#[ignore",
];

/// Checks the workspace against every rule.
///
/// # Errors
/// Lists all violations.
pub(crate) fn run() -> Result<(), String> {
    let (sources, documents) = (rust_files()?, documents()?);
    let violations = violations(&sources, &documents);
    if violations.is_empty() {
        println!("{} source files, {} documents: tidy", sources.len(), documents.len());
        return Ok(());
    }
    Err(format!("{}\n{} violations", violations.join("\n"), violations.len()))
}

/// What every rule finds.
fn violations(sources: &[Source], documents: &[Source]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for source in sources {
        violations.extend(headers(source));
        violations.extend(length(source));
        violations.extend(facade::check(source));
        // This file has to name the words that it looks for.
        if source.path != "xtask/src/tidy.rs" {
            violations.extend(safety(source));
            violations.extend(banned_words(source));
        }
    }
    documents.iter().for_each(|document| violations.extend(banned_words(document)));
    violations.extend(edges::check(sources));
    violations.extend(examples::check(sources));
    violations.extend(symbols::check(sources, documents));
    violations
}

/// Every production module says what it is for.
fn headers(source: &Source) -> Option<Violation> {
    let missing = source.is_production() && source.header().next().is_none();
    missing.then(|| format!("{}:1: no `//!` header that says what the module is for", source.path))
}

/// Files stay small enough to read in one sitting.
fn length(source: &Source) -> Option<Violation> {
    let lines = source.lines.len();
    (lines > MOST_LINES).then(|| {
        format!("{}:{MOST_LINES}: {lines} lines, at most {MOST_LINES}: split by idea", source.path)
    })
}

/// A SAFETY comment discharges its obligations instead of asserting that all is well.
fn safety(source: &Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (at, line) in source.lines.iter().enumerate() {
        let Some((_, reason)) = line.split_once("// SAFETY:") else { continue };
        // A reason of several lines counts as a whole.
        let next = source.lines.get(at + 1).map_or("", |line| line.trim());
        let more = next.strip_prefix("//").unwrap_or_default();
        if reason.split_whitespace().count() + more.split_whitespace().count() < 3 {
            let path = &source.path;
            violations.push(format!("{path}:{}: SAFETY does not say why it holds", at + 1));
        }
    }
    violations
}

/// No slogans and no unfinished work.
fn banned_words(source: &Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (at, line) in source.lines.iter().enumerate() {
        for word in BANNED {
            if has_word(line, word) {
                violations.push(format!("{}:{}: banned word `{word}`", source.path, at + 1));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/volt-sync/src/x.rs";

    /// Of the whole run: a rule that nobody calls finds nothing.
    #[test]
    fn each_planted_violation_is_found_and_nothing_else() {
        let header = "//! What it is.\n";
        let module = |text: &str| vec![Source::new(PATH, &format!("{header}{text}"))];
        let tidy = violations(&module("fn f() {}\n"), &[Source::new("README.md", "Plain.\n")]);
        assert_eq!(tidy, Vec::<Violation>::new());
        for (sources, document, expected) in [
            (vec![Source::new(PATH, "fn f() {}\n")], "", "x.rs:1: no `//!` header"),
            (module(&"\n".repeat(MOST_LINES)), "", "x.rs:700: 701 lines"),
            (module("use std::sync::Mutex;\n"), "", "goes around the facade"),
            (module("// SAFETY: fine\n"), "", "x.rs:2: SAFETY does not say why"),
            (module("// TODO: later\n"), "", "x.rs:2: banned word `TODO`"),
            (module("pub fn f() {}\n"), "", "x.rs:2: `f` has no example that runs"),
            (module(""), "It is blazing.\n", "ARCHITECTURE.md:1: banned word `blazing`"),
            (module(""), "See `Gone::f`.\n", "ARCHITECTURE.md:1: `Gone::f`"),
            (module("a.load(Relaxed);\n"), "", "x.rs:2: an ordering without an ORD comment"),
            (module("// ORD[AB1] release: x\n"), "", "x.rs:2: [AB1] is declared in no header"),
            (
                module("//! | [AB1] | `f` | `g` | x | - |\n// ORD[AB1] release: x\n"),
                "",
                "no acquire",
            ),
            (
                module("//! | [AB1] | `f` | `g` | x | - |\n// ORD[AB1] acquire: x\n"),
                "",
                "no release",
            ),
        ] {
            let found = violations(&sources, &[Source::new("ARCHITECTURE.md", document)]);
            assert_eq!(found.len(), 1, "{expected}: {found:?}");
            assert!(found[0].contains(expected), "{expected}: {found:?}");
        }
    }

    #[test]
    fn a_missing_header_is_found() {
        assert!(headers(&Source::new(PATH, "use a;\n")).is_some());
        assert!(headers(&Source::new(PATH, "//! What it is.\nuse a;\n")).is_none());
        assert!(headers(&Source::new("crates/volt-sync/src/x/tests.rs", "use a;\n")).is_none());
    }

    #[test]
    fn a_long_file_is_found() {
        assert!(length(&Source::new(PATH, &"\n".repeat(MOST_LINES + 1))).is_some());
        assert!(length(&Source::new(PATH, &"\n".repeat(MOST_LINES))).is_none());
    }

    #[test]
    fn a_placeholder_safety_comment_is_found() {
        assert_eq!(safety(&Source::new(PATH, "// SAFETY: fine\nunsafe {}\n")).len(), 1);
        let good = "// SAFETY: `node` is linked, so alive (invariant 1).\nunsafe {}\n";
        assert!(safety(&Source::new(PATH, good)).is_empty());
    }

    #[test]
    fn banned_words_are_found_as_whole_words() {
        assert_eq!(banned_words(&Source::new(PATH, "// obviously\n// TODO: later\n")).len(), 2);
        assert!(banned_words(&Source::new(PATH, "// simplya method\n")).is_empty());
    }
}
