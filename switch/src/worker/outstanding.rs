//! Byte queue limit of a device's transmit ring, the BQL of Linux with a bound that follows from the link's speed: wire bytes it still
//! holds, and how much more it may be given. Frames in the ring are past our scheduler and our marking, and our pause frames wait behind
//! them.
//!
//! The bound is a little more than the link sends between two short turns of the worker. A worker that was away for longer finds the ring
//! empty, so it may fill in as much as the link sends in such a time: else the link would be idle for most of it.
//!
//! Law: no frame is given that would bring the ring past the bound, with two exceptions: one frame into an empty ring, and a burst whenever
//! no frame has left or been given for [`PATIENCE`]. Drivers that confirm in batches make the ring look emptier than it is, by a batch.

use npcc_pipeline::units::{BURST, BitRate, Nanos};

/// Longest wait for a driver that confirms no frame: it may confirm in batches larger than the bound.
const PATIENCE: Nanos = Nanos::from_millis(1);

/// Longest absence that counts: a worker that was away for longer was not in a turn of its loop.
const LONGEST_AWAY: Nanos = Nanos::from_micros(100);

/// Account of one ring.
#[derive(Debug)]
pub struct Outstanding {
    /// Most wire bytes in the ring, for short turns.
    bound: u64,
    /// Speed of the link.
    rate: BitRate,
    /// Time of the worker's last update; `away` is the time since the one before.
    looked: Nanos,
    away: Nanos,
    /// Wire bytes of the latest frames, as many as the ring has descriptors.
    lengths: Box<[u32]>,
    /// Number of frames ever given.
    given: usize,
    /// Number of the latest frames that may still be in the ring.
    frames: usize,
    /// Wire bytes of those frames.
    bytes: u64,
    /// Time when a frame last left or was given, or the ring was last empty.
    moved: Nanos,
}

impl Outstanding {
    /// Starts with an empty ring of `descriptors`, to hold up to `bound` wire bytes of a link of `rate`.
    #[must_use]
    pub fn new(bound: u64, rate: BitRate, descriptors: u16) -> Outstanding {
        Outstanding {
            bound,
            rate,
            looked: Nanos::ZERO,
            away: Nanos::ZERO,
            lengths: vec![0; usize::from(descriptors).max(1)].into_boxed_slice(),
            given: 0,
            frames: 0,
            bytes: 0,
            moved: Nanos::ZERO,
        }
    }

    /// Sets the limit to `bound` wire bytes of a link of `rate` from now on.
    pub const fn set_bound(&mut self, bound: u64, rate: BitRate) {
        self.bound = bound;
        self.rate = rate;
    }

    /// Returns the most wire bytes that the ring may hold in this turn.
    #[inline]
    fn limit(&self) -> u64 {
        self.bound.max(self.rate.bytes_in(self.away))
    }

    /// Returns the wire bytes that may still be in the ring.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Updates the account with the frames that have left. `holds` returns true if at least that many of the latest frames are still in the
    /// ring; a driver that cannot tell counts as having sent them all.
    #[inline]
    pub fn poll(&mut self, now: Nanos, holds: impl Fn(u16) -> Option<bool>) {
        if now != self.looked {
            self.away = now.since(self.looked).min(LONGEST_AWAY);
            self.looked = now;
        }
        let held =
            |frames: usize| u16::try_from(frames).is_ok_and(|frames| holds(frames) == Some(true));
        if self.frames == 0 {
            self.moved = now;
            return;
        }
        // Usually one query: the oldest frame is still there.
        if held(self.frames) {
            return;
        }
        let (mut low, mut high) = (0, self.frames - 1);
        while low < high {
            let middle = high - (high - low) / 2;
            if held(middle) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        while self.frames > low {
            self.bytes -= u64::from(self.length(self.given - self.frames));
            self.frames -= 1;
        }
        self.moved = now;
    }

    /// Returns the number of frames, with these wire lengths and in order, that may be given now.
    #[inline]
    #[must_use]
    pub fn admits(&self, lengths: impl Iterator<Item = u64>, now: Nanos) -> usize {
        if now.since(self.moved) > PATIENCE {
            return BURST.min(self.lengths.len() - self.frames);
        }
        let mut bytes = self.bytes;
        let mut admitted = 0;
        for length in lengths.take(self.lengths.len() - self.frames) {
            bytes += length;
            if bytes > self.limit() && self.frames + admitted > 0 {
                break;
            }
            admitted += 1;
        }
        admitted
    }

    /// Returns the wire bytes that may be given now: frames may follow while fewer were given.
    #[inline]
    #[must_use]
    pub fn credit(&self, now: Nanos) -> i64 {
        if now.since(self.moved) > PATIENCE {
            return i64::MAX;
        }
        if self.frames == self.lengths.len() {
            return 0;
        }
        let left = self.limit().saturating_sub(self.bytes);
        let least = u64::from(self.frames == 0);
        i64::try_from(left.max(least)).unwrap_or(i64::MAX)
    }

    /// Adds a frame that the device took.
    #[inline]
    pub fn add_sent(&mut self, length: u64, now: Nanos) {
        // Frames given past the bound count as this period's burst.
        self.moved = now;
        if self.frames == self.lengths.len() {
            // The device had a descriptor for it, so the oldest frame has left.
            self.bytes -= u64::from(self.length(self.given - self.frames));
            self.frames -= 1;
        }
        let at = self.given % self.lengths.len();
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        if let Some(cell) = self.lengths.get_mut(at) {
            *cell = length;
        }
        self.given += 1;
        self.frames += 1;
        self.bytes += u64::from(length);
    }

    fn length(&self, number: usize) -> u32 {
        let length = self.lengths.get(number % self.lengths.len());
        length.copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// Speed of a link that sends next to nothing between two updates.
    const SLOW: BitRate = BitRate(1_000_000);

    /// Turns of 50 us at 100 Gb/s: the link is busy 99 % of the time. With turns of a microsecond no more than the bound waits.
    #[test]
    fn the_link_is_kept_busy_by_a_worker_that_is_away_for_a_turn() {
        const FRAME: u64 = 1_106;
        let rate = BitRate(100_000_000_000);
        for (turn, most) in [(50_000, 700_000), (1_000, 25_000)] {
            let mut outstanding = Outstanding::new(25_000, rate, 1_024);
            let (mut waiting, mut sent, mut now, mut credit) = (VecDeque::new(), 0, 0, 0);
            let turns = 20_000_000 / turn;
            for _ in 0..turns {
                now += turn;
                // The link sends what it can in this turn, as far as frames wait.
                credit += rate.bytes_in(Nanos(turn));
                while let Some(length) = waiting.front().copied().filter(|length| *length <= credit)
                {
                    waiting.pop_front();
                    credit -= length;
                    sent += length;
                }
                if waiting.is_empty() {
                    credit = 0;
                }
                let held = waiting.len();
                outstanding.poll(Nanos(now), |frames| Some(held >= usize::from(frames)));
                let admitted = outstanding.admits(std::iter::repeat_n(FRAME, 1_024), Nanos(now));
                for _ in 0..admitted {
                    outstanding.add_sent(FRAME, Nanos(now));
                    waiting.push_back(FRAME);
                }
                assert!(waiting.iter().sum::<u64>() <= most);
            }
            let share = sent * 100 / rate.bytes_in(Nanos((turns - 1) * turn));
            assert!(share >= 99, "{share} % with turns of {turn} ns");
        }
    }

    proptest! {
        /// Against a ring that sends at random times: never past the bound but for a lone frame, and never stuck.
        #[test]
        fn the_ring_stays_within_its_bound(
            bound in 1_500u64..40_000,
            steps in prop::collection::vec((prop::collection::vec(84u64..9_200, 0..32), 0usize..40), 1..200),
        ) {
            let mut ring: VecDeque<u64> = VecDeque::new();
            let mut outstanding = Outstanding::new(bound, BitRate(1_000_000_000), 128);
            for (turn, (hand, leave)) in (1u64..).zip(steps) {
                let now = Nanos(turn * 1_000);
                for _ in 0..leave.min(ring.len()) {
                    ring.pop_front();
                }
                let waiting = ring.len();
                outstanding.poll(now, |frames| Some(waiting >= usize::from(frames)));
                prop_assert_eq!(outstanding.bytes(), ring.iter().sum::<u64>());
                // No frame has moved for a millisecond: a burst may pass the bound, which is tested below.
                if now.since(outstanding.moved) > PATIENCE {
                    continue;
                }
                let admitted = outstanding.admits(hand.iter().copied(), now);
                for length in &hand[..admitted] {
                    outstanding.add_sent(*length, now);
                    ring.push_back(*length);
                }
                let bytes: u64 = ring.iter().sum();
                prop_assert!(bytes <= bound || ring.len() == 1, "{bytes} of {bound}");
                if let Some(next) = hand.get(admitted) {
                    prop_assert!(bytes + next > bound, "{bytes} + {next} would have fitted {bound}");
                }
            }
        }
    }

    #[test]
    fn a_driver_that_confirms_nothing_is_not_waited_for_without_end() {
        let mut outstanding = Outstanding::new(3_000, SLOW, 64);
        let burst = || std::iter::repeat_n(1_500, 32);
        outstanding.poll(Nanos(0), |_| Some(true));
        assert_eq!(outstanding.admits(burst(), Nanos(0)), 2);
        outstanding.add_sent(1_500, Nanos(0));
        outstanding.add_sent(1_500, Nanos(0));
        outstanding.poll(Nanos(500_000), |_| Some(true));
        assert_eq!(outstanding.admits(burst(), Nanos(500_000)), 0);
        assert!(outstanding.admits(burst(), Nanos(1_000_001)) >= 32);
    }

    /// Earlier defect: the bound was off for good once no frame had moved for a millisecond, and a ring of 1,024 filled.
    #[test]
    fn a_link_that_holds_is_given_a_burst_a_millisecond() {
        let mut outstanding = Outstanding::new(3_000, SLOW, 1_024);
        let mut given = 0;
        for us in 0..10_000 {
            let now = Nanos(us * 1_000);
            outstanding.poll(now, |_| Some(true));
            let admitted = outstanding.admits(std::iter::repeat_n(1_500, 1_024), now);
            for _ in 0..admitted {
                outstanding.add_sent(1_500, now);
            }
            given += admitted;
        }
        assert!((2 + 8 * BURST..=2 + 10 * BURST).contains(&given), "{given}");
    }

    #[test]
    fn a_driver_that_cannot_tell_has_sent_everything() {
        let mut outstanding = Outstanding::new(3_000, SLOW, 64);
        outstanding.add_sent(1_500, Nanos(0));
        outstanding.add_sent(1_500, Nanos(0));
        outstanding.poll(Nanos(1), |_| None);
        assert_eq!(outstanding.bytes(), 0);
    }
}
