//! Messages in the order of their arrival, in blocks. Invariants are those of [`channel::list`](super).

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use crate::first_panic::FirstPanic;

/// Messages in a block.
pub(crate) const BLOCK: usize = if cfg!(volt_loom) { 2 } else { 32 };

pub(super) struct Block<T> {
    values: [MaybeUninit<T>; BLOCK],
    next: Option<NonNull<Block<T>>>,
}

/// A message, and the block that is used up by it and not needed any more.
pub(super) type Popped<T> = (T, Option<Box<Block<T>>>);

impl<T> Block<T> {
    pub(super) fn allocate() -> Box<Self> {
        let mut block = Box::<Self>::new_uninit();
        let block_ptr = block.as_mut_ptr();
        // SAFETY: a place inside the allocation.
        let next = unsafe { &raw mut (*block_ptr).next };
        // SAFETY: as above; writing does not read what was there.
        unsafe { next.write(None) };
        // SAFETY: `next` is written and `values` needs no initialisation.
        unsafe { block.assume_init() }
    }
}

/// The messages.
pub(super) struct Blocks<T> {
    first: Option<NonNull<Block<T>>>,
    last: Option<NonNull<Block<T>>>,
    head: usize,
    tail: usize,
    /// Blocks behind the first one.
    further: usize,
    /// A block to be used before another is allocated.
    spare: Option<Box<Block<T>>>,
}

impl<T> Blocks<T> {
    pub(super) const fn new() -> Self {
        Self { first: None, last: None, head: BLOCK, tail: BLOCK, further: 0, spare: None }
    }

    pub(super) fn len(&self) -> usize {
        self.further * BLOCK + self.tail - self.head
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head == self.tail && self.further == 0
    }

    /// True if a push needs no block.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.tail < BLOCK
    }

    /// Appends the spare block. False if there is none.
    #[cold]
    pub(super) fn append_spare(&mut self) -> bool {
        let spare = self.spare.take();
        let found = spare.is_some();
        if let Some(block) = spare {
            self.append(block);
        }
        found
    }

    /// Makes `block` the spare one. Returns a block that is not needed, to be freed outside the
    /// lock.
    pub(super) fn provide(&mut self, block: Box<Block<T>>) -> Option<Box<Block<T>>> {
        self.spare.replace(block)
    }

    fn append(&mut self, block: Box<Block<T>>) {
        let block = NonNull::from(Box::leak(block));
        match self.last.replace(block) {
            None => {
                self.first = Some(block);
                self.head = 0;
            }
            Some(mut last) => {
                // SAFETY: the last block is alive, and ours (invariant 1).
                unsafe { last.as_mut() }.next = Some(block);
                self.further += 1;
            }
        }
        self.tail = 0;
    }

    /// # Safety
    /// There [is room](Self::has_room).
    #[inline]
    pub(super) unsafe fn push(&mut self, value: T) {
        // SAFETY: there is room (obligation), so there is a last block.
        let mut last = unsafe { self.last.unwrap_unchecked() };
        // SAFETY: alive and ours (invariant 1).
        let block = unsafe { last.as_mut() };
        // SAFETY: `tail` is below the length (obligation).
        unsafe { block.values.get_unchecked_mut(self.tail) }.write(value);
        self.tail += 1;
    }

    /// The oldest message, and a block to be freed outside the lock.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Popped<T>> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: there is a message, so there is a first block.
        let first = unsafe { self.first.unwrap_unchecked() };
        // SAFETY: alive and ours (invariant 1).
        let block = unsafe { first.as_ref() };
        // SAFETY: `head` is below the length: a block is left as soon as it is used up.
        let value = unsafe { block.values.get_unchecked(self.head) };
        // SAFETY: initialised (invariant 2), and moved out only once since `head` moves on.
        let value = unsafe { value.assume_init_read() };
        self.head += 1;
        let unused = if self.head == BLOCK { self.leave(first) } else { None };
        Some((value, unused))
    }

    /// Unlinks the first block, which is used up; keeps it if there is no spare one. The only block
    /// is used again from its start.
    #[inline(never)]
    fn leave(&mut self, first: NonNull<Block<T>>) -> Option<Box<Block<T>>> {
        self.head = 0;
        if self.further == 0 {
            self.tail = 0;
            return None;
        }
        self.further -= 1;
        // SAFETY: blocks are leaked boxes; this one is unlinked here.
        let mut block = unsafe { Box::from_raw(first.as_ptr()) };
        self.first = block.next.take();
        if self.spare.is_some() {
            return Some(block);
        }
        self.spare = Some(block);
        None
    }
}

impl<T> Drop for Blocks<T> {
    /// # Panics
    /// If the drop of a message does, with the first such panic, when all are gone.
    fn drop(&mut self) {
        let mut panic = FirstPanic::new();
        while let Some((message, unused)) = self.pop() {
            drop(unused);
            panic.catch(|| drop(message));
        }
        if let Some(block) = self.first.take() {
            // SAFETY: blocks are leaked boxes; empty, the list has at most this one.
            drop(unsafe { Box::from_raw(block.as_ptr()) });
        }
        panic.resume();
    }
}
