//! Rounds of CNPs whose effect is not all to be seen yet: a policy that asks for them again would ask twice.
//!
//! A round counts in full until its feedback delay has passed, then with the part of the time over which the queue's growth
//! is measured that lies before.

use arrayvec::ArrayVec;
use npcc_pipeline::units::Nanos;

use super::Round;

/// Rounds remembered; further ones count with the latest.
const ROUNDS: usize = 64;

/// A round whose effect is not all in the growth yet.
#[derive(Debug, Clone, Copy)]
struct Cut {
    seen_from: Nanos,
    rate: u64,
}

/// See the module's text.
#[derive(Debug, Clone, Default)]
pub(super) struct InFlight {
    cuts: ArrayVec<Cut, ROUNDS>,
}

impl InFlight {
    /// A round left at `now`.
    pub(super) fn add(&mut self, round: &Round, now: Nanos) {
        let cut = Cut {
            seen_from: now + round.feedback,
            rate: round.cut.0,
        };
        if let Err(full) = self.cuts.try_push(cut)
            && let Some(last) = self.cuts.last_mut()
        {
            last.rate = last.rate.saturating_add(full.element().rate);
        }
    }

    /// What those told will give up that a growth measured `over` the time until `now` does not show yet, in bit/s.
    /// Rounds all of whose effect has shown for `longest` are forgotten.
    pub(super) fn unseen(&mut self, over: Nanos, longest: Nanos, now: Nanos) -> i64 {
        self.cuts
            .retain(|cut| now < cut.seen_from || now.since(cut.seen_from) < longest);
        let unseen = |cut: &Cut| {
            let shown = now.since(cut.seen_from).0.min(over.0);
            let left =
                u128::from(cut.rate) * u128::from(over.0 - shown) / u128::from(over.0.max(1));
            i64::try_from(left).unwrap_or(i64::MAX)
        };
        self.cuts.iter().map(unseen).fold(0, i64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use npcc_pipeline::units::BitRate;

    #[test]
    fn a_cut_is_unseen_until_its_delay_has_passed_and_then_less_and_less() {
        let us = Nanos::from_micros;
        let mut flight = InFlight::default();
        let round = Round {
            sent: 4,
            cut: BitRate(80),
            feedback: us(20),
        };
        flight.add(&round, us(100));
        let mut unseen = |at| flight.unseen(us(40), us(40), us(at));
        assert_eq!([unseen(100), unseen(120), unseen(130)], [80, 80, 60]);
        assert_eq!([unseen(159), unseen(160), unseen(1_000)], [2, 0, 0]);
    }
}
