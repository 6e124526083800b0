//! The search: breadth first, so that the first failure is a shortest.

use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

use super::Memory;
use super::machine::{Machine, Program, State, Thread, View};
use super::outcome::{Failure, Outcome};
use super::turn::{Flow, Turn};

/// What led to a state: one way of one thread's step, or the arrival of its oldest store.
#[derive(Clone, Copy)]
enum Move {
    Step { thread: usize, way: usize },
    Arrival { thread: usize },
}

const ROOT: u32 = u32::MAX;

struct Search<'a> {
    machine: &'a Machine,
    memory: Memory,
    seen: HashSet<Rc<State>>,
    /// Where each state came from.
    parents: Vec<(u32, Move)>,
    queue: VecDeque<(Rc<State>, u32)>,
}

pub(super) fn explore(machine: &Machine, memory: Memory) -> Outcome {
    for program in &machine.programs {
        assert!(
            program.labels.iter().all(Option::is_some),
            "{}: a label without place",
            program.name
        );
    }
    let mut search = Search {
        machine,
        memory,
        seen: HashSet::new(),
        parents: Vec::new(),
        queue: VecDeque::new(),
    };
    let first = initial(machine);
    search.visit(first, ROOT, Move::Arrival { thread: 0 });
    while let Some((state, id)) = search.queue.pop_front() {
        if let Err(reason) = search.expand(&state, id) {
            let trace = search.trace(id, &reason);
            return Outcome { states: search.parents.len(), failure: Some(trace) };
        }
    }
    Outcome { states: search.parents.len(), failure: None }
}

fn initial(machine: &Machine) -> State {
    let thread = |program: &Program| Thread {
        at: (!program.steps.is_empty()).then_some(0),
        registers: vec![0; program.registers].into(),
        stores: Vec::new(),
    };
    State {
        words: machine.words.iter().map(|(_, value)| *value).collect(),
        threads: machine.programs.iter().map(thread).collect(),
    }
}

/// Why a state breaks the model, and by which further move, if it is not the state itself.
struct Broken {
    reason: String,
    by: Option<Move>,
}

impl Search<'_> {
    fn visit(&mut self, state: State, parent: u32, by: Move) {
        let state = Rc::new(state);
        if self.seen.insert(state.clone()) {
            let id = u32::try_from(self.parents.len()).expect("fewer states");
            assert!(self.parents.len() < self.machine.most_states, "too many states");
            self.parents.push((parent, by));
            self.queue.push_back((state, id));
        }
    }

    /// Visits the successors of `state`.
    fn expand(&mut self, state: &State, id: u32) -> Result<(), Broken> {
        let machine = self.machine;
        let view = View { machine, state };
        (machine.invariant)(&view).map_err(|reason| Broken { reason, by: None })?;
        let mut moved = false;
        for thread in 0..state.threads.len() {
            if !state.threads[thread].stores.is_empty() {
                let by = Move::Arrival { thread };
                let (next, _) = self.apply(state, by, false).expect("a store arrives");
                moved = true;
                self.visit(next, id, by);
            }
            let Some(at) = state.threads[thread].at else { continue };
            for way in 0..machine.programs[thread].steps[at].ways {
                let by = Move::Step { thread, way };
                match self.apply(state, by, false) {
                    Ok((next, _)) => {
                        moved = true;
                        self.visit(next, id, by);
                    }
                    Err(None) => {}
                    Err(Some(reason)) => return Err(Broken { reason, by: Some(by) }),
                }
            }
        }
        if moved {
            return Ok(());
        }
        (machine.at_rest)(&view).map_err(|reason| Broken { reason, by: None })
    }

    /// The state after a move and what the trace says about it. The error is None if the move has to
    /// wait.
    fn apply(
        &self,
        state: &State,
        by: Move,
        noting: bool,
    ) -> Result<(State, String), Option<String>> {
        let mut next = state.clone();
        let (thread, way) = match by {
            Move::Arrival { thread } => {
                let (word, value) = next.threads[thread].stores.remove(0);
                next.words[word] = value;
                let name = if noting { self.machine.words[word].0.clone() } else { String::new() };
                return Ok((next, format!("the store of {value} to `{name}` arrives")));
            }
            Move::Step { thread, way } => (thread, way),
        };
        let program = &self.machine.programs[thread];
        let at = state.threads[thread].at.expect("not ended");
        let mut turn = Turn {
            state: &mut next,
            thread,
            memory: self.memory,
            way,
            accesses: 0,
            blocked: false,
            note: String::new(),
            noting,
        };
        let flow = (program.steps[at].action)(&mut turn);
        let Turn { accesses, blocked, note, .. } = turn;
        let name = &program.steps[at].name;
        assert!(accesses <= 1, "{}, {name}: two accesses in one step", program.name);
        if blocked {
            return Err(None);
        }
        let to = match flow {
            Flow::Next => Some(at + 1),
            Flow::To(label) => program.labels[label.0],
            Flow::End => None,
            Flow::Wait => return Err(None),
            Flow::Fail(reason) => return Err(Some(reason)),
        };
        let end = &mut next.threads[thread];
        end.at = to.filter(|&to| to < program.steps.len());
        if end.at.is_none() {
            // What an ended thread remembers makes no difference.
            end.registers.fill(0);
        }
        let note = if note.is_empty() { String::new() } else { format!(" [{note}]") };
        Ok((next, if noting { format!("{name}{note}") } else { String::new() }))
    }

    /// Runs the moves that led to the broken state again, with notes.
    fn trace(&self, id: u32, broken: &Broken) -> Failure {
        let mut moves: Vec<Move> = broken.by.into_iter().collect();
        let mut at = id;
        while self.parents[at as usize].0 != ROOT {
            moves.push(self.parents[at as usize].1);
            at = self.parents[at as usize].0;
        }
        let mut state = initial(self.machine);
        let mut trace = Vec::new();
        for by in moves.into_iter().rev() {
            let (Move::Arrival { thread } | Move::Step { thread, .. }) = by;
            let name = &self.machine.programs[thread].name;
            match self.apply(&state, by, true) {
                Ok((next, note)) => {
                    trace.push(format!("{name}: {note}"));
                    state = next;
                }
                Err(_) => {
                    let at = state.threads[thread].at.expect("it has made a step");
                    trace.push(format!("{name}: {}", self.machine.programs[thread].steps[at].name));
                }
            }
        }
        Failure { reason: broken.reason.clone(), trace }
    }
}
