//! Names and numbers of runtimes.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::mpsc;

use volt::runtime::{Builder, Handle, LocalRuntime};
use volt::task::LocalSet;

#[test]
fn no_two_runtimes_or_sets_have_the_same_id() {
    let mut ids = HashSet::new();
    for _ in 0..3 {
        let multi = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let current = Builder::new_current_thread().build().unwrap();
        let local = LocalRuntime::new().unwrap();
        let set = LocalSet::new();
        let handles = [multi.handle(), current.handle(), local.handle()];
        let all = handles.map(Handle::id).into_iter().chain([set.id()]);
        for id in all {
            assert!(ids.insert(id), "{id} again");
            assert_ne!(id.to_string().parse::<u64>().unwrap(), 0);
        }
    }
    assert_eq!(ids.len(), 12);
}

#[test]
fn an_id_is_that_of_all_handles() {
    let (a, b) = (LocalRuntime::new().unwrap(), LocalRuntime::new().unwrap());
    let id = a.handle().id();
    assert_eq!(a.handle().clone().id(), id);
    assert_eq!(a.block_on(async { Handle::current().id() }), id);
    let task = a.handle().spawn(async { Handle::current().id() });
    assert_eq!(a.block_on(task).unwrap(), id);
    let closure = a.spawn_blocking(|| Handle::current().id());
    assert_eq!(a.block_on(closure).unwrap(), id);
    let _entered = b.enter();
    assert_eq!(Handle::current().id(), b.handle().id());
}

#[test]
fn a_set_keeps_its_id_wherever_it_is_driven() {
    let set = LocalSet::new();
    let id = set.id();
    for _ in 0..2 {
        let runtime = Builder::new_current_thread().build().unwrap();
        set.block_on(&runtime, async {});
        assert_eq!(set.id(), id);
        assert_ne!(runtime.handle().id(), id);
    }
}

#[test]
fn a_name_is_that_of_all_handles_and_of_each_runtime_of_the_builder() {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).name("first").name(String::from("storage"));
    for _ in 0..2 {
        let runtime = builder.build().unwrap();
        assert_eq!(runtime.handle().name(), Some("storage"));
        let task = runtime.spawn(async { Handle::current().name().map(str::to_owned) });
        assert_eq!(runtime.block_on(task).unwrap().as_deref(), Some("storage"));
        let debug = format!("{:?}", runtime.handle());
        assert!(debug.contains("\"storage\""), "{debug}");
        assert!(debug.contains(&format!("{:?}", runtime.handle().id())), "{debug}");
    }
    let nameless = Builder::new_current_thread().build().unwrap();
    assert_eq!(nameless.handle().name(), None);
    let debug = format!("{:?}", nameless.handle());
    assert!(!debug.contains("name"), "{debug}");
}

#[test]
fn a_name_is_not_that_of_the_threads() {
    let runtime = Builder::new_current_thread().name("storage").build().unwrap();
    let thread = runtime.spawn_blocking(|| std::thread::current().name().map(str::to_owned));
    assert_eq!(runtime.block_on(thread).unwrap().as_deref(), Some("volt-worker"));
}

#[test]
#[should_panic(expected = "`name` must not be empty")]
fn an_empty_name_is_refused() {
    Builder::new_current_thread().name("");
}

#[test]
#[should_panic(expected = "`name` must not be empty")]
fn a_name_of_spaces_is_refused() {
    Builder::new_multi_thread().name(" \t");
}

/// Sends what it is told when it is dropped, which is when its thread ends.
struct AtTheEnd(Box<dyn Fn() + Send>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        (self.0)();
    }
}

std::thread_local! {
    static AT_THE_END: RefCell<Vec<AtTheEnd>> = const { RefCell::new(Vec::new()) };
}

/// In the destructor of a thread-local.
#[test]
fn a_thread_that_ends_knows_its_runtime_or_that_there_is_none() {
    let runtime = Builder::new_current_thread().build().unwrap();
    for stays in [false, true] {
        let (tell, told) = mpsc::channel();
        let handle = runtime.handle().clone();
        let thread = std::thread::spawn(move || {
            let ask = move || tell.send(Handle::try_current()).unwrap();
            AT_THE_END.with_borrow_mut(|all| all.push(AtTheEnd(Box::new(ask))));
            handle.block_on(async {});
            let guard = handle.enter();
            if stays {
                std::mem::forget(guard);
            }
        });
        thread.join().unwrap();
        match told.recv().unwrap() {
            Ok(current) => assert!(stays && current.id() == runtime.handle().id()),
            Err(error) => {
                assert!(!stays);
                assert!(error.is_missing_context() && !error.is_thread_local_destroyed());
            }
        }
    }
}
