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
//! exit status is collected in the background, so that no zombie stays: by a task of the runtime in
//! whose context it is dropped, or by the next use of this module, whichever comes first.

mod child;
mod command;
mod exit;
mod pipe;

pub use self::child::Child;
pub use self::command::Command;
pub use self::pipe::{ChildStderr, ChildStdin, ChildStdout};
