#![allow(clippy::disallowed_methods, reason = "a test")]

use volt_sync::internal::primitive::{Arc, thread};

use crate::runtime::config::Config;
use crate::runtime::driver::Driver;
use crate::runtime::scheduler::guests::guest;
use crate::runtime::scheduler::shared::Shared;
use crate::sync::oneshot;
use crate::time::Clock;

/// While one thread has the place, others come and go: none of them stays on the list.
#[test]
fn who_has_waited_is_on_the_list_no_more() {
    let (driver, handle) = Driver::new(1, Clock::real()).unwrap();
    let shared = Shared::new(Config::default(), 0, driver, handle);
    let ((inside, is_inside), (end, ended)) = (std::sync::mpsc::channel(), oneshot::channel());
    let theirs = shared.clone();
    let holder = thread::spawn(move || {
        guest::block_on(&theirs, async {
            crate::task::yield_now().await;
            inside.send(()).unwrap();
            ended.await.unwrap();
        });
    });
    is_inside.recv().unwrap();
    for _ in 0..3 {
        let theirs = shared.clone();
        thread::spawn(move || guest::block_on(&theirs, crate::task::yield_now())).join().unwrap();
        assert_eq!(shared.waiting.len(), 0);
    }
    let theirs = shared.clone();
    let gives_up = move || {
        guest::block_on(&theirs, async {
            crate::task::yield_now().await;
            panic!("planned");
        });
    };
    assert!(thread::spawn(gives_up).join().is_err());
    assert_eq!(shared.waiting.len(), 0);
    end.send(()).unwrap();
    holder.join().unwrap();
    assert_eq!(Arc::strong_count(&shared), 1);
}
