//! The page of each primitive says what somebody who chooses one has to know.

/// The documentation at the top of the module, or of its main type.
fn page(source: &str) -> String {
    let lines = source.lines().map(str::trim_start);
    let docs = lines.filter(|line| line.starts_with("//!") || line.starts_with("///"));
    docs.map(str::to_lowercase).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_page_speaks_of_fairness_cancellation_cost_and_memory() {
    let pages = [
        ("Mutex", include_str!("../src/mutex.rs")),
        ("RwLock", include_str!("../src/rwlock.rs")),
        ("Semaphore", include_str!("../src/semaphore.rs")),
        ("Notify", include_str!("../src/notify.rs")),
        ("Barrier", include_str!("../src/barrier.rs")),
        ("OnceCell", include_str!("../src/once_cell.rs")),
        ("SetOnce", include_str!("../src/set_once.rs")),
        ("mpsc", include_str!("../src/mpsc.rs")),
        ("mpmc", include_str!("../src/mpmc.rs")),
        ("oneshot", include_str!("../src/oneshot.rs")),
        ("broadcast", include_str!("../src/broadcast.rs")),
        ("watch", include_str!("../src/watch.rs")),
    ];
    for (name, source) in pages {
        let page = page(source);
        for topic in ["fairness", "cancel safety", "cost", "memory", "read-modify-write|one load"] {
            assert!(
                topic.split('|').any(|word| page.contains(word)),
                "the page of {name} does not speak of {topic}"
            );
        }
        let chooses = ["when to use which", "use it for", "use\n//! [", "use [`"];
        assert!(chooses.iter().any(|word| page.contains(word)), "when to use {name}?");
    }
}

#[test]
fn the_crates_page_has_the_tables() {
    let page = page(include_str!("../src/lib.rs"));
    for channel in
        ["oneshot", "mpsc::channel", "mpsc::unbounded_channel", "mpmc", "broadcast", "watch"]
    {
        assert!(page.contains(&format!("[`{channel}")), "no row for {channel}");
    }
}
