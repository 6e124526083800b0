//! Random choices that can be repeated, counts of what lives, and what the process holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

use volt::runtime::Handle;
use volt::task::JoinError;

/// `splitmix64`.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn micros(&mut self, bound: u64) -> Duration {
        Duration::from_micros(self.below(bound))
    }

    pub fn fork(&mut self) -> Self {
        Self(self.next())
    }
}

/// What a workload made, ran and dropped.
#[derive(Default)]
pub struct Tally {
    made: AtomicU64,
    dropped: AtomicU64,
    planned: AtomicU64,
    ran: AtomicU64,
}

/// Lives as long as what it is put into; its drop is counted.
pub struct Token(Arc<Tally>);

impl Tally {
    pub fn token(self: &Arc<Self>) -> Token {
        self.made.fetch_add(1, SeqCst);
        Token(self.clone())
    }

    /// A token of something that must run, once: [`Token::run`].
    pub fn plan(self: &Arc<Self>) -> Token {
        self.planned.fetch_add(1, SeqCst);
        self.token()
    }

    pub fn balances(&self) -> bool {
        let [made, dropped, planned, ran] = self.all();
        made == dropped && planned == ran
    }

    pub fn all(&self) -> [u64; 4] {
        [&self.made, &self.dropped, &self.planned, &self.ran].map(|count| count.load(SeqCst))
    }

    pub fn report(&self) -> String {
        let [made, dropped, planned, ran] = self.all();
        format!("{made} made, {dropped} dropped, {planned} to run, {ran} ran")
    }
}

impl Token {
    /// One more of the same workload.
    pub fn another(&self) -> Self {
        self.0.token()
    }

    pub fn run(self) {
        self.0.ran.fetch_add(1, SeqCst);
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, SeqCst);
    }
}

/// What a workload gets.
pub struct Context {
    pub rng: Rng,
    pub tally: Arc<Tally>,
    pub handle: Handle,
}

impl Context {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    pub fn token(&self) -> Token {
        self.tally.token()
    }

    pub fn plan(&self) -> Token {
        self.tally.plan()
    }
}

/// The payload of the panics that are meant.
pub struct Planned;

/// Panics without a message on the terminal.
pub fn planned() -> ! {
    std::panic::resume_unwind(Box::new(Planned))
}

#[track_caller]
pub fn assert_planned(error: JoinError) {
    match error.try_into_panic() {
        Ok(payload) => assert!(payload.is::<Planned>(), "another panic than the planned one"),
        Err(error) => panic!("not a panic: {error}"),
    }
}

/// Fails, with the caller's place, what would hang.
#[track_caller]
pub fn bounded<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let place = std::panic::Location::caller();
    async move {
        match volt::time::timeout(Duration::from_secs(40), future).await {
            Ok(output) => output,
            Err(_) => panic!("stuck for 40 s: {place}"),
        }
    }
}

/// True under a sanitizer, which has descriptors, threads and children of its own.
pub fn sanitized() -> bool {
    std::env::var_os("ASAN_OPTIONS").is_some() || std::env::var_os("TSAN_OPTIONS").is_some()
}

pub fn threads_of_linux() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

fn descriptors() -> usize {
    open_files().len()
}

/// What the descriptors are of.
pub fn open_files() -> Vec<std::path::PathBuf> {
    let all = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    all.filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect()
}

fn resident_kib() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).map_or(0, |pages: u64| pages * 4)
}

/// True if there is no child process, zombies included.
fn childless() -> bool {
    // SAFETY: the information is plain data, for which zeros are valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: writes to a variable of ours, and with `WNOWAIT` takes nothing from anybody.
    let result = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, flags) };
    result == -1
}

/// What the process holds.
#[derive(Clone, Copy, Debug)]
pub struct Holdings {
    pub bytes: i64,
    pub descriptors: usize,
    pub threads: usize,
    pub childless: bool,
    pub resident_kib: u64,
}

impl Holdings {
    pub fn now() -> Self {
        Self {
            bytes: LIVE.load(Relaxed),
            descriptors: descriptors(),
            threads: threads_of_linux(),
            childless: childless(),
            resident_kib: resident_kib(),
        }
    }

    /// With what the allocator keeps of freed memory given back to the system.
    pub fn trimmed(mut self) -> Self {
        #[cfg(target_env = "gnu")]
        // SAFETY: no memory that anybody uses is involved.
        unsafe {
            libc::malloc_trim(0);
        }
        self.resident_kib = resident_kib();
        self
    }

    fn no_more_than(&self, start: &Self, slack: i64) -> bool {
        let own = self.descriptors <= start.descriptors
            && self.threads <= start.threads
            && self.childless;
        self.bytes <= start.bytes + slack && (own || sanitized())
    }

    /// Waits until no more is held than at the `start`.
    pub fn settle(start: &Self, slack: i64) -> Result<Self, Self> {
        let begin = Instant::now();
        loop {
            let now = Self::now();
            if now.no_more_than(start, slack) {
                return Ok(now.trimmed());
            }
            if begin.elapsed() > Duration::from_secs(10) {
                return Err(now);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);

#[allow(clippy::cast_possible_wrap, reason = "no layout is larger than isize::MAX")]
fn count(change: usize, sign: i64) {
    LIVE.fetch_add(sign * change as i64, Relaxed);
}

// SAFETY: forwards to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller's obligations.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller's obligations.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
