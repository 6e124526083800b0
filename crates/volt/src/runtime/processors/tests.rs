use super::available;

/// What a thread that may use one was told holds for that one.
#[test]
fn each_thread_has_the_processors_that_it_may_use() {
    let all = std::thread::available_parallelism().ok().map(usize::from);
    let pinned = || {
        // SAFETY: zeros are an empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the processor on which this thread is; no obligation.
        let here = unsafe { libc::sched_getcpu() }.try_into().unwrap();
        // SAFETY: `set` is initialised.
        unsafe { libc::CPU_SET(here, &mut set) };
        // SAFETY: `set` lives through the call; 0 is this thread.
        let result = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
        assert_eq!(result, 0);
        available()
    };
    for _ in 0..2 {
        std::thread::scope(|scope| assert_eq!(scope.spawn(pinned).join().unwrap(), Some(1)));
        assert_eq!(available(), all);
    }
}
