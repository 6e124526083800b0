//! Child processes.
//!
//! [`Command`] is `std::process::Command` whose results are awaited, and whose pipes are read and
//! written asynchronously.
//!
//! ```
//! use volt::process::Command;
//!
//! volt::run(async {
//!     let output = Command::new("echo").arg("hello").output().await?;
//!     assert_eq!(output.stdout, b"hello\n");
//!     std::io::Result::Ok(())
//! }).unwrap();
//! ```
//!
//! # Dropping
//! A [`Child`] that is dropped goes on running, unless [`Command::kill_on_drop`] says otherwise. Its
//! exit status is collected in the background, so that no zombie stays: by any runtime that is driven,
//! wherever the child was started and dropped, or by the next use of this module.

mod child;
mod command;
mod exit;
mod orphans;
mod pipe;
mod rest;

pub use self::child::Child;
pub use self::command::Command;
pub(crate) use self::orphans::watch_in as watch_orphans_in;
pub use self::pipe::{ChildStderr, ChildStdin, ChildStdout};
