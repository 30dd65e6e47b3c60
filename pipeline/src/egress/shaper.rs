//! Token bucket in wire bytes.
//!
//! A frame may be sent while the credit is positive, and its whole length is charged, so the long-run rate is exact whatever
//! the frame lengths; the credit saved up while idle is bounded by the burst.

use crate::units::{BitRate, Nanos};

/// Number of fraction bits of the credit.
const FRACTION: u32 = 32;
/// Longest interval in ns that one refill counts: keeps the product in 64 bits up to 400 Gb/s.
const LONGEST: u64 = 10_000_000;

/// A rate limit, or none.
#[derive(Debug, Clone)]
pub struct Shaper {
    /// Rate in bytes per nanosecond with 32 fraction bits; 0 is unlimited.
    rate: u64,
    credit: i64,
    cap: i64,
    last: Nanos,
}

impl Shaper {
    /// Returns a shaper without a limit.
    #[must_use]
    pub const fn unlimited() -> Shaper {
        Shaper {
            rate: 0,
            credit: 1,
            cap: 1,
            last: Nanos::ZERO,
        }
    }

    /// Returns a shaper of `rate` on the wire, with at most `burst` bytes (under 1 GiB) saved up.
    #[must_use]
    pub fn new(rate: BitRate, burst: u32) -> Shaper {
        let per_ns = (u128::from(rate.0) << FRACTION) / 8_000_000_000;
        let cap = i64::from(burst.min(1 << 30)) << FRACTION;
        Shaper {
            rate: u64::try_from(per_ns).unwrap_or(u64::MAX >> 24).max(1),
            credit: cap,
            cap,
            last: Nanos::ZERO,
        }
    }

    /// Returns true if there is a limit.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.rate != 0
    }

    /// Credits the time since the last refill.
    #[inline]
    pub fn refill(&mut self, now: Nanos) {
        if self.rate == 0 {
            return;
        }
        let elapsed = now.since(self.last).0.min(LONGEST);
        self.last = now;
        let earned = i64::try_from(elapsed.saturating_mul(self.rate)).unwrap_or(i64::MAX);
        self.credit = self.credit.saturating_add(earned).min(self.cap);
    }

    /// Returns true if a frame may be sent.
    #[inline]
    #[must_use]
    pub const fn ready(&self) -> bool {
        self.credit > 0
    }

    /// Returns the credit in bytes, rounded up; `i64::MAX` without a rate. A caller that charges several frames at once may
    /// send a further one while those it has sent are below this, just as [`Shaper::ready`] allows frame by frame.
    #[inline]
    #[must_use]
    pub const fn allowance(&self) -> i64 {
        if self.rate == 0 {
            return i64::MAX;
        }
        (self.credit >> FRACTION) + (self.credit & ((1 << FRACTION) - 1) != 0) as i64
    }

    /// Charges `bytes` on the wire, less than 1 GiB.
    #[inline]
    pub const fn charge(&mut self, bytes: i64) {
        if self.rate != 0 {
            self.credit = self.credit.saturating_sub(bytes << FRACTION);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent_in(rate: BitRate, wire_len: u16, step: u64, total: u64, burst: u64) -> u64 {
        let mut shaper = Shaper::new(rate, u32::try_from(burst).unwrap());
        let mut sent = 0;
        let mut now = 0;
        while now <= total {
            shaper.refill(Nanos(now));
            while shaper.ready() {
                shaper.charge(i64::from(wire_len));
                sent += u64::from(wire_len);
            }
            now += step;
        }
        sent
    }

    proptest! {
        /// After 20 ms, the amount sent is the rate within the burst and one frame, whatever the rate and the frame length.
        #[test]
        fn the_long_run_rate_is_exact(rate in 10_000_000u64..400_000_000_000, wire_len in 84u16..9240) {
            let rate = BitRate(rate);
            let total = 20_000_000;
            // Polling is frequent enough that the burst never overflows.
            let step = rate.time_of(u64::from(wire_len)).0.clamp(100, 1_000_000);
            let burst = 2 * rate.bytes_in(Nanos(step)).max(u64::from(wire_len));
            let sent = sent_in(rate, wire_len, step, total, burst);
            let due = rate.bytes_in(Nanos(total));
            prop_assert!(sent <= due + burst + u64::from(wire_len) + 1);
            prop_assert!(sent + u64::from(wire_len) + rate.bytes_in(Nanos(step)) >= due);
        }
    }

    proptest! {
        /// The allowance admits as many frames together as one by one.
        #[test]
        fn the_allowance_is_readiness_in_a_row(credit in 1i64..1 << 40, wire_len in 84i64..9240) {
            let mut one_by_one = Shaper { credit, ..Shaper::new(BitRate(1_000_000_000), 1 << 20) };
            let allowance = one_by_one.allowance();
            let mut frames = 0;
            while one_by_one.ready() {
                prop_assert!(frames * wire_len < allowance);
                one_by_one.charge(wire_len);
                frames += 1;
            }
            prop_assert!(frames * wire_len >= allowance);
        }
    }

    #[test]
    fn no_limit_is_always_ready() {
        let mut shaper = Shaper::unlimited();
        for _ in 0..1000 {
            shaper.charge(i64::from(u16::MAX));
        }
        assert!(shaper.ready());
    }

    #[test]
    fn a_long_pause_earns_no_more_than_the_burst() {
        let mut shaper = Shaper::new(BitRate(100_000_000_000), 10_000);
        shaper.refill(Nanos(u64::MAX / 2));
        let mut frames = 0;
        while shaper.ready() {
            shaper.charge(1000);
            frames += 1;
        }
        assert_eq!(frames, 10);
    }
}
