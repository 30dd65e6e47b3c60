//! Share of time for which a priority is paused with frames waiting, however often the peer releases it in between.
//!
//! Law: the share is exceeded at the first evaluation at which the mean since an earlier evaluation, a window or more ago,
//! reaches it, and has reached it at every evaluation between. The way back is the same. One word accumulates the surplus over
//! the share, so no history is kept.

use crate::units::Nanos;

/// Detector of a share of time being exceeded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Duty {
    /// Share in percent.
    share: u8,
    passed: bool,
    /// Evaluation since which the mean is on the other side of the share.
    since: Nanos,
    /// Surplus of the mean over the share since then (or deficit), in hundredths of ns.
    surplus: i64,
}

impl Duty {
    /// Returns a detector that is not triggered.
    pub(super) const fn new(share: u8) -> Duty {
        Duty {
            share,
            passed: false,
            since: Nanos::ZERO,
            surplus: 0,
        }
    }

    /// Restarts the detector.
    pub(super) const fn reset(&mut self, now: Nanos) {
        (self.passed, self.since, self.surplus) = (false, now, 0);
    }

    /// Returns true if the share is exceeded, `elapsed` after the last evaluation, during which frames waited behind a pause
    /// for `stuck`.
    pub(super) fn look(
        &mut self,
        now: Nanos,
        (stuck, elapsed): (Nanos, Nanos),
        window: Nanos,
    ) -> bool {
        let [stuck, elapsed] =
            [stuck, elapsed].map(|time| i64::try_from(time.0).unwrap_or(i64::MAX));
        let due = elapsed.saturating_mul(self.share.into());
        let over = stuck.saturating_mul(100).saturating_sub(due);
        let gain = if self.passed { -1 - over } else { over };
        self.surplus = self.surplus.saturating_add(gain);
        if self.surplus < 0 {
            (self.since, self.surplus) = (now, 0);
        } else if now.since(self.since) >= window {
            (self.passed, self.since, self.surplus) = (!self.passed, now, 0);
        }
        self.passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WINDOW: u64 = 400;
    const STEP: u64 = 100;

    /// Times at which the state changed, if the evaluation of each 100 finds this much stuck.
    fn changes(share: u8, stuck: &[u64]) -> Vec<u64> {
        let mut duty = Duty::new(share);
        let mut passed = false;
        let looks = (1..).map(|n| n * STEP).zip(stuck);
        looks
            .filter_map(|(now, stuck)| {
                let times = (Nanos(*stuck), Nanos(STEP));
                let is = duty.look(Nanos(now), times, Nanos(WINDOW));
                (is != std::mem::replace(&mut passed, is)).then_some(now)
            })
            .collect()
    }

    #[test]
    fn a_share_is_passed_after_a_window_and_left_after_one() {
        let trace = [[0; 3].as_slice(), &[90; 9], &[89; 20]].concat();
        assert_eq!(changes(90, &trace), [700, 1_600]);
        assert!(changes(90, &[89; 1_000]).is_empty());
        // A gap within a window is made up for by full intervals.
        let trace = [[0; 1].as_slice(), &[100, 100, 100, 60]].concat();
        assert_eq!(changes(90, &trace), [500]);
        let trace = [[0; 1].as_slice(), &[100, 100, 100, 59].repeat(9)].concat();
        assert!(changes(90, &trace).is_empty());
    }

    proptest! {
        /// The share is reported as exceeded only if the mean since an evaluation a window or more ago has reached it.
        #[test]
        fn what_is_passed_was_reached(stuck in prop::collection::vec(0..=100u64, 1..60), share in 50..=100u8) {
            let first = changes(share, &stuck).first().map(|now| (now / STEP) as usize);
            let reached = |until: usize| (0..=until.saturating_sub(4)).any(|from| {
                let sum: u64 = stuck[from..until].iter().sum();
                until - from >= 4 && sum * 100 >= u64::from(share) * STEP * (until - from) as u64
            });
            if let Some(first) = first {
                prop_assert!(reached(first), "{first} {stuck:?}");
            }
        }
    }
}
