//! Any sequence of what can happen to a task, against a naive account of it.

use std::future::poll_fn;
use std::sync::Arc;

use std::task::{Poll, Waker};
use volt_sync::internal::primitive::Mutex;

use proptest::prelude::{Strategy, any, prop_oneof, proptest};

use crate::task::test::{Dropped, Queue, counting_waker, poll_with};
use crate::task::{AbortHandle, JoinHandle};

#[derive(Clone, Copy, Debug)]
enum Op {
    Run,
    DropQueued,
    WakeByRef,
    Wake,
    CloneWaker,
    DropWaker,
    Abort,
    CloneAbort,
    DropAbort,
    PollJoin { other_waker: bool },
    DropJoin,
    BeReady,
    WakeItself,
    Shutdown,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..1_u8).prop_map(|_| Op::Run),
        4 => (0..10_u8).prop_map(|n| match n {
            0 => Op::DropQueued,
            1 | 2 => Op::WakeByRef,
            3 | 4 => Op::Wake,
            5 => Op::CloneWaker,
            6 => Op::DropWaker,
            7 => Op::CloneAbort,
            8 => Op::DropAbort,
            _ => Op::Abort,
        }),
        2 => any::<bool>().prop_map(|other_waker| Op::PollJoin { other_waker }),
        1 => (0..5_u8).prop_map(|n| match n {
            0 => Op::DropJoin,
            1 | 2 => Op::BeReady,
            3 => Op::WakeItself,
            _ => Op::Shutdown,
        }),
    ]
}

/// What the future does in its next poll, and the wakers that it collects.
#[derive(Default)]
struct Script {
    ready: bool,
    wakes_itself: bool,
    wakers: Vec<Waker>,
}

/// How the task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Output,
    Cancelled,
}

/// The naive account.
#[derive(Default)]
struct Account {
    queued: bool,
    cancelled: bool,
    end: Option<End>,
    wakers: usize,
    /// `Some`: the join handle is there; true: it waits.
    join: Option<bool>,
    join_wakes: usize,
    ready: bool,
    wakes_itself: bool,
    closed: bool,
    /// In the owned list, unless it has ended.
    linked: bool,
}

impl Account {
    fn notify(&mut self) {
        self.queued |= self.end.is_none();
    }

    fn finish(&mut self, end: End) {
        self.end = Some(end);
        self.queued = false;
        if self.join == Some(true) {
            self.join_wakes += 1;
            self.join = Some(false);
        }
    }

    fn run(&mut self) {
        if !std::mem::take(&mut self.queued) {
            return;
        }
        if self.cancelled {
            return self.finish(End::Cancelled);
        }
        self.wakers += 1;
        if self.ready {
            return self.finish(End::Output);
        }
        self.queued = std::mem::take(&mut self.wakes_itself);
        if !self.queued && !self.linked {
            if self.closed {
                return self.finish(End::Cancelled);
            }
            self.linked = true;
        }
    }

    fn in_list(&self) -> usize {
        usize::from(self.linked && self.end.is_none())
    }

    fn refs(&self, aborts: usize) -> usize {
        let join = usize::from(self.join.is_some());
        self.in_list() + usize::from(self.queued) + self.wakers + join + aborts
    }
}

/// The task, its handles, and the account.
struct Test {
    queue: volt_sync::internal::primitive::Arc<Queue>,
    script: Arc<Mutex<Script>>,
    join: Option<JoinHandle<Dropped>>,
    /// The first one stays, to look at the state.
    aborts: Vec<AbortHandle>,
    wakers: [(Arc<crate::task::test::Counter>, Waker); 2],
    account: Account,
}

impl Test {
    fn apply(&mut self, op: Op) {
        let account = &mut self.account;
        match op {
            Op::Run => {
                account.run();
                if let Some(task) = self.queue.pop() {
                    task.run();
                }
            }
            Op::DropQueued => {
                if let Some(task) = self.queue.pop() {
                    drop(task);
                    account.finish(End::Cancelled);
                }
            }
            Op::WakeByRef | Op::Wake | Op::CloneWaker | Op::DropWaker => self.use_waker(op),
            Op::Abort => {
                self.aborts[0].abort();
                account.cancelled |= account.end.is_none();
                account.notify();
            }
            Op::CloneAbort => self.aborts.push(self.aborts[0].clone()),
            Op::DropAbort if self.aborts.len() > 1 => drop(self.aborts.pop()),
            Op::DropAbort => {}
            Op::PollJoin { other_waker } => self.poll_join(usize::from(other_waker)),
            Op::DropJoin => {
                self.join = None;
                account.join = None;
            }
            Op::BeReady => {
                self.script.lock().unwrap().ready = true;
                account.ready = true;
            }
            Op::WakeItself => {
                self.script.lock().unwrap().wakes_itself = true;
                account.wakes_itself = true;
            }
            Op::Shutdown => {
                self.queue.owned.close_and_cancel(|| ());
                account.closed = true;
                if account.end.is_none() && !account.queued {
                    account.finish(End::Cancelled);
                }
                account.cancelled |= account.in_list() > 0;
            }
        }
    }

    fn use_waker(&mut self, op: Op) {
        let Some(waker) = self.script.lock().unwrap().wakers.pop() else { return };
        let account = &mut self.account;
        let mut keep = Vec::new();
        match op {
            Op::WakeByRef => {
                waker.wake_by_ref();
                account.notify();
                keep.push(waker);
            }
            Op::Wake => {
                waker.wake();
                account.notify();
                account.wakers -= 1;
            }
            Op::CloneWaker => {
                keep.extend([waker.clone(), waker]);
                account.wakers += 1;
            }
            _ => {
                drop(waker);
                account.wakers -= 1;
            }
        }
        self.script.lock().unwrap().wakers.extend(keep);
    }

    fn poll_join(&mut self, waker: usize) {
        let Some(join) = &mut self.join else { return };
        match poll_with(join, &self.wakers[waker].1) {
            Poll::Pending => {
                assert_eq!(self.account.end, None);
                self.account.join = Some(true);
            }
            Poll::Ready(result) => {
                let end = if result.is_ok() { End::Output } else { End::Cancelled };
                assert_eq!(self.account.end, Some(end));
                self.join = None;
                self.account.join = None;
            }
        }
    }

    fn check(&self, futures: usize, outputs: usize) {
        let account = &self.account;
        assert_eq!(self.queue.len(), usize::from(account.queued));
        assert_eq!(self.aborts[0].is_finished(), account.end.is_some());
        assert_eq!(self.aborts[0].refs(), account.refs(self.aborts.len()));
        assert_eq!(self.queue.owned.len(), account.in_list());
        let wakes: usize = self.wakers.iter().map(|(counter, _)| counter.get()).sum();
        assert_eq!(wakes, account.join_wakes);
        assert_eq!(futures, usize::from(account.end.is_some()));
        let kept = account.end.is_none() || account.join.is_some();
        let taken = account.end == Some(End::Cancelled) || !kept;
        assert_eq!(outputs, usize::from(taken));
    }
}

proptest! {
    #[test]
    fn any_sequence_of_events(
        linked in any::<bool>(),
        ops in proptest::collection::vec(op(), 0..60),
    ) {
        let queue = Queue::new();
        let script = Arc::new(Mutex::new(Script::default()));
        let (owned, futures) = Dropped::counter();
        let (output, outputs) = Dropped::counter();
        let theirs = script.clone();
        let mut held = Some((owned, output));
        let spawn = if linked { Queue::spawn } else { Queue::spawn_unlinked };
        let join = spawn(
            &queue,
            poll_fn(move |cx| {
                let mut script = theirs.lock().unwrap();
                script.wakers.push(cx.waker().clone());
                if script.ready {
                    return Poll::Ready(held.take().unwrap().1);
                }
                if std::mem::take(&mut script.wakes_itself) {
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            }),
        );
        let account = Account { queued: true, join: Some(false), linked, ..Account::default() };
        let mut test = Test {
            queue: queue.clone(),
            script: script.clone(),
            aborts: vec![join.abort_handle()],
            join: Some(join),
            wakers: [counting_waker(), counting_waker()],
            account,
        };
        test.check(futures(), outputs());
        for op in ops {
            test.apply(op);
            test.check(futures(), outputs());
        }
        Queue::shutdown(queue);
        drop(test);
        script.lock().unwrap().wakers.clear();
        assert_eq!((futures(), outputs()), (1, 1));
    }
}
