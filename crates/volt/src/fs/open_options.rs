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
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::OpenOptions;
    /// assert!(OpenOptions::new().open(&path).await.is_err(), "not even to read");
    /// OpenOptions::new().write(true).create(true).open(&path).await?;
    /// assert!(path.exists());
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self(std::fs::OpenOptions::new())
    }

    /// Allows reading.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::OpenOptions;
    /// let mut options = OpenOptions::new();
    /// options.read(true);
    /// assert!(options.open(&path).await.is_err(), "there is none");
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn read(&mut self, read: bool) -> &mut Self {
        self.0.read(read);
        self
    }

    /// Allows writing.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::OpenOptions;
    /// use volt::io::AsyncWriteExt;
    /// volt::fs::write(&path, "old and long").await?;
    /// let mut file = OpenOptions::new().write(true).open(&path).await?;
    /// file.write_all(b"new").await?;
    /// file.flush().await?;
    /// assert_eq!(volt::fs::read(&path).await?, b"new and long");
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn write(&mut self, write: bool) -> &mut Self {
        self.0.write(write);
        self
    }

    /// Every write goes to the end.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::OpenOptions;
    /// use volt::io::AsyncWriteExt;
    /// for line in ["one\n", "two\n"] {
    ///     let mut log = OpenOptions::new().append(true).create(true).open(&path).await?;
    ///     log.write_all(line.as_bytes()).await?;
    ///     log.flush().await?;
    /// }
    /// assert_eq!(volt::fs::read(&path).await?, b"one\ntwo\n");
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn append(&mut self, append: bool) -> &mut Self {
        self.0.append(append);
        self
    }

    /// Empties a file that is there.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::OpenOptions;
    /// let mut options = OpenOptions::new();
    /// volt::fs::write(&path, "old").await?;
    /// options.write(true).truncate(true);
    /// let file = options.open(&path).await?;
    /// assert_eq!(file.metadata().await?.len(), 0);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn truncate(&mut self, truncate: bool) -> &mut Self {
        self.0.truncate(truncate);
        self
    }

    /// Makes a file if there is none.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::OpenOptions;
    /// let mut options = OpenOptions::new();
    /// assert!(options.write(true).open(&path).await.is_err(), "there is none");
    /// let file = options.create(true).open(&path).await?;
    /// assert_eq!(file.metadata().await?.len(), 0);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn create(&mut self, create: bool) -> &mut Self {
        self.0.create(create);
        self
    }

    /// Makes a file, and fails if there is one.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::OpenOptions;
    /// let mut options = OpenOptions::new();
    /// options.write(true).create_new(true);
    /// let file = options.open(&path).await?;
    /// assert!(options.open(&path).await.is_err(), "there is one now");
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn create_new(&mut self, create_new: bool) -> &mut Self {
        self.0.create_new(create_new);
        self
    }

    /// The permission bits of a file that is made.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::OpenOptions;
    /// use std::os::unix::fs::PermissionsExt;
    /// let mut options = OpenOptions::new();
    /// let file = options.write(true).create(true).mode(0o600).open(&path).await?;
    /// assert_eq!(file.metadata().await?.permissions().mode() & 0o777, 0o600);
    /// # Ok(()) })
    /// # }
    /// ```
    #[cfg(unix)]
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        std::os::unix::fs::OpenOptionsExt::mode(&mut self.0, mode);
        self
    }

    /// Further flags for `open`.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::OpenOptions;
    /// volt::fs::write(folder.path().join("other"), "").await?;
    /// volt::fs::symlink("other", &path).await?;
    /// let mut options = OpenOptions::new();
    /// options.read(true).open(&path).await?;
    /// assert!(options.custom_flags(libc::O_NOFOLLOW).open(&path).await.is_err());
    /// # Ok(()) })
    /// # }
    /// ```
    #[cfg(unix)]
    pub fn custom_flags(&mut self, flags: i32) -> &mut Self {
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut self.0, flags);
        self
    }

    /// Opens the file.
    ///
    /// # Errors
    /// As [`std::fs::OpenOptions::open`].
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// use volt::fs::OpenOptions;
    /// let mut options = OpenOptions::new();
    /// options.write(true).create(true);
    /// let file = options.open(&path).await?;
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        self.open_as("OpenOptions::open", path.as_ref()).await
    }

    /// The same for the function `caller`.
    pub(super) async fn open_as(&self, caller: &'static str, path: &Path) -> io::Result<File> {
        let (options, path) = (self.0.clone(), path.to_owned());
        blocking(caller, move || options.open(path)).await.map(File::from_std)
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
