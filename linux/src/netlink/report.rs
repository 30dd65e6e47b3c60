//! Report of a comparison with the kernel, and counts of the stream.

use std::time::Duration;

/// Reason for a dump of the kernel's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Initial dump.
    Start,
    /// The kernel dropped notifications.
    Overrun,
    /// A notification did not match the model.
    Doubt,
    /// Periodic comparison.
    Time,
    /// Requested by another thread.
    Requested,
}

/// Report of a dump: the kernel's state against the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Reason for the dump.
    pub reason: Reason,
    /// Duration of the dump.
    pub took: Duration,
    /// Number of objects in the dumps.
    pub compared: usize,
    /// Number of objects that differed from the model, which now has the kernel's state.
    pub differences: usize,
    /// Descriptions of the first differences.
    pub examples: Vec<String>,
    /// Sysctls of the TAPs and of their namespace that somebody changed, and that were set back.
    pub set_back: Vec<String>,
    /// True if nothing changed in the kernel meanwhile, so that differences are real and not changes under way.
    pub settled: bool,
    /// True if every dump was complete; objects missing from an inconsistent dump were kept.
    pub whole: bool,
}

impl Report {
    /// Creates the report of a comparison that begins.
    pub(super) const fn of(reason: Reason) -> Report {
        Report {
            reason,
            took: Duration::ZERO,
            compared: 0,
            differences: 0,
            examples: vec![],
            set_back: vec![],
            settled: true,
            whole: true,
        }
    }
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Number of notifications that concern the switch.
    pub messages: u64,
    /// Number of such notifications without an indispensable attribute.
    pub malformed: u64,
    /// Number of times the kernel dropped notifications.
    pub overruns: u64,
    /// Number of dumps of everything.
    pub dumps: u64,
    /// Number of differences that dumps found while nothing changed, after the start and without an overrun: faults.
    pub faults: u64,
    /// Number of neighbours whose MAC address came to be refused: it is a group's, broadcast, zero or a port's own.
    pub refused_neighbors: u64,
    /// Number of packets whose way the kernel was asked for.
    pub lookups: u64,
    /// Number of these whose way the switch had otherwise, in two rounds.
    pub lookups_differing: u64,
    /// Number of routes set in the switch or removed.
    pub routes: u64,
    /// Number of groups set in the switch.
    pub groups: u64,
}
