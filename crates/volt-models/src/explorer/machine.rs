//! How a model is put together.

use std::fmt;

use super::turn::{Flow, Turn};
use super::{Memory, Outcome, search};

/// A shared word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(pub(super) usize);

/// A thread's own variable. It belongs to the thread whose builder made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register(pub(super) usize);

/// A place in a thread's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(pub(super) usize);

pub(super) type Action = Box<dyn Fn(&mut Turn<'_>) -> Flow>;
type Check = Box<dyn Fn(&View<'_>) -> Result<(), String>>;

pub(super) struct Step {
    pub(super) name: String,
    /// How many ways there are to take it.
    pub(super) ways: usize,
    pub(super) action: Action,
}

#[derive(Default)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) steps: Vec<Step>,
    /// Where each label points to.
    pub(super) labels: Vec<Option<usize>>,
    pub(super) registers: usize,
}

/// One moment of one execution.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) words: Box<[i32]>,
    /// For each thread: where it is, its registers, and its waiting stores.
    pub(super) threads: Box<[Thread]>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Thread {
    /// None: it has ended.
    pub(super) at: Option<usize>,
    pub(super) registers: Box<[i32]>,
    pub(super) stores: Vec<(usize, i32)>,
}

/// What a check may look at.
pub struct View<'a> {
    pub(super) machine: &'a Machine,
    pub(super) state: &'a State,
}

impl View<'_> {
    /// The value in memory.
    #[must_use]
    pub fn get(&self, word: Word) -> i32 {
        self.state.words[word.0]
    }

    /// True if the thread has ended.
    ///
    /// # Panics
    /// If there is no such thread.
    #[must_use]
    pub fn has_ended(&self, thread: &str) -> bool {
        let index = self.machine.programs.iter().position(|program| program.name == thread);
        self.state.threads[index.expect("a thread's name")].at.is_none()
    }

    /// The threads that have not ended.
    #[must_use]
    pub fn waiting(&self) -> Vec<&str> {
        let threads = self.machine.programs.iter().zip(&self.state.threads);
        threads.filter(|(_, t)| t.at.is_some()).map(|(p, _)| p.name.as_str()).collect()
    }
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.machine.words.iter().zip(&self.state.words);
        f.debug_map().entries(words.map(|((name, _), value)| (name, value))).finish()
    }
}

/// A model: words, threads, and what is to hold.
pub struct Machine {
    pub(super) words: Vec<(String, i32)>,
    pub(super) programs: Vec<Program>,
    pub(super) invariant: Check,
    pub(super) at_rest: Check,
    pub(super) most_states: usize,
}

impl Machine {
    /// Without words and threads. Every execution is to end with all threads ended.
    #[must_use]
    pub fn new() -> Self {
        Self {
            words: Vec::new(),
            programs: Vec::new(),
            invariant: Box::new(|_| Ok(())),
            at_rest: Box::new(|view| {
                let waiting = view.waiting();
                if waiting.is_empty() { Ok(()) } else { Err(format!("{waiting:?} wait for ever")) }
            }),
            most_states: 3_000_000,
        }
    }

    /// A shared word.
    pub fn word(&mut self, name: impl Into<String>, initial: i32) -> Word {
        self.words.push((name.into(), initial));
        Word(self.words.len() - 1)
    }

    /// Several shared words.
    pub fn words<const N: usize>(&mut self, name: &str, initial: i32) -> [Word; N] {
        std::array::from_fn(|index| self.word(format!("{name}[{index}]"), initial))
    }

    /// Another initial value.
    pub fn start(&mut self, word: Word, value: i32) {
        self.words[word.0].1 = value;
    }

    /// A thread; the result appends its steps.
    pub fn thread(&mut self, name: impl Into<String>) -> ThreadBuilder<'_> {
        let at = self.programs.len();
        self.programs.push(Program { name: name.into(), ..Program::default() });
        ThreadBuilder { program: &mut self.programs[at] }
    }

    /// What is to hold in every state.
    pub fn invariant(&mut self, check: impl Fn(&View<'_>) -> Result<(), String> + 'static) {
        self.invariant = Box::new(check);
    }

    /// What is to hold in every state in which no thread can go on. Replaces the default, that all
    /// threads have ended.
    pub fn at_rest(&mut self, check: impl Fn(&View<'_>) -> Result<(), String> + 'static) {
        self.at_rest = Box::new(check);
    }

    /// Explores all executions, up to the first that breaks what is to hold.
    ///
    /// # Panics
    /// If a step makes two accesses, or there are more than three million states.
    pub fn explore(&self, memory: Memory) -> Outcome {
        search::explore(self, memory)
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads: Vec<_> = self.programs.iter().map(|program| &program.name).collect();
        f.debug_struct("Machine").field("words", &self.words).field("threads", &threads).finish()
    }
}

/// Appends steps to a thread.
pub struct ThreadBuilder<'a> {
    program: &'a mut Program,
}

impl ThreadBuilder<'_> {
    /// A variable of this thread, zero at first.
    pub fn register(&mut self) -> Register {
        self.program.registers += 1;
        Register(self.program.registers - 1)
    }

    /// A label to be placed later.
    pub fn label(&mut self) -> Label {
        self.program.labels.push(None);
        Label(self.program.labels.len() - 1)
    }

    /// Makes `label` point to the next step.
    ///
    /// # Panics
    /// If it was placed before.
    pub fn place(&mut self, label: Label) {
        let place = &mut self.program.labels[label.0];
        assert!(place.is_none(), "a label is placed once");
        *place = Some(self.program.steps.len());
    }

    /// A label that points to the next step.
    pub fn here(&mut self) -> Label {
        let label = self.label();
        self.place(label);
        label
    }

    /// Appends a step.
    pub fn step(
        &mut self,
        name: impl Into<String>,
        action: impl Fn(&mut Turn<'_>) -> Flow + 'static,
    ) {
        self.choice(name, 1, action);
    }

    /// Appends a step that can be taken in several ways; [`Turn::way`] tells which.
    pub fn choice(
        &mut self,
        name: impl Into<String>,
        ways: usize,
        action: impl Fn(&mut Turn<'_>) -> Flow + 'static,
    ) {
        let step = Step { name: name.into(), ways, action: Box::new(action) };
        self.program.steps.push(step);
    }
}

impl fmt::Debug for ThreadBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadBuilder").field("name", &self.program.name).finish_non_exhaustive()
    }
}
