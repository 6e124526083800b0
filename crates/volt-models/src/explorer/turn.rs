//! What a step can do.

use super::Memory;
use super::machine::{Label, Register, State, Word};

/// Where a thread goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flow {
    /// At the next step.
    Next,
    /// At a label.
    To(Label),
    /// Nowhere yet: the step has not happened, and is tried again when others have moved.
    Wait,
    /// The thread has ended.
    End,
    /// The model is broken.
    Fail(String),
}

/// One thread's step in the making.
#[derive(Debug)]
pub struct Turn<'a> {
    pub(super) state: &'a mut State,
    pub(super) thread: usize,
    pub(super) memory: Memory,
    pub(super) way: usize,
    pub(super) accesses: usize,
    /// The access must wait for the thread's own stores.
    pub(super) blocked: bool,
    /// What the trace says about the access.
    pub(super) note: String,
    /// Only then are notes written.
    pub(super) noting: bool,
}

impl Turn<'_> {
    /// Runs `access`; then the next step.
    pub fn then<R>(&mut self, access: impl FnOnce(&mut Self) -> R) -> Flow {
        access(self);
        Flow::Next
    }

    /// Which way of a choice this is.
    #[must_use]
    pub fn way(&self) -> usize {
        self.way
    }

    /// The value of a register.
    #[must_use]
    pub fn reg(&self, register: Register) -> i32 {
        self.state.threads[self.thread].registers[register.0]
    }

    /// Changes a register.
    pub fn set(&mut self, register: Register, value: i32) {
        self.state.threads[self.thread].registers[register.0] = value;
    }

    /// The value in memory, outside of the memory model.
    #[must_use]
    pub fn peek(&self, word: Word) -> i32 {
        self.state.words[word.0]
    }

    /// Changes the value in memory, outside of the memory model.
    pub fn poke(&mut self, word: Word, value: i32) {
        self.state.words[word.0] = value;
    }

    /// Adds to the value in memory, outside of the memory model.
    pub fn bump(&mut self, word: Word, by: i32) {
        self.state.words[word.0] += by;
    }

    /// Adds a remark to the trace.
    pub fn say(&mut self, note: impl FnOnce() -> String) {
        if self.noting {
            if !self.note.is_empty() {
                self.note.push_str("; ");
            }
            let note = note();
            self.note.push_str(&note);
        }
    }

    /// An atomic load.
    pub fn load(&mut self, word: Word) -> i32 {
        self.accesses += 1;
        let stores = &self.state.threads[self.thread].stores;
        let own = stores.iter().rev().find(|(at, _)| *at == word.0).map(|(_, value)| *value);
        let value = own.unwrap_or(self.state.words[word.0]);
        self.say(|| format!("reads {value}{}", if own.is_some() { ", its own store" } else { "" }));
        value
    }

    /// An atomic store of any ordering but SeqCst.
    pub fn store(&mut self, word: Word, value: i32) {
        self.accesses += 1;
        match self.memory {
            Memory::Sequential => self.state.words[word.0] = value,
            Memory::StoreBuffers => self.state.threads[self.thread].stores.push((word.0, value)),
        }
        self.say(|| format!("stores {value}"));
    }

    /// A SeqCst store, which is a read-modify-write on x86.
    pub fn store_seq_cst(&mut self, word: Word, value: i32) {
        self.update(word, |_| Some(value));
    }

    /// A SeqCst fence.
    pub fn fence(&mut self) {
        self.accesses += 1;
        self.drain();
    }

    /// An atomic exchange. The value before.
    pub fn swap(&mut self, word: Word, value: i32) -> i32 {
        self.update(word, |_| Some(value))
    }

    /// An atomic addition. The value before.
    pub fn add(&mut self, word: Word, by: i32) -> i32 {
        self.update(word, |before| Some(before + by))
    }

    /// An atomic compare-and-swap; the value before is the error.
    ///
    /// # Errors
    /// If the value is not `from`.
    pub fn exchange(&mut self, word: Word, from: i32, to: i32) -> Result<(), i32> {
        let before = self.update(word, |before| (before == from).then_some(to));
        if before == from { Ok(()) } else { Err(before) }
    }

    /// A loop around a compare-and-swap, which ends with the one that succeeds: writes what `change`
    /// returns, or nothing for None. The value before.
    pub fn update(&mut self, word: Word, change: impl FnOnce(i32) -> Option<i32>) -> i32 {
        self.accesses += 1;
        let before = self.state.words[word.0];
        if self.drain() {
            match change(before) {
                Some(after) => {
                    self.state.words[word.0] = after;
                    self.say(|| format!("{before} -> {after}"));
                }
                None => self.say(|| format!("leaves {before}")),
            }
        }
        before
    }

    /// Takes a lock (a word that is 0 when it is free). False if the step is to wait.
    #[must_use]
    pub fn lock(&mut self, word: Word) -> bool {
        let free = self.update(word, |before| (before == 0).then_some(1)) == 0;
        free && !self.blocked
    }

    /// True if the thread's stores have all arrived.
    fn drain(&mut self) -> bool {
        self.blocked |= !self.state.threads[self.thread].stores.is_empty();
        !self.blocked
    }
}
