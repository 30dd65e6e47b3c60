//! What a scheme is to reach: bounds on a run, for the runs they are meant for.

use npcc_config::units::Length;
use serde::Deserialize;

use super::{Case, Scheme};
use crate::host::params::Sender;

/// Bounds; those absent are not asked for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Which schemes.
    pub scheme: Vec<Scheme>,
    /// Which senders; all when empty.
    #[serde(default)]
    pub sender: Vec<Sender>,
    /// At which lengths; all when empty.
    #[serde(default)]
    pub length: Vec<Length>,
    /// Whether it holds for warm connections, which is the default, or for cold ones.
    #[serde(default = "yes")]
    pub warm: bool,
    /// The peak queue of `ecn` is at least so many times higher.
    pub times_below_ecn: Option<f64>,
    /// Utilisation is at least this.
    pub utilisation: Option<f64>,
    /// Utilisation is at least that of `ecn`.
    #[serde(default)]
    pub utilisation_of_ecn: bool,
    /// Goodput is at least this.
    pub goodput: Option<f64>,
    /// Jain's index is at least this.
    pub jain: Option<f64>,
    /// At most so many pauses.
    pub pauses: Option<u64>,
    /// No worse than `ecn` alone, seed by seed; see [`crate::harm`].
    #[serde(default)]
    pub never_worse: bool,
    /// The peak queue over all lengths differs by at most this factor.
    pub flat: Option<f64>,
}

const fn yes() -> bool {
    true
}

impl Target {
    /// Whether it is meant for this run.
    #[must_use]
    pub fn is_for(&self, case: &Case) -> bool {
        let any = |empty: bool, found: bool| empty || found;
        self.scheme.contains(&case.scheme)
            && self.warm == case.warm
            && any(self.sender.is_empty(), self.sender.contains(&case.sender))
            && any(
                self.length.is_empty(),
                case.length
                    .is_some_and(|length| self.length.contains(&length)),
            )
    }
}
