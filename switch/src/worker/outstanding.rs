//! Byte queue limit of a device's transmit ring, the BQL of Linux with a bound that follows from the link's speed: wire bytes it still
//! holds, and how much more it may be given. Frames in the ring are past our scheduler and our marking, and our pause frames wait behind
//! them.
//!
//! The bound is a little more than the link sends between two short turns of the worker. A worker that was away for longer finds the ring
//! empty, so it may fill in as much as the link sends in such a time: else the link would be idle for most of it.
//!
//! Law: no frame is given that would bring the ring past the bound, with two exceptions: one frame into an empty ring, and a burst whenever
//! no frame has left or been given for [`PATIENCE`]. Drivers that confirm in batches make the ring look emptier than it is, by a batch.
//!
//! Law: whatever the driver answers, a burst is offered within [`PATIENCE`]. Some drivers round the descriptor in question up to one that
//! hardware never reports as done (DPDK's e1000, ixgbe, i40e, ice, iavf: a multiple of 32 where every 32nd descriptor, the one before it,
//! requests a report), so after one ring every answer is "full". A device that takes a frame while its driver calls every descriptor full
//! disproves the driver; after [`DISPROOFS`] the ring has no bound any more. A link that holds takes nothing and disproves nothing.

use npcc_pipeline::units::{BURST, BitRate, Nanos};

/// Longest wait for a driver that confirms no frame: it may confirm in batches larger than the bound.
const PATIENCE: Nanos = Nanos::from_millis(1);

/// Number of frames taken by a ring whose driver called it full, in different milliseconds and with no frame confirmed in between, after
/// which the driver counts as one that cannot tell. One alone may be a link that resumed between the answer and the frame.
const DISPROOFS: u8 = 3;

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
    /// Time of the last answer by which every descriptor of the ring is full.
    full: Option<Nanos>,
    /// Number of frames that disproved such an answer, with no frame confirmed since; and the time of the last.
    disproofs: u8,
    disproved: Nanos,
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
            full: None,
            disproofs: 0,
            disproved: Nanos::ZERO,
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

    /// Returns true if the driver's answers were disproved: the ring has no bound any more.
    #[inline]
    #[must_use]
    pub const fn is_disproved(&self) -> bool {
        self.disproofs >= DISPROOFS
    }

    /// Returns true if a burst may be given whatever the ring holds.
    #[inline]
    fn is_overdue(&self, now: Nanos) -> bool {
        self.is_disproved() || now.since(self.moved) > PATIENCE
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
        if self.frames == 0 || self.is_disproved() {
            self.moved = now;
            return;
        }
        // Usually one query: the oldest frame is still there.
        if held(self.frames) {
            if self.frames == self.lengths.len() {
                self.full = Some(now);
            }
            return;
        }
        self.disproofs = 0;
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
        if self.is_overdue(now) {
            return BURST;
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
        if self.is_overdue(now) {
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
        if self.full.take_if(|full| *full == now).is_some() {
            self.disprove(now);
        }
        if self.is_disproved() {
            return;
        }
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

    /// Counts a frame that the device took while its driver called every descriptor full, at most one a millisecond. The last one empties
    /// the account.
    #[cold]
    fn disprove(&mut self, now: Nanos) {
        if self.disproofs > 0 && now.since(self.disproved) < PATIENCE {
            return;
        }
        self.disproved = now;
        self.disproofs += 1;
        if self.is_disproved() {
            self.frames = 0;
            self.bytes = 0;
        }
    }

    fn length(&self, number: usize) -> u32 {
        let length = self.lengths.get(number % self.lengths.len());
        length.copied().unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "outstanding_tests.rs"]
mod tests;
