//! Symbols that ARCHITECTURE.md and DESIGN.md name in backticks exist in the source: each part of one, and `b` of `A::b`
//! in a file of `A`, which is one that defines or implements it, or its own if it is a module.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, Violation};
use crate::command::root;

/// The documents whose symbols are checked.
const CHECKED: [&str; 2] = ["ARCHITECTURE.md", "DESIGN.md"];

/// Names of other projects and of the language, and words in code type that are no symbols.
const FOREIGN: [&str; 6] = ["std", "tokio", "mio", "loom", "core", "alloc"];

pub(super) fn check(sources: &[Source], documents: &[Source]) -> Vec<Violation> {
    let known = Known::new(sources);
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
fn missing(span: &str, known: &Known<'_>) -> Option<String> {
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
    let parts: Vec<&str> = symbol.split("::").collect();
    let unknown = parts.iter().find(|part| !known.words.contains(**part));
    let stray = || parts.windows(2).find(|pair| !known.is_in(pair[1], pair[0]));
    match unknown {
        Some(part) => Some(format!("`{part}` in the source")),
        None => stray().map(|pair| format!("`{}` in the files of `{}`", pair[1], pair[0])),
    }
}

/// The words of the sources.
struct Known<'a> {
    words: BTreeSet<&'a str>,
    /// Those of the files of a type, a trait or a module.
    of: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Known<'a> {
    fn new(sources: &'a [Source]) -> Self {
        let mut known = Self { words: BTreeSet::new(), of: BTreeMap::new() };
        for source in sources {
            let of_file: BTreeSet<&str> =
                source.lines.iter().flat_map(|line| words(line)).collect();
            let owners = source.lines.iter().filter_map(|line| owner(line));
            // A module's file, and those below it.
            let modules = source.path.split(['/', '.']);
            for owner in owners.chain(modules).collect::<BTreeSet<_>>() {
                known.of.entry(owner).or_default().extend(&of_file);
            }
            known.words.extend(of_file);
        }
        known
    }

    /// True also if nothing is known of the files of `owner`.
    fn is_in(&self, word: &str, owner: &str) -> bool {
        self.of.get(owner).is_none_or(|words| words.contains(word))
    }
}

/// What a line begins to define or to implement.
fn owner(line: &str) -> Option<&str> {
    let text = line.trim_start();
    let Some((_, target)) = ["impl", "unsafe impl"]
        .iter()
        .find_map(|it| text.strip_prefix(it))
        .map(|rest| rest.split_once(" for ").unwrap_or(("", without_parameters(rest))))
    else {
        let defines = |word: &&str| ["struct", "enum", "union", "trait", "type"].contains(word);
        return words(text).skip_while(|word| !defines(word)).nth(1);
    };
    // `Worker<'_>`, or the last of `shared::Shared`.
    let path = target.split(['<', ' ', '{']).find(|part| !part.is_empty())?;
    words(path).last()
}

/// Without the `<...>` that it begins with, if it does.
fn without_parameters(text: &str) -> &str {
    let mut depth = 0;
    let end = text.char_indices().find(|&(at, it)| {
        depth += match it {
            '<' => 1,
            // Not that of an arrow.
            '>' if !text[..at].ends_with('-') => -1,
            _ => 0,
        };
        depth == 0
    });
    end.map_or(text, |(at, it)| &text[at + usize::from(it == '>')..])
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
    fn a_symbol_of_something_else_is_found() {
        let sources = [
            ("crates/volt/src/lib.rs", "mod x; mod y;"),
            ("crates/volt/src/x.rs", "impl<T: Fn() -> u8> Lock<T> {\n fn with() {}\n}"),
            ("crates/volt/src/y.rs", "pub struct Ring {}\nimpl Drop for Ring {}\nfn push() {}"),
        ];
        let sources = sources.map(|(path, text)| Source::new(path, text));
        let check = |text| check(&sources, &[Source::new("DESIGN.md", text)]);
        let right = "`Lock::with`, `Ring::push`, `y::push`, `x::Lock::with`";
        assert_eq!(check(right), Vec::<String>::new());
        let wrong = "`Lock::push`, `Ring::with`, `x::push`, `y::Lock::with`";
        assert_eq!(check(wrong).len(), 4);
    }

    #[test]
    fn existing_symbols_foreign_ones_and_code_blocks_pass() {
        let text = "`Worker::step()`, `std::thread`, `cargo test`, `Cargo.toml`\n```\nA::b\n```\n";
        assert_eq!(check_document(text), Vec::<String>::new());
    }
}
