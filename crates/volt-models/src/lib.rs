//! Model checkers for Volt's protocols, and the models (development only).
//!
//! Loom runs the real code, but it treats sequentially consistent loads and stores as weaker than
//! they are, makes stores to one word in the order in which it executes them, and bounds
//! preemptions. Two small tools fill these gaps:
//!
//! * [`explorer`]: every interleaving of threads made of labelled steps, under sequential
//!   consistency or with the store buffers of x86; prints a shortest counterexample.
//! * [`litmus`]: every execution that C++20 allows for a few atomic accesses.
//!
//! The models of the protocols are tests, in the module `protocols`. `docs/design/models.md` says
//! what each covers, and how to add one.
#![forbid(unsafe_code)]

pub mod explorer;
pub mod litmus;

#[cfg(test)]
mod protocols;
