//! Mutation test of the protocols.
//!
//! One mutant a tagged end of an ordering edge (its ordering is relaxed), and one a statement under
//! `#[cfg(not(volt_mutant = "NAME"))]` (it is dropped). Each must be killed by the model test that
//! the edge's row, or the comment `// Killed by TEST` above the cfg, names. A row whose model cell
//! is `none: REASON` is an explained survivor; a row that names nothing is a survivor.
//!
//! An ordering is an argument, so all relaxed orderings of a crate fit into one build
//! (`build::Copy`), and an environment variable chooses among them while the model runs: a mutant
//! costs a run of its model and no build. Dropped statements are built one by one.
//!
//! The verdicts are kept in `target/weaken/log`, each under a hash of the test program, so that a
//! run that was cut short goes on where it stopped, and an unchanged crate costs nothing.

use std::collections::BTreeMap;

use crate::source::rust_files;

mod build;
mod judge;
mod mutants;

use judge::{Judge, Verdict};
use mutants::{Mutant, dropped, relaxed};

/// How many mutants of a directory ended how.
#[derive(Default)]
struct Count {
    killed: usize,
    explained: usize,
    survived: usize,
}

/// Judges the mutants whose name contains `filter`, or all.
///
/// # Errors
/// Lists the survivors.
pub(crate) fn run(filter: Option<&str>) -> Result<(), String> {
    let sources = rust_files()?;
    let relaxed = relaxed(&sources)?;
    let dropped = dropped(&sources);
    let copy = build::Copy::new(&sources, &relaxed)?;
    let mut judge = Judge::new(copy)?;
    let wanted = |mutant: &&Mutant| filter.is_none_or(|filter| mutant.name.contains(filter));
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    let mut survivors = Vec::new();
    for mutant in relaxed.iter().chain(&dropped).filter(wanted) {
        let count = counts.entry(mutant.directory()).or_default();
        match judge.verdict(mutant)? {
            Verdict::Killed(by) => {
                count.killed += 1;
                println!("killed    {}: {by}", mutant.name);
            }
            Verdict::Explained(reason) => {
                count.explained += 1;
                println!("explained {}: {reason}", mutant.name);
            }
            Verdict::Survived(why) => {
                count.survived += 1;
                println!("SURVIVED  {}: {why}", mutant.name);
                survivors.push(mutant.name.as_str());
            }
        }
    }
    println!("\n{:>8} {:>10} {:>9}", "killed", "explained", "survived");
    for (directory, count) in &counts {
        println!("{:>8} {:>10} {:>9}  {directory}", count.killed, count.explained, count.survived);
    }
    if counts.is_empty() {
        return Err(format!("no mutant's name contains `{}`", filter.unwrap_or_default()));
    }
    if survivors.is_empty() { Ok(()) } else { Err(format!("survivors: {}", survivors.join(", "))) }
}
