//! The functions of `std::fs`, on the blocking pool.
#![forbid(unsafe_code)]

use std::fs::{Metadata, Permissions};
use std::io;
use std::path::{Path, PathBuf};

use super::blocking;

/// The absolute path, without `.`, `..` and symbolic links.
///
/// # Errors
/// As [`std::fs::canonicalize`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let (folder, path) = (temporary.path(), temporary.path().join("it"));
/// use volt::fs;
///
/// volt::run(async {
///     assert!(fs::canonicalize(".").await?.is_absolute());
///     # let _ = (folder, &path);
///     Ok(())
/// })
/// # }
/// ```
pub async fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = path.as_ref().to_owned();
    blocking("fs::canonicalize", move || std::fs::canonicalize(path)).await
}

/// Copies a file's content and permissions; returns the number of bytes.
///
/// # Errors
/// As [`std::fs::copy`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let (folder, path) = (temporary.path(), temporary.path().join("it"));
/// use volt::fs;
///
/// volt::run(async {
///     fs::write(&path, "12").await?;
///     assert_eq!(fs::copy(&path, folder.join("copy")).await?, 2);
///     # let _ = (folder, &path);
///     Ok(())
/// })
/// # }
/// ```
pub async fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<u64> {
    let from = from.as_ref().to_owned();
    let to = to.as_ref().to_owned();
    blocking("fs::copy", move || std::fs::copy(from, to)).await
}

/// Makes a directory.
///
/// # Errors
/// As [`std::fs::create_dir`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let (folder, path) = (temporary.path(), temporary.path().join("it"));
/// use volt::fs;
///
/// volt::run(async {
///     fs::create_dir(&path).await?;
///     assert!(fs::metadata(&path).await?.is_dir());
///     # let _ = (folder, &path);
///     Ok(())
/// })
/// # }
/// ```
pub async fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    blocking("fs::create_dir", move || std::fs::create_dir(path)).await
}

/// Makes a directory and those above it that are missing.
///
/// # Errors
/// As [`std::fs::create_dir_all`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let (folder, path) = (temporary.path(), temporary.path().join("it"));
/// use volt::fs;
///
/// volt::run(async {
///     fs::create_dir_all(path.join("a/b")).await?;
///     assert!(fs::metadata(path.join("a/b")).await?.is_dir());
///     # let _ = (folder, &path);
///     Ok(())
/// })
/// # }
/// ```
pub async fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    blocking("fs::create_dir_all", move || std::fs::create_dir_all(path)).await
}

/// Gives a file a second name.
///
/// # Errors
/// As [`std::fs::hard_link`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let (folder, path) = (temporary.path(), temporary.path().join("it"));
/// use volt::fs;
///
/// volt::run(async {
///     fs::write(&path, "12").await?;
///     fs::hard_link(&path, folder.join("link")).await?;
///     fs::write(&path, "123").await?;
///     assert_eq!(fs::read(folder.join("link")).await?, b"123");
///     # let _ = (folder, &path);
///     Ok(())
/// })
/// # }
/// ```
pub async fn hard_link(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    let original = original.as_ref().to_owned();
    let link = link.as_ref().to_owned();
    blocking("fs::hard_link", move || std::fs::hard_link(original, link)).await
}

/// What the file system knows of a file; follows symbolic links.
///
/// # Errors
/// As [`std::fs::metadata`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let (folder, path) = (temporary.path(), temporary.path().join("it"));
/// use volt::fs;
///
/// volt::run(async {
///     fs::write(&path, "12").await?;
///     assert_eq!(fs::metadata(&path).await?.len(), 2);
///     # let _ = (folder, &path);
///     Ok(())
/// })
/// # }
/// ```
pub async fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = path.as_ref().to_owned();
    blocking("fs::metadata", move || std::fs::metadata(path)).await
}

/// A file's whole content.
///
/// # Errors
/// As [`std::fs::read`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let (folder, path) = (temporary.path(), temporary.path().join("it"));
/// use volt::fs;
///
/// volt::run(async {
///     fs::write(&path, "12").await?;
///     assert_eq!(fs::read(&path).await?, b"12");
///     # let _ = (folder, &path);
///     Ok(())
/// })
/// # }
/// ```
pub async fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let path = path.as_ref().to_owned();
    blocking("fs::read", move || std::fs::read(path)).await
}

/// Where a symbolic link points.
///
/// # Errors
/// As [`std::fs::read_link`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let (folder, path) = (temporary.path(), temporary.path().join("it"));
/// use volt::fs;
///
/// volt::run(async {
///     # #[cfg(unix)] {
///     fs::symlink("elsewhere", &path).await?;
///     assert_eq!(fs::read_link(&path).await?.to_str(), Some("elsewhere"));
///     # }
///     # let _ = (folder, &path);
///     Ok(())
/// })
/// # }
/// ```
pub async fn read_link(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = path.as_ref().to_owned();
    blocking("fs::read_link", move || std::fs::read_link(path)).await
}

/// A file's whole content, which must be UTF-8.
///
/// # Errors
/// As [`std::fs::read_to_string`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let (folder, path) = (temporary.path(), temporary.path().join("it"));
/// use volt::fs;
///
/// volt::run(async {
///     fs::write(&path, "12").await?;
///     assert_eq!(fs::read_to_string(&path).await?, "12");
///     # let _ = (folder, &path);
///     Ok(())
/// })
/// # }
/// ```
pub async fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let path = path.as_ref().to_owned();
    blocking("fs::read_to_string", move || std::fs::read_to_string(path)).await
}

/// Removes an empty directory.
///
/// # Errors
/// As [`std::fs::remove_dir`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let (folder, path) = (temporary.path(), temporary.path().join("it"));
/// use volt::fs;
///
/// volt::run(async {
///     fs::create_dir(&path).await?;
///     fs::remove_dir(&path).await?;
///     assert!(!fs::try_exists(&path).await?);
///     # let _ = (folder, &path);
///     Ok(())
/// })
/// # }
/// ```
pub async fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    blocking("fs::remove_dir", move || std::fs::remove_dir(path)).await
}

/// Removes a directory and everything in it. Does not follow symbolic links.
///
/// # Errors
/// As [`std::fs::remove_dir_all`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let (folder, path) = (temporary.path(), temporary.path().join("it"));
/// use volt::fs;
///
/// volt::run(async {
///     fs::create_dir_all(path.join("a/b")).await?;
///     fs::remove_dir_all(&path).await?;
///     assert!(!fs::try_exists(&path).await?);
///     # let _ = (folder, &path);
///     Ok(())
/// })
/// # }
/// ```
pub async fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    blocking("fs::remove_dir_all", move || std::fs::remove_dir_all(path)).await
}

/// Removes a file.
///
/// # Errors
/// As [`std::fs::remove_file`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let (folder, path) = (temporary.path(), temporary.path().join("it"));
/// use volt::fs;
///
/// volt::run(async {
///     fs::write(&path, "12").await?;
///     fs::remove_file(&path).await?;
///     assert!(!fs::try_exists(&path).await?);
///     # let _ = (folder, &path);
///     Ok(())
/// })
/// # }
/// ```
pub async fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    blocking("fs::remove_file", move || std::fs::remove_file(path)).await
}

/// Renames a file or directory, replacing a file of the new name.
///
/// # Errors
/// As [`std::fs::rename`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let (folder, path) = (temporary.path(), temporary.path().join("it"));
/// use volt::fs;
///
/// volt::run(async {
///     fs::write(&path, "12").await?;
///     fs::rename(&path, folder.join("new")).await?;
///     assert!(!fs::try_exists(&path).await?);
///     assert_eq!(fs::read(folder.join("new")).await?, b"12");
///     # let _ = (folder, &path);
///     Ok(())
/// })
/// # }
/// ```
pub async fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let from = from.as_ref().to_owned();
    let to = to.as_ref().to_owned();
    blocking("fs::rename", move || std::fs::rename(from, to)).await
}

/// What the file system knows of a file; does not follow symbolic links.
///
/// # Errors
/// As [`std::fs::symlink_metadata`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let (folder, path) = (temporary.path(), temporary.path().join("it"));
/// use volt::fs;
///
/// volt::run(async {
///     # #[cfg(unix)] {
///     fs::symlink("nowhere", &path).await?;
///     assert!(fs::symlink_metadata(&path).await?.is_symlink());
///     assert!(fs::metadata(&path).await.is_err(), "it leads to nothing");
///     # }
///     # let _ = (folder, &path);
///     Ok(())
/// })
/// # }
/// ```
pub async fn symlink_metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = path.as_ref().to_owned();
    blocking("fs::symlink_metadata", move || std::fs::symlink_metadata(path)).await
}

/// Changes a file's permissions.
///
/// # Errors
/// As [`std::fs::set_permissions`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let (folder, path) = (temporary.path(), temporary.path().join("it"));
/// use volt::fs;
///
/// volt::run(async {
///     fs::write(&path, "12").await?;
///     let mut permissions = fs::metadata(&path).await?.permissions();
///     permissions.set_readonly(true);
///     fs::set_permissions(&path, permissions).await?;
///     assert!(fs::metadata(&path).await?.permissions().readonly());
///     # let _ = (folder, &path);
///     Ok(())
/// })
/// # }
/// ```
pub async fn set_permissions(path: impl AsRef<Path>, permissions: Permissions) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    blocking("fs::set_permissions", move || std::fs::set_permissions(path, permissions)).await
}

/// True if there is something at `path`.
///
/// # Errors
/// As [`Path::try_exists`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let (folder, path) = (temporary.path(), temporary.path().join("it"));
/// use volt::fs;
///
/// volt::run(async {
///     assert!(!fs::try_exists(&path).await?);
///     # let _ = (folder, &path);
///     Ok(())
/// })
/// # }
/// ```
pub async fn try_exists(path: impl AsRef<Path>) -> io::Result<bool> {
    let path = path.as_ref().to_owned();
    blocking("fs::try_exists", move || path.try_exists()).await
}

/// Makes a file of this content, replacing one that is there.
///
/// The content is copied once, since the operation may outlive this future.
///
/// # Errors
/// As [`std::fs::write`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let (folder, path) = (temporary.path(), temporary.path().join("it"));
/// use volt::fs;
///
/// volt::run(async {
///     fs::write(&path, vec![1, 2, 3]).await?;
///     assert_eq!(fs::read(&path).await?, [1, 2, 3]);
///     # let _ = (folder, &path);
///     Ok(())
/// })
/// # }
/// ```
pub async fn write(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    let contents = contents.as_ref().to_owned();
    blocking("fs::write", move || std::fs::write(path, contents)).await
}

/// Makes a symbolic link.
///
/// # Errors
/// As [`std::os::unix::fs::symlink`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let temporary = tempfile::tempdir()?;
/// # let (folder, path) = (temporary.path(), temporary.path().join("it"));
/// use volt::fs;
///
/// volt::run(async {
///     fs::symlink("elsewhere", &path).await?;
///     assert!(fs::symlink_metadata(&path).await?.is_symlink());
///     # let _ = (folder, &path);
///     Ok(())
/// })
/// # }
/// ```
#[cfg(unix)]
pub async fn symlink(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    let (original, link) = (original.as_ref().to_owned(), link.as_ref().to_owned());
    blocking("fs::symlink", move || std::os::unix::fs::symlink(original, link)).await
}
