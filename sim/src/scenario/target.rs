//! Targets of a scheme: bounds on a run, for the runs they apply to.

use npcc_config::units::Length;
use serde::Deserialize;

use super::{Case, Scheme, Start};
use crate::host::params::Sender;

/// Bounds on runs; those absent are not checked.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Schemes it applies to.
    pub scheme: Vec<Scheme>,
    /// Sender models it applies to; all when empty.
    #[serde(default)]
    pub sender: Vec<Sender>,
    /// Lengths it applies to; all when empty.
    #[serde(default)]
    pub length: Vec<Length>,
    /// True (the default) if it applies to warm connections, false for cold ones.
    #[serde(default = "yes")]
    pub warm: bool,
    /// Minimum ratio of `ecn`'s peak depth to this run's.
    pub times_below_ecn: Option<f64>,
    /// Minimum utilisation of the watched link, 0 to 1.
    pub utilisation: Option<f64>,
    /// True if utilisation must be at least that of `ecn`.
    #[serde(default)]
    pub utilisation_of_ecn: bool,
    /// Minimum goodput of the watched link, 0 to 1.
    pub goodput: Option<f64>,
    /// Minimum of Jain's index, 0 to 1.
    pub jain: Option<f64>,
    /// Maximum number of pauses.
    pub pauses: Option<u64>,
    /// True if no figure may be worse than with `ecn` alone, over all seeds; see [`crate::harm`].
    #[serde(default)]
    pub never_worse: bool,
    /// Maximum ratio of the highest to the lowest peak over all lengths.
    pub flat: Option<f64>,
}

const fn yes() -> bool {
    true
}

impl Target {
    /// Returns true if it applies to this run.
    #[must_use]
    pub fn is_for(&self, case: &Case) -> bool {
        let any = |empty: bool, found: bool| empty || found;
        self.scheme.contains(&case.scheme)
            && Start::unreported(self.warm) == case.start
            && any(self.sender.is_empty(), self.sender.contains(&case.sender))
            && any(
                self.length.is_empty(),
                case.length
                    .is_some_and(|length| self.length.contains(&length)),
            )
    }
}
