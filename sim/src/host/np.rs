//! DCQCN's notification point: a receiver answers CE-marked data with CNPs, at most one per flow and interval.
//!
//! Cards are not documented in one point, so it is an axis ([`WithinInterval`]): marks within the interval after a CNP are forgotten, or a
//! CNP is owed for them when it ends, as the DCQCN paper has it ("at most one CNP packet every N microseconds for the flow, if any packet
//! that arrives within that time window was marked").

use npcc_pipeline::units::Nanos;
use serde::Deserialize;

/// Time after its last CNP for which a flow counts as congested (DCQCN+).
const RECENT: Nanos = Nanos::from_millis(2);
/// Flows a DCQCN+ receiver can serve in one basic period; with more, the period in its CNPs grows in proportion.
const FLOWS_PER_PERIOD: usize = 16;

/// Effect of marks that arrive within the interval after a CNP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WithinInterval {
    /// None: the next mark after the interval leads to the next CNP.
    #[default]
    Forget,
    /// A CNP is sent when the interval ends.
    Owe,
}

impl WithinInterval {
    /// Returns the name used in scenarios and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            WithinInterval::Forget => "forget",
            WithinInterval::Owe => "owe",
        }
    }
}

/// Answer of a notification point to a marked packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A CNP must be sent.
    Now,
    /// One may be [due](NotificationPoint::is_due) at this time.
    At(Nanos),
    /// Nothing has to be done.
    Nothing,
}

/// One flow's notification point.
#[derive(Debug, Clone, Copy, Default)]
pub struct NotificationPoint {
    last: Option<Nanos>,
    owed: bool,
}

impl NotificationPoint {
    /// Handles a marked packet.
    pub fn marked(&mut self, interval: Nanos, within: WithinInterval, now: Nanos) -> Answer {
        match self.last.map(|last| last + interval) {
            Some(end) if end > now => {
                if self.owed || within == WithinInterval::Forget {
                    return Answer::Nothing;
                }
                self.owed = true;
                Answer::At(end)
            }
            _ => {
                (self.last, self.owed) = (Some(now), false);
                Answer::Now
            }
        }
    }

    /// Returns true, once, if a CNP is owed and the interval has ended.
    pub fn is_due(&mut self, interval: Nanos, now: Nanos) -> bool {
        let due = self.owed && self.last.is_some_and(|last| last + interval <= now);
        if due {
            (self.last, self.owed) = (Some(now), false);
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
        let mut marked =
            |step: u64| np.marked(interval, WithinInterval::Forget, Nanos(step * 1_000));
        let signalled = (0..1_000).filter(|step| marked(*step) == Answer::Now);
        assert_eq!(signalled.count(), 20);
    }

    #[test]
    fn a_mark_within_the_interval_is_owed_a_cnp_when_it_ends() {
        let mut np = NotificationPoint::default();
        let interval = Nanos(50);
        let mut marked = |now| np.marked(interval, WithinInterval::Owe, Nanos(now));
        assert_eq!(marked(0), Answer::Now);
        assert_eq!(marked(10), Answer::At(Nanos(50)));
        assert_eq!(marked(20), Answer::Nothing, "one is owed already");
        assert!(!np.is_due(interval, Nanos(49)));
        assert!(np.is_due(interval, Nanos(50)));
        assert!(!np.is_due(interval, Nanos(50)), "it was sent");
        // The CNP begins an interval of its own.
        assert_eq!(
            np.marked(interval, WithinInterval::Owe, Nanos(99)),
            Answer::At(Nanos(100))
        );
        // A mark at its end leads to a CNP at once, and none is owed any more.
        assert_eq!(
            np.marked(interval, WithinInterval::Owe, Nanos(100)),
            Answer::Now
        );
        assert!(!np.is_due(interval, Nanos(200)));
    }

    #[test]
    fn the_period_grows_with_the_flows() {
        let basic = Nanos::from_micros(50);
        assert_eq!(adaptive_period(basic, 1), basic);
        assert_eq!(adaptive_period(basic, 160), Nanos::from_micros(500));
    }
}
