//! A waiter: the node of a queue, embedded in the pinned future that waits.
//!
//! Purpose: the one place that knows who may touch which part of a node that two threads share.
//! The queue's lock, called "the lock" here, belongs to the primitive.
//!
//! Rejected: an identity of the waker beside the waker, so that a re-poll need not read a cell that
//! another thread empties: since a completer only copies the bits out, the owner may read them at
//! the same time.
//!
//! | Field    | Written by                                   | Read by                          |
//! |----------|----------------------------------------------|----------------------------------|
//! | `links`  | the holder of the lock                       | the holder of the lock           |
//! | `waker`  | the owner, before linking or holding the lock | the owner, the holder of the lock |
//! | `status` | the holder of the lock, once                 | anyone                           |
//! | `data`   | nobody, after construction                   | anyone                           |
//!
//! Invariants:
//! 1. While `status` is WAITING the node is linked, alive, and owns the waker in its cell.
//! 2. The holder of the lock that ends the waiting moves the waker out (a bitwise copy) and unlinks
//!    the node first; its store to `status` is its last access to the node, which the owner may
//!    free right after (findings S3 and S9).
//! 3. An owner that frees a node that still waits unlinks it and moves the waker out under the lock.
//!
//! | Edge  | Release side       | Acquire side      | Carries | Model that fails without it |
//! |-------|--------------------|-------------------|---------|-----------------------------|
//! | [WN1] | `Waiter::complete` | `Waiter::status`  | that the completer has left the node; what came before the hand-off | `permits::model::served_without_a_wake_up` |
//!
//! Cost: completion is a store; a re-poll with the same waker is a load.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::task::Waker;

use crate::linked_list::{Link, Pointers};
use crate::primitive::{AtomicU8, UnsafeCell};

/// The status of a node whose wait has not ended. The others are the primitive's own.
pub(crate) const WAITING: u8 = 0;

/// A node with the primitive's own `data`.
///
/// All access goes through `NonNull<Waiter>`, field by field: no reference to a whole node exists
/// while it is shared.
pub(crate) struct Waiter<D> {
    links: UnsafeCell<Pointers<Waiter<D>>>,
    waker: UnsafeCell<MaybeUninit<Waker>>,
    status: AtomicU8,
    data: D,
}

// SAFETY: 1. `links` is a field of the node. 2. Only the field is referenced, through its cell.
unsafe impl<D> Link for Waiter<D> {
    unsafe fn pointers(node: NonNull<Self>) -> NonNull<Pointers<Self>> {
        // SAFETY: alive (obligation of the trait); a shared reference to a cell.
        let links = unsafe { &(*node.as_ptr()).links };
        links.with_mut(|links| {
            // SAFETY: the address of a field is not null.
            unsafe { NonNull::new_unchecked(links) }
        })
    }
}

impl<D> Waiter<D> {
    /// A node that waits, to be linked now or never.
    #[inline]
    pub(crate) fn new(waker: Waker, data: D) -> Self {
        Self {
            links: UnsafeCell::new(Pointers::new()),
            waker: UnsafeCell::new(MaybeUninit::new(waker)),
            status: AtomicU8::new(WAITING),
            data,
        }
    }

    /// How the wait stands.
    ///
    /// # Safety
    /// 1. `node` is alive.
    #[inline]
    pub(crate) unsafe fn status(node: NonNull<Self>) -> u8 {
        // SAFETY: alive (obligation 1).
        let status = unsafe { &(*node.as_ptr()).status };
        // ORD[WN1] acquire: an ended wait makes the node the owner's alone again.
        status.load(Acquire)
    }

    /// What the primitive stored with the node.
    ///
    /// # Safety
    /// 1. `node` is alive for as long as the result is used.
    #[inline]
    pub(crate) unsafe fn data<'a>(node: NonNull<Self>) -> &'a D {
        // SAFETY: alive (obligation 1), and never written.
        unsafe { &(*node.as_ptr()).data }
    }

    /// True if a completion would wake `waker`.
    ///
    /// # Safety
    /// 1. `node` is alive, and the caller is its owner.
    #[inline]
    pub(crate) unsafe fn will_wake(node: NonNull<Self>, waker: &Waker) -> bool {
        // SAFETY: alive (obligation 1).
        let cell = unsafe { &(*node.as_ptr()).waker };
        cell.with(|held| {
            // SAFETY: initialised by `new`. A completer may move the waker out meanwhile, which
            // leaves the bits as they are; only the two pointers in it are compared.
            let held = unsafe { &*held.cast::<Waker>() };
            held.will_wake(waker)
        })
    }

    /// Exchanges the waker.
    ///
    /// # Safety
    /// 1. The caller is the owner of `node`, and holds the lock.
    /// 2. The node waits.
    pub(crate) unsafe fn replace_waker(node: NonNull<Self>, waker: Waker) -> Waker {
        // SAFETY: waiting, so the waker is in its cell, and overwritten next (obligation 2).
        let old = unsafe { Self::take_waker(node) };
        // SAFETY: the owner keeps it alive (obligation 1).
        let cell = unsafe { &(*node.as_ptr()).waker };
        // SAFETY: the lock keeps completers away, and the owner is here (obligation 1).
        cell.with_mut(|cell| unsafe { cell.write(MaybeUninit::new(waker)) });
        old
    }

    /// Moves the waker out.
    ///
    /// # Safety
    /// 1. `node` is alive and owns its waker: it waits and the lock is held, or it was never linked.
    /// 2. Nobody takes the waker again: the node is completed, freed or given another waker next.
    #[inline]
    pub(crate) unsafe fn take_waker(node: NonNull<Self>) -> Waker {
        // SAFETY: alive (obligation 1).
        let cell = unsafe { &(*node.as_ptr()).waker };
        // SAFETY: initialised, owned by the node, and moved out once (obligations 1, 2).
        cell.with(|cell| unsafe { cell.cast::<Waker>().read() })
    }

    /// Ends the wait. The waker is to be woken after the lock is released.
    ///
    /// # Safety
    /// 1. The lock is held, and the node waited until now.
    /// 2. It is unlinked already, and the caller does not touch it again.
    #[inline]
    pub(crate) unsafe fn complete(node: NonNull<Self>, status: u8) -> Waker {
        debug_assert_ne!(status, WAITING);
        // SAFETY: it waits (obligation 1) and is completed next.
        let waker = unsafe { Self::take_waker(node) };
        // SAFETY: a node that waits is alive (invariant 1), until the store below.
        let place = unsafe { &(*node.as_ptr()).status };
        // ORD[WN1] release: our accesses to the node come before whatever its owner does with it.
        place.store(status, Release);
        waker
    }

    /// In models: every access by others is ordered before this point.
    ///
    /// # Safety
    /// 1. The caller owns `node`, which is not linked.
    #[cfg(volt_loom)]
    pub(crate) unsafe fn retire(node: NonNull<Self>) {
        // SAFETY: alive (obligation 1).
        let links = unsafe { &(*node.as_ptr()).links };
        links.with_mut(drop);
        // SAFETY: alive (obligation 1).
        let waker = unsafe { &(*node.as_ptr()).waker };
        waker.with_mut(drop);
    }
}
