//! What a comparison with the kernel found, and counts of what the stream brought.

use std::time::Duration;

/// Why the kernel's state was dumped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// At the start.
    Start,
    /// The kernel had to throw messages away.
    Overrun,
    /// A message did not fit what we had.
    Doubt,
    /// It is time to prove that both are equal.
    Time,
    /// Somebody asked.
    Asked,
}

/// What a dump of the kernel's state showed against what we had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Why it was made.
    pub reason: Reason,
    /// How long it took.
    pub took: Duration,
    /// Things the dumps named.
    pub compared: usize,
    /// Things that were not as we had them; they are as the kernel has them now.
    pub differences: usize,
    /// The first of them, in words.
    pub examples: Vec<String>,
    /// Nothing changed in the kernel meanwhile, so differences are differences and no changes under way.
    pub settled: bool,
    /// Every dump was whole; what a torn one did not name was left.
    pub whole: bool,
}

impl Report {
    /// Of a comparison that begins.
    pub(super) const fn of(reason: Reason) -> Report {
        Report {
            reason,
            took: Duration::ZERO,
            compared: 0,
            differences: 0,
            examples: vec![],
            settled: true,
            whole: true,
        }
    }
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Messages of the stream that were ours.
    pub messages: u64,
    /// Messages of ours that lacked what they cannot do without.
    pub malformed: u64,
    /// Times the kernel had to throw messages away.
    pub overruns: u64,
    /// Dumps of everything.
    pub dumps: u64,
    /// Differences that dumps found while nothing changed, after the start and without an overrun: faults.
    pub faults: u64,
    /// Routes given to the switch or taken away.
    pub routes: u64,
    /// Groups given to the switch.
    pub groups: u64,
}
