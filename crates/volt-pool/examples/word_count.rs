//! Counts the words of all files below a directory, in parallel, with a progress bar.
//!
//! `cargo run --release -p volt-pool --example word_count -- [DIRECTORY]`
//!
//! One scope walks the tree: each directory is a task that spawns tasks for what it contains. Each
//! thread counts into a map of its own, and the maps are put together at the end.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_types, reason = "an example's own counters")]

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
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

    fn directory<'s>(&'s self, scope: &Scope<'s>, path: &Path) -> io::Result<()> {
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let path = entry.path();
            if kind.is_dir() {
                scope.spawn(move |scope| self.note(self.directory(scope, &path)));
            } else if kind.is_file() {
                self.bar.inc_length(1);
                scope.spawn(move |_| self.file(path));
            }
        }
        Ok(())
    }

    fn file(&self, path: PathBuf) {
        match std::fs::read(path) {
            Ok(content) => self.count(&content),
            Err(error) => self.note(Err(error)),
        }
        self.bar.inc(1);
    }

    fn note(&self, result: io::Result<()>) {
        if result.is_err() {
            self.unreadable.fetch_add(1, Ordering::Relaxed);
        }
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

fn main() -> io::Result<()> {
    let root = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    let search = Search::new();
    volt_pool::scope(|scope| search.directory(scope, &root)).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot read {}: {error}", root.display()))
    })?;
    search.bar.finish();

    let counts = search.counts.into_iter().map(|counts| counts.into_inner().expect("not poisoned"));
    let counts = counts.reduce(merged).unwrap_or_default();
    let mut words: Vec<(&String, &u64)> = counts.iter().collect();
    volt_pool::par::par_sort_by(&mut words, |a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    for (word, count) in words.iter().take(10) {
        println!("{count:>10} {word}");
    }
    let total: u64 = counts.values().sum();
    println!(
        "{total} words, {} different, in {} files and {} bytes; {} could not be read",
        counts.len(),
        search.bar.position(),
        search.bytes.into_inner(),
        search.unreadable.into_inner(),
    );
    Ok(())
}
