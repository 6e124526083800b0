//! Symbols that ARCHITECTURE.md and DESIGN.md name in backticks exist in the source.

use std::collections::BTreeSet;

use super::{Source, Violation};
use crate::command::root;

/// The documents whose symbols are checked.
const CHECKED: [&str; 2] = ["ARCHITECTURE.md", "DESIGN.md"];

/// Names of other projects and of the language, and words in code type that are no symbols.
const FOREIGN: [&str; 6] = ["std", "tokio", "mio", "loom", "core", "alloc"];

pub(super) fn check(sources: &[Source], documents: &[Source]) -> Vec<Violation> {
    let known: BTreeSet<&str> =
        sources.iter().flat_map(|source| &source.lines).flat_map(|line| words(line)).collect();
    let mut violations = Vec::new();
    for document in documents.iter().filter(|it| CHECKED.contains(&it.path.as_str())) {
        let mut fenced = false;
        for (at, line) in document.lines.iter().enumerate() {
            fenced ^= line.trim_start().starts_with("```");
            if fenced {
                continue;
            }
            for span in line.split('`').skip(1).step_by(2) {
                if let Some(what) = missing(span, &known) {
                    violations.push(format!("{}:{}: `{span}`: no {what}", document.path, at + 1));
                }
            }
        }
    }
    violations
}

/// What of a code span does not exist: a path, or a part of a symbol.
fn missing(span: &str, known: &BTreeSet<&str>) -> Option<String> {
    if span.contains('/') && !span.contains(' ') {
        let exists = span.contains(['*', '{', '<']) || root().join(span).exists();
        return (!exists).then(|| format!("such path `{span}`"));
    }
    let symbol = span.trim_end_matches("()").trim_end_matches('!');
    let is_symbol = !symbol.is_empty()
        && symbol.contains("::")
        && symbol.chars().all(|it| it.is_alphanumeric() || it == '_' || it == ':');
    if !is_symbol || FOREIGN.contains(&symbol.split("::").next().unwrap_or_default()) {
        return None;
    }
    symbol
        .split("::")
        .find(|part| !known.contains(part))
        .map(|part| format!("`{part}` in the source"))
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|it: char| !it.is_alphanumeric() && it != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_document(text: &str) -> Vec<Violation> {
        let source = Source::new("crates/volt/src/x.rs", "impl Worker { fn step(&mut self) {} }");
        check(&[source], &[Source::new("ARCHITECTURE.md", text)])
    }

    #[test]
    fn a_symbol_that_is_gone_is_found() {
        assert_eq!(check_document("See `Worker::leap`.").len(), 1);
        assert_eq!(check_document("In `crates/nowhere/src/x.rs`.").len(), 1);
    }

    #[test]
    fn existing_symbols_foreign_ones_and_code_blocks_pass() {
        let text = "`Worker::step()`, `std::thread`, `cargo test`, `Cargo.toml`\n```\nA::b\n```\n";
        assert_eq!(check_document(text), Vec::<String>::new());
    }
}
