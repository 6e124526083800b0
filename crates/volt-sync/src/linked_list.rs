//! An intrusive doubly linked list: the nodes belong to others, usually to pinned futures.
//!
//! Purpose: O(1) insertion, removal and cancellation without allocating.
//!
//! Invariants:
//! 1. Every linked node is alive and does not move; whoever owns it unlinks it first.
//! 2. All access to the list and to the `Pointers` of its nodes happens under one lock.
//! 3. `head` is null if and only if `tail` is; the first node has no `prev`, the last no `next`.

use std::fmt;
use std::marker::PhantomPinned;
use std::ptr::NonNull;

/// A node's links. Embedded in the node; see [`Link`].
pub struct Pointers<T: ?Sized> {
    prev: Option<NonNull<T>>,
    next: Option<NonNull<T>>,
    _pinned: PhantomPinned,
}

impl<T> Pointers<T> {
    /// Links of a node that is in no list.
    pub const fn new() -> Self {
        Self { prev: None, next: None, _pinned: PhantomPinned }
    }
}

impl<T> Default for Pointers<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Pointers<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pointers").field("prev", &self.prev).field("next", &self.next).finish()
    }
}

/// Tells the list where a node keeps its [`Pointers`].
///
/// # Safety
/// 1. `pointers` returns a pointer into the node that it is given, always the same one.
/// 2. It derives it from the node's address without making a reference to the node (which could
///    alias one that its owner holds).
pub unsafe trait Link: Sized {
    /// The place of the links inside `node`.
    ///
    /// # Safety
    /// `node` points to a live node.
    unsafe fn pointers(node: NonNull<Self>) -> NonNull<Pointers<Self>>;
}

/// The list: two pointers.
pub struct LinkedList<T> {
    head: Option<NonNull<T>>,
    tail: Option<NonNull<T>>,
}

// SAFETY: the list owns no node; invariant 2 makes the lock, not the list, responsible for access.
unsafe impl<T: Send> Send for LinkedList<T> {}

impl<T> LinkedList<T> {
    /// An empty list.
    pub const fn new() -> Self {
        Self { head: None, tail: None }
    }

    /// True if no node is linked.
    pub const fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// The oldest node.
    pub const fn front(&self) -> Option<NonNull<T>> {
        self.head
    }

    /// The newest node.
    pub const fn back(&self) -> Option<NonNull<T>> {
        self.tail
    }
}

impl<T: Link> LinkedList<T> {
    /// Appends `node`.
    ///
    /// # Safety
    /// 1. `node` is alive, pinned, and in no list.
    /// 2. It is removed before it is freed.
    pub unsafe fn push_back(&mut self, node: NonNull<T>) {
        // SAFETY: `node` is alive (obligation 1).
        let mut links = unsafe { T::pointers(node) };
        // SAFETY: invariant 2 (the lock) makes this the only reference to the links.
        let links = unsafe { links.as_mut() };
        debug_assert!(links.prev.is_none() && self.head != Some(node), "node linked twice");
        links.prev = self.tail;
        links.next = None;
        match self.tail.replace(node) {
            None => self.head = Some(node),
            // SAFETY: `tail` is linked, so alive (invariant 1) and ours to change (invariant 2).
            Some(tail) => unsafe { Self::links(tail).next = Some(node) },
        }
    }

    /// Moves all nodes of `other` to the end of this list.
    pub fn append(&mut self, other: &mut Self) {
        let (Some(head), Some(tail)) = (other.head.take(), other.tail.take()) else { return };
        match self.tail.replace(tail) {
            None => self.head = Some(head),
            Some(last) => {
                // SAFETY: linked, so alive (invariant 1); the lock is held (invariant 2).
                unsafe { Self::links(last).next = Some(head) };
                // SAFETY: as for `last`: linked in `other`, which the same lock guards.
                unsafe { Self::links(head).prev = Some(last) };
            }
        }
    }

    /// Unlinks and returns the oldest node.
    pub fn pop_front(&mut self) -> Option<NonNull<T>> {
        let node = self.head?;
        // SAFETY: the head is linked in this list.
        unsafe { self.remove(node) };
        Some(node)
    }

    /// Unlinks and returns the newest node.
    pub fn pop_back(&mut self) -> Option<NonNull<T>> {
        let node = self.tail?;
        // SAFETY: the tail is linked in this list.
        unsafe { self.remove(node) };
        Some(node)
    }

    /// The node that was linked after `node`.
    ///
    /// # Safety
    /// `node` is linked in this list.
    pub unsafe fn next(&self, node: NonNull<T>) -> Option<NonNull<T>> {
        // SAFETY: linked, so alive (invariant 1); the lock is held (invariant 2).
        unsafe { Self::links(node).next }
    }

    /// Unlinks `node`.
    ///
    /// # Safety
    /// `node` is linked in this list.
    pub unsafe fn remove(&mut self, node: NonNull<T>) {
        // SAFETY: linked, so alive (invariant 1); the lock is held (invariant 2).
        let links = unsafe { Self::links(node) };
        let (prev, next) = (links.prev.take(), links.next.take());
        match prev {
            None => self.head = next,
            // SAFETY: a neighbour of a linked node is linked.
            Some(prev) => unsafe { Self::links(prev).next = next },
        }
        match next {
            None => self.tail = prev,
            // SAFETY: a neighbour of a linked node is linked.
            Some(next) => unsafe { Self::links(next).prev = prev },
        }
    }

    /// The links of `node`.
    ///
    /// # Safety
    /// 1. `node` is alive.
    /// 2. No other reference to its links exists while the result is in use.
    unsafe fn links<'a>(node: NonNull<T>) -> &'a mut Pointers<T> {
        // SAFETY: alive (obligation 1).
        let mut links = unsafe { T::pointers(node) };
        // SAFETY: unique (obligation 2).
        unsafe { links.as_mut() }
    }
}

impl<T> Default for LinkedList<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for LinkedList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkedList").field("head", &self.head).field("tail", &self.tail).finish()
    }
}
