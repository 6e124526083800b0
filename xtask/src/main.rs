//! The project's only scripts: `cargo xtask help` lists them.
#![forbid(unsafe_code)]

use std::process::ExitCode;

mod ci;
mod command;
mod count;
mod deny;
mod loom;
mod sanitize;
mod source;
mod tidy;
mod variants;
mod weaken;

const HELP: &str = "\
cargo xtask COMMAND

  ci [STAGE ...]      everything that continuous integration runs, or only the named stages
  loom [NAME]         the loom models of every crate, or those whose path contains NAME
  tsan                the concurrency tests under ThreadSanitizer (nightly)
  asan                the same under AddressSanitizer and LeakSanitizer (nightly)
  tidy                the house rules that a program can check
  weaken [NAME]       mutation test of the protocols: relaxes one ordering at a time and expects a
                      model test to fail
  deny                licences and sources of every dependency
  features            builds every crate with no, each single, and all features
  minimal             builds with the oldest direct dependencies that the manifests allow (nightly)
  count [ROW]         instructions per operation under callgrind against the committed bounds
  soak SECONDS        mixed load with faults, invariants checked throughout
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    let result = match arguments.first().map(String::as_str) {
        Some("ci") => ci::run(&rest),
        Some("loom") => loom::run(rest.first().copied()).map(drop),
        Some("tsan") => sanitize::run(sanitize::Sanitizer::Thread).map(drop),
        Some("asan") => sanitize::run(sanitize::Sanitizer::Address).map(drop),
        Some("tidy") => tidy::run(),
        Some("weaken") => weaken::run(rest.first().copied()),
        Some("deny") => deny::run(),
        Some("features") => variants::features(),
        Some("minimal") => variants::minimal(),
        Some("count") => count::run(rest.first().copied()),
        Some("soak") => ci::soak(rest.first().copied().unwrap_or("60")),
        Some("help" | "--help" | "-h") | None => {
            print!("{HELP}");
            Ok(())
        }
        Some(other) => Err(format!("unknown command `{other}`; `cargo xtask help` lists them")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
