//! Volt beside its peers, measured on your machine.
//!
//! `cargo run --release` measures the headline rows and prints how Volt stands. One process a
//! contender and round: this binary starts itself with a hidden subcommand ([`child`]), in rotating
//! order ([`harness`]), keeps what it saw ([`record`]) and draws reports from it ([`report`]). The
//! rows are listed in [`registry`], the workloads are below [`workload`].
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the instrument measures with std directly; it is never run under a model checker"
)]
#![allow(
    clippy::duplicate_mod,
    reason = "Tokio-shaped workloads are one file compiled for each runtime"
)]

mod alloc;
mod bare;
mod bench;
mod child;
mod cli;
mod epoll;
mod harness;
mod interrupt;
mod kind;
mod load;
mod machine;
mod on_tokio;
mod on_volt;
mod peers;
mod record;
mod registry;
mod report;
mod run;
mod stats;
mod transfer;
mod workload;

fn main() -> std::process::ExitCode {
    if registry::COUNTED { cli::count() } else { cli::main() }
}
