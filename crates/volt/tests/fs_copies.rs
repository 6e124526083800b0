//! A large write copies its content once: what it allocates, and what it gives to the system at a time.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use volt::fs::{self, File};
use volt::io::AsyncWriteExt;
use volt::runtime::Builder;

struct Counting;

/// All bytes that were ever allocated.
static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: forwards to the system's allocator. (`realloc` is by way of `alloc`.)
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's obligations.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's obligations.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SIZE: usize = 16 << 20;
/// What one operation of a `File` moves.
const PIECE: usize = 2 << 20;
/// Tasks, threads, paths.
const SMALL: usize = 64 << 10;

/// The system calls of this process that write, and their bytes.
fn written() -> (usize, usize) {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    let field = |name: &str| -> usize {
        io.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse().unwrap()
    };
    (field("syscw:"), field("wchar:"))
}

/// What happened between its making and [`end`](Self::end).
struct Cost {
    allocated: usize,
    written: (usize, usize),
}

impl Cost {
    fn begin() -> Self {
        Self { allocated: BYTES.load(Relaxed), written: written() }
    }

    fn end(self) -> Self {
        let (calls, bytes) = written();
        Self {
            allocated: BYTES.load(Relaxed) - self.allocated,
            written: (calls - self.written.0, bytes - self.written.1),
        }
    }
}

/// One test: the counters are the process's.
#[test]
fn large_writes_copy_once() {
    let content: Vec<u8> = (0..SIZE).map(|index| (index % 251) as u8).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it");
    for workers in [0, 1, 2, 8] {
        let mut builder = match workers {
            0 => Builder::new_current_thread(),
            _ => Builder::new_multi_thread(),
        };
        builder.worker_threads(workers.max(1)).build().unwrap().block_on(async {
            // Wake-ups between threads are writes as well, of eight bytes each.
            let calls = |pieces: usize| pieces..pieces + 64;

            let begin = Cost::begin();
            fs::write(&path, &content).await.unwrap();
            let cost = begin.end();
            assert!((SIZE..SIZE + SMALL).contains(&cost.allocated), "{}", cost.allocated);
            assert!(calls(1).contains(&cost.written.0), "{:?}", cost.written);
            assert!((SIZE..SIZE + SMALL).contains(&cost.written.1), "{:?}", cost.written);
            assert!(std::fs::read(&path).unwrap() == content);

            let mut file = File::create(&path).await.unwrap();
            let begin = Cost::begin();
            file.write_all(&content).await.unwrap();
            file.flush().await.unwrap();
            let cost = begin.end();
            // The copy is made in pieces, all in the same buffer.
            assert!((PIECE..PIECE + SMALL).contains(&cost.allocated), "{}", cost.allocated);
            assert!(calls(SIZE / PIECE).contains(&cost.written.0), "{:?}", cost.written);
            assert!((SIZE..SIZE + SMALL).contains(&cost.written.1), "{:?}", cost.written);
            assert!(std::fs::read(&path).unwrap() == content);
        });
    }
}
