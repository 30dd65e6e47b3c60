//! A reload that waits for its commit, as `show audit` tells it.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// A reload that waits for its commit.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    /// When it is rolled back.
    pub deadline: Instant,
}

/// The same, as it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingShown {
    /// Seconds until it is rolled back.
    pub seconds_left: u64,
}

impl Pending {
    /// As it is shown now.
    #[must_use]
    pub fn shown(self) -> PendingShown {
        let left = self.deadline.saturating_duration_since(Instant::now());
        PendingShown {
            seconds_left: seconds(left),
        }
    }
}

/// Whole seconds, a part of one counted as one.
pub(super) fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
