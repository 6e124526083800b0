//! Asynchronous access to files.
//!
//! Operating systems offer little that is asynchronous here, so every operation runs on the
//! [blocking pool](crate::task::spawn_blocking): a trip of some microseconds each. Batch small
//! operations ([`io::BufReader`](crate::io::BufReader), [`read`] and [`write()`] for whole files), or
//! put a sequence of them into one `spawn_blocking`.
//!
//! The functions are those of `std::fs` with the same names, arguments and errors. Dropping the
//! future of one does not stop the operation, if it has begun.
//!
//! ```
//! use volt::fs;
//!
//! # fn main() -> std::io::Result<()> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("greeting.txt");
//! volt::run(async {
//!     fs::write(&path, "hello").await?;
//!     assert_eq!(fs::read_to_string(&path).await?, "hello");
//!     Ok(())
//! })
//! # }
//! ```

mod dir_builder;
mod file;
mod open_options;
mod operations;
mod read_dir;

pub use self::dir_builder::DirBuilder;
pub use self::file::File;
pub use self::open_options::OpenOptions;
#[cfg(unix)]
pub use self::operations::symlink;
pub use self::operations::{
    canonicalize, copy, create_dir, create_dir_all, hard_link, metadata, read, read_link,
    read_to_string, remove_dir, remove_dir_all, remove_file, rename, set_permissions,
    symlink_metadata, try_exists, write,
};
pub use self::read_dir::{DirEntry, ReadDir, read_dir};

pub use std::fs::FileTimes;

use std::io;

use crate::io::blocking::lost;
use crate::runtime::{context, spawn_blocking};

/// Runs `operation` on the blocking pool, for the function `caller`.
///
/// # Panics
/// Outside of a runtime, naming `caller`.
async fn blocking<R: Send + 'static>(
    caller: &'static str,
    operation: impl FnOnce() -> io::Result<R> + Send + 'static,
) -> io::Result<R> {
    context::require(caller);
    spawn_blocking(operation).await.unwrap_or_else(|_| Err(lost()))
}
