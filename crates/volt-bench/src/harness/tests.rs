use std::process::Command;

use super::*;
use crate::record::Role;

fn nothing(_: &mut crate::bench::Bench) {}

fn row() -> Row {
    Row::new("test/row", "A row")
        .detail()
        .volt("volt", nothing)
        .peer("a", nothing)
        .peer("b", nothing)
}

fn plan(rounds: usize) -> Plan {
    Plan { rounds, detail_rounds: 1, ..Plan::quick() }
}

/// Answers from a closure, and remembers who was asked for what.
struct Script<F> {
    asked: Vec<(String, Mode)>,
    answer: F,
}

impl<F: FnMut(&Child<'_>) -> Result<Sample, String>> Start for Script<F> {
    fn start(&mut self, child: &Child<'_>) -> Result<Sample, String> {
        self.asked.push((child.contender.to_owned(), child.mode));
        (self.answer)(child)
    }
}

fn sample(value: f64) -> Sample {
    Sample {
        value: Some(value),
        iterations: 7,
        ops: 1,
        extra: BTreeMap::from([("x".to_owned(), value)]),
    }
}

#[test]
fn rounds_are_interleaved_and_rotate() {
    let mut script = Script { asked: Vec::new(), answer: |_: &Child<'_>| Ok(sample(1.0)) };
    let row = row();
    let mut steps = 0;
    let result = measure(&row, &plan(3), &mut script, &mut |_| steps += 1);
    let timed: Vec<&str> = script
        .asked
        .iter()
        .filter(|(_, m)| *m == Mode::Time)
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(timed, ["volt", "a", "b", "a", "b", "volt", "b", "volt", "a"]);
    assert_eq!(steps, plan(3).steps(&row), "the progress bar reaches its end");
    assert!(result.contenders.iter().all(|c| c.rounds == [Some(1.0); 3] && c.iterations == 7));
}

#[test]
fn rounds_go_on_while_the_ratio_is_not_known_well() {
    let rounds_with = |values: fn(usize) -> f64, patience| {
        let mut round = 0;
        let answer = |child: &Child<'_>| {
            let ours = child.contender == "volt" && child.mode == Mode::Time;
            round += usize::from(ours);
            Ok(sample(if ours { values(round) } else { 10.0 }))
        };
        let mut script = Script { asked: Vec::new(), answer };
        let plan = Plan { patience, ..plan(9) };
        let result = measure(&row(), &plan, &mut script, &mut |_| {});
        assert!(result.contenders.windows(2).all(|c| c[0].rounds.len() == c[1].rounds.len()));
        result.contenders[0].rounds.len()
    };
    let steady = |_| 10.0;
    let wild = |round| if round % 2 == 0 { 30.0 } else { 1.0 };
    let settles = |round| if round <= 5 { 30.0 * (round % 2) as f64 } else { 5.0 };
    assert_eq!((rounds_with(steady, 4), rounds_with(wild, 4)), (9, 36));
    assert_eq!(rounds_with(settles, 4), 18, "until it is known");
    assert_eq!(rounds_with(wild, 1), 9, "as many as asked");
}

#[test]
fn a_failing_contender_is_reported_and_the_row_goes_on() {
    let mut rounds_of_a = 0;
    let mut script = Script {
        asked: Vec::new(),
        answer: |child: &Child<'_>| {
            if child.contender == "a" && child.mode == Mode::Time {
                rounds_of_a += 1;
                if rounds_of_a == 2 {
                    return Err("crashed: because".to_owned());
                }
            }
            if child.contender == "b" { Err("hung".to_owned()) } else { Ok(sample(2.0)) }
        },
    };
    let result = measure(&row(), &plan(6), &mut script, &mut |_| {});
    let [volt, a, b] = result.contenders.as_slice() else { panic!("three contenders") };
    assert_eq!(volt.rounds, [Some(2.0); 6]);
    assert_eq!(volt.failure, None);
    assert_eq!(a.rounds.iter().flatten().count(), 1, "the round before the failure is kept");
    assert_eq!(a.failure.as_deref(), Some("round 2: crashed: because"));
    assert_eq!(b.failure.as_deref(), Some("calibration: hung"));
    let asked_b = script.asked.iter().filter(|(name, _)| name == "b").count();
    assert_eq!(asked_b, 1, "a contender that failed is not started again");
}

#[test]
fn extras_are_medians_over_the_rounds() {
    let mut next = 0.0;
    let mut script = Script {
        asked: Vec::new(),
        answer: |child: &Child<'_>| {
            if child.mode == Mode::Time && child.contender == "volt" {
                next += 1.0;
                return Ok(sample(next));
            }
            Ok(Sample::default())
        },
    };
    let result = measure(&row(), &plan(5), &mut script, &mut |_| {});
    assert_eq!(result.contenders[0].extra["x"], 3.0);
    assert_eq!(result.contenders[0].role, Role::Volt);
}

fn shell(script: &str) -> Result<Sample, String> {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    process::run(command, Duration::from_millis(1500))
}

#[test]
fn process_failures_are_one_line_with_the_reason() {
    assert_eq!(shell("exec sleep 60").unwrap_err(), "hung: killed after 1.5 s");
    let error = shell(
        "echo \"thread 'main' panicked at x.rs:1:2:\" >&2; echo 'left != right' >&2; echo 'note: run' >&2; exit 101",
    );
    assert_eq!(error.unwrap_err(), "crashed: exit status: 101 (left != right)");
    assert!(shell("kill -SEGV $$").unwrap_err().contains("signal: 11"));
    assert_eq!(shell("echo hello").unwrap_err(), "ended without a result");
    assert!(shell("echo 'volt-bench-sample {'").unwrap_err().contains("cannot be read"));
    assert!(
        process::run(Command::new("/no/such/program"), Duration::from_secs(1))
            .unwrap_err()
            .contains("cannot start")
    );
}

#[test]
fn the_sample_is_found_among_other_output() {
    let sample = shell(
        "echo noise; echo 'volt-bench-sample {\"value\":1.5,\"iterations\":2,\"ops\":3,\"extra\":{}}'; echo more",
    );
    let sample = sample.unwrap();
    assert_eq!((sample.value, sample.iterations, sample.ops), (Some(1.5), 2, 3));
}
