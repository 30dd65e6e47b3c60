//! DCQCN's notification point: a receiver answers CE-marked data with CNPs, at most one per flow and interval.

use npcc_pipeline::units::Nanos;

/// Flows counted as congested when they were told within this time (DCQCN+).
const RECENT: Nanos = Nanos::from_millis(2);
/// Flows a DCQCN+ receiver can serve in one basic period; with more the period it tells grows in proportion.
const FLOWS_PER_PERIOD: usize = 16;

/// One flow's notification point.
#[derive(Debug, Clone, Copy, Default)]
pub struct NotificationPoint {
    last: Option<Nanos>,
}

impl NotificationPoint {
    /// A marked packet came in: whether a CNP goes out.
    pub fn marked(&mut self, interval: Nanos, now: Nanos) -> bool {
        let due = self.last.is_none_or(|last| now.since(last) >= interval);
        if due {
            self.last = Some(now);
        }
        due
    }

    /// Whether it was told a short time ago.
    #[must_use]
    pub fn is_recent(&self, now: Nanos) -> bool {
        self.last.is_some_and(|last| now.since(last) < RECENT)
    }
}

/// The period a DCQCN+ receiver with so many congested flows tells in its CNPs, for timers and steps to follow.
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
        let told = (0..1_000).filter(|step| np.marked(interval, Nanos(step * 1_000)));
        assert_eq!(told.count(), 20);
    }

    #[test]
    fn the_period_grows_with_the_flows() {
        let basic = Nanos::from_micros(50);
        assert_eq!(adaptive_period(basic, 1), basic);
        assert_eq!(adaptive_period(basic, 160), Nanos::from_micros(500));
    }
}
