//! `VOLT_WORKER_THREADS` says how many workers a runtime has that nobody has told otherwise. A process
//! reads it once for all of its threads, so each value has a process of its own: this test's binary again.

use std::io::ErrorKind;
use std::process::{Command, Output};

use volt::runtime::{Builder, Runtime};

/// Set for a process that a test has started.
const CHILD: &str = "VOLT_TEST_CHILD";

/// Runs the test `name` in a process of its own, with this value of the variable.
fn run(name: &str, workers: Option<&str>) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(CHILD, "1");
    match workers {
        Some(workers) => command.env("VOLT_WORKER_THREADS", workers),
        None => command.env_remove("VOLT_WORKER_THREADS"),
    };
    command.output().unwrap()
}

/// What a child prints for its parent: the workers of a default runtime, and of the others.
fn report() -> String {
    let by_default = match Builder::new_multi_thread().build() {
        Ok(runtime) => runtime.metrics().num_workers().to_string(),
        Err(error) => format!("{:?} {error}", error.kind()),
    };
    let short = Runtime::new().map(|runtime| runtime.metrics().num_workers()).map_err(drop);
    let told = Builder::new_multi_thread().worker_threads(5).build().unwrap();
    let current = Builder::new_current_thread().build().unwrap();
    let (told, current) = (told.metrics().num_workers(), current.metrics().num_workers());
    format!("[{by_default}] {short:?} {told} {current}.")
}

#[test]
fn the_variable_is_the_number_of_workers_or_an_error() {
    if std::env::var_os(CHILD).is_some() {
        return println!("{}", report());
    }
    let run = |workers| {
        let output = run("the_variable_is_the_number_of_workers_or_an_error", workers);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let processors = std::thread::available_parallelism().unwrap();
    let said = run(None);
    assert!(said.contains(&format!("[{processors}] Ok({processors}) 5 1.")), "{said}");
    for workers in ["1", "3", "16"] {
        let said = run(Some(workers));
        assert!(said.contains(&format!("[{workers}] Ok({workers}) 5 1.")), "{said}");
    }
    let kind = ErrorKind::InvalidInput;
    for workers in ["0", "", "two", "-1", "1.5", " 2", "99999999999999999999999"] {
        let said = run(Some(workers));
        let complaint = format!(
            "[{kind:?} `VOLT_WORKER_THREADS` is \"{workers}\", not a positive number] Err(()) 5 1."
        );
        assert!(said.contains(&complaint), "{workers:?}: {said}");
    }
}

/// There is nobody to return an error to: a panic that names the variable.
#[test]
fn run_and_main_panic_with_the_variables_name() {
    #[volt::main]
    async fn by_attribute() {}

    if std::env::var_os(CHILD).is_some() {
        for call in [|| volt::run(async {}), by_attribute] {
            let panic = std::panic::catch_unwind(call).unwrap_err();
            println!("[{}]", panic.downcast_ref::<String>().unwrap());
        }
        return;
    }
    let output = run("run_and_main_panic_with_the_variables_name", Some("none"));
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let named = said.matches("`VOLT_WORKER_THREADS` is \"none\", not a positive number]").count();
    assert_eq!(named, 2, "{said}");
}
