//! Token bucket: a rate with a burst, in any unit, driven by the time it is given.

use crate::units::Nanos;

const SECOND: u128 = 1_000_000_000;

/// Bucket of tokens that come at `rate` a second, of which at most `burst` are kept.
#[derive(Debug, Clone, Copy)]
pub struct TokenBucket {
    rate: u64,
    burst: u64,
    tokens: u64,
    at: Nanos,
}

impl TokenBucket {
    /// Makes a full bucket.
    #[must_use]
    pub const fn new(rate: u64, burst: u64) -> TokenBucket {
        TokenBucket {
            rate,
            burst,
            tokens: burst,
            at: Nanos::ZERO,
        }
    }

    /// Replaces rate and burst: saved tokens are kept, up to the new burst, and none are added.
    pub fn reconfigure(&mut self, rate: u64, burst: u64, now: Nanos) {
        self.earn(now);
        (self.rate, self.burst, self.at) = (rate, burst, now);
        self.tokens = self.tokens.min(burst);
    }

    fn earn(&mut self, now: Nanos) {
        let earned = u128::from(self.rate) * u128::from(now.since(self.at).0) / SECOND;
        if earned > 0 {
            // Time that earned less than a token is kept for the next call.
            let spent = earned * SECOND / u128::from(self.rate.max(1));
            self.at += Nanos(u64::try_from(spent).unwrap_or(u64::MAX));
            let earned = u64::try_from(earned).unwrap_or(u64::MAX);
            self.tokens = self.tokens.saturating_add(earned).min(self.burst);
        }
    }

    /// Takes `n` tokens, if there are as many; returns true if it did.
    pub fn take(&mut self, now: Nanos, n: u64) -> bool {
        self.earn(now);
        match self.tokens.checked_sub(n) {
            Some(left) => {
                self.tokens = left;
                true
            }
            None => false,
        }
    }

    /// Gives back `n` tokens that were taken and not used.
    pub fn refund(&mut self, n: u64) {
        self.tokens = self.tokens.saturating_add(n).min(self.burst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn never_more_than_rate_and_burst(
            rate in 1u64..1_000_000_000, burst in 1u64..10_000, steps in prop::collection::vec((0u64..1_000_000, 1u64..200), 1..100),
        ) {
            let mut bucket = TokenBucket::new(rate, burst);
            let (mut now, mut taken) = (0u64, 0u64);
            for (step, n) in steps {
                now += step;
                if bucket.take(Nanos(now), n) {
                    taken += n;
                }
                let most = u128::from(burst) + u128::from(rate) * u128::from(now) / SECOND;
                prop_assert!(u128::from(taken) <= most);
            }
        }
    }

    #[test]
    fn slow_rates_are_not_lost_to_rounding() {
        let mut bucket = TokenBucket::new(1_000, 1);
        let taken = (1..=100_000u64)
            .filter(|us| bucket.take(Nanos::from_micros(*us), 1))
            .count();
        assert!(
            (100..=101).contains(&taken),
            "{taken} in 100 ms at 1,000 a second"
        );
    }
}
