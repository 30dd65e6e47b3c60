//! Pause storms that outlive the process: a watchdog that began anew would let a dead priority hold up the others for `detect` again.

use serde::{Deserialize, Serialize};

/// Largest difference in ms between two times of one storm: they are computed from two clocks.
const SAME: u64 = 1_000;

/// A storm that the watchdog found and that is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storm {
    /// Name of the port.
    pub port: String,
    /// Priority that the port's peer pauses.
    pub priority: u8,
    /// Time at which the storm was found, in ms since 1970.
    pub since_ms: u64,
}

impl Storm {
    fn is(&self, other: &Storm) -> bool {
        self.port == other.port
            && self.priority == other.priority
            && self.since_ms.abs_diff(other.since_ms) < SAME
    }
}

/// Returns the storms found now, those written before unchanged: nothing is written while nothing changes.
#[must_use]
pub fn as_written(found: Vec<Storm>, written: &[Storm]) -> Vec<Storm> {
    let same = |one: Storm| {
        let before = written.iter().find(|before| before.is(&one));
        before.cloned().unwrap_or(one)
    };
    found.into_iter().map(same).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_that_goes_on_is_as_it_was_written_and_another_is_not() {
        let storm = |port: &str, priority, since_ms| Storm {
            port: port.to_owned(),
            priority,
            since_ms,
        };
        let written = [storm("wan0", 3, 5_000), storm("wan0", 4, 9_000)];
        let found = vec![storm("wan0", 3, 5_999), storm("wan0", 4, 10_000)];
        let now = as_written(found, &written);
        assert_eq!(now, [storm("wan0", 3, 5_000), storm("wan0", 4, 10_000)]);
        assert_eq!(as_written(vec![], &written), []);
        let other = vec![storm("dc0", 3, 5_000)];
        assert_eq!(as_written(other.clone(), &written), other);
    }
}
