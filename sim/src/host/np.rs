//! DCQCN's notification point: a receiver answers CE-marked data with CNPs, at most one per flow and interval.

use npcc_pipeline::units::Nanos;

/// Time after its last CNP for which a flow counts as congested (DCQCN+).
const RECENT: Nanos = Nanos::from_millis(2);
/// Flows a DCQCN+ receiver can serve in one basic period; with more, the period in its CNPs grows in proportion.
const FLOWS_PER_PERIOD: usize = 16;

/// One flow's notification point.
#[derive(Debug, Clone, Copy, Default)]
pub struct NotificationPoint {
    last: Option<Nanos>,
}

impl NotificationPoint {
    /// Handles a marked packet; returns true if a CNP must be sent.
    pub fn marked(&mut self, interval: Nanos, now: Nanos) -> bool {
        let due = self.last.is_none_or(|last| now.since(last) >= interval);
        if due {
            self.last = Some(now);
        }
        due
    }

    /// Returns true if its last CNP was sent less than 2 ms ago.
    #[must_use]
    pub fn is_recent(&self, now: Nanos) -> bool {
        self.last.is_some_and(|last| now.since(last) < RECENT)
    }
}

/// Returns the period that a DCQCN+ receiver with `congested` congested flows puts in its CNPs, for timers and steps to follow.
#[must_use]
pub fn adaptive_period(basic: Nanos, congested: usize) -> Nanos {
    Nanos(basic.0 * (congested.div_ceil(FLOWS_PER_PERIOD).max(1) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cnp_an_interval() {
        let mut np = NotificationPoint::default();
        let interval = Nanos::from_micros(50);
        let signalled = (0..1_000).filter(|step| np.marked(interval, Nanos(step * 1_000)));
        assert_eq!(signalled.count(), 20);
    }

    #[test]
    fn the_period_grows_with_the_flows() {
        let basic = Nanos::from_micros(50);
        assert_eq!(adaptive_period(basic, 1), basic);
        assert_eq!(adaptive_period(basic, 160), Nanos::from_micros(500));
    }
}
