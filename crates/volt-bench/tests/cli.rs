//! The command as a user meets it. The rows are the hidden ones that test the instrument itself.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test of a command, on threads"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

fn bench(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_volt-bench"));
    command.args(arguments).env_remove("VOLT_BENCH_SLOW");
    command
}

/// One command at a time, so that none disturbs what another measures.
static ALONE: Mutex<()> = Mutex::new(());

fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Output { status, stdout, stderr } = command.output().expect("the command starts");
    (
        status.code(),
        String::from_utf8_lossy(&stdout).into_owned(),
        String::from_utf8_lossy(&stderr).into_owned(),
    )
}

/// A file of this test alone, in the directory that cargo gives tests.
fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if path.exists() {
        std::fs::remove_file(&path).expect("an old file can be removed");
    }
    path
}

fn record(path: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("the record is written"))
        .expect("it is JSON")
}

#[test]
fn a_slowed_volt_is_reported_as_behind_and_an_equal_one_is_not() {
    let json = scratch("slow.json");
    let arguments =
        ["--filter", "selftest/spin", "--json", json.to_str().unwrap(), "--fail-behind", "300"];
    let (code, output, errors) = run(&mut bench(&arguments));
    assert_eq!(code, Some(0), "both run the same code: {output}{errors}");

    // A factor so large that no load of the machine hides it.
    let (code, output, errors) = run(bench(&arguments).env("VOLT_BENCH_SLOW", "50"));
    assert_eq!(code, Some(3), "{output}{errors}");
    assert!(output.contains(" behind\n"), "{output}");
    assert!(errors.contains("selftest/spin: behind twin by"), "{errors}");
    assert_eq!(record(&json)["handicapped"], true);
}

#[test]
fn contenders_that_fail_are_named_and_the_others_are_measured() {
    let json = scratch("faults.json");
    let arguments =
        ["--filter", "selftest/faults", "--rounds", "2", "--json", json.to_str().unwrap()];
    let (code, output, errors) = run(&mut bench(&arguments));
    assert_eq!(code, Some(0), "{output}{errors}");
    for told in [
        "crashing: calibration: crashed: signal: 6",
        "(assertion `left == right` failed: the sum is wrong)",
        "silent",
    ] {
        assert!(output.contains(told), "{told}: {output}");
    }
    let record = record(&json);
    let contenders = record["rows"][0]["contenders"].as_array().expect("contenders");
    for healthy in ["volt", "twin"] {
        let contender = contenders.iter().find(|c| c["name"] == healthy).expect("listed");
        assert_eq!(contender["rounds"].as_array().map(Vec::len), Some(2));
        assert!(contender["rounds"][1].as_f64().is_some_and(|v| v > 0.0), "{contender}");
        assert!(contender.get("failure").is_none());
    }
}

#[test]
fn wrong_arguments_end_with_2_and_say_what_is_wrong() {
    for (arguments, told) in [
        (vec!["--filter", "mutexxx"], "no row matches `mutexxx`"),
        (vec!["--filter", "selftest/spin", "--contenders", "nobody"], "no contender `nobody`"),
        (
            vec!["count-row", "net/accept", "5"],
            "cannot be counted|is not a row that can be counted",
        ),
        (vec!["count-row", "selftest/spin", "5", "--contender", "x"], "there are: volt, twin"),
        (vec!["--quick", "--full"], "cannot be used with"),
    ] {
        let (code, _, errors) = run(&mut bench(&arguments));
        assert_eq!(code, Some(2), "{arguments:?}: {errors}");
        assert!(told.split('|').any(|t| errors.contains(t)), "{arguments:?}: {errors}");
    }
}

#[test]
fn an_unwritable_file_is_told_before_anything_is_measured() {
    let (code, output, errors) =
        run(&mut bench(&["--filter", "selftest/spin", "--json", "/no/such/directory/x.json"]));
    assert_eq!(code, Some(1));
    assert!(errors.contains("cannot write /no/such/directory/x.json"), "{errors}");
    assert!(output.is_empty(), "{output}");
}

#[test]
fn the_record_is_kept_when_the_file_goes_away_meanwhile() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vanishing");
    std::fs::create_dir_all(&directory).unwrap();
    let json = directory.join("record.json");
    let child =
        bench(&["--filter", "selftest/spin", "--rounds", "20", "--json", json.to_str().unwrap()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
    let start = std::time::Instant::now();
    while !json.exists() {
        assert!(start.elapsed().as_secs() < 30, "the file is opened first");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    std::fs::remove_dir_all(&directory).unwrap();
    let output = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let kept = errors.split("; kept in ").nth(1).expect("it says where the record is").trim();
    assert_eq!(record(Path::new(kept))["rows"][0]["id"], "selftest/spin");
    std::fs::remove_file(kept).unwrap();
}

#[test]
fn an_interrupted_run_keeps_its_rows() {
    use std::os::unix::process::CommandExt as _;

    let (json, html) = (scratch("interrupted.json"), scratch("interrupted.html"));
    let files = ["--json", json.to_str().unwrap(), "--html", html.to_str().unwrap()];
    let child = bench(&["--filter", "selftest/spin", "--filter", "selftest/hang", "--rounds", "6"])
        .args(files)
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let start = std::time::Instant::now();
    while std::fs::metadata(&json).map_or(0, |file| file.len()) == 0 {
        assert!(start.elapsed().as_secs() < 60, "the first row ends");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // As the terminal does it: the whole group, while the second row hangs.
    let group = format!("-{}", child.id());
    let sent = Command::new("kill").args(["-INT", "--", &group]).status().expect("kill starts");
    assert!(sent.success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    assert!(start.elapsed().as_secs() < 60, "it does not wait for the child that hangs");
    assert!(String::from_utf8_lossy(&output.stdout).contains("The run was not finished."));
    let record = record(&json);
    assert_eq!(record["complete"], false);
    assert_eq!(record["rows"].as_array().map(Vec::len), Some(1));
    assert!(std::fs::read_to_string(&html).unwrap().contains("The same loop twice"));
}

#[test]
fn two_records_are_compared_and_a_record_is_shown_as_a_page() {
    let (old, html) = (scratch("old.json"), scratch("page.html"));
    let (code, ..) =
        run(&mut bench(&["--filter", "selftest/spin", "--json", old.to_str().unwrap()]));
    assert_eq!(code, Some(0));
    // An older Volt that was a hundred times faster: no load of the machine hides that.
    let mut edited = record(&old);
    for value in edited["rows"][0]["contenders"][0]["rounds"].as_array_mut().expect("rounds") {
        *value = (value.as_f64().expect("a number") / 100.0).into();
    }
    std::fs::write(&old, edited.to_string()).unwrap();
    let against =
        ["--filter", "selftest/spin", "--compare", old.to_str().unwrap(), "--fail-behind"];
    let (code, output, errors) = run(bench(&against).arg("100000"));
    assert_eq!(code, Some(0), "not that much: {errors}");
    assert!(output.contains("1 rows in both: 1 slower, 0 faster."), "{output}");
    let (code, _, errors) = run(bench(&against).arg("10"));
    assert_eq!(code, Some(3), "{errors}");
    assert!(errors.contains("selftest/spin: slower than the older record by"), "{errors}");

    let (code, output, _) =
        run(&mut bench(&["show", old.to_str().unwrap(), "--html", html.to_str().unwrap()]));
    assert_eq!(code, Some(0));
    assert!(output.contains("The same loop twice"), "{output}");
    assert!(std::fs::read_to_string(&html).unwrap().contains("prefers-color-scheme: dark"));

    let (code, _, errors) =
        run(&mut bench(&["--filter", "selftest/spin", "--compare", html.to_str().unwrap()]));
    assert_eq!(code, Some(1));
    assert!(errors.contains("is not a record of this command"), "{errors}");
}

#[test]
fn counting_runs_the_row_once_and_lists_what_it_can() {
    let (code, output, errors) = run(&mut bench(&["count-row", "selftest/spin", "1000"]));
    assert_eq!((code, output.as_str()), (Some(0), "1000 iterations of 1 operations\n"), "{errors}");
    let (code, output, _) = run(&mut bench(&["--list-count"]));
    assert_eq!(code, Some(0));
    assert!(
        output.lines().any(|l| l.starts_with("sync/mutex_try ") && l.contains("tokio")),
        "{output}"
    );
    assert!(
        output.lines().all(|l| !l.starts_with("net/")),
        "only rows of one thread without the kernel: {output}"
    );
}

#[test]
fn whoever_has_seen_enough_may_go() {
    let json = scratch("unseen.json");
    let run_row = ["--filter", "selftest/spin", "--rounds", "2", "--json", json.to_str().unwrap()];
    for arguments in [&["--list"][..], &["--list-count"], &run_row] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let command = bench(arguments).stdout(writer).stderr(Stdio::piped()).spawn();
        let output = command.expect("the command starts").wait_with_output().expect("it ends");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
        assert!(!errors.contains("panicked"), "{arguments:?}: {errors}");
    }
    assert_eq!(record(&json)["complete"], true, "what was measured is kept");
}

#[test]
fn the_list_marks_headline_rows_and_hides_the_instruments_own() {
    let (code, output, _) = run(&mut bench(&["--list"]));
    assert_eq!(code, Some(0));
    assert!(output.lines().any(|l| l.starts_with("* sync/mutex_try")), "{output}");
    assert!(!output.contains("selftest"), "{output}");
}
