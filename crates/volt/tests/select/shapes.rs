// What is true of `select!`, whoever's it is: `rt` is `volt` or `tokio`. See `select.rs`.

use std::cell::RefCell;
use std::future::{pending, ready};
use std::num::ParseIntError;
use std::pin::pin;
use std::rc::Rc;

use rt::select;

/// A pattern, a value that matches it and the number that then is bound; behind `or`, a value that does not match.
/// Each in every form of a branch, in a function of its own: what a compiler takes for one grows faster than it.
macro_rules! patterns {
    ($($p:pat = $value:expr $(, or $other:expr)? => $number:expr, $bound:expr;)*) => {{
        $({
            async fn holds() {
                // The last branch, an expression; a block; with a comma; before another one; before `else`.
                assert_eq!(select! { $p = ready($value) => id($bound) }, $number);
                assert_eq!(select! { biased; $p = ready($value) => { $bound } }, $number);
                assert_eq!(select! { biased; $p = ready($value), if on() => id($bound), }, $number);
                assert_eq!(select! { $p = later($value) => id($bound), _ = pending::<()>() => 0 }, $number);
                assert_eq!(
                    select! {
                        () = pending() => 0,
                        $p = async { tick().await; $value } => { tick().await; $bound }
                        else => 0,
                    },
                    $number
                );
                assert_eq!(
                    select! {
                        $p = ready($value), if !on() => id($bound),
                        _ = tick() => { 77 },
                    },
                    77
                );
                let returned = async {
                    let number: u32 = select! {
                        $p = &mut Box::pin(later($value)) => { return Ok($bound) },
                        _ = pending::<u8>(), if on() => "no number".parse()?,
                    };
                    Ok::<u32, ParseIntError>(number + 1)
                };
                assert_eq!(returned.await, Ok($number));
                $(
                    assert_eq!(select! { $p = ready($other) => id($bound), else => 88 }, 88);
                    assert_eq!(select! { biased; $p = later($other) => { $bound } else => { 88 } }, 88);
                    assert_eq!(select! { $p = ready($other) => id($bound), () = tick() => 66 }, 66);
                    assert_eq!(
                        select! {
                            biased;
                            $p = ready($other) => id($bound),
                            $p = ready($value) => id($bound),
                            else => 88,
                        },
                        $number
                    );
                )?
            }
            holds().await;
        })*
    }};
}

fn on() -> bool {
    std::hint::black_box(true)
}

fn id(number: u32) -> u32 {
    number
}

async fn tick() {
    volt::task::yield_now().await;
}

async fn later<T>(value: T) -> T {
    tick().await;
    value
}

struct Pair {
    number: u32,
    text: String,
}

impl Pair {
    fn new(number: u32) -> Self {
        Self { number, text: "text".into() }
    }
}

enum Side {
    Left(u32),
    Right { number: u32 },
    Neither,
}

/// Neither `Clone` nor `Copy`.
struct Only(u32);

pub(crate) async fn patterns() {
    patterns! {
        x = 1 => 1, x;
        mut x = 2 => 3, { x += 1; x };
        ref x = 3 => 3, *x;
        _ = 4 => 4, 4;
        5 = 5, or 6 => 5, 5;
        6 | 66 = 66, or 65 => 6, 6;
        x @ 0..=9 = 7, or 10 => 7, x;
        x @ (1 | 8) = 8, or 9 => 8, x;
        Some(x) = Some(9), or None::<u32> => 9, x;
        Some(mut x) = Some(10), or None::<u32> => 11, { x += 1; x };
        Some(ref x) = Some(11), or None::<u32> => 11, *x;
        Some(ref mut x) = Some(12), or None::<u32> => 13, { *x += 1; *x };
        Some(Only(x)) = Some(Only(13)), or None::<Only> => 13, x;
        Some(Pair { mut number, ref text }) = Some(Pair::new(14)), or None::<Pair> => 18, {
            number += u32::try_from(text.len()).unwrap();
            number
        };
        (x, _) = (15, Only(0)) => 15, x;
        (mut x, Only(y)) = (16, Only(1)) => 17, { x += y; x };
        Pair { number, .. } = Pair::new(17) => 17, number;
        [x, .., y] = [18, 0, 0, 1] => 19, x + y;
        [Only(x), rest @ ..] = [Only(19), Only(1)] => 20, x + rest[0].0;
        &x = &20 => 20, x;
        &Some(x) = &Some(21), or &None::<u32> => 21, x;
        Some(x) = &Some(22), or &None::<u32> => 22, *x;
        Ok(text) = Ok::<_, u8>(String::from("23")), or Err::<String, _>(1) => 23, {
            text.parse::<u32>().unwrap()
        };
        Err(_) = Err::<(), _>(Only(0)), or Ok::<_, Only>(()) => 24, 24;
        Side::Left(number) | Side::Right { number } = Side::Left(25), or Side::Neither => 25, number;
        Side::Left(number) | Side::Right { number } = Side::Right { number: 26 }, or Side::Neither => 26, number;
        boxed = Box::new(Only(27)) => 27, boxed.0;
        Some(it @ Side::Left(28)) = Some(Side::Left(28)), or Some(Side::Left(0)) => 28, match it {
            Side::Left(x) => x,
            Side::Right { .. } | Side::Neither => 0,
        };
        () = () => 30, 30;
    }
}

/// The preconditions first, then the futures of all branches, then polls; the losers are dropped in their order, and
/// before the handler runs.
pub(crate) async fn order() {
    struct Noisy<'a>(&'a RefCell<Vec<u32>>, u32);
    impl Drop for Noisy<'_> {
        fn drop(&mut self) {
            self.0.borrow_mut().push(self.1);
        }
    }
    let log = RefCell::new(Vec::new());
    let note = |number| {
        log.borrow_mut().push(number);
        true
    };
    let future = |number: u32| {
        note(number);
        let noisy = Noisy(&log, number + 100);
        let log = &log;
        async move {
            let _noisy = noisy;
            log.borrow_mut().push(number + 50);
            if number < 22 {
                pending::<()>().await;
            }
        }
    };
    select! {
        biased;
        () = future(20), if note(1) => note(200),
        () = future(21), if !note(2) => note(201),
        () = future(22), if note(3) => note(202),
        () = future(23), if note(4) => note(203),
    };
    // The second is never polled, the third has dropped what it holds when it was ready.
    let expected = [1, 2, 3, 4, 20, 21, 22, 23, 70, 72, 122, 120, 121, 123, 202];
    assert_eq!(*log.borrow(), expected);
}

/// A branch whose value does not match is out, and the others go on; it is not polled again.
pub(crate) async fn values_that_do_not_match() {
    for _ in 0..20 {
        let mut polls = 0;
        let counted = std::future::poll_fn(|_| {
            polls += 1;
            assert_eq!(polls, 1, "ready before");
            std::task::Poll::Ready(None::<u32>)
        });
        let late = async {
            for _ in 0..3 {
                tick().await;
            }
            3
        };
        assert_eq!(select! { Some(x) = counted => x, x = late => x }, 3);
        assert_eq!(polls, 1);
    }
}

/// What the futures borrow is free in the handlers, which are a part of the function around.
pub(crate) async fn handlers() {
    async fn in_loops() -> Result<Vec<u32>, ParseIntError> {
        let (mut rounds, mut seen) = (0, Vec::new());
        let count = 'outer: loop {
            rounds += 1;
            let found = loop {
                select! {
                    biased;
                    () = async { seen.push(rounds) }, if rounds == 1 => { rounds += 1; continue }
                    () = ready(()), if rounds == 2 => { seen.push(20); continue 'outer }
                    _ = later(()), if rounds == 3 => break rounds,
                    _ = ready(()), if rounds < 6 => break 'outer seen.len(),
                    else => return Ok(vec![]),
                }
            };
            seen.push(found * 10);
        };
        seen.push(u32::try_from(count).unwrap());
        let parsed: u32 =
            select! { text = async { seen.len().to_string() } => { seen.push(9); text.parse()? } };
        seen.push(parsed);
        select! { () = tick() => "x".parse::<u32>()?, _ = pending::<()>() => 0 };
        Ok(seen)
    }
    assert!(in_loops().await.is_err());

    // Types come from where they are known: a handler, the surrounding, a value of another branch.
    let empty: Vec<u8> = select! { _ = ready(()) => Vec::new(), it = pending() => it };
    assert!(empty.is_empty());
    let mut numbers = Vec::new();
    select! { Ok::<_, ParseIntError>(x) = async { "7".parse() } => numbers.push(x), else => {} }
    numbers.push(1_u16);
    assert_eq!(numbers, [7, 1]);
    let boxed: Box<dyn std::fmt::Display> =
        select! { x = ready(3) => Box::new(x), x = pending::<String>() => Box::new(x) };
    assert_eq!(boxed.to_string(), "3");
    let never: Result<u32, std::convert::Infallible> =
        select! { x = later(Ok(3)) => x, x = pending() => x };
    assert_eq!(never, Ok(3));

    // One in another: in a future, in a precondition, in a handler, in `else`.
    let nested = select! {
        Some(x) = async { select! { x = later(1) => Some(x), _ = pending::<()>() => None } },
            if select! { x = ready(1) => x == 1 } => {
            select! { y = later(10) => x + y, else => 0 }
        }
        else => select! { x = ready(1) => x }
    };
    assert_eq!(nested, 11);

    // `.await` and `?` where the future is made.
    let made: Result<u32, ParseIntError> = async {
        Ok(select! { x = later("4".parse::<u32>()?) => x, x = ready(later(5).await), if false => x })
    }
    .await;
    assert_eq!(made, Ok(4));

    // By reference, and of a future that is not `Send`.
    let shared = Rc::new(1);
    let mut kept = pin!(async {
        tick().await;
        *shared
    });
    assert_eq!(select! { biased; x = &mut kept => x, () = ready(()) => 2 }, 2);
    assert_eq!(select! { biased; x = &mut kept => x, () = pending() => 2 }, 1);
}

/// The macro's own names are none that the caller sees, or hides.
#[allow(non_snake_case, reason = "to collide with names of types")]
pub(crate) async fn names() {
    #[derive(PartialEq, Debug)]
    struct Out(u32);
    #[derive(PartialEq, Debug)]
    enum Poll {
        Ready(u32),
        Pending,
    }
    #[allow(dead_code, reason = "names only")]
    trait Future {}
    let (enabled, disabled, mut turn, before, matches, output) = (1, 2, 3, 4, 5, 6);
    let (selected, future, cx, start, branch, is_pending) = (7, 8, 9, 10, 11, 12);
    let (mask, out, futures) = (13, 14, 15);
    let sum = select! {
        enabled = async { enabled + disabled + turn }, if before + matches + output == 15 => {
            turn += 1;
            enabled + turn + selected + future + cx + start + branch + is_pending + mask + out + futures
        }
        future = pending::<u32>(), if selected + cx + start == 26 => future + selected,
    };
    assert_eq!(sum, 6 + 4 + (7..=15).sum::<u32>());
    let own = select! { Poll::Ready(output) = ready(Poll::Ready(3)) => Out(output), out = pending() => out };
    assert_eq!((own, Poll::Pending), (Out(3), Poll::Pending));
}

/// A handler that waits may be a part of a task.
pub(crate) async fn send() -> u32 {
    let mut held = std::cell::Cell::new(1);
    select! {
        Some(mut x) = later(Some(vec![1_u32])) => {
            tick().await;
            x.push(held.get());
            *held.get_mut() += 1;
            tick().await;
            x.iter().sum()
        }
        x = pending::<String>(), if on() => { tick().await; x.len().try_into().unwrap_or(0) }
        else => { tick().await; 3 }
    }
}

/// Outputs that there never are: no warning, and a type that only the macro can tell.
pub(crate) async fn outputs_without_values() {
    async fn never() -> std::convert::Infallible {
        pending().await
    }
    async fn never_at_all() -> ! {
        pending().await
    }
    assert_eq!(select! { _ = never_at_all() => 0, x = later(1) => x }, 1);
    assert_eq!(select! { x = later(2) => x, x = never_at_all() => x }, 2);
    assert_eq!(select! { x = never() => match x {}, x = later(3) => x, else => 0 }, 3);
    let panics = std::future::poll_fn(|_| panic!("it is disabled"));
    assert_eq!(select! { _ = panics, if !on() => 0, x = later(4) => x }, 4);
}
