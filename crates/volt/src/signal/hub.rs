//! How a runtime hears of signals: it watches the process's bell.
//!
//! The hub is its own waker: when the bell has rung, the thread that turns the reactor reads what was written, and tells the
//! listeners, all of the process. (Of several runtimes that watch the bell, one reads it.) The registration has that
//! waker until the runtime shuts down, so the hub lives as long, and a listener more costs no system call.
//!
//! Of the runtimes that watch the bell, some may be idle, and read nothing. So a listener takes the hub of the runtime that it is
//! polled in, when it waits (`Signal::poll_next`). That a listener has left does not end a hub, so none is made anew for one that
//! comes back.
#![forbid(unsafe_code)]

use std::io::{self, Read};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};

use volt_sync::coop;
use volt_sync::internal::primitive::{AtomicBool, StaticMutex};

use super::arrivals;
use crate::io::{Evented, Interest};
use crate::reactor::{Direction, Handle, Start};

/// Those of all runtimes.
static HUBS: StaticMutex<Vec<Weak<Hub>>> = StaticMutex::new(Vec::new());

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Hub {
    handle: Handle,
    bell: Evented<mio::net::UnixStream>,
    /// Nothing is heard any more: the runtime has shut down.
    ended: AtomicBool,
}

impl Hub {
    /// The one of the runtime whose reactor this is.
    ///
    /// # Errors
    /// If there are no descriptors left, or the runtime has shut down.
    pub(super) fn of(handle: Handle) -> io::Result<Arc<Self>> {
        let mut hubs = HUBS.lock().unwrap_or_else(PoisonError::into_inner);
        let mut alive = hubs.iter().filter_map(Weak::upgrade);
        if let Some(hub) = alive.find(|hub| hub.hears_by(&handle)) {
            return Ok(hub);
        }
        let bell = mio::net::UnixStream::from_std(arrivals::bell()?);
        let bell = Evented::new(handle.clone(), bell, Interest::READABLE, Start::Open)?;
        let hub = Arc::new(Self { handle, bell, ended: AtomicBool::new(false) });
        hubs.retain(|hub| hub.strong_count() > 0);
        hubs.push(Arc::downgrade(&hub));
        drop(hubs);
        hub.clone().wake();
        Ok(hub)
    }

    /// True while it is the one of the runtime whose reactor this is.
    pub(super) fn hears_by(&self, handle: &Handle) -> bool {
        self.handle.is(handle) && !self.has_ended()
    }

    pub(super) fn has_ended(&self) -> bool {
        // ORD relaxed: set before the listeners are told, which is under a lock, and read under that.
        self.ended.load(Relaxed)
    }
}

impl Wake for Hub {
    fn wake(self: Arc<Self>) {
        let waker = Waker::from(self.clone());
        let mut cx = Context::from_waker(&waker);
        let registration = self.bell.registration();
        let mut read =
            || registration.poll_io(Direction::Read, &mut cx, |_| (&*self.bell).read(&mut [0; 64]));
        coop::with_budget(None, || {
            while let Poll::Ready(result) = read() {
                match result {
                    Ok(1..) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // ORD relaxed: see `has_ended`.
                    _ => return self.ended.store(true, Relaxed),
                }
            }
        });
        arrivals::tell(self.has_ended());
    }
}
