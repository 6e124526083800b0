//! Ctrl-C: the run ends with the child that is at work, and what is measured so far is kept.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

/// From now on, the first Ctrl-C is only noted; the second ends the command at once.
pub(crate) fn watch() {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all-zero is a value of this plain struct: no handler, no flags, an empty mask.
    let action = unsafe { action.assume_init_mut() };
    action.sa_sigaction = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
    action.sa_flags = libc::SA_RESETHAND | libc::SA_RESTART;
    // SAFETY: the handler only stores to an atomic; the pointer is to a whole `sigaction`.
    let failed = unsafe { libc::sigaction(libc::SIGINT, action, std::ptr::null_mut()) };
    // Without the handler Ctrl-C ends the command as ever.
    debug_assert_eq!(failed, 0, "sigaction refused a valid request");
}

/// Whether somebody wants the run to end.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
