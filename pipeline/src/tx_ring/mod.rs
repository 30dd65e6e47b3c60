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
//! Law: whatever the driver answers, a burst is offered within [`PATIENCE`]. A device that takes frames while its driver calls every
//! descriptor full disproves the driver; after [`DISPROOFS`] its answers are ignored, and learned again a second later at the earliest.

mod account;
mod style;

use arrayvec::ArrayVec;

use self::account::Account;
pub use self::style::{BATCH, Style};
use crate::frame::{FrameVec, wire_len};
use crate::units::{BURST, BitRate, Nanos};

/// Maximum number of bursts a port sends in one turn: with frames of 1 KB, what 100 Gb/s carries in 80 us.
pub const SENDS: usize = 16;

/// Longest wait for a ring that confirms no frame.
const PATIENCE: Nanos = Nanos::from_millis(1);

/// Number of frames taken by a ring whose driver called it full, in different milliseconds and with no frame confirmed in between, after
/// which the driver's answers are ignored. One alone may be a link that resumed between the answer and the frame.
const DISPROOFS: u8 = 3;

/// Shortest time between two attempts to learn what answers mean, and from a disproof to the next attempt.
const ATTEMPTS: Nanos = Nanos::from_millis(1);
const DISTRUST: Nanos = Nanos::from_millis(1_000);

/// Time without a frame taken after which a device has stalled; and the time in which a link that went down is noticed, so that it is not
/// taken for one that stalled.
const STALL: Nanos = Nanos::from_millis(10);
const LINK_NOTICED: Nanos = Nanos::from_millis(10);

/// Longest absence that counts: a worker that was away for longer was not in a turn of its loop.
const LONGEST_AWAY: Nanos = Nanos::from_micros(100);

/// Transmit queue of a device, as the account of its ring needs it.
pub trait Device<B> {
    /// Returns the number of descriptors, one for each frame.
    fn descriptors(&self) -> u16;

    /// Returns true if the driver calls the descriptor full, false if done; `None` if it has no such call.
    fn is_full(&self, offset: u16) -> Option<bool>;

    /// Sends at most `most` frames from the front; returns the number that the device took. The rest moves to the front.
    fn send(&mut self, frames: &mut FrameVec<B>, most: usize) -> usize;

    /// Returns the length of a frame, without FCS.
    fn length(&self, frame: &B) -> usize;
}

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
    /// Time of the latest answer by which the whole ring is full, and number of frames that disproved such answers, the last at `disproved`.
    full: Option<Nanos>,
    disproofs: u8,
    disproved: Nanos,
    /// Time from which the meaning of answers may be learned.
    learn_at: Nanos,
    /// Lengths of the unsent frames, while the driver tells: read here, and not from buffers that have left the cache.
    lengths: ArrayVec<u16, BURST>,
    /// Wire bytes of the unsent frames.
    unsent: u64,
    /// Wire bytes that may be put now: frames may follow while fewer were.
    byte_budget: i64,
    /// Time at which the device has stalled, if it takes none until then; zero while it takes frames.
    stalls_at: Nanos,
    held: u64,
    stalled: u64,
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
            full: None,
            disproofs: 0,
            disproved: Nanos::ZERO,
            learn_at: Nanos::ZERO,
            lengths: ArrayVec::new(),
            unsent: 0,
            byte_budget: 0,
            stalls_at: Nanos::ZERO,
            held: 0,
            stalled: 0,
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
            stalled: self.stalled,
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
            self.disproofs = 0;
        } else if frames == usize::from(self.descriptors) {
            self.full = Some(now);
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
        self.stalls_at = Nanos::ZERO;
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
            self.add(frames, bytes, now);
        }
    }

    #[inline]
    fn add(&mut self, frames: usize, bytes: u64, now: Nanos) {
        self.account.add(frames, bytes);
        self.moved = now;
        self.stalls_at = Nanos::ZERO;
        self.was_empty = false;
        if self.style.tells() {
            self.frames = (self.frames + frames).min(usize::from(self.descriptors));
            if self.full.take_if(|full| *full == now).is_some() {
                self.disprove(now);
            }
        }
    }

    /// Handles a device that takes none of what it is offered: its ring is full.
    #[cold]
    fn refused(&mut self, now: Nanos) {
        if !self.style.tells() {
            self.account.fill(self.descriptors);
        }
        if self.stalls_at == Nanos::ZERO {
            self.stalls_at = now + LINK_NOTICED + STALL;
        } else if now >= self.stalls_at {
            self.stalled += 1;
            self.stalls_at = now + STALL;
        }
    }

    /// Learns what the answers mean, from `frames` that the device took while nothing else was in its ring.
    #[cold]
    fn learn<B>(&mut self, device: &impl Device<B>, frames: usize, bytes: u64, now: Nanos) {
        if self.style == Style::Absent || now < self.learn_at {
            return;
        }
        self.learn_at = now + ATTEMPTS;
        let given = u16::try_from(frames).unwrap_or(u16::MAX);
        if let Some(style) = Style::learn(device, given) {
            self.style = style;
        }
        if self.style.tells() {
            self.account.record_all(frames, bytes);
            self.frames = frames;
            self.full = None;
            self.disproofs = 0;
        }
    }

    /// Counts a frame that the device took while its driver called every descriptor full, at most one a millisecond. The last one ends the
    /// trust in the answers.
    #[cold]
    fn disprove(&mut self, now: Nanos) {
        if self.disproofs > 0 && now.since(self.disproved) < PATIENCE {
            return;
        }
        self.disproved = now;
        self.disproofs += 1;
        if self.disproofs >= DISPROOFS {
            self.style = Style::Unknown;
            self.frames = 0;
            self.lengths.clear();
            self.learn_at = now + DISTRUST;
        }
    }
}

/// Returns the wire bytes of a frame of `length`.
#[inline]
fn wire(length: usize) -> u64 {
    u64::from(wire_len(length))
}
