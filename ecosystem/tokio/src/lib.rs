//! Volt under Tokio's name.
//!
//! With this package in the place of Tokio's, the crates that a program uses run on Volt as they are, and so does the program:
//!
//! ```toml
//! [dependencies]
//! tokio = { path = "/path/to/the/clone/ecosystem/tokio" }
//!
//! [patch.crates-io]
//! tokio = { path = "/path/to/the/clone/ecosystem/tokio" }
//! ```
//!
//! `docs/other-crates.md` says why both are needed, and what else to look at. What is Volt's alone is there as well.
#![forbid(unsafe_code)]

pub use volt::*;
// These name the crate in what they expand to.
pub use volt_macros::{tokio_main as main, tokio_test as test};
