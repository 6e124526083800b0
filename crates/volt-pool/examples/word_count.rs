//! Counts the words of all files below a directory, in parallel, with a progress bar.
//!
//! `cargo run --release -p volt-pool --example word_count -- [DIRECTORY]` (default: the current one)
//!
//! One scope walks the tree: each directory is a task that spawns tasks for what it contains. Each
//! thread counts into a map of its own, and the maps are put together at the end.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_types, reason = "an example's own counters")]

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use volt_pool::Scope;

type Counts = HashMap<String, u64>;

struct Search {
    bar: ProgressBar,
    /// One for each thread of the pool, and one for the thread that waits.
    counts: Vec<Mutex<Counts>>,
    bytes: AtomicU64,
    unreadable: AtomicU64,
}

impl Search {
    fn new() -> Self {
        let style =
            ProgressStyle::with_template("{spinner} {pos}/{len} files [{bar:40}] {elapsed}");
        let bar = ProgressBar::new(0).with_style(style.expect("a valid template"));
        let counts = (0..=volt_pool::current_num_threads()).map(|_| Mutex::default()).collect();
        Self { bar, counts, bytes: AtomicU64::new(0), unreadable: AtomicU64::new(0) }
    }

    /// Spawns tasks for what the directory contains.
    fn directory<'s>(&'s self, scope: &Scope<'s>, path: &Path) -> io::Result<()> {
        for entry in std::fs::read_dir(path)? {
            let entry = entry.and_then(|entry| Ok((entry.file_type()?, entry.path())));
            match entry {
                Err(error) => self.note(path, &error),
                Ok((kind, path)) if kind.is_dir() => scope.spawn(move |scope| {
                    if let Err(error) = self.directory(scope, &path) {
                        self.note(&path, &error);
                    }
                }),
                Ok((kind, path)) if kind.is_file() => {
                    self.bar.inc_length(1);
                    scope.spawn(move |_| self.file(&path));
                }
                // Links would be counted twice, or lead in circles; devices and pipes have no end.
                Ok(_) => {}
            }
        }
        Ok(())
    }

    fn file(&self, path: &Path) {
        match std::fs::read(path) {
            Ok(content) => self.count(&content),
            Err(error) => self.note(path, &error),
        }
        self.bar.inc(1);
    }

    /// Something could not be read: says so above the bar, and goes on.
    fn note(&self, path: &Path, error: &io::Error) {
        self.unreadable.fetch_add(1, Ordering::Relaxed);
        self.bar.suspend(|| eprintln!("cannot read {}: {error}", path.display()));
    }

    fn count(&self, content: &[u8]) {
        self.bytes.fetch_add(content.len() as u64, Ordering::Relaxed);
        let text = String::from_utf8_lossy(content);
        let mine = volt_pool::current_thread_index().map_or(0, |index| index + 1);
        let mut counts = self.counts[mine].lock().expect("no panic while counting");
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            match counts.get_mut(word) {
                Some(count) => *count += 1,
                None => drop(counts.insert(word.to_owned(), 1)),
            }
        }
    }
}

/// Puts two maps together.
fn merged(mut a: Counts, b: Counts) -> Counts {
    for (word, count) in b {
        *a.entry(word).or_default() += count;
    }
    a
}

fn report(search: Search) -> io::Result<()> {
    let counts = search.counts.into_iter().map(|counts| counts.into_inner().expect("not poisoned"));
    let counts = counts.reduce(merged).unwrap_or_default();
    let mut words: Vec<(&String, &u64)> = counts.iter().collect();
    volt_pool::par::par_sort_by(&mut words, |a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let mut out = io::stdout().lock();
    for (word, count) in words.iter().take(10) {
        writeln!(out, "{count:>10} {word}")?;
    }
    let total: u64 = counts.values().sum();
    writeln!(
        out,
        "{total} words, {} different, in {} files and {} bytes; {} could not be read",
        counts.len(),
        search.bar.position(),
        search.bytes.into_inner(),
        search.unreadable.into_inner(),
    )
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let root = arguments.next().unwrap_or_else(|| ".".into());
    if root.as_encoded_bytes().starts_with(b"-") || arguments.next().is_some() {
        eprintln!("usage: word_count [DIRECTORY]");
        return ExitCode::from(2);
    }
    let root = PathBuf::from(root);
    let search = Search::new();
    if let Err(error) = volt_pool::scope(|scope| search.directory(scope, &root)) {
        search.bar.finish_and_clear();
        eprintln!("cannot read {}: {error}", root.display());
        return ExitCode::FAILURE;
    }
    search.bar.finish();
    match report(search) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads this has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write: {error}");
            ExitCode::FAILURE
        }
    }
}
