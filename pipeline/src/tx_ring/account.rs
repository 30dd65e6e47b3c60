//! Account of the wire bytes in a transmit ring: by time, corrected by what is known of its frames.

use crate::bits::low32;
use crate::units::{BitRate, Nanos};

/// Fraction bits of a level.
const FRACTION: u32 = 16;
/// Longest time in ns that one update counts: keeps the product in 64 bits.
const LONGEST: u64 = 100_000_000;
/// Bytes a nanosecond, with fraction bits, of a link that is never busy: a megabyte.
const AT_ONCE: u64 = 1 << 36;

/// Account of a ring's bytes.
#[derive(Debug)]
pub(super) struct Account {
    /// Wire bytes, with fraction bits, that the link has not sent yet if it never rests.
    level: u64,
    /// Bytes that leave in a nanosecond, with fraction bits: a little less than the link's speed, and more than the shaper's, so that the
    /// account never runs ahead of a link whose clock is slow.
    per_ns: u64,
    /// For each of the latest frames the wire bytes given before it; a power of two of them, and no less than the ring has descriptors.
    starts: Box<[u32]>,
    /// Number of frames, and wire bytes, ever given; both wrap.
    given: usize,
    bytes: u32,
    /// Frames and wire bytes given since the level was last zero.
    run: (u64, u64),
}

impl Account {
    pub(super) fn new(rate: BitRate, descriptors: u16) -> Account {
        let cells = usize::from(descriptors).max(1).next_power_of_two();
        let mut account = Account {
            level: 0,
            per_ns: 0,
            starts: vec![0; cells].into_boxed_slice(),
            given: 0,
            bytes: 0,
            run: (0, 0),
        };
        account.set_rate(rate);
        account
    }

    pub(super) fn set_rate(&mut self, rate: BitRate) {
        let drain = ((u128::from(rate.0) * 9_995 / 10_000) << FRACTION) / 8_000_000_000;
        // A link whose speed is not known counts as one that sends at once.
        self.per_ns = match u64::try_from(drain) {
            Ok(per_ns) if per_ns > 0 => per_ns.min(AT_ONCE),
            _ => AT_ONCE,
        };
    }

    /// Returns the wire bytes in the ring.
    #[inline]
    pub(super) const fn level(&self) -> u64 {
        self.level >> FRACTION
    }

    /// Takes off what the link sends in `elapsed`.
    #[inline]
    pub(super) fn drain(&mut self, elapsed: Nanos) {
        self.level = self
            .level
            .saturating_sub(elapsed.0.min(LONGEST) * self.per_ns);
        if self.level == 0 {
            self.run = (0, 0);
        }
    }

    /// Returns the wire bytes that leave in this time.
    #[inline]
    pub(super) const fn sent_in(&self, time: Nanos) -> u64 {
        time.0.saturating_mul(self.per_ns) >> FRACTION
    }

    /// Adds frames of which only the sum is known.
    #[inline]
    pub(super) fn add(&mut self, frames: usize, bytes: u64) {
        self.level += bytes << FRACTION;
        self.run.0 += frames as u64;
        self.run.1 += bytes;
    }

    /// Records a frame's length, to correct the level by a number of frames.
    #[inline]
    pub(super) fn record(&mut self, bytes: u64) {
        let at = self.given & (self.starts.len() - 1);
        if let Some(start) = self.starts.get_mut(at) {
            *start = self.bytes;
        }
        self.given = self.given.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(low32(bytes));
    }

    /// Records frames of which only the sum is known.
    #[cold]
    pub(super) fn record_all(&mut self, frames: usize, bytes: u64) {
        for n in 0..frames as u64 {
            let part = bytes * (n + 1) / frames as u64 - bytes * n / frames as u64;
            self.record(part);
        }
    }

    /// Corrects the level: the ring holds at least the `least` latest frames, and at most the `most` latest.
    #[inline]
    pub(super) fn correct(&mut self, least: usize, most: usize) {
        let (least, most) = (self.latest(least), self.latest(most));
        self.level = self.level.clamp(least << FRACTION, most << FRACTION);
    }

    /// Raises the level to that of a ring in which `descriptors` frames are.
    #[cold]
    pub(super) fn fill(&mut self, descriptors: u16) {
        let (frames, bytes) = self.run;
        let all = bytes * frames.min(u64::from(descriptors)) / frames.max(1);
        self.level = self.level.max(all << FRACTION);
    }

    /// Returns the wire bytes of the latest `frames`.
    #[inline]
    fn latest(&self, frames: usize) -> u64 {
        let at = self.given.wrapping_sub(frames) & (self.starts.len() - 1);
        match self.starts.get(at) {
            Some(start) if frames > 0 => u64::from(self.bytes.wrapping_sub(*start)),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: the account never runs ahead of a link whose clock is slow, and stays ahead of the shaper, which has 999 parts in 1,000.
    #[test]
    fn the_account_drains_a_little_slower_than_the_link() {
        for gig in [1, 10, 25, 100, 400] {
            let rate = BitRate(gig * 1_000_000_000);
            let link = rate.bytes_in(Nanos::from_millis(10));
            let sent = Account::new(rate, 512).sent_in(Nanos::from_millis(10));
            let parts = sent * 10_000 / link;
            assert!(
                (9_990..=9_995).contains(&parts),
                "{gig}G: {parts} of 10,000"
            );
        }
    }
}
