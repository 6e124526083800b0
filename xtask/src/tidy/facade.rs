//! Atomics, cells, locks and threads come from `volt_sync::internal::primitive`, so that the same
//! source runs on threads and under loom. Clippy cannot hold this: it sees through the re-exports,
//! which are the standard library's own types.

use super::{Source, Violation, code};

/// Above a use that is right all the same: `// STD: reason`.
const EXEMPTION: &str = "// STD: ";

/// What has a counterpart in the facade.
const FACADE: [&str; 12] = [
    "sync::Mutex",
    "sync::MutexGuard",
    "sync::RwLock",
    "sync::Condvar",
    "sync::Barrier",
    "sync::mpsc",
    "cell::UnsafeCell",
    "thread::spawn",
    "thread::park",
    "thread::park_timeout",
    "thread::Builder",
    "thread::yield_now",
];

/// Everything in the production modules that goes around the facade.
pub(super) fn check(source: &Source) -> Vec<Violation> {
    let facade = source.path.split(['/', '.']).any(|part| part == "primitive");
    if facade || !source.is_production() {
        return Vec::new();
    }
    let (text, starts) = joined(source.shipped_lines());
    let mut violations = Vec::new();
    for root in ["std::", "core::"] {
        for (at, _) in text.match_indices(root) {
            let inside = text[..at].ends_with(|it: char| it.is_alphanumeric() || it == '_');
            let line = starts.partition_point(|start| *start <= at) - 1;
            if inside || exempt(&source.lines, line) {
                continue;
            }
            let mut paths = Vec::new();
            expand(&text[at + root.len()..], "", &mut paths);
            for path in paths.iter().filter(|path| forbidden(path)) {
                let place = format!("{}:{}", source.path, line + 1);
                violations.push(format!("{place}: `{root}{path}` goes around the facade"));
            }
        }
    }
    violations
}

/// Of `std::sync::atomic` only the orderings are free: they are arguments.
fn forbidden(path: &str) -> bool {
    match path.strip_prefix("sync::atomic") {
        Some(rest) => !rest.starts_with("::Ordering"),
        None => FACADE.iter().any(|it| {
            path.strip_prefix(it).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        }),
    }
}

fn exempt(lines: &[String], line: usize) -> bool {
    let above = lines[..line].iter().rev().take_while(|line| line.trim_start().starts_with("//"));
    above.into_iter().any(|line| {
        line.trim_start().strip_prefix(EXEMPTION).is_some_and(|reason| !reason.trim().is_empty())
    })
}

/// The code of all lines as one text, without spaces, and where each line starts in it.
fn joined(lines: &[String]) -> (String, Vec<usize>) {
    let (mut text, mut starts) = (String::new(), Vec::new());
    for line in lines {
        starts.push(text.len());
        // A space between words stays one: `use std::x` is no word `usestd`.
        // An example's line that a macro puts together.
        let example = line.trim_start().starts_with("#[doc");
        text +=
            &code(if example { "" } else { line }).split_whitespace().collect::<Vec<_>>().join(" ");
        text.push(' ');
    }
    (text, starts)
}

/// The paths of `a::{b, c::d}`, each after `prefix`. Returns what follows the tree.
fn expand<'a>(text: &'a str, prefix: &str, paths: &mut Vec<String>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        while !rest.trim_start().is_empty() && !rest.trim_start().starts_with('}') {
            rest = expand(rest, prefix, paths).trim_start();
            // A name that is imported under another one.
            let end = rest.find([',', '}']).unwrap_or(rest.len());
            rest = rest[end..].strip_prefix(',').unwrap_or(&rest[end..]);
        }
        return rest.trim_start().strip_prefix('}').unwrap_or_default();
    }
    let end = text.find(|it: char| !(it.is_alphanumeric() || it == '_' || it == '*'));
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}::{name}") };
    match rest.strip_prefix("::") {
        Some(more) => expand(more, &path, paths),
        None => {
            paths.push(path);
            rest
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<Violation> {
        check(&Source::new(path, text))
    }

    const PATH: &str = "crates/volt/src/x.rs";

    #[test]
    fn each_way_around_the_facade_is_found() {
        for text in [
            "use std::sync::atomic::AtomicU32;\n",
            "use core::sync::atomic::{AtomicU32, Ordering};\n",
            "use std::sync::atomic::{\n    Ordering,\n    fence,\n};\n",
            "use std::{fmt, sync::{Arc, Mutex}};\n",
            "use std::sync::{PoisonError, Mutex as Lock};\n",
            "fn f() { std::thread::park(); }\n",
            "use std::thread::{self, Builder};\n",
            "struct S(std::cell::UnsafeCell<u8>);\n",
            "use std::sync::atomic;\n",
        ] {
            assert_eq!(found(PATH, text).len(), 1, "{text}: {:?}", found(PATH, text));
        }
        let lines = "use a;\nuse std::sync::{\n    Condvar,\n};\n";
        let expected = "crates/volt/src/x.rs:2: `std::sync::Condvar` goes around the facade";
        assert_eq!(found(PATH, lines), [expected]);
    }

    #[test]
    fn orderings_other_items_tests_and_reasons_pass() {
        for text in [
            "use std::sync::atomic::Ordering::{Acquire, Relaxed};\n",
            "use std::sync::atomic::{Ordering, Ordering::Relaxed};\n",
            "use std::sync::{Arc, OnceLock, PoisonError};\n",
            "fn f() -> bool { std::thread::panicking() }\n",
            "// STD: in no model.\nuse std::sync::{Mutex, PoisonError};\n",
            "//! `std::sync::Mutex`\n/// std::thread::park\n",
            "#[doc = concat!(\"std::thread::spawn(\", $send, \");\")]\nfn f() {}\n",
            "fn f() {}\n#[cfg(test)]\nmod tests {\n    use std::sync::Mutex;\n}\n",
        ] {
            assert_eq!(found(PATH, text), Vec::<String>::new(), "{text}");
        }
        let text = "pub use std::sync::atomic::AtomicU32;\n";
        for path in ["crates/volt-sync/src/primitive/native.rs", "crates/volt/src/x/tests.rs"] {
            assert_eq!(found(path, text), Vec::<String>::new(), "{path}");
        }
        assert_eq!(found(PATH, "// STD: \nuse std::sync::Mutex;\n").len(), 1);
    }
}
