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
    /// Least factor by which the peak queue of `ecn` is higher.
    pub times_below_ecn: Option<f64>,
    /// Least utilisation, as a share.
    pub utilisation: Option<f64>,
    /// True if utilisation must be at least that of `ecn`.
    #[serde(default)]
    pub utilisation_of_ecn: bool,
    /// Least goodput, as a share.
    pub goodput: Option<f64>,
    /// Least value of Jain's index.
    pub jain: Option<f64>,
    /// Greatest number of pauses.
    pub pauses: Option<u64>,
    /// True if no figure may be worse than with `ecn` alone, over all seeds; see [`crate::harm`].
    #[serde(default)]
    pub never_worse: bool,
    /// Greatest ratio of the peak queues over all lengths.
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
        let start = if self.warm { Start::Warm } else { Start::Cold };
        self.scheme.contains(&case.scheme)
            && start == case.start
            && any(self.sender.is_empty(), self.sender.contains(&case.sender))
            && any(
                self.length.is_empty(),
                case.length
                    .is_some_and(|length| self.length.contains(&length)),
            )
    }
}
