//! Every public item has an example on its own page, and one that runs.
//!
//! "Public" is read from the text: `unreachable_pub` is a warning, so that what is `pub` can be reached
//! by users, but for the modules that a crate hides from its documentation. Functions, types, traits,
//! macros, and re-exports that have a text of their own count; modules, constants, fields, and what a
//! trait or an implementation of one contains do not.
//!
//! Rejected: rustdoc's lint `missing_doc_code_examples`. It wants the nightly compiler and a build, and
//! takes an example that is never run for one.

use std::collections::BTreeSet;

use super::{Source, Violation};

/// Items without one, as path, name and reason.
const EXEMPT: [(&str, &str, &str); 3] = [
    ("crates/volt/src/net/addr.rs", "Token", "nobody can name it: in a private module"),
    ("crates/volt/src/net/addr.rs", "Addresses", "the same: the type of a sealed trait"),
    ("crates/volt/src/net/addr.rs", "Lookup", "the same: the type of a sealed trait"),
];

/// What may stand after the fence of an example that is run.
const RUNS: [&str; 4] = ["", "rust", "should_panic", "test_harness"];

/// Checks all files: some hide others.
pub(super) fn check(sources: &[Source]) -> Vec<Violation> {
    let hidden = hidden(sources);
    let mut violations = Vec::new();
    for source in sources.iter().filter(|source| source.is_production()) {
        if hidden.iter().any(|module| is_in(&source.path, module)) {
            continue;
        }
        for item in items(source.shipped_lines()) {
            let exempt =
                EXEMPT.iter().any(|(path, name, _)| (*path, *name) == (&source.path, &item.name));
            if !item.has_example && !exempt {
                let place = format!("{}:{}", source.path, item.line + 1);
                violations.push(format!("{place}: `{}` has no example that runs", item.name));
            }
        }
    }
    violations
}

/// A public item.
struct Item {
    name: String,
    /// Counted from zero.
    line: usize,
    has_example: bool,
}

/// All public items that a file's own text documents.
fn items(lines: &[String]) -> Vec<Item> {
    let (mut items, mut page) = (Vec::new(), Page::default());
    let (mut open, mut quoted) = (false, false);
    for (line, text) in lines.iter().enumerate() {
        let text = text.trim();
        if open || text.starts_with("#[") || text.starts_with("$(#[") {
            // An attribute of several lines ends with the one that closes it, outside of quotes.
            quoted ^= quotes(text) % 2 == 1;
            open = quoted || !text.ends_with([']', '*']);
            page.attribute(text);
        } else if let Some(text) = text.strip_prefix("///") {
            page.documented = true;
            page.line(text.strip_prefix(' ').unwrap_or(text));
        } else if !text.is_empty() && !text.starts_with("//") {
            if let Some(name) = public_name(text, &page) {
                let name = name.to_owned();
                items.push(Item { name, line, has_example: page.has_example });
            }
            page = Page::default();
        }
    }
    items
}

/// Quotes that begin or end a literal.
fn quotes(text: &str) -> usize {
    let mut escaped = false;
    let quote = |letter: &char| {
        let found = *letter == '"' && !escaped;
        escaped = *letter == '\\' && !escaped;
        found
    };
    text.chars().filter(quote).count()
}

/// What stands above an item.
#[derive(Default)]
struct Page {
    documented: bool,
    hidden: bool,
    exported: bool,
    fenced: bool,
    has_example: bool,
}

impl Page {
    /// A line of text, which may open or close a block of code.
    fn line(&mut self, text: &str) {
        if let Some(info) = text.trim_start().strip_prefix("```") {
            let runs = |word: &str| RUNS.contains(&word.trim()) || word.starts_with("edition");
            self.has_example |= !self.fenced && info.split(',').all(runs);
            self.fenced = !self.fenced;
        }
    }

    fn attribute(&mut self, text: &str) {
        // A deprecated name's page is that of the new one.
        self.hidden |= text.starts_with("#[doc(hidden)]") || text.starts_with("#[deprecated");
        self.exported |= text.starts_with("#[macro_export]");
        // A whole example at once, fences included, or one that a macro of ours makes.
        let whole = text.contains("\"```\\n") || text.contains("example!(");
        self.has_example |= text.starts_with("#[doc = ") && whole;
    }
}

/// The name of a public item that begins in this line, below this page.
fn public_name<'a>(line: &'a str, page: &Page) -> Option<&'a str> {
    if page.hidden {
        return None;
    }
    let name = |text: &'a str| {
        let end = text.find(|it: char| !(it.is_alphanumeric() || it == '_' || it == '$'));
        &text[..end.unwrap_or(text.len())]
    };
    if let Some(rest) = line.strip_prefix("macro_rules! ") {
        return page.exported.then(|| name(rest));
    }
    let mut rest = line.strip_prefix("pub ")?;
    if let Some(path) = rest.strip_prefix("use ") {
        return page.documented.then(|| path.trim_end_matches(';'));
    }
    loop {
        let (word, after) = rest.split_once(' ')?;
        match word {
            "const" | "async" | "unsafe" | "extern" | "\"C\"" => rest = after,
            "fn" | "struct" | "enum" | "union" | "trait" | "type" => return Some(name(after)),
            _ => return None,
        }
    }
}

/// The modules that `lib.rs` hides, and those from which a hidden one takes what it shows. As paths
/// without `.rs`.
fn hidden(sources: &[Source]) -> BTreeSet<String> {
    let mut hidden = BTreeSet::new();
    for library in sources.iter().filter(|source| source.path.ends_with("/src/lib.rs")) {
        let folder = library.path.trim_end_matches("lib.rs");
        for pair in library.lines.windows(2).filter(|pair| pair[0] == "#[doc(hidden)]") {
            if let Some(name) = pair[1].strip_prefix("pub mod ") {
                hidden.insert(format!("{folder}{}", name.trim_end_matches(';')));
            }
        }
        let mut behind = Vec::new();
        for source in
            sources.iter().filter(|it| hidden.iter().any(|module| is_in(&it.path, module)))
        {
            let uses =
                source.lines.iter().filter_map(|it| it.trim().strip_prefix("pub use crate::"));
            let modules = uses.filter_map(|path| path.split_once("::"));
            behind.extend(modules.map(|(name, _)| format!("{folder}{name}")));
        }
        hidden.extend(behind);
    }
    hidden
}

/// True for the module's file and those below it.
fn is_in(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/volt/src/x.rs";
    const EXAMPLE: &str = "/// ```\n/// assert!(true);\n/// ```\n";

    fn found(text: &str) -> Vec<Violation> {
        check(&[Source::new(PATH, text)])
    }

    #[test]
    fn each_kind_of_item_without_an_example_is_found() {
        for (item, name) in [
            ("pub fn f() {}", "f"),
            ("pub const fn f() {}", "f"),
            ("pub async fn f<T>() {}", "f"),
            ("pub unsafe extern \"C\" fn f() {}", "f"),
            ("pub struct S;", "S"),
            ("pub struct S<T>(T);", "S"),
            ("pub enum E {", "E"),
            ("pub unsafe trait T: Sized {", "T"),
            ("pub type A = u8;", "A"),
            ("    pub fn $poll(", "$poll"),
            ("#[macro_export]\nmacro_rules! m {", "m"),
            ("pub use tokio::join;", "tokio::join"),
        ] {
            let line = item.lines().count() + 1;
            let expected = [format!("{PATH}:{line}: `{name}` has no example that runs")];
            assert_eq!(found(&format!("/// What it does.\n{item}\n")), expected);
            assert_eq!(found(&format!("/// What it does.\n///\n{EXAMPLE}{item}\n")), [""; 0]);
        }
    }

    #[test]
    fn what_is_not_run_is_no_example() {
        for info in ["text", "ignore", "no_run", "compile_fail", "sh", "rust,no_run"] {
            let text = format!("/// ```{info}\n/// f();\n/// ```\npub fn f() {{}}\n");
            assert_eq!(found(&text).len(), 1, "{info}");
            // Neither is the fence that ends it, nor one that another item has.
            assert_eq!(found(&format!("{EXAMPLE}pub fn g() {{}}\n\n{text}")).len(), 1, "{info}");
        }
        for info in ["rust", "should_panic", "test_harness", "edition2024"] {
            let text = format!("/// ```{info}\n/// f();\n/// ```\npub fn f() {{}}\n");
            assert_eq!(found(&text), [""; 0], "{info}");
        }
    }

    #[test]
    fn attributes_stand_between_an_example_and_its_item() {
        for between in [
            "#[must_use]\n#[cfg(unix)]\n",
            "#[allow(\n    clippy::x,\n    reason = \"y\"\n)]\n// A remark.\n",
            "$(#[$cfg])*\n",
        ] {
            assert_eq!(
                found(&format!("{EXAMPLE}{between}pub fn f() {{}}\n")),
                [""; 0],
                "{between}"
            );
        }
        for made in [
            "#[doc = example!($a)]\n",
            "#[doc = $crate::net::share::example!($a, \"x[0]\ny;\n\")]\n",
            "#[doc = concat!(\"```\\nassert!(\", $example, \");\\n```\")]\n",
        ] {
            assert_eq!(found(&format!("/// It.\n{made}pub fn f() {{}}\n")), [""; 0], "{made}");
        }
        assert_eq!(found("#[doc = concat!(\"Returns \", $what)]\npub fn f() {}\n").len(), 1);
    }

    #[test]
    fn what_users_cannot_see_needs_none() {
        for text in [
            "pub(crate) fn f() {}\n",
            "fn f() {}\n",
            "/// It.\nmacro_rules! m {\n",
            "/// It.\n#[doc(hidden)]\n#[must_use]\npub fn f() {}\n",
            "/// The former name.\n#[deprecated(note = \"use `g`\")]\npub type F = G;\n",
            "/// It.\npub mod m;\npub const C: u8 = 1;\npub use self::m::g;\n",
            "#[cfg(test)]\nmod tests {\n    pub fn f() {}\n",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
        let item = "pub fn f() {}\n";
        for path in ["crates/volt/tests/x.rs", "crates/volt/src/x/tests.rs", "xtask/src/x.rs"] {
            assert_eq!(check(&[Source::new(path, item)]), [""; 0], "{path}");
        }
    }

    #[test]
    fn hidden_modules_and_what_they_show_are_left_out() {
        let library = "#[doc(hidden)]\npub mod internal;\npub mod seen;\n";
        let sources = [
            Source::new("crates/volt/src/lib.rs", library),
            Source::new("crates/volt/src/internal.rs", "pub use crate::inner::f;\npub fn g() {}\n"),
            Source::new("crates/volt/src/inner.rs", "pub fn f() {}\n"),
            Source::new("crates/volt/src/inner/deep.rs", "pub fn f() {}\n"),
            Source::new("crates/volt/src/seen.rs", "pub fn f() {}\n"),
            Source::new("crates/volt/src/internally.rs", "pub fn f() {}\n"),
            Source::new("crates/volt-sync/src/inner.rs", "pub fn f() {}\n"),
        ];
        let expected = ["volt/src/seen", "volt/src/internally", "volt-sync/src/inner"];
        let expected =
            expected.map(|path| format!("crates/{path}.rs:1: `f` has no example that runs"));
        assert_eq!(check(&sources), expected);
    }

    /// An exemption of an item that is gone, or has an example now, would excuse another one some day.
    #[test]
    fn exempt_items_exist_and_have_reasons() {
        let sources = crate::source::rust_files().unwrap();
        for (path, name, reason) in EXEMPT {
            let source = sources.iter().find(|source| source.path == path);
            let is_it = |item: &Item| item.name == name && !item.has_example;
            let found = source.is_some_and(|it| items(&it.lines).iter().any(is_it));
            assert!(found && !reason.is_empty(), "{path}: {name}");
        }
    }
}
