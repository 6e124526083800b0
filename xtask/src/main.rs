//! The project's only scripts: `cargo xtask help` lists them.
#![forbid(unsafe_code)]

use std::process::ExitCode;

mod ci;
mod command;
mod count;
mod deny;
mod ecosystem;
mod idle;
mod loom;
mod program;
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
  ecosystem           crates that were written for Tokio, on Volt
  features            builds every crate with no, each single, and all features
  minimal             builds with the oldest direct dependencies that the manifests allow (nightly)
  count [ROW]         instructions per operation under callgrind against the committed bounds
  idle                under strace: idle runtimes make no system call
  soak SECONDS        mixed load with faults, invariants checked throughout
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (*command, rest),
        None => ("help", &[][..]),
    };
    match surplus(command, rest).map_or_else(|| run(command, rest), Err) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &str, rest: &[&str]) -> Result<(), String> {
    let first = rest.first().copied();
    match command {
        "ci" => ci::run(rest),
        "loom" => loom::run(first).map(drop),
        "tsan" => sanitize::run(sanitize::Sanitizer::Thread).map(drop),
        "asan" => sanitize::run(sanitize::Sanitizer::Address).map(drop),
        "tidy" => tidy::run(),
        "weaken" => weaken::run(first),
        "deny" => deny::run(),
        "ecosystem" => ecosystem::run().map(drop),
        "features" => variants::features(),
        "minimal" => variants::minimal(),
        "count" => count::run(first),
        "idle" => idle::run(),
        "soak" => ci::soak(first.unwrap_or("60")),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("unknown command `{other}`; `cargo xtask help` lists them")),
    }
}

/// What is wrong with the number of arguments: one that nobody reads is a mistake.
fn surplus(command: &str, rest: &[&str]) -> Option<String> {
    let most = match command {
        "loom" | "weaken" | "count" | "soak" => 1,
        "tsan" | "asan" | "tidy" | "deny" | "ecosystem" | "features" | "minimal" | "idle" => 0,
        // It names the stages that it does not know; and so does `run` an unknown command.
        _ => return None,
    };
    let surplus = rest.get(most)?;
    let takes = if most == 0 { "no argument" } else { "one argument at most" };
    Some(format!("`{command}` takes {takes}: what is `{surplus}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surplus_arguments_are_named() {
        let message = surplus("tidy", &["extra"]).unwrap();
        assert_eq!(message, "`tidy` takes no argument: what is `extra`?");
        let message = surplus("loom", &["ring", "idle"]).unwrap();
        assert_eq!(message, "`loom` takes one argument at most: what is `idle`?");
        for (command, rest) in [("tidy", &[][..]), ("loom", &["ring"]), ("ci", &["fmt", "tidy"])] {
            assert_eq!(surplus(command, rest), None);
        }
        assert!(run("ci", &["nonsense"]).unwrap_err().contains("unknown stage `nonsense`"));
        assert!(run("nonsense", &[]).unwrap_err().contains("unknown command `nonsense`"));
    }
}
