//! The source files of the workspace, as lines.

use std::path::{Path, PathBuf};

use crate::command::root;

/// One text file.
#[derive(Debug)]
pub(crate) struct Source {
    /// Relative to the workspace's root, with `/`.
    pub(crate) path: String,
    pub(crate) lines: Vec<String>,
}

impl Source {
    /// A file of the given content; tests plant violations with it.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), lines: text.lines().map(str::to_owned).collect() }
    }

    /// The package that the file belongs to.
    pub(crate) fn package(&self) -> &str {
        match self.path.strip_prefix("crates/").and_then(|rest| rest.split('/').next()) {
            Some("volt") => "volt-rt",
            Some(name) => name,
            None => "xtask",
        }
    }

    /// The name of the integration test that the file is.
    pub(crate) fn suite(&self) -> Option<&str> {
        let (_, name) = self.path.strip_prefix("crates/")?.split_once("/tests/")?;
        name.strip_suffix(".rs").filter(|name| !name.contains('/'))
    }

    /// True for code that ships: not for tests, models, examples and the development crates.
    pub(crate) fn is_production(&self) -> bool {
        let library =
            ["volt-sync", "volt-pool", "volt-macros", "volt-rt"].contains(&self.package());
        let test = |part: &str| {
            let part = part.trim_end_matches(".rs");
            ["tests", "test", "model", "models", "examples", "benches"].contains(&part)
        };
        library && self.path.contains("/src/") && !self.path.split('/').skip(2).any(test)
    }

    /// The lines before an inline `#[cfg(test)] mod tests`.
    pub(crate) fn shipped_lines(&self) -> &[String] {
        let end = self.lines.windows(2).position(|pair| {
            pair[0].starts_with("#[cfg(")
                && pair[0].contains("test")
                && pair[1].ends_with('{')
                && pair[1].contains("mod ")
        });
        &self.lines[..end.unwrap_or(self.lines.len())]
    }

    /// The module header: the leading `//!` lines.
    pub(crate) fn header(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str).take_while(|line| line.starts_with("//!"))
    }
}

/// The line without its comment. String literals with `//` in them are rare enough to ignore.
pub(crate) fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

/// True if `word` occurs in `text` with no letter, digit or underscore around it.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    let part_of_word = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
    text.match_indices(word).any(|(at, _)| {
        let (before, after) =
            (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
        !part_of_word(before) && !part_of_word(after)
    })
}

/// All Rust files below `crates/`, `ecosystem/` and `xtask/`.
pub(crate) fn rust_files() -> Result<Vec<Source>, String> {
    let mut files = Vec::new();
    for folder in ["crates", "ecosystem", "xtask/src"] {
        collect(&root().join(folder), "rs", &mut files)?;
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// The Markdown files of the root and of `docs/`.
pub(crate) fn documents() -> Result<Vec<Source>, String> {
    let mut files = Vec::new();
    for entry in read_dir(&root())? {
        if entry.extension().is_some_and(|it| it == "md") {
            files.push(read(&entry)?);
        }
    }
    if root().join("docs").exists() {
        collect(&root().join("docs"), "md", &mut files)?;
    }
    Ok(files)
}

fn collect(folder: &Path, extension: &str, files: &mut Vec<Source>) -> Result<(), String> {
    for path in read_dir(folder)? {
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                collect(&path, extension, files)?;
            }
        } else if path.extension().is_some_and(|it| it == extension) {
            files.push(read(&path)?);
        }
    }
    Ok(())
}

fn read_dir(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(failed)).collect()
}

fn read(path: &Path) -> Result<Source, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let relative = path.strip_prefix(root()).unwrap_or(path);
    Ok(Source::new(&relative.to_string_lossy().replace('\\', "/"), &text))
}
