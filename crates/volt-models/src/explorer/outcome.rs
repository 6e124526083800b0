//! What an exploration found.

use std::fmt;

/// The result of [`Machine::explore`](super::Machine::explore).
#[derive(Debug)]
#[must_use = "an outcome is to be asserted"]
pub struct Outcome {
    pub(super) states: usize,
    pub(super) failure: Option<Failure>,
}

/// A shortest execution that breaks what is to hold.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) reason: String,
    pub(super) trace: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.reason)?;
        for (number, step) in self.trace.iter().enumerate() {
            writeln!(f, "{:4}. {step}", number + 1)?;
        }
        Ok(())
    }
}

impl Outcome {
    /// How many states were looked at.
    #[must_use]
    pub fn states(&self) -> usize {
        self.states
    }

    /// The reason and the steps of a failure.
    #[must_use]
    pub fn counterexample(&self) -> Option<String> {
        self.failure.as_ref().map(Failure::to_string)
    }

    /// Expects that nothing failed.
    ///
    /// # Panics
    /// With the counterexample.
    #[track_caller]
    pub fn assert_holds(&self) {
        if let Some(failure) = &self.failure {
            panic!("after {} states: {failure}", self.states);
        }
        println!("holds: {} states", self.states);
    }

    /// Expects a failure whose reason contains `reason`.
    ///
    /// # Panics
    /// If nothing failed, or for another reason.
    #[track_caller]
    pub fn assert_fails(&self, reason: &str) {
        let Some(failure) = &self.failure else {
            panic!("expected to fail ({reason}), but it holds in all {} states", self.states);
        };
        assert!(failure.reason.contains(reason), "expected {reason:?}, but: {failure}");
        println!("fails after {} states: {failure}", self.states);
    }
}
