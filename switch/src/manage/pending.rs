//! Pending reload (not yet committed), as `show audit` reports it.

use std::time::{Duration, Instant};

use npcc_api::audit::PendingReload;

/// Reload that waits for its commit.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    /// Time of the rollback.
    pub deadline: Instant,
}

impl Pending {
    /// Returns the pending reload as shown at this moment.
    #[must_use]
    pub fn shown(self) -> PendingReload {
        let left = self.deadline.saturating_duration_since(Instant::now());
        PendingReload {
            seconds_left: seconds(left),
        }
    }
}

/// Returns whole seconds, rounded up.
pub(super) fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
