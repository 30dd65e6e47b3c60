//! Token bucket in frames.

use crate::units::Nanos;

/// Cost of a frame: the credit that a rate of one frame a second earns in a second.
const FRAME: u64 = 1_000_000_000;
/// Longest interval in ns that one refill counts: keeps the product far from 64 bits at any rate.
const LONGEST: u64 = 1_000_000_000;
/// Least burst in frames.
const LEAST_BURST: u64 = 32;
/// Divisor of the rate for the burst: a twentieth of a second's frames.
const BURST: u64 = 20;

/// Returns the largest burst in frames that is saved up at `rate` frames a second.
pub(super) const fn burst(rate: u64) -> u64 {
    let frames = rate / BURST;
    if frames > LEAST_BURST {
        frames
    } else {
        LEAST_BURST
    }
}

/// Rate limit in frames a second.
#[derive(Debug, Clone)]
pub struct Bucket {
    rate: u64,
    credit: u64,
    cap: u64,
    last: Nanos,
}

impl Bucket {
    /// Returns a full bucket of `rate` frames a second, with a burst of a twentieth of that, and at least 32.
    #[must_use]
    pub fn new(rate: u32) -> Bucket {
        let rate = u64::from(rate);
        let cap = burst(rate) * FRAME;
        Bucket {
            rate,
            credit: cap,
            cap,
            last: Nanos::ZERO,
        }
    }

    /// Returns the largest burst in frames.
    #[must_use]
    pub const fn burst(&self) -> u64 {
        self.cap / FRAME
    }

    /// Returns true if one more frame may pass now, and charges for it.
    pub fn take(&mut self, now: Nanos) -> bool {
        let elapsed = now.since(self.last).0.min(LONGEST);
        self.last = self.last.max(now);
        self.credit = (self.credit + elapsed * self.rate).min(self.cap);
        let passes = self.credit >= FRAME;
        if passes {
            self.credit -= FRAME;
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// No more frames pass than the rate and one burst, and no fewer than the rate if enough arrive, whatever arrives and
        /// when.
        #[test]
        fn the_rate_holds(rate in 1u32..1_000_000, gap in 100u64..20_000, frames in 1u64..20_000) {
            let mut bucket = Bucket::new(rate);
            let passed = (0..frames).filter(|n| bucket.take(Nanos(n * gap))).count() as u64;
            let due = u64::from(rate) * (frames - 1) * gap / 1_000_000_000;
            prop_assert!(passed <= due + bucket.burst() + 1);
            prop_assert!(passed >= due.min(frames).saturating_sub(1));
        }
    }

    #[test]
    fn a_long_pause_earns_a_burst_and_no_more() {
        let mut bucket = Bucket::new(1_000);
        let passed = |bucket: &mut Bucket, now| (0..1_000).filter(|_| bucket.take(now)).count();
        assert_eq!(passed(&mut bucket, Nanos(u64::MAX / 2)), 50);
        assert_eq!(passed(&mut bucket, Nanos(u64::MAX)), 50);
        assert_eq!(
            passed(&mut bucket, Nanos(5)),
            0,
            "time that goes back earns nothing"
        );
    }
}
