//! `select!`: the first of several futures, in one task.
//!
//! Purpose: Tokio's macro, with three things its own cannot be told. Volt's budget is asked, and not Tokio's, which nobody
//! sets in a task of Volt's, and nobody renews in a call from inside of one of Tokio's. The branch to begin with is chosen
//! by the thread's generator (`choice.rs`), which a seed can set. And the expansion needs no unsafe code.
//!
//! How it works: `__select!` takes one branch in a step, and keeps of it what the last step needs: a name for its future
//! (which is another one in each step, by hygiene), a variant and a bit. That step declares an enum with a variant for each
//! branch, pins the futures, and polls those whose bit is set, twice at most: from the chosen one on, then those before it.
//! What wins is moved out of the block with the futures, so that these are gone when the handler runs.
//!
//! A pattern is tried by a match whose guard says no: so nothing is bound by value, and what matches can still be
//! moved out as a whole.
//!
//! Rejected: Tokio's macro with each future in one of ours that knows the budget (as it was: no seed reached the start, who
//! polled inside of a task of Tokio's waited for ever for that one's budget, and a debug build had twice as many copies of
//! each future on its stack); Tokio's macro, entered behind its choice of a start (its inner form is no API); a tuple of
//! futures (unsafe code in the caller's crate); patterns without `mut` and `ref`, to match by reference (a procedural macro
//! for each branch, and constants do not match so).
//!
//! Cost: a look at the budget, and a number of the generator if more than one branch can begin; no allocation. The
//! future has a pointer for each branch beside the futures themselves.
//!
//! Invariants:
//! 1. A branch whose bit in `enabled` is not set is never polled: its precondition was false, or it was ready.
//! 2. The futures are dropped in the order of the branches, as locals are in the opposite of that of their declaration.
#![forbid(unsafe_code)]

use crate::choice;

/// The branches to be polled first: with `biased`, all.
#[inline(always)]
pub fn from_first(enabled: u64) -> u64 {
    enabled
}

/// The branches to be polled first: from one of them on, chosen at random, to the last.
#[inline]
pub fn from_random(enabled: u64) -> u64 {
    let mut turn = enabled;
    // As a branch that is disabled would be polled last, the next would else be the first twice as often.
    for _ in 0..choice::below(enabled.count_ones()) {
        turn &= turn - 1;
    }
    turn
}

/// In the guard of a match: notes that the pattern matches, and declines, so that nothing is bound by value.
#[inline(always)]
pub fn note(matches: &mut bool) -> bool {
    *matches = true;
    false
}

/// A match by a guard that declines.
#[cold]
pub fn declined() -> ! {
    unreachable!("the guard has declined")
}

/// A value whose pattern matched before.
#[cold]
pub fn unmatched() -> ! {
    unreachable!("a value that has matched does not any more")
}

/// # Panics
/// Always.
#[cold]
#[track_caller]
pub fn all_disabled() -> ! {
    panic!("all branches are disabled and there is no else branch")
}

/// Waits for the first of several futures, runs its handler, and drops the others.
///
/// ```text
/// volt::select! {
///     biased;                                                 // if it is there, before the branches
///     PATTERN = FUTURE => HANDLER,                            // 1 to 64 branches
///     PATTERN = FUTURE, if PRECONDITION => { HANDLER }        // a block needs no comma
///     else => HANDLER                                         // if it is there, after them
/// }
/// ```
///
/// The preconditions are evaluated first, then all of the expressions `FUTURE`, also those of branches
/// that a precondition has disabled. Anything that is [`IntoFuture`] will do, so `&mut future`
/// too, of one that is pinned and goes on later. The futures run at once in this one task, beginning
/// at a random one each time it is woken; with `biased;` always in their order, which is cheaper, and
/// makes fairness the caller's affair.
///
/// The first that is ready with a value that matches its pattern ends the wait: the other futures are
/// dropped, then its handler runs, in the surrounding function (`?`, `return`, `break`, `.await`), and
/// its value is that of the macro. A value that does not match is dropped, and disables its branch. If
/// all branches are disabled, `else` runs.
///
/// All of `tokio::select!` is here. Like that it works on any executor, but the budget of operations that
/// it knows is Volt's ([`task::coop`](crate::task::coop)): once the task has used it up, no branch is
/// polled before other tasks have had their turn. (A task of Tokio's has none of that: there, a branch that
/// is always ready may win for ever in one poll.) The random beginnings come from the seed, where there is one:
/// in `runtime::sim` and with `Builder::rng_seed`, of the feature `test-util`.
///
/// # Panics
/// If all branches are disabled and there is no `else`.
///
/// # Cancel safety
/// The futures that lose are dropped where they are. In a loop a branch's future should be cancel safe,
/// or be made before the loop and used by `&mut` ([`pin!`](crate::pin)).
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// volt::run(async {
///     let may_answer = true;
///     let answer = volt::select! {
///         biased;
///         () = volt::time::sleep(Duration::from_secs(60)) => "late",
///         answer = async { "early" }, if may_answer => answer,
///         else => "never",
///     };
///     assert_eq!(answer, "early");
/// });
/// ```
#[macro_export]
macro_rules! select {
    (biased; $($branches:tt)*) => {
        $crate::__select!(from_first, , $($branches)*)
    };
    ($($branches:tt)*) => {
        $crate::__select!(from_random, , $($branches)*)
    };
}

/// As `START STATE, BRANCHES`: moves one branch in each step from there to the state, which is `NAMES [DONE] [FUTURES]`.
/// `FUTURES` are the names of those, the last first.
///
/// The comma in front of a branch belongs to the one before, or is `select!`'s.
///
/// The rules depend on their order. A fragment that does not parse is an error, and not the next rule's turn: so a pattern
/// is asked for only where no `else` can be, and an expression where no block is (`{} (a, b)` would be a call).
#[doc(hidden)]
#[macro_export]
macro_rules! __select {
    (
        @ $start:ident $else:expr,
        [$((
            $future:ident $variant:ident $bit:literal $p:pat = $f:expr $(, if $c:expr)? => $h:expr
        ))+]
        [$($reversed:ident)+]
    ) => {{
        enum __VoltSelected<$($variant),+> {
            $($variant($variant),)+
            Disabled,
        }

        let mut enabled = 0 $(| 1_u64 << $bit)+;
        $($(
            if !$c {
                enabled &= !(1_u64 << $bit);
            }
        )?)+
        let mut selected = {
            $(let $future = $f;)+
            $(
                let mut $reversed = $crate::macro_support::pin!(
                    $crate::macro_support::IntoFuture::into_future($reversed)
                );
            )+
            $crate::macro_support::poll_fn(move |cx| {
                if $crate::macro_support::poll_proceed(cx).is_pending() {
                    return $crate::macro_support::Poll::Pending;
                }
                let mut turn = $crate::macro_support::$start(enabled);
                let mut before = enabled & !turn;
                while turn != 0 {
                    $(
                        #[allow(
                            unreachable_code, unreachable_patterns, unused_mut, unused_variables,
                            reason = "the output may be of a type without values; the handler's match tells of the rest"
                        )]
                        'branch: {
                            if turn & (1_u64 << $bit) == 0 {
                                break 'branch;
                            }
                            // The type of an output that there never is, as of `panic!()`, is that of `break`: `()`.
                            let mut output = match $crate::macro_support::Future::poll(
                                $future.as_mut(),
                                cx,
                            ) {
                                $crate::macro_support::Poll::Ready(output) => output,
                                $crate::macro_support::Poll::Pending => break 'branch,
                            };
                            enabled &= !(1_u64 << $bit);
                            let mut matches = false;
                            match output {
                                $p if $crate::macro_support::note(&mut matches) => {
                                    $crate::macro_support::declined()
                                }
                                _ => {}
                            }
                            if matches {
                                return $crate::macro_support::Poll::Ready(
                                    __VoltSelected::$variant(output),
                                );
                            }
                        }
                    )+
                    turn = before;
                    before = 0;
                }
                if enabled == 0 {
                    $crate::macro_support::Poll::Ready(__VoltSelected::Disabled)
                } else {
                    $crate::macro_support::Poll::Pending
                }
            })
            .await
        };
        match selected {
            $(__VoltSelected::$variant($p) => $h,)+
            __VoltSelected::Disabled => $else,
            _ => $crate::macro_support::unmatched(),
        }
    }};
    // The beginning.
    ($start:ident, $($branches:tt)*) => {
        $crate::__select!(
            $start
            (_0 0 (_1 1 (_2 2 (_3 3 (_4 4 (_5 5 (_6 6 (_7 7 (_8 8 (_9 9 (_10 10 (_11 11 (_12 12 (_13 13
            (_14 14 (_15 15 (_16 16 (_17 17 (_18 18 (_19 19 (_20 20 (_21 21 (_22 22 (_23 23 (_24 24
            (_25 25 (_26 26 (_27 27 (_28 28 (_29 29 (_30 30 (_31 31 (_32 32 (_33 33 (_34 34 (_35 35
            (_36 36 (_37 37 (_38 38 (_39 39 (_40 40 (_41 41 (_42 42 (_43 43 (_44 44 (_45 45 (_46 46
            (_47 47 (_48 48 (_49 49 (_50 50 (_51 51 (_52 52 (_53 53 (_54 54 (_55 55 (_56 56 (_57 57
            (_58 58 (_59 59 (_60 60 (_61 61 (_62 62 (_63 63 ()
            ))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))
            [] []
            $($branches)*
        )
    };
    // The end.
    ($start:ident $names:tt [] [] $(,)?) => {
        ::std::compile_error!("`select!` needs at least one branch")
    };
    ($start:ident $names:tt $done:tt $futures:tt $(,)?) => {
        $crate::__select!(@ $start $crate::macro_support::all_disabled(), $done $futures)
    };
    ($start:ident $names:tt [] [] $(,)? else => $else:expr $(,)?) => {
        $else
    };
    ($start:ident $names:tt $done:tt $futures:tt $(,)? else => $else:expr $(,)?) => {
        $crate::__select!(@ $start $else, $done $futures)
    };
    // A block.
    (
        $start:ident ($variant:ident $bit:literal $names:tt) [$($done:tt)*] [$($futures:tt)*] $(,)?
        $p:pat = $f:expr $(, if $c:expr)? => $h:block $($rest:tt)*
    ) => {
        $crate::__select!(
            $start $names
            [$($done)* (future $variant $bit $p = $f $(, if $c)? => $h)] [future $($futures)*]
            $($rest)*
        )
    };
    // An expression.
    (
        $start:ident ($variant:ident $bit:literal $names:tt) [$($done:tt)*] [$($futures:tt)*] $(,)?
        $p:pat = $f:expr $(, if $c:expr)? => $h:expr $(, $($rest:tt)*)?
    ) => {
        $crate::__select!(
            $start $names
            [$($done)* (future $variant $bit $p = $f $(, if $c)? => $h)] [future $($futures)*]
            $(, $($rest)*)?
        )
    };
    ($start:ident () $done:tt $futures:tt $($rest:tt)*) => {
        ::std::compile_error!("`select!` takes at most 64 branches")
    };
}

#[cfg(all(test, not(volt_loom)))]
mod tests;
