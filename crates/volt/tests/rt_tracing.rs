//! The spans of tasks (feature `tracing`), as a subscriber sees them.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use volt::runtime::{Builder, Runtime};
use volt::sync::internal::primitive::Mutex;
use volt::task::{JoinSet, LocalSet, yield_now};

/// What happened to a span.
#[derive(Clone, Debug, Default)]
struct Log {
    name: &'static str,
    fields: BTreeMap<&'static str, String>,
    entered: u32,
    exited: u32,
    closed: bool,
}

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

/// The spans of the process by their ids. Each has one reference from `new_span`, and a count of
/// clones would only hide a task that keeps its span: nobody here clones one.
static SPANS: Mutex<BTreeMap<u64, Log>> = Mutex::new(BTreeMap::new());
static NEXT: AtomicU64 = AtomicU64::new(1);

struct Recorder;

impl Recorder {
    fn change(id: &Id, change: impl FnOnce(&mut Log)) {
        change(SPANS.lock().unwrap().get_mut(&id.into_u64()).expect("a span of ours"));
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target() == "volt::task"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut log = Log { name: span.metadata().name(), ..Log::default() };
        span.record(&mut log);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        SPANS.lock().unwrap().insert(id, log);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        Self::change(span, |log| values.record(log));
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        Self::change(span, |log| log.entered += 1);
    }

    fn exit(&self, span: &Id) {
        Self::change(span, |log| log.exited += 1);
    }

    fn try_close(&self, span: Id) -> bool {
        Self::change(&span, |log| log.closed = true);
        true
    }
}

/// Begins to record, whichever test comes first.
fn record() {
    static RECORDING: Once = Once::new();
    RECORDING.call_once(|| tracing::subscriber::set_global_default(Recorder).unwrap());
}

/// The span of the only task that was spawned in `line` of this file.
#[track_caller]
fn span_of(line: u32) -> Log {
    let spans = SPANS.lock().unwrap();
    let mut of_line = spans.values().filter(|log| {
        log.fields["loc.file"] == file!() && log.fields["loc.line"] == line.to_string()
    });
    let log = of_line.next().expect("a span").clone();
    assert!(of_line.next().is_none(), "two spans of line {line}");
    log
}

/// Checks the span of a task that is gone and was polled `polls` times.
#[track_caller]
fn check(line: u32, kind: &str, id: &str, polls: u32) {
    let log = span_of(line);
    assert_eq!((log.name, &*log.fields["kind"]), ("runtime.spawn", kind));
    assert_eq!(log.fields["task.id"], id);
    assert!(log.fields["loc.col"].parse::<u32>().unwrap() > 1);
    assert!(log.fields.contains_key("size.bytes"));
    assert_eq!(log.entered, polls, "{log:?}");
    assert_eq!(log.exited, log.entered);
    assert!(log.closed);
}

/// Polled three times; inside of its span each time.
async fn three_polls(line: u32) {
    for before in 0..3 {
        let log = span_of(line);
        assert_eq!((log.entered, log.exited), (before + 1, before));
        assert_eq!(log.fields["task.id"], volt::task::id().to_string());
        if before < 2 {
            yield_now().await;
        }
    }
}

/// A future is dropped inside of its span, too: one time more than it is polled.
const DROP: u32 = 1;

fn runtimes() -> [Runtime; 2] {
    [
        Builder::new_multi_thread().worker_threads(2).build().unwrap(),
        Builder::new_current_thread().build().unwrap(),
    ]
}

#[test]
fn a_span_is_entered_at_each_poll_and_closed_with_the_task() {
    record();
    let [multi, current] = runtimes();
    let line = line!() + 1;
    let task = multi.spawn(three_polls(line));
    let id = task.id().to_string();
    multi.block_on(task).unwrap();
    check(line, "task", &id, 3 + DROP);

    let line = line!() + 1;
    let task = current.handle().spawn(three_polls(line));
    let id = task.id().to_string();
    current.block_on(task).unwrap();
    check(line, "task", &id, 3 + DROP);

    let entered = multi.enter();
    let line = line!() + 1;
    let task = volt::spawn(three_polls(line));
    drop(entered);
    let id = task.id().to_string();
    multi.block_on(task).unwrap();
    check(line, "task", &id, 3 + DROP);
}

#[test]
fn a_set_names_the_place_of_its_caller() {
    record();
    let [multi, _] = runtimes();
    multi.block_on(async {
        let mut set = JoinSet::new();
        let line = line!() + 1;
        let id = set.spawn(three_polls(line)).id().to_string();
        set.join_next().await.unwrap().unwrap();
        check(line, "task", &id, 3 + DROP);

        let local = LocalSet::new();
        let line = line!() + 1;
        let id = set.spawn_local_on(three_polls(line), &local).id().to_string();
        local.await;
        set.join_next().await.unwrap().unwrap();
        check(line, "local", &id, 3 + DROP);
    });
}

#[test]
fn local_tasks_and_blocking_closures_say_what_they_are() {
    record();
    let [multi, current] = runtimes();
    let local = LocalSet::new();
    let entered = local.enter();
    let line = line!() + 1;
    let task = volt::task::spawn_local(three_polls(line));
    drop(entered);
    let id = task.id().to_string();
    local.block_on(&current, task).unwrap();
    check(line, "local", &id, 3 + DROP);

    let line = line!() + 1;
    let task = multi.spawn_blocking(move || span_of(line));
    let id = task.id().to_string();
    let inside = multi.block_on(task).unwrap();
    assert_eq!((inside.entered, inside.exited, &*inside.fields["task.id"]), (1, 0, &*id));
    check(line, "blocking", &id, 1);

    let _entered = multi.enter();
    let line = line!() + 1;
    let task = volt::task::spawn_blocking(|| volt::task::id().to_string());
    let id = multi.block_on(task).unwrap();
    check(line, "blocking", &id, 1);
}

#[test]
fn a_span_begins_with_the_spawn_and_ends_without_a_poll() {
    record();
    let [_, current] = runtimes();
    let line = line!() + 1;
    let task = current.spawn(three_polls(line));
    let log = span_of(line);
    assert_eq!((log.entered, log.closed), (0, false));
    assert!(!log.fields.contains_key("task.id"));
    drop(current);
    assert!(task.join().unwrap_err().is_cancelled());
    let log = span_of(line);
    assert_eq!((log.entered, log.exited, log.closed), (DROP, DROP, true));
}

#[test]
fn a_panic_leaves_the_span() {
    record();
    let [multi, _] = runtimes();
    let line = line!() + 1;
    let task = multi.spawn(async { panic!("inside of the span") });
    let id = task.id().to_string();
    assert!(multi.block_on(task).unwrap_err().is_panic());
    check(line, "task", &id, 1 + DROP);
}
