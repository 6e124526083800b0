//! The memory of tasks.
//!
//! Purpose: a task lives for some hundred nanoseconds, and the allocator took a third of the
//! instructions from its spawn to its end. So a member keeps the memory of tasks that end on its
//! thread, and gives it to those that are spawned there next.
//!
//! State, for each thread: a list of free blocks for each multiple of [`STEP`] bytes, the bytes that
//! are in them, and how many that may be: [`MOST`] on a thread that runs tasks, none on one that
//! sleeps or is no member. So a runtime that has nothing to do keeps nothing.
//! What is full of other sizes makes room for a new one by giving all of them back.
//!
//! Invariants:
//! 1. A block in list `n` is nobody else's, was allocated with the [`layout`] of `n`, and its first
//!    word is its link.
//! 2. `kept` is the sum of the blocks' sizes, and not more than `limit`.
//!
//! Rejected: sizes in powers of two (an idle task would take 128 bytes, not 72); lists that members
//! share (a lock, where the allocator has none); memory that goes back to the thread that allocated it.
//!
//! Where a tool watches the heap (Miri, the sanitizers with the flags of `cargo xtask ci`, loom), nothing is
//! kept: it would not see who uses a task after its end.
//!
//! Cost: some ten instructions for either; what finds no block, or no room, costs those more than before.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr::NonNull;

/// Sizes differ by so much, which is their alignment, too.
const STEP: usize = 8;
/// How many sizes there are, from 0: larger tasks do enough to pay the allocator.
const SIZES: usize = 64;
/// Bytes that are kept by a thread that runs tasks.
const MOST: usize = if cfg!(any(volt_loom, volt_asan, volt_tsan, miri)) { 0 } else { 32 << 10 };

std::thread_local! {
    static FREE: Free = const { Free::new() };
}

struct Free {
    lists: [Cell<Option<NonNull<Block>>>; SIZES],
    kept: Cell<usize>,
    limit: Cell<usize>,
}

/// A free block.
struct Block {
    next: Option<NonNull<Block>>,
}

/// Memory for a task of this layout, which is not empty.
#[inline]
pub(super) fn allocate(layout: Layout) -> NonNull<u8> {
    let take = |list| FREE.try_with(|free| free.take(list)).ok().flatten();
    match list_of(layout).and_then(take) {
        Some(block) => block,
        None => allocate_new(layout),
    }
}

fn allocate_new(layout: Layout) -> NonNull<u8> {
    debug_assert!(layout.size() > 0, "a task has a header");
    // SAFETY: the layout is not empty, since it has a task's header in it.
    let place = unsafe { alloc(layout) };
    NonNull::new(place).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Takes the memory of a task back.
///
/// # Safety
/// `place` was allocated by [`allocate`] with this layout, and nobody uses it any more.
#[inline]
pub(super) unsafe fn free(place: NonNull<u8>, layout: Layout) {
    let keep = |list| {
        // SAFETY: the caller's obligation, with `list` that of its layout.
        FREE.try_with(|free| unsafe { free.put(list, place) }).unwrap_or(false)
    };
    if !list_of(layout).is_some_and(keep) {
        // SAFETY: allocated by `alloc` with this layout, whoever had it since.
        unsafe { dealloc(place.as_ptr(), layout) };
    }
}

/// This thread runs tasks from now on.
#[inline]
pub(crate) fn keep() {
    // An error means that the thread is ending.
    let _ended = FREE.try_with(|free| free.limit.set(MOST));
}

/// This thread runs no tasks for a time, or for good.
#[inline]
pub(crate) fn give_back() {
    let _ended = FREE.try_with(|free| {
        free.limit.set(0);
        if free.kept.get() > 0 {
            free.empty();
        }
    });
}

/// Where a block of this layout is kept.
#[inline]
const fn list_of(layout: Layout) -> Option<usize> {
    let list = layout.size() / STEP;
    let fits = layout.align() == STEP && layout.size() % STEP == 0 && list < SIZES;
    if fits { Some(list) } else { None }
}

/// The layout of the blocks in a list.
const fn layout(list: usize) -> Layout {
    match Layout::from_size_align(list * STEP, STEP) {
        Ok(layout) => layout,
        Err(_) => unreachable!(),
    }
}

impl Free {
    const fn new() -> Self {
        let lists = [const { Cell::new(None) }; SIZES];
        Self { lists, kept: Cell::new(0), limit: Cell::new(0) }
    }

    #[inline]
    fn take(&self, list: usize) -> Option<NonNull<u8>> {
        let block = self.lists[list].get()?;
        // SAFETY: a block in a list is ours (invariant 1).
        self.lists[list].set(unsafe { block.as_ref() }.next);
        self.kept.set(self.kept.get() - list * STEP);
        Some(block.cast())
    }

    /// False if there is no room.
    ///
    /// # Safety
    /// `place` is a block of the list's layout, and the caller's, who gives it away if this is true.
    #[inline]
    unsafe fn put(&self, list: usize, place: NonNull<u8>) -> bool {
        let size = list * STEP;
        if self.kept.get() + size > self.limit.get() && !self.makes_room(list) {
            return false;
        }
        self.kept.set(self.kept.get() + size);
        let block = place.cast::<Block>();
        // SAFETY: ours, and large enough: tasks are larger than their header, and aligned to `STEP`.
        unsafe { block.write(Block { next: self.lists[list].get() }) };
        self.lists[list].set(Some(block));
        true
    }

    /// There is no room for a block of this list. If it is the first of its size, the others are of a time that is
    /// over: that the next ones of this size end here will pay for them.
    #[cold]
    fn makes_room(&self, list: usize) -> bool {
        let makes = self.lists[list].get().is_none() && list * STEP <= self.limit.get();
        if makes {
            self.empty();
        }
        makes
    }

    /// Frees all blocks.
    #[cold]
    fn empty(&self) {
        for list in 0..SIZES {
            while let Some(block) = self.take(list) {
                // SAFETY: it was allocated with this layout (invariant 1), and is in no list any more.
                unsafe { dealloc(block.as_ptr(), layout(list)) };
            }
        }
    }
}

impl Drop for Free {
    fn drop(&mut self) {
        self.empty();
    }
}

#[cfg(all(test, not(any(volt_loom, volt_asan, volt_tsan, miri))))]
mod tests {
    use super::*;

    /// Runs `test` on a thread of its own, which keeps nothing yet.
    fn on_a_new_thread(test: impl FnOnce() + Send) {
        std::thread::scope(|scope| {
            scope.spawn(test);
        });
    }

    fn kept() -> usize {
        FREE.with(|free| free.kept.get())
    }

    fn free_all(blocks: Vec<NonNull<u8>>, layout: Layout) {
        for block in blocks {
            // SAFETY: allocated with this layout, once.
            unsafe { free(block, layout) };
        }
    }

    #[test]
    fn what_was_freed_is_given_to_the_next_of_its_size() {
        on_a_new_thread(|| {
            keep();
            let (small, large) = (layout(9), layout(10));
            let first = [allocate(small), allocate(small), allocate(large)];
            free_all(vec![first[2]], large);
            free_all(first[..2].to_vec(), small);
            assert_eq!(kept(), 72 + 72 + 80);
            let again = [allocate(small), allocate(large), allocate(small)];
            assert_eq!(again, [first[1], first[2], first[0]]);
            assert_eq!(kept(), 0);
            free_all(vec![again[1]], large);
            free_all(vec![again[0], again[2]], small);
        });
    }

    #[test]
    fn a_thread_keeps_some_only_while_it_runs_tasks() {
        on_a_new_thread(|| {
            let layout = layout(16);
            let some = || (0..1000).map(|_| allocate(layout)).collect();
            free_all(some(), layout);
            assert_eq!(kept(), 0, "it is no member");
            keep();
            free_all(some(), layout);
            assert_eq!(kept(), MOST);
            give_back();
            assert_eq!(kept(), 0, "it sleeps");
        });
    }

    #[test]
    fn a_size_that_is_new_gets_room() {
        on_a_new_thread(|| {
            keep();
            let blocks = |list| (0..1000).map(|_| allocate(layout(list))).collect();
            free_all(blocks(16), layout(16));
            assert_eq!(kept(), MOST);
            free_all(vec![allocate(layout(10))], layout(10));
            assert_eq!(kept(), 80);
            free_all(blocks(16), layout(16));
            assert_eq!(kept(), MOST - MOST % 128 - 128 + 80, "the two are beside each other");
            free_all(blocks(10), layout(10));
            assert!((MOST - 80..=MOST).contains(&kept()));
        });
    }

    #[test]
    fn other_layouts_are_not_kept() {
        on_a_new_thread(|| {
            keep();
            for (size, align) in [(96, 16), (96, 4), (SIZES * STEP, STEP), (100, STEP)] {
                let layout = Layout::from_size_align(size, align).unwrap();
                assert_eq!(list_of(layout), None, "{layout:?}");
                free_all(vec![allocate(layout)], layout);
                assert_eq!(kept(), 0);
            }
        });
    }

    /// Blocks of random sizes, in a random order, each filled with a number of its own.
    #[test]
    fn no_block_is_given_twice() {
        on_a_new_thread(|| {
            let mut live: Vec<(NonNull<u8>, usize, u8)> = Vec::new();
            let mut random = 1_u64;
            for number in 0..100_000_u32 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let choice = (random >> 33) as usize;
                match choice % 1000 {
                    0 => give_back(),
                    1..10 => keep(),
                    _ => {}
                }
                if choice % 3 > 0 && live.len() < 300 {
                    let (list, mark) = (8 + choice % 20, number as u8);
                    let block = allocate(layout(list));
                    // SAFETY: it is ours, and so large.
                    unsafe { block.write_bytes(mark, list * STEP) };
                    live.push((block, list, mark));
                } else if !live.is_empty() {
                    let (block, list, mark) = live.swap_remove(choice % live.len());
                    // SAFETY: as above, and written.
                    let bytes = unsafe { std::slice::from_raw_parts(block.as_ptr(), list * STEP) };
                    assert!(bytes.iter().all(|byte| *byte == mark));
                    free_all(vec![block], layout(list));
                }
            }
            live.into_iter().for_each(|(block, list, _)| free_all(vec![block], layout(list)));
        });
    }
}
