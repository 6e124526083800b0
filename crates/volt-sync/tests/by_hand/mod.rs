//! Futures that a test polls by hand, and the list of all their wake-ups, in order.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

/// A waker: the number of its task, and which of that task's wakers it is.
pub(crate) type Name = (usize, usize);

/// The wake-ups since the last look.
#[derive(Default)]
pub(crate) struct Wakes(Mutex<Vec<Name>>);

impl Wakes {
    pub(crate) fn take(&self) -> Vec<Name> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// How many wakers there are, and tasks.
    pub(crate) fn count(self: &Arc<Self>) -> usize {
        Arc::strong_count(self) - 1
    }
}

struct Named {
    name: Name,
    wakes: Arc<Wakes>,
}

impl Wake for Named {
    fn wake(self: Arc<Self>) {
        self.wakes.0.lock().unwrap().push(self.name);
    }
}

/// Who polls.
pub(crate) struct Task {
    name: Name,
    waker: Waker,
    wakes: Arc<Wakes>,
}

impl Task {
    pub(crate) fn new(id: usize, wakes: &Arc<Wakes>) -> Self {
        let name = (id, 0);
        Self { name, waker: Waker::from(named(name, wakes)), wakes: wakes.clone() }
    }

    /// The latest waker. Older ones must not be woken any more.
    pub(crate) fn name(&self) -> Name {
        self.name
    }

    /// A context; with another waker than before if that is to be `fresh`.
    pub(crate) fn context(&mut self, fresh: bool) -> Context<'_> {
        if fresh {
            self.name.1 += 1;
            self.waker = Waker::from(named(self.name, &self.wakes));
        }
        Context::from_waker(&self.waker)
    }
}

fn named(name: Name, wakes: &Arc<Wakes>) -> Arc<Named> {
    Arc::new(Named { name, wakes: wakes.clone() })
}

/// A future and who polls it.
pub(crate) struct Running<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + 'a>>,
    task: Task,
}

impl<'a, T> Running<'a, T> {
    pub(crate) fn new(id: usize, wakes: &Arc<Wakes>, future: impl Future<Output = T> + 'a) -> Self {
        Self { future: Box::pin(future), task: Task::new(id, wakes) }
    }

    pub(crate) fn id(&self) -> usize {
        self.task.name().0
    }

    pub(crate) fn name(&self) -> Name {
        self.task.name()
    }

    pub(crate) fn poll(&mut self, fresh: bool) -> Poll<T> {
        self.future.as_mut().poll(&mut self.task.context(fresh))
    }
}

/// Takes `id` out of `ids`; false if it is not there.
pub(crate) fn take(ids: &mut Vec<usize>, id: usize) -> bool {
    let at = ids.iter().position(|&it| it == id);
    at.map(|at| ids.remove(at)).is_some()
}

/// The latest wakers of the futures `ids`.
pub(crate) fn names<T>(ids: &[usize], running: &[Running<'_, T>]) -> Vec<Name> {
    let name =
        |id| running.iter().find(|it| it.id() == id).expect("it has not been dropped").name();
    ids.iter().map(|&id| name(id)).collect()
}
