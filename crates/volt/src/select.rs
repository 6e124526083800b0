//! `select!`: Tokio's, with each branch's future in a [`Branch`].
//!
//! Tokio's own asks only Tokio's budget, which nobody sets here. So a branch that is always ready would win for ever once
//! the task has used up Volt's, as all of Volt's operations are pending then: a `loop` around it would never end its poll.
//! Here no branch is polled if the budget is used up when the first of them is; one that uses it up does not hold up those
//! after it. Which is the first in a poll of all, is told by the branches themselves: it was polled in the last round that
//! there was, which the others were not ([`Round`]).
//!
//! The macro puts each branch into one form and gives all to Tokio's, which does the rest. Rejected: a copy of Tokio's
//! (its unsafe code, and its 64 counters); a branch before the others that looks at the budget (it cannot keep a later
//! one from being polled); each branch by itself (one that uses up each budget would starve those after it); to call a
//! function with the future (temporaries in its arguments would not live long enough).
#![forbid(unsafe_code)]

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use volt_sync::coop::poll_proceed;
use volt_sync::internal::primitive::AtomicU32;

/// Of the polls of one `select!`: the number of the last, and whether there was budget.
///
/// All accesses are relaxed: one task at a time polls the branches.
#[derive(Debug, Default)]
pub struct Round(AtomicU32);

impl Round {
    /// Before the first.
    pub fn new() -> Self {
        Self::default()
    }

    /// A branch is polled that was polled last in the round `seen`. True if the round that is under way `has_budget`.
    #[inline]
    fn is_open(&self, seen: &mut u32, has_budget: impl FnOnce() -> bool) -> bool {
        // ORD relaxed: see above.
        let mut word = self.0.load(Relaxed);
        if *seen == word >> 1 {
            // All were polled in that one: this is the next.
            word = (word | 1).wrapping_add(1) | u32::from(has_budget());
            // ORD relaxed: see above.
            self.0.store(word, Relaxed);
        }
        *seen = word >> 1;
        word & 1 != 0
    }
}

/// A branch's future, before it is one. A struct with braces: temporaries in its field live as long as in a `let`.
#[derive(Debug)]
pub struct Branch<'a, F> {
    /// The expression in the branch.
    pub future: F,
    /// That of its `select!`.
    pub round: &'a Round,
}

impl<'a, F: IntoFuture> IntoFuture for Branch<'a, F> {
    type Output = F::Output;
    type IntoFuture = Budgeted<'a, F::IntoFuture>;

    fn into_future(self) -> Self::IntoFuture {
        Budgeted { future: self.future.into_future(), round: self.round, seen: 0 }
    }
}

pin_project! {
    /// Pending, with a wake-up on its way, while the task has no budget.
    #[derive(Debug)]
    pub struct Budgeted<'a, F> {
        #[pin]
        future: F,
        round: &'a Round,
        seen: u32,
    }
}

impl<F: Future> Future for Budgeted<'_, F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if this.round.is_open(this.seen, || poll_proceed(cx).is_ready()) {
            this.future.poll(cx)
        } else {
            Poll::Pending
        }
    }
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
/// The macro is that of the `tokio` crate, but knows Volt's budget of operations
/// ([`task::coop`](crate::task::coop)): once the task has used it up, no branch is polled before other
/// tasks have had their turn. Like the original it works on any executor.
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
    (biased; $($branches:tt)*) => {{
        let round = $crate::macro_support::Round::new();
        $crate::__select!(round { biased; } , $($branches)*)
    }};
    ($($branches:tt)*) => {{
        let round = $crate::macro_support::Round::new();
        $crate::__select!(round {} , $($branches)*)
    }};
}

/// Moves one or two branches in each step from behind the braces into them, where each ends with a block and a comma.
///
/// Two, as Tokio's macro takes a step for each as well, and 64 branches should not need a higher limit of recursion than
/// the usual 128. The comma in front belongs to the branch before, or is `select!`'s.
///
/// The rules depend on their order. A fragment that does not parse is an error, and not the next rule's turn: so a pattern
/// is asked for only where no `else` can be, and an expression where no block is (`{} (a, b)` would be a call).
#[doc(hidden)]
#[macro_export]
macro_rules! __select {
    ($round:ident { $($done:tt)* } $(,)?) => {
        $crate::macro_support::select! { $($done)* }
    };
    ($round:ident { $($done:tt)* } $(,)? else => $else:expr $(,)?) => {
        $crate::macro_support::select! { $($done)* else => $else }
    };
    // A block, and no branch behind it.
    (
        $round:ident { $($done:tt)* } $(,)?
        $p:pat = $f:expr $(, if $c:expr)? => $h:block $(,)? $(else $($rest:tt)*)?
    ) => {
        $crate::__select!($round {
            $($done)*
            $p = $crate::macro_support::Branch { future: $f, round: &$round } $(, if $c)? => $h,
        } $(else $($rest)*)?)
    };
    // A block and a block.
    (
        $round:ident { $($done:tt)* } $(,)?
        $p:pat = $f:expr $(, if $c:expr)? => $h:block $(,)?
        $q:pat = $g:expr $(, if $d:expr)? => $i:block $($rest:tt)*
    ) => {
        $crate::__select!($round {
            $($done)*
            $p = $crate::macro_support::Branch { future: $f, round: &$round } $(, if $c)? => $h,
            $q = $crate::macro_support::Branch { future: $g, round: &$round } $(, if $d)? => $i,
        } $($rest)*)
    };
    // A block and an expression.
    (
        $round:ident { $($done:tt)* } $(,)?
        $p:pat = $f:expr $(, if $c:expr)? => $h:block $(,)?
        $q:pat = $g:expr $(, if $d:expr)? => $i:expr $(, $($rest:tt)*)?
    ) => {
        $crate::__select!($round {
            $($done)*
            $p = $crate::macro_support::Branch { future: $f, round: &$round } $(, if $c)? => $h,
            $q = $crate::macro_support::Branch { future: $g, round: &$round } $(, if $d)? => { $i },
        } $(, $($rest)*)?)
    };
    // An expression, and no branch behind it.
    (
        $round:ident { $($done:tt)* } $(,)?
        $p:pat = $f:expr $(, if $c:expr)? => $h:expr $(, $(else $($rest:tt)*)?)?
    ) => {
        $crate::__select!($round {
            $($done)*
            $p = $crate::macro_support::Branch { future: $f, round: &$round } $(, if $c)? => { $h },
        } $($(else $($rest)*)?)?)
    };
    // An expression and a block.
    (
        $round:ident { $($done:tt)* } $(,)?
        $p:pat = $f:expr $(, if $c:expr)? => $h:expr,
        $q:pat = $g:expr $(, if $d:expr)? => $i:block $($rest:tt)*
    ) => {
        $crate::__select!($round {
            $($done)*
            $p = $crate::macro_support::Branch { future: $f, round: &$round } $(, if $c)? => { $h },
            $q = $crate::macro_support::Branch { future: $g, round: &$round } $(, if $d)? => $i,
        } $($rest)*)
    };
    // An expression and an expression.
    (
        $round:ident { $($done:tt)* } $(,)?
        $p:pat = $f:expr $(, if $c:expr)? => $h:expr,
        $q:pat = $g:expr $(, if $d:expr)? => $i:expr $(, $($rest:tt)*)?
    ) => {
        $crate::__select!($round {
            $($done)*
            $p = $crate::macro_support::Branch { future: $f, round: &$round } $(, if $c)? => { $h },
            $q = $crate::macro_support::Branch { future: $g, round: &$round } $(, if $d)? => { $i },
        } $(, $($rest)*)?)
    };
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::Round;

    /// Polls the branches in this order, as far as there is budget at the first; which of them were.
    fn poll(round: &Round, seen: &mut [u32; 3], order: &[usize], has_budget: bool) -> Vec<usize> {
        let mut asked = 0;
        let mut is_open = |branch: usize| {
            round.is_open(&mut seen[branch], || {
                asked += 1;
                has_budget
            })
        };
        let polled = order.iter().copied().filter(|&branch| is_open(branch)).collect();
        assert_eq!(asked, 1, "once in a poll");
        polled
    }

    #[test]
    fn the_budget_at_the_first_branch_counts_for_all_whichever_is_the_first() {
        let (round, mut seen) = (Round::new(), [0; 3]);
        for _ in 0..3 {
            assert_eq!(poll(&round, &mut seen, &[0, 1, 2], true), [0, 1, 2]);
            assert_eq!(poll(&round, &mut seen, &[2, 0, 1], false), [0; 0]);
            assert_eq!(poll(&round, &mut seen, &[1, 2, 0], true), [1, 2, 0]);
            // One was disabled.
            assert_eq!(poll(&round, &mut seen, &[2, 0], false), [0; 0]);
            assert_eq!(poll(&round, &mut seen, &[0, 2], true), [0, 2]);
            (seen[1], seen[2]) = (seen[0], seen[0]);
        }
    }
}
