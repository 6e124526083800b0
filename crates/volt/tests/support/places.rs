//! Which places the panics of a thread name.

use std::sync::Arc;

use volt::sync::internal::primitive::Mutex;

/// The files that this thread's panics name from now on, which are not reported otherwise.
pub(crate) struct Places(Arc<Mutex<Vec<String>>>);

impl Places {
    pub(crate) fn record() -> Self {
        let places = Arc::new(Mutex::new(Vec::new()));
        let theirs = places.clone();
        let before = std::panic::take_hook();
        let name = std::thread::current().name().map(str::to_owned);
        std::panic::set_hook(Box::new(move |info| {
            if std::thread::current().name() == name.as_deref() {
                theirs.lock().unwrap().extend(info.location().map(|place| place.file().to_owned()));
            } else {
                before(info);
            }
        }));
        Self(places)
    }

    /// Before any assertion: the report of a failure goes through the hook, which takes the lock.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}
