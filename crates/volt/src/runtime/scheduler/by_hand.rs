//! Members without threads, which a test moves by hand.

use volt_sync::internal::primitive::Arc;

use crate::runtime::config::Config;
use crate::runtime::context;
use crate::runtime::driver::Driver;
use crate::runtime::scheduler::shared::Shared;
use crate::runtime::scheduler::worker::Worker;
use crate::time::Clock;

/// The key of a kind of tasks that is known to be quick.
pub(super) const QUICK: usize = 32;

/// Calls `test` with the three workers of a scheduler, all of which run, and ends them.
pub(super) fn with_members(test: impl FnOnce(&Arc<Shared>, [&Worker<'_>; 3])) {
    with_members_of(Config::default(), test);
}

pub(super) fn with_members_of(config: Config, test: impl FnOnce(&Arc<Shared>, [&Worker<'_>; 3])) {
    let (driver, handle) = Driver::new(3, Clock::real()).unwrap();
    let shared = Shared::new(config, 3, driver, handle);
    let parks = [0, 1, 2].map(|index| shared.park_of(index));
    let members = [0, 1, 2].map(|index| Worker::new(&shared, index, &parks[index]));
    shared.quick.learn(QUICK);
    test(&shared, members.each_ref());
    shared.begin_shutdown();
    for worker in &members {
        context::with_worker(worker, || worker.end());
    }
}
