//! Bytes of one flow over the recent past.
//!
//! Five buckets of a fifth of the window each. A count that covers more than the window (the queue was not being watched)
//! is scaled to it, and taken as nothing when the flow has been silent for a window.

use npcc_pipeline::units::Nanos;

const BUCKETS: usize = 5;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Window {
    buckets: [u32; BUCKETS],
    /// Number of the fifth of a window, counted from time 0, that the newest bucket is.
    epoch: u64,
    /// Time of the last call of `add`, or of `resume`.
    read_at: Nanos,
}

impl Window {
    /// Makes an empty window of a flow first seen now.
    pub(crate) fn starting(now: Nanos) -> Window {
        Window {
            read_at: now,
            ..Window::default()
        }
    }

    /// Time at which bytes were last added, or there were none to add.
    pub(crate) const fn read_at(&self) -> Nanos {
        self.read_at
    }

    /// Records that the flow was silent until now: bytes counted next are no older than this.
    pub(crate) fn resume(&mut self, now: Nanos) {
        self.read_at = self.read_at.max(now);
    }

    /// Adds `bytes` counted since the last call, the last packet of them at `last_seen`. Returns those taken to be of this window.
    pub(crate) fn add(&mut self, now: Nanos, length: Nanos, bytes: u64, last_seen: Nanos) -> u64 {
        self.turn(now, length);
        let gap = now.since(self.read_at).0.max(1);
        self.read_at = now;
        let bytes = if gap <= length.0 {
            bytes
        } else if now.since(last_seen).0 > length.0 {
            0
        } else {
            mul_div(bytes, length.0, gap)
        };
        if let Some(bucket) = self.buckets.get_mut(at(self.epoch)) {
            *bucket = bucket.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
        bytes
    }

    /// Bytes over the window that ends now.
    pub(crate) fn bytes(mut self, now: Nanos, length: Nanos) -> u64 {
        self.turn(now, length);
        self.buckets.iter().map(|bytes| u64::from(*bytes)).sum()
    }

    /// Clears buckets that have left the window.
    fn turn(&mut self, now: Nanos, length: Nanos) {
        let epoch = now.0 / (length.0 / BUCKETS as u64).max(1);
        let passed = epoch.saturating_sub(self.epoch).min(BUCKETS as u64);
        if passed == BUCKETS as u64 {
            (self.buckets, self.epoch) = ([0; BUCKETS], epoch);
            return;
        }
        for step in 1..=passed {
            if let Some(bucket) = self
                .buckets
                .get_mut(at(epoch + BUCKETS as u64 - passed + step))
            {
                *bucket = 0;
            }
        }
        self.epoch = self.epoch.max(epoch);
    }
}

/// Computes `a` times `b` over `c`, which is not zero; in 64 bits where they are enough: a division of 128 is a call.
pub(crate) fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    a.checked_mul(b).map_or_else(
        || u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX),
        |product| product / c,
    )
}

fn at(epoch: u64) -> usize {
    usize::try_from(epoch % BUCKETS as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Nanos = Nanos::from_micros(100);

    #[test]
    fn shares_are_the_same_in_both_widths() {
        assert_eq!(mul_div(7, 3, 2), 10);
        assert_eq!(mul_div(u64::MAX, 3, 4), u64::MAX / 4 * 3 + 2);
        assert_eq!(mul_div(u64::MAX, 3, 2), u64::MAX);
    }

    #[test]
    fn bytes_leave_with_their_time() {
        let mut window = Window::default();
        let mut now = Nanos::ZERO;
        for _ in 0..50 {
            now += Nanos::from_micros(20);
            window.add(now, LENGTH, 1_000, now);
        }
        assert_eq!(window.bytes(now, LENGTH), 5_000);
        assert_eq!(window.bytes(now + Nanos::from_micros(40), LENGTH), 3_000);
        assert_eq!(window.bytes(now + LENGTH, LENGTH), 0);
    }

    #[test]
    fn a_long_unwatched_time_is_scaled_and_silence_is_nothing() {
        let now = Nanos::from_millis(10);
        let mut busy = Window::default();
        assert_eq!(busy.add(now, LENGTH, 1_000_000, now), 10_000);
        assert_eq!(busy.bytes(now, LENGTH), 10_000);
        let mut silent = Window::default();
        let none = silent.add(now, LENGTH, 1_000_000, Nanos::from_millis(9));
        assert_eq!(none, 0);
        assert_eq!(silent.bytes(now, LENGTH), 0);
    }
}
