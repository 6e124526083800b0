//! Opening files with options.
#![forbid(unsafe_code)]

use std::io;
use std::path::Path;

use super::{File, blocking};

/// How a file is opened, as [`std::fs::OpenOptions`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let path = temporary.path().join("log");
/// use volt::fs::OpenOptions;
/// use volt::io::AsyncWriteExt;
///
/// volt::run(async {
///     let mut log = OpenOptions::new().append(true).create(true).open(&path).await?;
///     log.write_all(b"started\n").await?;
///     log.flush().await
/// })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions(std::fs::OpenOptions);

impl OpenOptions {
    /// Nothing is allowed yet.
    #[must_use]
    pub fn new() -> Self {
        Self(std::fs::OpenOptions::new())
    }

    /// Allows reading.
    pub fn read(&mut self, read: bool) -> &mut Self {
        self.0.read(read);
        self
    }

    /// Allows writing.
    pub fn write(&mut self, write: bool) -> &mut Self {
        self.0.write(write);
        self
    }

    /// Every write goes to the end.
    pub fn append(&mut self, append: bool) -> &mut Self {
        self.0.append(append);
        self
    }

    /// Empties a file that is there.
    pub fn truncate(&mut self, truncate: bool) -> &mut Self {
        self.0.truncate(truncate);
        self
    }

    /// Makes a file if there is none.
    pub fn create(&mut self, create: bool) -> &mut Self {
        self.0.create(create);
        self
    }

    /// Makes a file, and fails if there is one.
    pub fn create_new(&mut self, create_new: bool) -> &mut Self {
        self.0.create_new(create_new);
        self
    }

    /// The permission bits of a file that is made.
    #[cfg(unix)]
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        std::os::unix::fs::OpenOptionsExt::mode(&mut self.0, mode);
        self
    }

    /// Further flags for `open`.
    #[cfg(unix)]
    pub fn custom_flags(&mut self, flags: i32) -> &mut Self {
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut self.0, flags);
        self
    }

    /// Opens the file.
    ///
    /// # Errors
    /// As [`std::fs::OpenOptions::open`].
    pub async fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let (options, path) = (self.0.clone(), path.as_ref().to_owned());
        blocking(move || options.open(path)).await.map(File::from_std)
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl From<std::fs::OpenOptions> for OpenOptions {
    fn from(options: std::fs::OpenOptions) -> Self {
        Self(options)
    }
}
