//! `select!`, in all shapes. `select/shapes.rs` is compiled and run with Tokio's macro as well; what is here is about
//! where it begins, budgets, seeds and sizes, of which Tokio's knows another thing or nothing.

use std::future::{pending, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use volt::runtime::sim::Sim;
use volt::runtime::{Builder, Runtime};
use volt::select;

use support::bounded;

#[path = "support/net.rs"]
mod support;
mod with_volt {
    use ::volt as rt;
    include!("select/shapes.rs");
}
mod with_tokio {
    use ::tokio as rt;
    include!("select/shapes.rs");
}

/// On Volt: Tokio's macro works on any executor, too.
macro_rules! test_both {
    ($($volt:ident, $tokio:ident: $test:ident;)*) => {
        $(
            #[test]
            fn $volt() {
                volt::run(with_volt::$test());
            }
            #[test]
            fn $tokio() {
                volt::run(with_tokio::$test());
            }
        )*
    };
}

test_both! {
    every_pattern_in_every_form, every_pattern_in_every_form_with_tokio: patterns;
    what_happens_in_which_order, what_happens_in_which_order_with_tokio: order;
    a_value_that_does_not_match_ends_its_branch, a_value_that_does_not_match_ends_its_branch_with_tokio: values_that_do_not_match;
    handlers_are_a_part_of_the_function, handlers_are_a_part_of_the_function_with_tokio: handlers;
    outputs_without_values, outputs_without_values_with_tokio: outputs_without_values;
    the_names_are_the_callers, the_names_are_the_callers_with_tokio: names;
}

#[test]
fn a_handler_that_waits_may_be_a_part_of_a_task() {
    volt::run(async {
        assert_eq!(volt::spawn(with_volt::send()).await.unwrap(), 2);
        assert_eq!(volt::spawn(with_tokio::send()).await.unwrap(), 2);
    });
}

/// What is compared by value, which Tokio's macro cannot; and names of types that it has for itself.
#[test]
fn what_tokios_does_not_take() {
    #[derive(PartialEq, Eq)]
    struct Pin(u32);
    const ONE: Pin = Pin(1);
    volt::run(async {
        assert_eq!(select! { ONE = ready(Pin(1)) => "one", else => "none" }, "one");
        assert_eq!(select! { ONE = ready(Pin(2)) => "one", else => "none" }, "none");
        assert_eq!(select! { "text" = ready("text") => 1, else => 2 }, 1);
    });
}

/// Which of two that are ready, so many times.
async fn choices(count: usize) -> Vec<u32> {
    let mut chosen = Vec::new();
    for _ in 0..count {
        chosen.push(select! { () = ready(()) => 0, () = ready(()) => 1 });
    }
    chosen
}

fn poll_once<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Of a thousand runs with one seed, half were a failure.
#[test]
fn a_simulation_chooses_by_its_seed() {
    let run = |seed| {
        let program = async {
            let other = volt::spawn(choices(20));
            let mut chosen = choices(20).await;
            chosen.extend(other.await.unwrap());
            chosen
        };
        Sim::new(seed).run(program).unwrap()
    };
    for seed in 0..10 {
        let first = run(seed);
        assert!((0..10).all(|_| run(seed) == first));
        assert!(first.contains(&0) && first.contains(&1), "{first:?}");
    }
    assert_ne!(run(1), run(2));
    let hangs = |seed| {
        let one = async {
            select! { _ = async {} => {}, _ = async {} => pending().await }
        };
        Sim::new(seed).run(one).is_err()
    };
    let failures = (0..1000).filter(|_| hangs(7)).count();
    assert!([0, 1000].contains(&failures), "{failures} of a thousand runs with one seed");
    let failures = (0..1000).filter(|&seed| hangs(seed)).count();
    assert!((300..700).contains(&failures), "{failures} of a thousand seeds");
}

/// An action outside, too; and after the run the thread's own choices go on.
#[test]
fn a_simulation_chooses_by_its_seed_outside_of_its_workers() {
    let run = |seed| {
        let (sender, receiver) = volt::sync::oneshot::channel();
        let action = move |_: &_| {
            let Poll::Ready(chosen) = poll_once(choices(30)) else { panic!("both are ready") };
            sender.send(chosen).unwrap();
        };
        Sim::new(seed).outside(action).run(receiver).unwrap().unwrap()
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
    let after = || {
        run(3);
        poll_once(choices(64))
    };
    assert_ne!(after(), after());
}

/// In `block_on`, also in the first poll of its future, and in tasks.
#[test]
fn a_runtime_with_a_seed_chooses_by_it() {
    fn chosen(runtime: &Runtime) -> Vec<u32> {
        runtime.block_on(async {
            let mut chosen = choices(20).await;
            chosen.extend(volt::spawn(choices(20)).await.unwrap());
            chosen
        })
    }
    let with = |seed| Builder::new_current_thread().rng_seed(seed).build().unwrap();
    let first = chosen(&with(1));
    assert_eq!(first, chosen(&with(1)));
    assert_ne!(first, chosen(&with(2)));
    let again = with(1);
    assert_eq!((chosen(&again), chosen(&again)), (first.clone(), first));

    // The only worker's.
    let with = |seed| {
        let runtime = Builder::new_multi_thread().worker_threads(1).rng_seed(seed).build().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        runtime.spawn(async move { sender.send(choices(40).await).unwrap() });
        receiver.recv().unwrap()
    };
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));

    // Without a seed, calls that are alike do not choose alike.
    let runtime = Builder::new_current_thread().build().unwrap();
    assert_ne!(runtime.block_on(choices(64)), runtime.block_on(choices(64)));
}

/// One that is disabled leaves its turn not to its neighbour, but to all.
#[test]
fn all_enabled_branches_begin_equally_often() {
    volt::run(async {
        let mut wins = [0; 3];
        for _ in 0..3000 {
            let won = select! {
                () = ready(()) => 0,
                () = ready(()), if false => unreachable!(),
                () = ready(()) => 2,
            };
            wins[won] += 1;
        }
        // About ten times the standard deviation from the mean.
        assert!((1200..1800).contains(&wins[0]), "{wins:?}");
    });
}

/// Inside of a poll of Tokio's, whose budget is not renewed before it returns: the loop never ended.
#[test]
fn a_select_in_a_call_from_a_task_of_tokios_goes_on() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let received = runtime.block_on(async {
        tokio::spawn(async {
            // It uses up what Tokio's task has.
            while tokio::task::coop::has_budget_remaining() {
                tokio::task::coop::consume_budget().await;
            }
            volt::run(bounded(async {
                let (sender, mut receiver) = volt::sync::mpsc::unbounded_channel();
                for number in 0..1000 {
                    sender.send(number).unwrap();
                }
                drop(sender);
                let mut received = 0;
                loop {
                    select! {
                        Some(_) = receiver.recv() => received += 1,
                        else => break received,
                    }
                }
            }))
        })
        .await
        .unwrap()
    });
    assert_eq!(received, 1000);
}

/// A future in a branch is in the one around once, and in a debug build about three times on the stack. It was seven
/// times, when each was in one of ours and that in Tokio's macro.
#[test]
fn large_futures_fit() {
    const LARGE: usize = 90_000;
    async fn large() -> u8 {
        let bytes = [1; LARGE];
        volt::task::yield_now().await;
        std::hint::black_box(&bytes)[LARGE / 2]
    }
    async fn selects() -> u8 {
        select! { a = large() => a, b = large() => b, c = large() => c, () = pending() => 0 }
    }
    let size = size_of_val(&selects());
    assert!(size < 3 * LARGE + 200, "{size} bytes");
    let in_a_thread = std::thread::Builder::new().stack_size(1400 << 10);
    let run = || volt::run(async { Box::pin(selects()).await });
    assert_eq!(in_a_thread.spawn(run).unwrap().join().unwrap(), 1);
}
