//! Timers inside a runtime: sleep, timeout, reset, shutdown, on both flavours.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

#[path = "support/places.rs"]
mod places;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use volt::runtime::{Builder, Runtime, RuntimeFlavor};
use volt::time::{
    Duration, Instant, Interval, MissedTickBehavior, Sleep, interval, interval_at, sleep,
    sleep_until, timeout, timeout_at,
};

use places::Places;

/// Counts the allocations of the current thread.
struct Counting;

std::thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: forwards to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's obligations are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's obligations are passed on.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

fn flavours() -> Vec<Runtime> {
    let multi =
        [1, 2, 8].map(|workers| Builder::new_multi_thread().worker_threads(workers).build());
    let current = Builder::new_current_thread().build();
    multi.into_iter().chain([current]).map(|runtime| runtime.unwrap()).collect()
}

fn scale() -> usize {
    std::env::var("VOLT_STRESS").map_or(1, |s| s.parse().unwrap_or(1))
}

#[test]
fn sleeps_end_after_their_time_and_not_before() {
    for rt in flavours() {
        rt.block_on(async {
            for after in [1, 50, 999, 1_000, 5_000, 20_000].map(Duration::from_micros) {
                let start = std::time::Instant::now();
                sleep(after).await;
                assert!(start.elapsed() >= after, "{after:?} early");
                let deadline = Instant::now() + after;
                sleep_until(deadline).await;
                assert!(Instant::now() >= deadline);
            }
        });
    }
}

#[test]
fn thousands_of_sleeping_tasks_all_wake() {
    for rt in flavours() {
        rt.block_on(async {
            let tasks: Vec<_> = (0..5_000_u64)
                .map(|i| {
                    volt::spawn(async move {
                        let after = Duration::from_micros(i * 37 % 20_000);
                        let start = Instant::now();
                        sleep(after).await;
                        assert!(start.elapsed() >= after);
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
    }
}

#[test]
fn a_timer_registered_while_all_sleep_is_not_missed() {
    for rt in flavours() {
        rt.block_on(async {
            // Somebody waits in the reactor for an hour, then an earlier timer comes from a thread
            // that is no worker.
            let long = volt::spawn(sleep(3600 * 1000 * MS));
            sleep(5 * MS).await;
            let handle = volt::runtime::Handle::current();
            let outside = std::thread::spawn(move || {
                let start = Instant::now();
                handle.block_on(async { sleep(10 * MS).await });
                start.elapsed()
            });
            while !outside.is_finished() {
                sleep(MS).await;
            }
            let took = outside.join().unwrap();
            assert!(took >= 10 * MS && took < 5_000 * MS, "{took:?}");
            long.abort();
        });
    }
}

#[test]
fn timeouts_return_the_value_or_elapsed() {
    for rt in flavours() {
        rt.block_on(async {
            assert_eq!(timeout(MS, async { 7 }).await, Ok(7));
            assert_eq!(timeout(Duration::ZERO, async { 7 }).await, Ok(7));
            let start = Instant::now();
            let error = timeout(3 * MS, pending::<()>()).await.unwrap_err();
            assert!(start.elapsed() >= 3 * MS);
            assert_eq!(error.to_string(), "deadline has elapsed");
            let error = std::io::Error::from(error);
            assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
            assert!(timeout_at(start, pending::<()>()).await.is_err());
            assert_eq!(timeout(Duration::MAX, sleep(MS)).await, Ok(()));
            let mut inside = timeout(MS, 5_u8.to_string().into_future_ready());
            assert_eq!(inside.get_ref().0, "5");
            inside.get_mut().0 = "6".into();
            assert_eq!(inside.into_inner().0, "6");
        });
    }
}

struct ReadyString(String);

trait IntoFutureReady {
    fn into_future_ready(self) -> ReadyString;
}

impl IntoFutureReady for String {
    fn into_future_ready(self) -> ReadyString {
        ReadyString(self)
    }
}

impl Future for ReadyString {
    type Output = ();

    fn poll(self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

#[test]
fn a_timeout_is_seen_although_the_future_uses_up_the_budget() {
    use volt::sync::coop;
    for rt in flavours() {
        rt.block_on(async {
            let task = volt::spawn(timeout(
                5 * MS,
                poll_fn(|cx| {
                    // Always ready for more, as a channel that is never empty.
                    while coop::poll_proceed(cx).is_ready() {
                        if !coop::has_budget_remaining() {
                            break;
                        }
                        coop::made_progress();
                    }
                    cx.waker().wake_by_ref();
                    Poll::<()>::Pending
                }),
            ));
            assert!(task.await.unwrap().is_err());
        });
    }
}

#[test]
fn a_sleep_can_be_reset_while_it_is_polled() {
    for rt in flavours() {
        rt.block_on(async {
            let start = Instant::now();
            let mut timer = pin!(sleep(2 * MS));
            for _ in 0..5 {
                let polled = poll_fn(|cx| Poll::Ready(timer.as_mut().poll(cx).is_ready())).await;
                timer.as_mut().reset(Instant::now() + if polled { 2 * MS } else { 4 * MS });
            }
            let deadline = timer.deadline();
            timer.as_mut().await;
            assert!(Instant::now() >= deadline && deadline >= start + 2 * MS);
            assert!(timer.is_elapsed());
            timer.as_mut().reset(Instant::now() + 3600 * 1000 * MS);
            assert!(timeout(MS, timer.as_mut()).await.is_err());
            timer.as_mut().reset(Instant::now() + MS);
            timer.await;
        });
    }
}

/// Whichever thread polls it, and whatever the driver does meanwhile.
#[test]
fn a_sleep_that_is_reset_to_the_past_is_ready_at_the_next_poll() {
    async fn polled<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        poll_fn(|cx| Poll::Ready(poll(cx))).await
    }
    async fn resets() {
        let start = Instant::now();
        for reset_to in [|start| start, |_| Instant::now()] as [fn(Instant) -> Instant; 2] {
            let mut timer = Box::pin(sleep(HOUR));
            assert!(polled(|cx| timer.as_mut().poll(cx)).await.is_pending());
            timer.as_mut().reset(reset_to(start));
            assert!(polled(|cx| timer.as_mut().poll(cx)).await.is_ready());
        }
        for reset in [
            |ticks, _| Interval::reset_immediately(ticks),
            |ticks, _| Interval::reset_after(ticks, Duration::ZERO),
            Interval::reset_at,
        ] as [fn(&mut Interval, Instant); 3]
        {
            let mut ticks = interval_at(start + HOUR, HOUR);
            assert!(polled(|cx| ticks.poll_tick(cx)).await.is_pending());
            reset(&mut ticks, start);
            assert!(polled(|cx| ticks.poll_tick(cx)).await.is_ready());
        }
    }
    for rt in flavours() {
        rt.block_on(async {
            for _ in 0..20 * scale() {
                resets().await;
                volt::spawn(resets()).await.unwrap();
            }
        });
    }
}

/// Another task waits for it.
#[test]
fn a_reset_to_the_past_wakes_the_task_that_polled() {
    for rt in flavours() {
        rt.block_on(async {
            let timer = std::sync::Arc::new(std::sync::Mutex::new(Box::pin(sleep(HOUR))));
            let waits = timer.clone();
            let task = volt::spawn(poll_fn(move |cx| waits.lock().unwrap().as_mut().poll(cx)));
            sleep(MS).await;
            timer.lock().unwrap().as_mut().reset(Instant::now());
            task.await.unwrap();
        });
    }
}

#[test]
fn dropped_sleeps_wake_nobody_and_migrating_ones_fire() {
    for rt in flavours() {
        rt.block_on(async {
            // Registered by one task, completed by another.
            for _ in 0..200 * scale() {
                let mut timer = Box::pin(sleep(MS / 5));
                let _ = poll_fn(|cx| Poll::Ready(timer.as_mut().poll(cx).is_pending())).await;
                let other = volt::spawn(timer);
                drop(sleep(MS));
                other.await.unwrap();
            }
            // Cancelled by another thread than the one that registered.
            for _ in 0..200 * scale() {
                let task = volt::spawn(sleep(3600 * 1000 * MS));
                volt::task::yield_now().await;
                task.abort();
                assert!(task.await.unwrap_err().is_cancelled());
            }
        });
    }
}

/// Takes ticks, some of them late. What is due when is exact, however busy the machine is.
async fn take_ticks(behavior: MissedTickBehavior) {
    const PERIOD: Duration = Duration::from_millis(2);
    let start = Instant::now();
    let mut ticks = interval_at(start, PERIOD);
    ticks.set_missed_tick_behavior(behavior);
    let (mut last_due, mut last_asked, mut last_got) = (start, start, start);
    for tick in 0..20 * scale() {
        if tick % 5 == 4 {
            sleep(7 * PERIOD / 2).await;
        }
        let asked = Instant::now();
        let due = ticks.tick().await;
        let got = Instant::now();
        assert!(got >= due, "tick {tick} comes early");
        assert!(tick != 0 || due == start);
        // If the last one was late, it may have been taken at any time from `last_asked` to `last_got`.
        let regular = tick == 0 || due == last_due + PERIOD;
        let was_late = last_asked - last_due > PERIOD;
        let is_right = match behavior {
            MissedTickBehavior::Burst => due == start + tick as u32 * PERIOD,
            _ if regular => !was_late,
            MissedTickBehavior::Delay => due >= last_asked + PERIOD && due <= last_got + PERIOD,
            MissedTickBehavior::Skip => {
                (due - start).as_nanos() % PERIOD.as_nanos() == 0
                    && due > last_asked
                    && due <= last_got + PERIOD
            }
        };
        assert!(is_right, "tick {tick}, {behavior:?}: {:?} after the last", due - last_due);
        (last_due, last_asked, last_got) = (due, asked, got);
    }
}

async fn reset_ticks() {
    const PERIOD: Duration = Duration::from_millis(2);
    for _ in 0..scale() {
        let start = Instant::now();
        let mut ticks = interval_at(start + PERIOD, PERIOD);
        assert_eq!(ticks.tick().await, start + PERIOD);
        for after in [PERIOD, Duration::ZERO, PERIOD / 2] {
            let before = Instant::now();
            match after {
                PERIOD => ticks.reset(),
                Duration::ZERO => ticks.reset_immediately(),
                after => ticks.reset_after(after),
            }
            let last = Instant::now() + after;
            let due = ticks.tick().await;
            assert!(Instant::now() >= due && (before + after..=last).contains(&due));
        }
        // Of one that waits.
        let _either_way = timeout(PERIOD / 4, ticks.tick()).await;
        for at in [start, Instant::now() + PERIOD] {
            ticks.reset_at(at);
            assert_eq!(ticks.tick().await, at);
            assert!(Instant::now() >= at);
        }
    }
}

#[test]
fn intervals_keep_their_times_on_every_runtime() {
    use MissedTickBehavior::{Burst, Delay, Skip};
    for rt in flavours() {
        let ticks = [Burst, Delay, Skip].map(|behavior| rt.spawn(take_ticks(behavior)));
        let resets = rt.spawn(reset_ticks());
        rt.block_on(take_ticks(Skip));
        rt.block_on(reset_ticks());
        for task in ticks.into_iter().chain([resets]) {
            rt.block_on(task).unwrap();
        }
    }
}

/// The lateness of 25 ticks of 1 ms, in the middle.
async fn lateness() -> Duration {
    let mut ticks = interval(MS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut late = [Duration::ZERO; 25];
    ticks.tick().await;
    for late in &mut late {
        let due = ticks.tick().await;
        *late = due.elapsed();
    }
    late.sort_unstable();
    late[12]
}

/// The same of a thread that sleeps.
fn lateness_of_a_thread() -> Duration {
    let mut due = std::time::Instant::now();
    let mut late = [Duration::ZERO; 25];
    for late in &mut late {
        due += MS;
        std::thread::sleep(due.saturating_duration_since(std::time::Instant::now()));
        *late = due.elapsed();
    }
    late.sort_unstable();
    late[12]
}

/// The middle one of some ticks is less than 100 us late: that is the promise for an idle machine. Where others
/// take the processors, a thread that only sleeps is late as well: its lateness is allowed on top, and all of that
/// in one of many attempts.
#[test]
fn a_tick_is_mostly_less_than_100_us_late() {
    const LATE: Duration = Duration::from_micros(100);
    for rt in flavours() {
        let attempt = || {
            let late = rt.block_on(rt.spawn(lateness())).unwrap();
            (late, if late < LATE { Duration::ZERO } else { lateness_of_a_thread() })
        };
        let mut failed = Vec::new();
        loop {
            let (late, thread) = attempt();
            if late < LATE + thread {
                break;
            }
            failed.push((late, thread));
            assert!(failed.len() < 60, "{failed:?}");
        }
    }
}

#[test]
fn sleeping_allocates_nothing() {
    let rt = Builder::new_current_thread().build().unwrap();
    rt.block_on(async {
        sleep(MS).await;
        let before = ALLOCATIONS.get();
        for _ in 0..10 {
            sleep(MS / 10).await;
            assert!(timeout(MS / 10, pending::<()>()).await.is_err());
        }
        assert_eq!(ALLOCATIONS.get() - before, 0);
    });
}

#[test]
fn sleep_outlives_its_runtime() {
    for rt in flavours() {
        let (mut registered, fresh) = rt.block_on(async {
            let mut registered = Box::pin(sleep(3600 * 1000 * MS));
            assert!(poll_fn(|cx| Poll::Ready(registered.as_mut().poll(cx))).await.is_pending());
            (registered, Box::pin(sleep(MS)))
        });
        let rt2 = Builder::new_current_thread().build().unwrap();
        drop(rt);
        // One that was never polled goes to the runtime in which it is.
        rt2.block_on(fresh);
        let poll = AssertUnwindSafe(|| rt2.block_on(registered.as_mut()));
        let panic = catch_unwind(poll).unwrap_err();
        let message = panic.downcast_ref::<&str>().copied().unwrap_or_default();
        assert!(message.contains("shut down"), "{message}");
        // A reset does not bring it back.
        registered.as_mut().reset(Instant::now());
        drop(registered);
    }
}

/// In Tokio, to the one in which it was made.
#[test]
fn a_timer_belongs_to_the_runtime_in_which_it_is_first_pending() {
    let rt = Builder::new_current_thread().build().unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let mut ticks = rt.block_on(async { interval(HOUR) });
    assert!(ticks.poll_tick(&mut cx).is_ready(), "this one waits for nothing");
    // Made in there, and first pending out here.
    let pending = AssertUnwindSafe(|| ticks.poll_tick(&mut cx).is_pending());
    let panic = catch_unwind(pending).unwrap_err();
    let message = panic.downcast_ref::<String>().cloned().unwrap_or_default();
    assert!(message.contains("needs a Volt runtime"), "{message}");

    let first = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let mut made_elsewhere = {
        let _context = rt.enter();
        pin!(sleep(200 * MS))
    };
    {
        let _context = first.enter();
        assert!(made_elsewhere.as_mut().poll(&mut cx).is_pending());
    }
    // From now on anybody may wait for it: `first` ends it, though nobody is in `rt`.
    while made_elsewhere.as_mut().poll(&mut cx).is_pending() {
        std::thread::yield_now();
    }
}

#[test]
fn without_a_runtime_the_panic_says_what_is_missing() {
    for call in [
        (|| drop(sleep(MS))) as fn(),
        || drop(sleep_until(Instant::now())),
        || drop(volt::time::interval(MS)),
        || drop(volt::time::interval_at(Instant::now(), MS)),
        volt::time::pause,
    ] {
        let panic = catch_unwind(call).unwrap_err();
        let message = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(message.contains("needs a Volt runtime"), "{message}");
    }
}

/// The message points at the caller's line: that of the call, or of the `await`.
#[test]
#[allow(clippy::redundant_closure, reason = "the closure is what has a place")]
fn without_a_runtime_the_place_is_the_callers() {
    let places = Places::record();
    let poll = |future: Pin<Box<dyn Future<Output = ()>>>| {
        let mut future = future;
        let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    };
    let runtime = volt::runtime::Runtime::new().unwrap();
    let inside = runtime.enter();
    let (made_inside, mut ticks_made_inside) = (sleep(HOUR), interval(HOUR));
    drop(inside);
    ticks_made_inside.reset_after(HOUR);
    let calls: [Box<dyn FnOnce()>; 11] = [
        Box::new(|| drop(sleep(MS))),
        Box::new(|| drop(sleep_until(Instant::now()))),
        Box::new(|| drop(interval(MS))),
        Box::new(|| drop(interval_at(Instant::now(), MS))),
        Box::new(|| volt::time::pause()),
        Box::new(|| volt::time::resume()),
        Box::new(|| poll(Box::pin(async { volt::time::advance(MS).await }))),
        Box::new(|| poll(Box::pin(async { drop(timeout(MS, pending::<()>()).await) }))),
        Box::new(|| {
            poll(Box::pin(async {
                drop(timeout_at(Instant::now() + HOUR, pending::<()>()).await);
            }));
        }),
        Box::new(|| {
            poll(Box::pin(async {
                made_inside.await;
            }))
        }),
        Box::new(|| {
            let mut cx = Context::from_waker(Waker::noop());
            let _ = ticks_made_inside.poll_tick(&mut cx);
        }),
    ];
    let panics = calls.map(|call| catch_unwind(AssertUnwindSafe(call)).is_err());
    let places = places.take();
    assert_eq!(panics, [true; 11]);
    assert_eq!(places, [file!(); 11]);
}

#[test]
fn send_timeout_gives_the_message_back() {
    use volt::sync::mpsc::{self, error::SendTimeoutError};
    for rt in flavours() {
        rt.block_on(async {
            let (tx, mut rx) = mpsc::channel(1);
            tx.send_timeout(1, 3 * MS).await.unwrap();
            let start = Instant::now();
            let full = tx.send_timeout(2, 3 * MS).await;
            assert_eq!(full, Err(SendTimeoutError::Timeout(2)));
            assert!(start.elapsed() >= 3 * MS);
            let sender = tx.clone();
            let waiting = volt::spawn(async move { sender.send_timeout(3, 60_000 * MS).await });
            sleep(MS).await;
            assert_eq!(rx.recv().await, Some(1));
            assert_eq!(waiting.await.unwrap(), Ok(()));
            assert_eq!(rx.recv().await, Some(3));
            drop(rx);
            assert_eq!(tx.send_timeout(4, MS).await, Err(SendTimeoutError::Closed(4)));
            // A message that is not `Send` makes a future that is not.
            let (tx, mut rx) = mpsc::channel(1);
            tx.send_timeout(std::rc::Rc::new(5), MS).await.unwrap();
            assert_eq!(rx.recv().await.as_deref(), Some(&5));
        });
    }
}

#[test]
fn a_send_with_a_timeout_that_has_to_wait_names_itself_without_a_runtime() {
    use volt::sync::mpsc;
    let runtime = Builder::new_current_thread().build().unwrap();
    let (tx, _rx) = mpsc::channel(1);
    tx.try_send(1).unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let mut sent = Box::pin(tx.send_timeout(2, HOUR));
    let poll = AssertUnwindSafe(|| sent.as_mut().poll(&mut cx));
    let panic = catch_unwind(poll).unwrap_err();
    let message = panic.downcast_ref::<String>().cloned().unwrap_or_default();
    assert!(message.contains("`mpsc::Sender::send_timeout` needs a Volt runtime"), "{message}");
    // In one, its timer may be dropped while it waits, on another thread.
    let _entered = runtime.enter();
    let mut sent = Box::pin(tx.send_timeout(3, HOUR));
    assert!(sent.as_mut().poll(&mut cx).is_pending());
    std::thread::scope(|scope| scope.spawn(|| drop(sent)).join()).unwrap();
}

#[test]
fn the_types_have_the_traits_that_users_expect() {
    fn shared<T: Send + Sync + std::fmt::Debug>() {}
    shared::<Sleep>();
    shared::<volt::time::Timeout<std::future::Ready<()>>>();
    shared::<volt::time::Interval>();
    shared::<volt::time::error::Elapsed>();
    fn movable<T: Unpin>() {}
    movable::<volt::time::Interval>();
    assert!(size_of::<Sleep>() <= 56, "a parked sleep costs {}", size_of::<Sleep>());
}

/// Of 200 in 4 ms, exact ones would wake somebody 200 times, if the machine is idle.
#[test]
fn of_many_timers_several_are_fired_at_once_and_none_early() {
    for rt in flavours() {
        rt.block_on(async {
            let start = Instant::now() + 5 * MS;
            let tasks: Vec<_> = (0..200)
                .map(|i| {
                    let deadline = start + Duration::from_micros(20 * i);
                    volt::spawn(async move {
                        sleep_until(deadline).await;
                        assert!(Instant::now() >= deadline);
                    })
                })
                .collect();
            sleep_until(start - MS).await;
            let metrics = volt::runtime::Handle::current().metrics();
            let before = metrics.driver_wakeups_count();
            for task in tasks {
                task.await.unwrap();
            }
            let wakeups = metrics.driver_wakeups_count() - before;
            // Those of several members count looks that found nothing as well.
            let alone =
                volt::runtime::Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread;
            assert!(wakeups < if alone { 80 } else { 170 }, "{wakeups} wake-ups");
        });
    }
}
