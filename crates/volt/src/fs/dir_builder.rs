//! Making directories with options.
#![forbid(unsafe_code)]

use std::io;
use std::path::Path;

use super::blocking;

/// How a directory is made, as [`std::fs::DirBuilder`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let path = temporary.path().join("a/b");
/// volt::run(async {
///     volt::fs::DirBuilder::new().recursive(true).create(&path).await
/// })
/// # }
/// ```
#[derive(Debug, Default)]
pub struct DirBuilder {
    recursive: bool,
    #[cfg(unix)]
    mode: Option<u32>,
}

impl DirBuilder {
    /// One directory, with the default permissions.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("a/b");
    /// let mut builder = volt::fs::DirBuilder::new();
    /// builder.recursive(true).create(&path).await?;
    /// assert!(path.is_dir());
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the directories above are made too; if so, one that exists is no error.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("a/b");
    /// let mut builder = volt::fs::DirBuilder::new();
    /// builder.recursive(true).create(&path).await?;
    /// assert!(path.is_dir());
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn recursive(&mut self, recursive: bool) -> &mut Self {
        self.recursive = recursive;
        self
    }

    /// The permission bits.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("a/b");
    /// let mut builder = volt::fs::DirBuilder::new();
    /// builder.recursive(true).mode(0o700).create(&path).await?;
    /// use std::os::unix::fs::PermissionsExt;
    /// assert_eq!(std::fs::metadata(&path)?.permissions().mode() & 0o777, 0o700);
    /// # Ok(()) })
    /// # }
    /// ```
    #[cfg(unix)]
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.mode = Some(mode);
        self
    }

    /// Makes the directory.
    ///
    /// # Errors
    /// As [`std::fs::DirBuilder::create`].
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("a/b");
    /// let mut builder = volt::fs::DirBuilder::new();
    /// builder.recursive(true).create(&path).await?;
    /// assert!(path.is_dir());
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn create(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref().to_owned();
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(self.recursive);
        #[cfg(unix)]
        if let Some(mode) = self.mode {
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, mode);
        }
        blocking("DirBuilder::create", move || builder.create(path)).await
    }
}
