//! The threads on which blocking closures run.
//!
//! Purpose: `spawn_blocking`. A closure may block for as long as it likes, so each one that waits
//! in the queue must get a thread of its own, up to the limit, and soon; but a burst of short ones
//! shall not start or wake a thread each.
//!
//! Rejected: a wake-up per closure (a system call each, most of them for nothing); queues per
//! thread (a closure behind a blocked one would wait although other threads are idle); handing a
//! closure to a chosen thread (the same).
//!
//! Throttling: at most one thread at a time is *on its way* to look at the queue: woken, just
//! started, or spinning after its last closure. Whoever queues a closure then has nothing to do.
//! A thread that arrives takes a closure and, if it leaves others behind, sends the next thread on
//! its way before it runs its own.
//!
//! Hooks: what `on_thread_start` does may take long, or wait for other threads. So one that comes to its hook is no
//! longer on the way, and sends the next; but as many closures as threads are *in their hooks* need no others.
//!
//! Lending: an idle thread, or a new one, can be given a job of its own at once (`Pool::lend`): to go
//! on as a worker whose thread blocks in `block_in_place`. It counts neither for the limit nor as one
//! that looks at the queue until it returns. If there is no room then, it stays as a spare one, for
//! the next job.
//!
//! State, all under one lock: the queue, the idle threads (a stack: the least recently used ones
//! time out), the spare ones, the number of threads, `on_the_way`,
//! how many are in their hooks, the jobs for which threads are lent, `shutdown`.
//!
//! | Thread         | by                         | becomes                                     |
//! |----------------|----------------------------|---------------------------------------------|
//! | none           | `spawn`, `Pool::dispatch`  | on the way                                  |
//! | on the way     | reaching its hook, if there is one | in its hook                         |
//! | on the way, in its hook | reaching the lock | running, or idle, or ended at shutdown      |
//! | running        | its closure's end          | running, or on the way (it spins), or idle  |
//! | idle           | `Pool::dispatch`           | on the way; it has left the idle stack      |
//! | none, idle, spare | `Pool::lend`            | lent; it has left its stack                 |
//! | lent           | its job's end              | running or idle; spare if the others are at the limit |
//! | spare          | `spawn`, `Pool::dispatch`, if there is room | on the way                 |
//! | idle           | keep-alive, if still in the idle stack | ended                           |
//!
//! Invariants:
//! 1. If the queue is not empty there is a thread, and it is on the way, in its hook, or runs a closure,
//!    after which it looks.
//! 2. If the queue is not empty and nobody is on the way, then no thread is idle and no further one
//!    may be started (the limit, or the system refuses); or none is idle, and there is one in its hook for
//!    each closure.
//! 3. User code (closures, hooks, names of threads, drops) runs outside the lock. Only the start of a
//!    thread is done under it: so a failure is known before the closure is accepted.
//! 4. Each closure that `around_task` was told of is reported gone, once.
//! 5. A thread of the pool that ends it does not wait for itself, nor for one that waits for it: one that has
//!    ended its part, and ends the pool in the destructor of a thread-local, is not counted, and joins nobody. Each
//!    thread joins the one that ended before it, and says that it was the last one before that.
//!
//! Ordering edges: all under the lock, or the parker's [PK1]; `waiting` is a hint.
//!
//! Progress: `on_the_way` is set only together with a token for an idle thread or the start of one,
//! or by a thread that spins; each of them takes the lock, clears it, and looks at the queue (for one with
//! a hook `dispatch` looks, and it itself after the hook).
//!
//! Cost: `spawn` takes the lock once; a system call only if nobody is on the way. A new thread takes the lock
//! once more if it has a hook.

mod patience;
mod pool;
mod task;

pub(crate) use pool::{Config, Pool, is_blocking_thread};

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
