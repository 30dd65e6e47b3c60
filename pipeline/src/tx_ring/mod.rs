//! A device's transmit ring as a queue: byte queue limit of a ring, the BQL of Linux with a bound that follows from the link's speed. Frames
//! in the ring are past our scheduler and our marking, and our pause frames wait behind them.
//!
//! The bound is a little more than the link sends between two short turns of the worker. A worker that was away finds that much less in the
//! ring, so it may fill in as much as the link sends in such a time: else the link would be idle for most of it.
//!
//! The account is by time: what was given leaves at the speed of the link. Where the driver's answers say what the ring holds, they correct
//! it; so does a device that takes less than it is offered, whose ring is full. The meaning of the answers is learned from them, see
//! [`Style`], and no driver is known by its name.
//!
//! Law: while the link sends, the ring holds at most the bound, what the link sends in the latest absence of the worker (at most
//! 100 us, and for some turns after it), and a frame. While it does not, a driver that tells is given one batch more, and up to a burst a
//! millisecond; a driver that does not tell has a full ring.
//!
//! Law: whatever the driver answers, a burst is offered within [`PATIENCE`] of the last frame that left or was given. A device that takes frames while its driver calls every
//! descriptor full disproves the driver; after three its answers are ignored, and learned again a second later at the
//! earliest.

mod account;
mod device;
mod stall;
mod style;
mod trust;

use arrayvec::ArrayVec;

use self::account::Account;
pub use self::device::Device;
use self::stall::Stall;
pub use self::style::{BATCH, Style};
use self::trust::Trust;
use crate::frame::{FrameVec, wire_len};
use crate::units::{BURST, BitRate, Nanos};

/// Maximum number of bursts a port sends in one turn: with frames of 1 KB, what 100 Gb/s carries in 80 us.
pub const SENDS: usize = 16;

/// Longest wait for a ring that confirms no frame.
const PATIENCE: Nanos = Nanos::from_millis(1);

/// Longest absence that counts: a worker that was away for longer was not in a turn of its loop.
const LONGEST_AWAY: Nanos = Nanos::from_micros(100);

/// Ring of a device, and the frames between the scheduler and it.
#[derive(Debug)]
pub struct TxRing {
    /// Most wire bytes in the ring, for short turns.
    bound: u64,
    descriptors: u16,
    account: Account,
    style: Style,
    /// Time of the latest update; `away` is the longest of the latest times between two.
    looked: Nanos,
    away: Nanos,
    /// Number of the latest frames that may be in the ring by the driver's answers.
    frames: usize,
    /// True if the account said, before the frames of this turn, that the ring is empty.
    was_empty: bool,
    /// Time when a frame last left or was given, or the ring was empty.
    moved: Nanos,
    trust: Trust,
    /// Lengths of the unsent frames, while the driver tells: read here, and not from buffers that have left the cache.
    lengths: ArrayVec<u16, BURST>,
    /// Wire bytes of the unsent frames.
    unsent: u64,
    /// Wire bytes that may be put now: frames may follow while fewer were.
    byte_budget: i64,
    /// Number of periods of [`PATIENCE`] in which the ring kept what it had.
    held: u64,
    stall: Stall,
}

/// Occurrences that the port's counters show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Number of milliseconds in which the ring kept what it had, each with at most a burst given in spite.
    pub held: u64,
    /// Number of times that the device was offered frames for 10 ms and took none.
    pub stalled: u64,
    /// True if the driver's answers say what the ring holds.
    pub answers: bool,
}

impl TxRing {
    /// Starts with the device's ring empty, to hold up to `bound` wire bytes of a link of `rate`.
    #[must_use]
    pub fn new<B>(device: &impl Device<B>, bound: u64, rate: BitRate) -> TxRing {
        let descriptors = device.descriptors();
        TxRing {
            bound,
            descriptors,
            account: Account::new(rate, descriptors),
            style: Style::of(device),
            looked: Nanos::ZERO,
            away: Nanos::ZERO,
            frames: 0,
            was_empty: true,
            moved: Nanos::ZERO,
            trust: Trust::new(),
            lengths: ArrayVec::new(),
            unsent: 0,
            byte_budget: 0,
            held: 0,
            stall: Stall::new(),
        }
    }

    /// Sets the limit to `bound` wire bytes of a link of `rate` from now on.
    pub fn set_bound(&mut self, bound: u64, rate: BitRate) {
        self.bound = bound;
        self.account.set_rate(rate);
    }

    /// Returns the meaning of the driver's answers, as far as it is known.
    #[must_use]
    pub const fn style(&self) -> Style {
        self.style
    }

    /// Returns what the port's counters show.
    #[inline]
    #[must_use]
    pub const fn counted(&self) -> Counted {
        Counted {
            held: self.held,
            stalled: self.stall.count(),
            answers: self.style.tells(),
        }
    }

    /// Returns the wire bytes that may be in the ring.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.account.level()
    }

    /// Returns the wire bytes that may be put now: frames may follow while fewer were put.
    #[inline]
    #[must_use]
    pub const fn byte_budget(&self) -> i64 {
        self.byte_budget
    }

    /// Updates the account, once a turn, and the budget from it: the scheduler hands over what the ring may take, so that hardly any frame
    /// stays unsent when the link holds.
    #[inline]
    pub fn poll<B>(&mut self, device: &impl Device<B>, now: Nanos) {
        if now == self.looked {
            return;
        }
        let elapsed = now.since(self.looked);
        self.looked = now;
        let away = elapsed.min(LONGEST_AWAY);
        self.away = away.max(Nanos(self.away.0 - self.away.0 / 8));
        self.account.drain(elapsed);
        if self.style.tells() && (self.frames > self.style.batch() || self.account.level() > 0) {
            self.correct(device, now);
        }
        self.was_empty = self.account.level() == 0;
        if self.was_empty {
            self.moved = now;
        }
        self.byte_budget = self.credit(now);
    }

    /// Corrects the account by what the driver says.
    #[inline]
    fn correct<B>(&mut self, device: &impl Device<B>, now: Nanos) {
        let Some(frames) = self.style.count(device, self.frames) else {
            self.moved = now;
            return;
        };
        if frames < self.frames {
            self.moved = now;
            self.trust.confirms();
        } else if frames == usize::from(self.descriptors) {
            self.trust.says_full(now);
        }
        self.frames = frames;
        let least = frames.saturating_sub(self.style.batch());
        self.account.correct(least, frames);
    }

    /// Returns the wire bytes that may be given now.
    #[inline]
    fn credit(&self, now: Nanos) -> i64 {
        if now.since(self.moved) > PATIENCE {
            return i64::MAX;
        }
        let limit = self.bound.saturating_add(self.account.sent_in(self.away));
        limit
            .cast_signed()
            .saturating_sub_unsigned(self.account.level())
    }

    /// Adds frames of these lengths, and of this many wire bytes together, to the unsent ones.
    #[inline]
    pub fn put(&mut self, lengths: impl Iterator<Item = u16>, wire_bytes: u64) {
        self.byte_budget = self.byte_budget.saturating_sub_unsigned(wire_bytes);
        self.unsent += wire_bytes;
        if self.style.tells() {
            self.lengths.extend(lengths);
        }
    }

    /// Hands the unsent frames to the device, if the ring may hold more; returns the number that it took.
    #[inline]
    pub fn send<B>(
        &mut self,
        device: &mut impl Device<B>,
        unsent: &mut FrameVec<B>,
        now: Nanos,
    ) -> usize {
        if self.credit(now) <= 0 {
            return 0;
        }
        if now.since(self.moved) > PATIENCE {
            // Frames given past the bound count as this period's burst.
            self.held += 1;
            self.moved = now;
        }
        let offered = unsent.len();
        let taken = device.send(unsent, BURST);
        if taken < offered {
            let rest = unsent.iter().map(|frame| wire(device.length(frame)));
            let rest = rest.sum();
            self.given(taken, self.unsent.saturating_sub(rest), now);
            self.unsent = rest;
            // Drivers that free late take a part of a burst, and the rest of it with the next.
            if taken == 0 {
                self.refused(now);
            }
        } else {
            let bytes = std::mem::take(&mut self.unsent);
            let was_empty = self.was_empty;
            self.given(taken, bytes, now);
            if was_empty && !self.style.tells() {
                self.learn(device, taken, bytes, now);
            }
        }
        self.byte_budget = self.credit(now);
        taken
    }

    /// Adds a frame of `length` bytes, without FCS, that the device took ahead of the unsent ones.
    pub fn add_sent(&mut self, length: usize, now: Nanos) {
        let bytes = wire(length);
        if self.style.tells() {
            self.account.record(bytes);
        }
        self.add(1, bytes, now);
        self.byte_budget = self.credit(now);
    }

    /// Forgets the unsent frames.
    pub fn forget(&mut self) {
        self.lengths.clear();
        self.unsent = 0;
        self.stall.ends();
    }

    /// Adds the first `frames` unsent frames, which the device took.
    #[inline]
    fn given(&mut self, frames: usize, bytes: u64, now: Nanos) {
        if self.style.tells() {
            let frames = frames.min(self.lengths.len());
            for length in self.lengths.drain(..frames) {
                self.account.record(wire(usize::from(length)));
            }
        }
        if frames > 0 {
            self.moved = now;
            self.add(frames, bytes, now);
        }
    }

    #[inline]
    fn add(&mut self, frames: usize, bytes: u64, now: Nanos) {
        self.account.add(frames, bytes);
        self.stall.ends();
        self.was_empty = false;
        if self.style.tells() {
            self.frames = (self.frames + frames).min(usize::from(self.descriptors));
            if self.trust.takes(now) {
                self.style = Style::Unknown;
                self.frames = 0;
                self.lengths.clear();
            }
        }
    }

    /// Handles a device that takes none of what it is offered: its ring is full.
    #[cold]
    fn refused(&mut self, now: Nanos) {
        if !self.style.tells() {
            self.account.fill(self.descriptors);
        }
        self.stall.goes_on(now);
    }

    /// Learns what the answers mean, from `frames` that the device took while nothing else was in its ring.
    #[cold]
    fn learn<B>(&mut self, device: &impl Device<B>, frames: usize, bytes: u64, now: Nanos) {
        if self.style == Style::Absent || !self.trust.may_learn(now) {
            return;
        }
        let given = u16::try_from(frames).unwrap_or(u16::MAX);
        self.style = Style::learn(device, given).unwrap_or(self.style);
        if self.style.tells() {
            self.account.record_all(frames, bytes);
            self.frames = frames;
        }
    }
}

/// Returns the wire bytes of a frame of `length`.
#[inline]
fn wire(length: usize) -> u64 {
    u64::from(wire_len(length))
}
