use super::{Notified, SyncWord, Waited};

#[test]
fn notifying_starts_one_thread_at_a_time() {
    let sync = SyncWord::new();
    assert_eq!(sync.notify(2), Notified::Start);
    assert_eq!(sync.spawned(), 1);
    assert_eq!(sync.notify(2), Notified::Done, "the first one is still on its way");
    assert_eq!(sync.wait(false, || false), Waited::Search { waking: true });
    assert_eq!(sync.notify(2), Notified::Done, "it is looking for work");
    assert_eq!(sync.hand_on(2), Notified::Start);
    assert_eq!(sync.spawned(), 2);
    assert_eq!(sync.wait(false, || false), Waited::Search { waking: true });
    assert_eq!(sync.hand_on(2), Notified::Done, "there are no more to start");
}

/// Finding T2.
#[test]
fn a_start_that_failed_leaves_no_trace() {
    let sync = SyncWord::new();
    for _ in 0..3 {
        assert_eq!(sync.notify(1), Notified::Start);
        assert_eq!(sync.start_failed(), 0);
    }
    assert_eq!(sync.notify(1), Notified::Start);
    assert_eq!(sync.wait(false, || false), Waited::Search { waking: true });
}

#[test]
fn the_waking_thread_that_found_the_last_task_wakes_nobody() {
    let sync = SyncWord::new();
    assert_eq!(sync.notify(2), Notified::Start);
    assert_eq!(sync.wait(false, || false), Waited::Search { waking: true });
    assert_eq!(sync.notify(2), Notified::Done);
    sync.found();
    assert_eq!(sync.spawned(), 1);
    assert_eq!(sync.notify(2), Notified::Start, "PENDING again, and `notified` is consumed");
}

/// Finding T3.
#[test]
fn nothing_overwrites_a_shutdown() {
    let sync = SyncWord::new();
    assert!(sync.shut_down());
    assert!(!sync.shut_down());
    assert_eq!(sync.notify(4), Notified::Done);
    assert_eq!(sync.hand_on(4), Notified::Done);
    assert!(!sync.begin_search());
    sync.found();
    assert_eq!(sync.wait(true, || false), Waited::Shutdown);
    assert!(!sync.count_start(4));
}
