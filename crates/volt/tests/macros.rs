//! The attribute macros; `select!`, and the re-exported `join!`, `try_join!` and `pin!`, on both flavours,
//! in `block_on` and on workers.

#[path = "support/net.rs"]
mod support;

use std::future::{pending, ready};
use std::time::Duration;

use volt::sync::{mpsc, oneshot};
use volt::task::yield_now;
use volt::time::{interval, sleep};

use support::each;

#[volt::main]
async fn with_arguments(a: u32, b: &str) -> Result<String, std::num::ParseIntError> {
    let b: u32 = b.parse()?;
    Ok(volt::spawn(async move { a + b }).await.expect("no panic").to_string())
}

#[volt::main(flavor = "current_thread")]
async fn with_impl() -> impl std::fmt::Display {
    3
}

/// Boxed by the coercion of a value that is returned.
#[volt::main(flavor = "current_thread")]
async fn with_coercion(early: bool) -> Result<(), Box<dyn std::error::Error>> {
    if early {
        return Err("early".into());
    }
    Err(Box::new(std::fmt::Error))
}

#[volt::main(flavor = "current_thread")]
async fn with_never() -> ! {
    panic!("it never returns")
}

/// Clippy, asked for each `return`, asks for none in what the attribute adds.
#[deny(clippy::implicit_return)]
#[allow(clippy::needless_return, reason = "the opposite")]
#[volt::main(flavor = "current_thread")]
async fn with_return() -> u32 {
    return 3;
}

#[test]
#[should_panic(expected = "it never returns")]
fn a_body_may_never_return() {
    with_never();
}

#[test]
fn what_is_returned_is_coerced() {
    assert_eq!(with_coercion(true).unwrap_err().to_string(), "early");
    assert!(with_coercion(false).unwrap_err().is::<std::fmt::Error>());
}

#[test]
fn main_returns_what_the_body_returns() {
    assert_eq!(with_arguments(1, "2"), Ok("3".to_owned()));
    assert!(with_arguments(1, "x").is_err());
    assert_eq!(with_impl().to_string(), "3");
    assert_eq!(with_return(), 3);
}

#[volt::test]
async fn tests_run_on_the_current_thread() {
    let here = std::thread::current().id();
    let there = volt::spawn(async { std::thread::current().id() }).await.unwrap();
    assert_eq!(here, there);
}

#[volt::test(flavor = "multi_thread", worker_threads = 2)]
async fn tests_run_on_workers_on_demand() -> std::io::Result<()> {
    assert_eq!(volt::runtime::Handle::current().metrics().num_workers(), 2);
    Ok(())
}

#[volt::test(start_paused = true)]
async fn time_starts_paused() {
    let real = std::time::SystemTime::now();
    sleep(Duration::from_secs(3600)).await;
    assert!(real.elapsed().unwrap() < Duration::from_secs(60));
}

#[volt::test]
#[should_panic(expected = "with its message")]
async fn panics_pass_through() {
    panic!("with its message");
}

#[test]
fn select_with_biased_preconditions_and_else() {
    each(|| async {
        let never = pending::<()>();
        volt::pin!(never);
        for allowed in [true, false] {
            let won = volt::select! {
                biased;
                () = &mut never => "never",
                Some(text) = ready(Some("first")), if allowed => text,
                text = ready("second") => text,
            };
            assert_eq!(won, if allowed { "first" } else { "second" });
        }
        let other = volt::select! {
            Some(()) = ready(None) => "some",
            else => "else",
        };
        assert_eq!(other, "else");
        let disabled = volt::select! {
            () = ready(()), if false => "disabled",
            else => "else",
        };
        assert_eq!(disabled, "else");
    });
}

#[test]
fn select_with_all_branches_disabled_and_no_else_panics() {
    each(|| async {
        let none_is_left = volt::spawn(async {
            volt::select! {
                Some(()) = ready(None::<()>) => {}
                () = pending(), if false => {}
            }
        });
        let error = none_is_left.await.unwrap_err();
        let payload = error.try_into_panic().unwrap();
        let message = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = message.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap();
        assert!(message.contains("all branches are disabled"), "{message}");
    });
}

/// Each turn of the loop goes on with the same work, and drops what else it began.
#[test]
fn select_in_a_loop_over_a_pinned_future() {
    each(|| async {
        let (sender, mut receiver) = mpsc::channel(1);
        let feeder = volt::spawn(async move {
            for number in 0..50 {
                sender.send(number).await.unwrap();
                if number % 7 == 0 {
                    yield_now().await;
                }
            }
            sleep(Duration::from_millis(2)).await;
            "fed"
        });
        let (finish, finished) = oneshot::channel();
        let mut polls = 0;
        let work = async {
            finished.await.unwrap();
            sleep(Duration::from_millis(1)).await;
            "worked"
        };
        volt::pin!(work, feeder);
        let mut finish = Some(finish);
        let (mut numbers, mut fed) = (Vec::new(), None);
        let mut ticks = interval(Duration::from_micros(200));
        let result = loop {
            volt::select! {
                result = &mut work => break result,
                Some(number) = receiver.recv() => numbers.push(number),
                result = &mut feeder, if fed.is_none() => {
                    fed = Some(result.unwrap());
                    finish.take().unwrap().send(()).unwrap();
                }
                _ = ticks.tick() => polls += 1,
            }
        };
        assert_eq!((result, fed), ("worked", Some("fed")));
        assert_eq!(numbers, Vec::from_iter(0..50), "no message was lost with a dropped `recv`");
        assert!(polls > 0);
    });
}

/// In the order of its branches with `biased`, in any order without.
#[test]
fn select_is_fair_unless_biased() {
    each(|| async {
        let mut wins = [0; 3];
        for _ in 0..300 {
            let won =
                volt::select! { () = ready(()) => 0, () = ready(()) => 1, () = ready(()) => 2 };
            wins[won] += 1;
            let first = volt::select! { biased; () = ready(()) => 0, () = ready(()) => 1 };
            assert_eq!(first, 0);
        }
        // The odds against this are below one in 10^50.
        assert!(wins.iter().all(|wins| *wins > 0), "{wins:?}");
    });
}

/// Tokio's own macro asks for Tokio's budget: the branch that is always ready won for ever, in one poll.
#[test]
fn select_gives_others_a_turn_when_the_budget_is_used_up() {
    each(|| async {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        sender.send(1).unwrap();
        let work = async {
            let (mut turns, mut received) = (0, 0);
            while turns < 100_000 {
                turns += 1;
                volt::select! {
                    Some(one) = receiver.recv() => {
                        received += one;
                        sender.send(one).unwrap();
                    }
                    () = ready(()) => {}
                }
            }
            received
        };
        volt::pin!(work);
        assert!(futures::poll!(work.as_mut()).is_pending());
        // It is woken, or else this would not end.
        assert!(work.await > 10_000);

        let (sender, mut receiver) = mpsc::unbounded_channel();
        sender.send(1).unwrap();
        let never_ends = volt::time::timeout(Duration::from_millis(5), async {
            let began = volt::time::Instant::now();
            while began.elapsed() < Duration::from_secs(60) {
                volt::select! {
                    biased;
                    Some(one) = receiver.recv() => sender.send(one).unwrap(),
                    () = ready(()) => {}
                }
            }
        });
        assert!(never_ends.await.is_err());
    });
}

/// The caller's name for the crate, and a macro's that uses `select!`.
mod renamed {
    pub(crate) use ::volt as rt;

    macro_rules! first {
        ($($future:expr),*) => { $crate::renamed::rt::select! { $(won = $future => won),* } };
    }
    pub(crate) use first;
}

#[test]
fn select_takes_branches_in_every_form() {
    use renamed::rt::select;

    enum Side {
        Left(u32),
        Right(u32),
    }

    /// Blocks and expressions in each order, with and without commas behind.
    async fn forms(which: u32, on: bool) -> Result<u32, std::num::ParseIntError> {
        let at = async |number: u32| if number == which { number } else { pending().await };
        let won = select! {
            0 = at(0), if on => {
                "0".parse::<u32>()?
            }
            (one, 1) = async { (at(1).await, 1) } => { one },
            [mut two, ..] = async { [at(2).await, 0] } => {
                two += 1;
                two - 1
            }
            &three = async { &*Box::leak(Box::new(at(3).await)) }, if on => three,
            Side::Left(four) | Side::Right(four) = async {
                if on { Side::Left(at(4).await) } else { Side::Right(at(4).await) }
            } => four,
            five @ 0..=9 = at(5) => { five }
            6 | 66 = at(6) => return Ok(which),
            _ = at(7) => "seven".parse()?,
            else => unreachable!(),
        };
        Ok(won)
    }

    each(|| async {
        for which in 0..7 {
            assert_eq!(forms(which, true).await, Ok(which));
        }
        assert!(forms(7, true).await.is_err());

        let mut turns = 0;
        let out = 'outer: loop {
            turns += 1;
            select! { () = ready(()), if turns < 3 => continue, () = ready(()) => break 'outer turns }
        };
        assert!((1..=3).contains(&out));
        assert_eq!(select! { one = async { 1 } => one }, 1);
        assert_eq!(select! { biased; one = async { 1 } => one, }, 1);
        assert_eq!(select! { _ = async {} => { 1 } }, 1);
        assert_eq!(select! { _ = async {} => { 1 }, }, 1);
        assert_eq!(select! { None = ready(Some(0)) => { 1 } else => 2 }, 2);
        assert_eq!(select! { None = ready(Some(0)) => { 1 }, else => { 2 } }, 2);
        assert_eq!(select! { None = ready(Some(0)) => 1, else => 2, }, 2);
        assert_eq!(select! { else => 3 }, 3);
        assert_eq!(select! { biased; else => 3, }, 3);
        assert_eq!(renamed::first!(pending(), ready(4), pending()), 4);

        // What the branches borrow lives until one has won, also if it has no name.
        let mut own = 5;
        let sum = select! { sum = &mut Box::pin(async { own += 1; own }) => sum };
        assert_eq!((sum, own), (6, 6));
        // Handlers wait, and own what was borrowed by the branches.
        let handled = select! { () = async { own += 1 } => { yield_now().await; own } };
        assert_eq!(handled, 7);
        // What becomes a future is one.
        assert_eq!(select! { tick = Into::<Later>::into(8) => tick }, 8);
    });
}

struct Later(u32);

impl From<u32> for Later {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl IntoFuture for Later {
    type Output = u32;
    type IntoFuture = std::future::Ready<u32>;

    fn into_future(self) -> Self::IntoFuture {
        ready(self.0)
    }
}

/// As many as Tokio's takes, at the usual limit of recursion.
#[test]
fn select_takes_64_branches() {
    macro_rules! with_64 {
        ($callback:ident) => {
            $callback!(
                0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
                32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60
                61 62 63
            )
        };
    }
    macro_rules! expressions {
        ($($number:literal)*) => {
            volt::select! { $(won @ $number = ready(63) => won,)* else => 64 }
        };
    }
    macro_rules! blocks {
        ($($number:literal)*) => {
            volt::select! { biased; $(won = ready($number), if $number == 63 => { won })* }
        };
    }
    each(|| async {
        assert_eq!(with_64!(expressions), 63);
        assert_eq!(with_64!(blocks), 63);
    });
}

#[test]
fn join_waits_for_all_and_try_join_for_the_first_error() {
    each(|| async {
        let (left, right) = (oneshot::channel(), oneshot::channel());
        // Neither could end before the other has begun.
        let one = async {
            left.0.send(1).unwrap();
            right.1.await.unwrap()
        };
        let other = volt::spawn(async { left.1.await.unwrap() });
        let third = async {
            sleep(Duration::from_millis(1)).await;
            right.0.send(2).unwrap();
            3
        };
        let (one, other, third) = volt::join!(one, other, third);
        assert_eq!((one, other.unwrap(), third), (2, 1, 3));

        let late = async {
            sleep(Duration::from_millis(1)).await;
            Ok::<_, &str>("late")
        };
        let early = async { Ok::<_, &str>(2) };
        assert_eq!(volt::try_join!(late, early, ready(Ok(()))), Ok(("late", 2, ())));

        let (unfinished, dropped) = oneshot::channel::<()>();
        let held = async {
            pending::<()>().await;
            drop(unfinished);
            Ok::<(), &str>(())
        };
        let failing = async {
            yield_now().await;
            Err::<u8, _>("no")
        };
        assert_eq!(volt::try_join!(held, failing), Err("no"));
        assert!(dropped.await.is_err(), "what was under way has been dropped");
    });
}

#[test]
fn pin_takes_values_and_bindings() {
    each(|| async {
        volt::pin! {
            let one = async { 1 };
            let two = async { yield_now().await; 2 };
        }
        let three = async { 3 };
        volt::pin!(three);
        assert_eq!(two.as_mut().await + one.as_mut().await + three.await, 6);
    });
}

/// The signature means what it says, whatever the body calls by the same names.
#[volt::test]
async fn items_of_a_body_are_not_those_of_its_signature() -> Result<(), Box<dyn std::error::Error>>
{
    use std::io::Result;

    fn never() -> Result<u8> {
        Ok(1)
    }

    assert_eq!(never()?, 1);
    Ok(())
}

/// The crate may be known by a `use` only, as of one that another crate has re-exported.
mod by_another_path {
    pub(super) mod other {
        /// A stand-in for the crate, so that it shows which one the attribute has taken.
        pub(crate) mod volt {
            pub(crate) use ::volt::{macro_support, main};
            pub(crate) mod runtime {
                pub(crate) struct Builder;
                impl Builder {
                    pub(crate) fn new_multi_thread() -> ::volt::runtime::Builder {
                        let mut builder = ::volt::runtime::Builder::new_multi_thread();
                        builder.thread_name("of the other path");
                        builder
                    }
                }
            }
        }
    }

    use other::volt;

    #[volt::main(worker_threads = 1)]
    pub(super) async fn name_of_a_worker() -> Option<String> {
        let name = || std::thread::current().name().map(String::from);
        ::volt::spawn(async move { ::volt::task::block_in_place(name) }).await.unwrap()
    }
}

#[test]
fn the_crate_may_have_come_by_another_path() {
    let is_its = |name: Option<String>| name.is_some_and(|name| name == "of the other path");
    // The first poll is the thread's in `block_on`, or not.
    assert!((0..20).any(|_| is_its(by_another_path::name_of_a_worker())));
}

#[volt::main(flavor = "current_thread")]
#[expect(dead_code, reason = "the compiler has to see that")]
async fn nobody_calls_this() {}
