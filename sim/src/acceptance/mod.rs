//! Rows of figures by which a law is accepted: what must hold, in which scenarios, against which baselines.
//!
//! ```text
//!   rows (data: scenario files and changes to them, a rule each) -> matrix::run -> rule: wanted, got, baseline -> table
//! ```
//! Law: a rule reads figures and decides; nothing here depends on a law of NPCC. Scenarios have the unkind ends of what is not known of cards:
//! bursts of a rate limiter of 64 KB, a reaction time of 10 us, and for half of the cells, by their hash, no windows, for the others
//! [`window`]. Only the rows of the old table are as they were.

mod cell;
mod check;
mod closed;
mod rows;
mod rule;
mod table;
mod text;

pub use check::Check;
pub use rows::{policies, rows};
pub use rule::{Rule, Runs, halvings};
pub use table::{CheckedCell, judge, summary, table};
pub use text::{Text, unkind, window};

use crate::matrix::Cell;
use crate::scenario::Scheme;

/// A row of the table.
#[derive(Debug, Clone)]
pub struct Row {
    /// Short name.
    pub name: &'static str,
    /// Target, in words.
    pub wanted: &'static str,
    /// True if both policies are judged; otherwise the default one, and the other is printed beside it.
    pub both: bool,
    /// Cells and the rule for each.
    pub cases: Vec<(Cell, Rule)>,
    /// Baselines that are run.
    pub baselines: Vec<Scheme>,
}

#[cfg(test)]
mod tests;
