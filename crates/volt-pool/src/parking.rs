//! The parkers on which threads wait for frames: one per thread, never freed.
//!
//! Who finishes a frame unparks its owner *after* the owner may have seen the outcome and gone, with
//! its thread or its whole pool. So parkers live for ever, and are used again by later threads: a
//! late `unpark` is at worst a superfluous token, which every waiting loop tolerates.
#![forbid(unsafe_code)]

use volt_sync::internal::Parker;

/// A thread's parker; it goes back to the pile when the thread ends.
#[cfg(not(volt_loom))]
mod cache {
    use super::Parker;
    use std::sync::PoisonError;
    use volt_sync::internal::primitive::Mutex;

    static PILE: Mutex<Vec<&'static Parker>> = Mutex::new(Vec::new());

    struct Lease(&'static Parker);

    impl Drop for Lease {
        fn drop(&mut self) {
            PILE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
        }
    }

    fn lease() -> Lease {
        let old = PILE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Lease(old.unwrap_or_else(|| Box::leak(Box::new(Parker::new()))))
    }

    std::thread_local! {
        static MINE: Lease = lease();
    }

    pub(super) fn mine() -> &'static Parker {
        // A thread that is being torn down takes one for good.
        MINE.try_with(|lease| lease.0).unwrap_or_else(|_| Box::leak(Box::new(Parker::new())))
    }
}

/// Loom's objects live for one execution, so every call makes one.
#[cfg(volt_loom)]
mod cache {
    use super::Parker;

    pub(super) fn mine() -> &'static Parker {
        Box::leak(Box::new(Parker::new()))
    }
}

/// The calling thread's parker.
pub(crate) fn mine() -> &'static Parker {
    cache::mine()
}
