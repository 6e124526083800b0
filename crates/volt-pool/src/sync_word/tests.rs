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
        sync.start_failed();
        assert_eq!(sync.spawned(), 0);
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

/// Where the caller goes on with its half of a fork, the woken thread would have to wait for a processor.
#[cfg(target_os = "linux")]
#[test]
fn a_sleeper_of_another_processor_is_woken_first() {
    use super::here;
    use crate::engine::{pin, processors};
    use std::sync::mpsc::channel;
    use std::time::Duration;
    use volt_sync::internal::primitive::thread;

    struct ShutDown<'a>(&'a SyncWord);

    impl Drop for ShutDown<'_> {
        fn drop(&mut self) {
            self.0.shut_down();
        }
    }

    fn is_asleep(thread: libc::pid_t) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('S')
    }

    if processors() < 2 {
        return;
    }
    let sync = SyncWord::new();
    let (woken, woken_one) = channel();
    thread::scope(|s| {
        // Also if something below panics, since the scope waits for the sleepers.
        let _shut_down = ShutDown(&sync);
        // Those that sleep here come first in the kernel's queue.
        let kinds = [(0, 0), (1, 0), (2, 1)].map(|(sleeper, processor)| {
            assert!(sync.count_start(3));
            let (number, its_number) = channel();
            let (sync, woken) = (&sync, woken.clone());
            s.spawn(move || {
                pin(processor);
                // SAFETY: takes nothing, and returns a number.
                number.send((unsafe { libc::gettid() }, here())).unwrap();
                if matches!(sync.wait(false, || false), Waited::Search { .. }) {
                    woken.send(sleeper).unwrap();
                }
            });
            let (number, kind) = its_number.recv().unwrap();
            while sync.idle() <= sleeper || !is_asleep(number) {
                thread::yield_now();
            }
            kind
        });
        pin(0);
        assert_eq!(sync.notify_elsewhere(3), Notified::Done);
        let first = woken_one.recv_timeout(Duration::from_secs(10));
        // Processors whose numbers are a multiple of 32 apart are one kind: then it is the oldest.
        assert_eq!(first, Ok(if kinds[0] == kinds[2] { 0 } else { 2 }));
    });
}
