//! Listing directories.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{FileType, Metadata};
use std::future::{Future, poll_fn};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::blocking;
use crate::io::blocking::lost;
use crate::runtime::{context, spawn_blocking};
use crate::task::JoinHandle;

/// How many entries one trip to the blocking pool brings.
const BATCH: usize = 32;

/// The entries of a directory.
///
/// # Errors
/// As [`std::fs::read_dir`].
///
/// ```
/// volt::run(async {
///     let mut entries = volt::fs::read_dir(".").await?;
///     while let Some(entry) = entries.next_entry().await? {
///         println!("{}", entry.path().display());
///     }
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
pub async fn read_dir(path: impl AsRef<Path>) -> io::Result<ReadDir> {
    let path = path.as_ref().to_owned();
    // The first entries come with it: most directories take one trip to the pool.
    let listing = blocking("fs::read_dir", move || std::fs::read_dir(path).map(Listing::begin));
    Ok(ReadDir(State::Idle(listing.await?)))
}

/// Made by [`read_dir`]. The order of the entries is the file system's.
///
/// Entries are read ahead on the blocking pool, some at a time.
///
/// ```
/// volt::run(async {
///     let directory = tempfile::tempdir()?;
///     std::fs::write(directory.path().join("file"), "")?;
///     let mut entries: volt::fs::ReadDir = volt::fs::read_dir(directory.path()).await?;
///     assert_eq!(entries.next_entry().await?.unwrap().file_name(), "file");
///     assert!(entries.next_entry().await?.is_none());
///     std::io::Result::Ok(())
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct ReadDir(State);

#[derive(Debug)]
#[cfg_attr(
    windows,
    allow(
        clippy::large_enum_variant,
        reason = "there `entries` holds an entry; almost always `Idle`"
    )
)]
enum State {
    Idle(Listing),
    Busy(JoinHandle<Listing>),
    Lost,
}

/// A directory that is being read.
#[derive(Debug)]
struct Listing {
    entries: std::fs::ReadDir,
    /// False once the end was reached.
    more: bool,
    ready: VecDeque<io::Result<DirEntry>>,
}

impl Listing {
    /// With the first batch.
    fn begin(entries: std::fs::ReadDir) -> Self {
        Self { entries, more: true, ready: VecDeque::with_capacity(BATCH) }.fetch()
    }

    fn fetch(mut self) -> Self {
        for entry in self.entries.by_ref().take(BATCH) {
            self.ready.push_back(entry.map(DirEntry::new));
        }
        self.more = self.ready.len() == BATCH;
        self
    }
}

impl ReadDir {
    /// The next entry, or `None` after the last. Cancel safe.
    ///
    /// # Errors
    /// Of reading this entry; later ones may still be had.
    ///
    /// # Panics
    /// Outside of a runtime, if it has to read on.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path();
    /// volt::fs::write(path.join("file"), "hello").await?;
    /// let mut entries = volt::fs::read_dir(path).await?;
    /// while let Some(entry) = entries.next_entry().await? {
    ///     println!("{}", entry.path().display());
    /// }
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn next_entry(&mut self) -> io::Result<Option<DirEntry>> {
        poll_fn(|cx| self.poll_next("ReadDir::next_entry", cx)).await
    }

    /// As [`next_entry`](Self::next_entry).
    ///
    /// # Errors
    /// As [`next_entry`](Self::next_entry).
    ///
    /// # Panics
    /// As `next_entry`.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path();
    /// volt::fs::write(path.join("file"), "hello").await?;
    /// let mut entries = volt::fs::read_dir(path).await?;
    /// let entry = std::future::poll_fn(|cx| entries.poll_next_entry(cx)).await?;
    /// assert!(entry.is_some());
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn poll_next_entry(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<DirEntry>>> {
        self.poll_next("ReadDir::poll_next_entry", cx)
    }

    /// The same for the function `caller`, which the panic names.
    fn poll_next(
        &mut self,
        caller: &'static str,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<DirEntry>>> {
        loop {
            match &mut self.0 {
                State::Lost => return Poll::Ready(Err(lost())),
                State::Busy(fetching) => match ready!(Pin::new(fetching).poll(cx)) {
                    Ok(listing) => self.0 = State::Idle(listing),
                    Err(_) => self.0 = State::Lost,
                },
                State::Idle(listing) => {
                    if let Some(entry) = listing.ready.pop_front() {
                        return Poll::Ready(entry.map(Some));
                    } else if !listing.more {
                        return Poll::Ready(Ok(None));
                    }
                    // Before the listing is taken: it would be lost with a panic.
                    context::require(caller);
                    if let State::Idle(listing) = std::mem::replace(&mut self.0, State::Lost) {
                        self.0 = State::Busy(spawn_blocking(move || listing.fetch()));
                    }
                }
            }
        }
    }
}

/// An entry of a directory.
///
/// ```
/// volt::run(async {
///     let directory = tempfile::tempdir()?;
///     std::fs::write(directory.path().join("file"), "hello")?;
///     let mut entries = volt::fs::read_dir(directory.path()).await?;
///     let entry: volt::fs::DirEntry = entries.next_entry().await?.unwrap();
///     assert_eq!(entry.path(), directory.path().join("file"));
///     assert_eq!(entry.metadata().await?.len(), 5);
///     std::io::Result::Ok(())
/// })
/// .unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct DirEntry {
    entry: Arc<std::fs::DirEntry>,
    /// Where the system tells it with the entry, it costs no further trip.
    file_type: Option<FileType>,
}

impl DirEntry {
    fn new(entry: std::fs::DirEntry) -> Self {
        // Here, on the blocking pool: some file systems have to look it up.
        Self { file_type: entry.file_type().ok(), entry: Arc::new(entry) }
    }

    /// The directory's path and the entry's name.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path();
    /// volt::fs::write(path.join("file"), "hello").await?;
    /// let mut entries = volt::fs::read_dir(path).await?;
    /// let entry = entries.next_entry().await?.unwrap();
    /// assert_eq!(entry.path(), path.join("file"));
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.entry.path()
    }

    /// The entry's name.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path();
    /// volt::fs::write(path.join("file"), "hello").await?;
    /// let mut entries = volt::fs::read_dir(path).await?;
    /// let entry = entries.next_entry().await?.unwrap();
    /// assert_eq!(entry.file_name(), "file");
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn file_name(&self) -> OsString {
        self.entry.file_name()
    }

    /// What the file system knows of it; does not follow symbolic links.
    ///
    /// # Errors
    /// As [`std::fs::DirEntry::metadata`].
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path();
    /// volt::fs::write(path.join("file"), "hello").await?;
    /// let mut entries = volt::fs::read_dir(path).await?;
    /// let entry = entries.next_entry().await?.unwrap();
    /// assert_eq!(entry.metadata().await?.len(), 5);
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn metadata(&self) -> io::Result<Metadata> {
        let entry = self.entry.clone();
        blocking("DirEntry::metadata", move || entry.metadata()).await
    }

    /// Whether it is a file, a directory, a link.
    ///
    /// # Errors
    /// As [`std::fs::DirEntry::file_type`].
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path();
    /// volt::fs::write(path.join("file"), "hello").await?;
    /// let mut entries = volt::fs::read_dir(path).await?;
    /// let entry = entries.next_entry().await?.unwrap();
    /// assert!(entry.file_type().await?.is_file());
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn file_type(&self) -> io::Result<FileType> {
        if let Some(file_type) = self.file_type {
            return Ok(file_type);
        }
        let entry = self.entry.clone();
        blocking("DirEntry::file_type", move || entry.file_type()).await
    }

    /// The inode number.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path();
    /// volt::fs::write(path.join("file"), "hello").await?;
    /// let mut entries = volt::fs::read_dir(path).await?;
    /// let entry = entries.next_entry().await?.unwrap();
    /// assert_ne!(entry.ino(), 0);
    /// # Ok(()) })
    /// # }
    /// ```
    #[cfg(unix)]
    #[must_use]
    pub fn ino(&self) -> u64 {
        std::os::unix::fs::DirEntryExt::ino(&*self.entry)
    }
}
