//! Rounds of CNPs whose effect does not all show yet: a policy that wants the same cut again would cut twice.
//!
//! The cut of a round counts in full until the round's feedback delay has passed. From then on the growth of the queue, which is measured over a
//! time, shows part of it: what counts is the share of that time that lies before the effect began.

use arrayvec::ArrayVec;
use npcc_pipeline::units::Nanos;

use super::RoundOutcome;

/// Shortest time over which a growth is measured: frames come in bursts, and over less time bytes show no rate.
pub(super) const SHORTEST: Nanos = Nanos::from_micros(2);
/// Number of rounds remembered; further ones are added to the latest.
const ROUNDS: usize = 64;

/// A round whose effect does not all show in the growth yet.
#[derive(Debug, Clone, Copy)]
struct Cut {
    seen_from: Nanos,
    rate: u64,
}

/// Rounds of CNPs whose effect is still on its way.
#[derive(Debug, Clone, Default)]
pub(super) struct InFlight {
    cuts: ArrayVec<Cut, ROUNDS>,
    /// Growth before the remembered cuts took effect, in bit/s: the present growth is below it by as much as has taken effect.
    from: i64,
}

impl InFlight {
    /// Adds a round that left at `now`.
    pub(super) fn add(&mut self, round: &RoundOutcome, now: Nanos) {
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

    /// Adds a round that left at `now`, for a policy that knows the queue's growth, in bit/s.
    pub(super) fn add_to(&mut self, growth: i64, round: &RoundOutcome, now: Nanos) {
        self.from = if self.cuts.is_empty() {
            growth
        } else {
            self.from.max(growth)
        };
        self.add(round, now);
    }

    /// Returns [`InFlight::unseen`], limited to the part of the cuts by which the `growth` has not fallen since the first of them; and the amount by
    /// which it has fallen more than by the cuts.
    pub(super) fn unseen_in(
        &mut self,
        growth: i64,
        over: Nanos,
        longest: Nanos,
        now: Nanos,
    ) -> (i64, i64) {
        let before = self.sum();
        let by_time = self.unseen(over, longest, now);
        let all = self.sum();
        // The growth already shows the effect of a round that is forgotten.
        let from = self.from.saturating_sub(before - all);
        self.from = from.min(growth.saturating_add(all));
        let shown = self.from.saturating_sub(growth).max(0);
        let unseen = by_time.min(all.saturating_sub(shown));
        let beyond = if all > 0 { from - self.from } else { 0 };
        (unseen, beyond)
    }

    fn sum(&self) -> i64 {
        let rates = self.cuts.iter().map(|cut| cut.rate);
        rates.fold(0, i64::saturating_add_unsigned)
    }

    /// Cut that a growth measured `over` the time until `now` does not show yet, in bit/s. Rounds all of whose effect has shown for `longest` are
    /// forgotten.
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

/// Rate of change from one depth to another in bit/s.
pub(super) fn per_second(to: u64, from: u64, over: Nanos) -> i64 {
    let bits = (i128::from(to) - i128::from(from)) * 8 * 1_000_000_000;
    let rate = bits / i128::from(over.0.max(1));
    let held = rate.clamp(i64::MIN.into(), i64::MAX.into());
    i64::try_from(held).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use npcc_pipeline::units::BitRate;

    /// Regression: a fall too fast for the unit became the fastest rise.
    #[test]
    fn a_rate_beyond_the_unit_keeps_its_sign() {
        let [rise, fall] =
            [(u64::MAX, 0), (0, u64::MAX)].map(|(to, from)| per_second(to, from, Nanos(1)));
        assert_eq!([rise, fall], [i64::MAX, i64::MIN]);
        assert_eq!(
            per_second(1_000, 2_000, Nanos::from_micros(8)),
            -1_000_000_000
        );
    }

    #[test]
    fn a_cut_is_unseen_until_its_delay_has_passed_and_then_less_and_less() {
        let us = Nanos::from_micros;
        let mut flight = InFlight::default();
        let round = RoundOutcome {
            sent: 4,
            cut: BitRate(80),
            feedback: us(20),
            ..RoundOutcome::default()
        };
        flight.add(&round, us(100));
        let mut unseen = |at| flight.unseen(us(40), us(40), us(at));
        assert_eq!([unseen(100), unseen(120), unseen(130)], [80, 80, 60]);
        assert_eq!([unseen(159), unseen(160), unseen(1_000)], [2, 0, 0]);
    }

    #[test]
    fn a_fall_in_growth_counts_as_effect_and_the_rest_is_signalled() {
        let us = Nanos::from_micros;
        let mut flight = InFlight::default();
        let round = |cut| RoundOutcome {
            sent: 4,
            cut: BitRate(cut),
            feedback: us(20),
            ..RoundOutcome::default()
        };
        flight.add_to(300, &round(80), us(100));
        let mut unseen = |growth, at| flight.unseen_in(growth, us(40), us(40), us(at));
        assert_eq!(unseen(300, 104), (80, 0));
        assert_eq!(unseen(250, 108), (30, 0), "by its fall");
        assert_eq!(unseen(250, 150), (20, 0), "by time");
        assert_eq!(unseen(200, 152), (0, 20));
        assert_eq!(unseen(200, 153), (0, 0), "once");
        flight.add_to(200, &round(50), us(154));
        assert_eq!(flight.unseen_in(200, us(40), us(40), us(158)), (50, 0));
        assert_eq!(
            flight.unseen_in(200, us(40), us(40), us(1_000)),
            (0, 0),
            "all is forgotten"
        );
    }
}
