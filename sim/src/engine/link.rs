//! One direction of a cable: serialises one frame at a time at its rate, and delivers it one propagation delay later.

use std::collections::VecDeque;

use npcc_pipeline::frame::{FrameBuf, wire_len};
use npcc_pipeline::units::{BitRate, Nanos};

use crate::frame::SimFrame;

/// Femtoseconds per nanosecond: a byte at 400 Gb/s is 20,000 fs, so rates are exact.
const FS: u64 = 1_000_000;

/// Receiving end of a link: a host, or a switch and its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Host(u32),
    Switch(u32, u8),
}

/// Count of frames and their wire bytes, overhead included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of frames.
    pub frames: u64,
    /// Wire bytes of these frames.
    pub bytes: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, frame: &SimFrame) {
        self.frames += 1;
        self.bytes += u64::from(wire_len(frame.data().len()));
    }
}

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Link {
    fs_per_byte: u64,
    delay: Nanos,
    pub(crate) to: End,
    busy_fs: u64,
    flight: VecDeque<(Nanos, SimFrame)>,
    up: bool,
    /// Frames and bytes put on the wire.
    pub(crate) sent: Tally,
    /// Frames and bytes lost because the link was down.
    pub(crate) lost: Tally,
}

impl Link {
    pub(crate) fn new(rate: u64, delay: Nanos, to: End) -> Link {
        Link {
            fs_per_byte: (8 * 1_000_000_000 * FS) / rate.max(1),
            delay,
            to,
            busy_fs: 0,
            flight: VecDeque::new(),
            up: true,
            sent: Tally::default(),
            lost: Tally::default(),
        }
    }

    /// Returns the rate in bits per second, rounded to a whole number of femtoseconds per byte.
    pub(crate) const fn rate(&self) -> BitRate {
        BitRate(8 * 1_000_000_000 * FS / self.fs_per_byte)
    }

    /// Returns the time of a byte, in femtoseconds.
    pub(crate) const fn fs_per_byte(&self) -> u64 {
        self.fs_per_byte
    }

    /// Returns the propagation delay.
    pub(crate) const fn delay(&self) -> Nanos {
        self.delay
    }

    /// Returns the time at which the next frame can start.
    pub(crate) const fn free_at(&self) -> Nanos {
        Nanos(self.busy_fs.div_ceil(FS))
    }

    /// Returns the wire bytes that have left by `now`; those that wait for the frames before them have not.
    pub(crate) const fn carried(&self, now: Nanos) -> u64 {
        let waits = self.busy_fs.saturating_sub(now.0 * FS) / self.fs_per_byte;
        self.sent.bytes.saturating_sub(waits)
    }

    /// Puts a frame on the wire behind those already there. Returns its arrival time if that is the next arrival.
    pub(crate) fn send(&mut self, frame: SimFrame, now: Nanos) -> Option<Nanos> {
        let wire = u64::from(wire_len(frame.data().len()));
        // A sender that waited for the link to be free follows at once, not at the next whole nanosecond.
        let begins = if now == self.free_at() {
            self.busy_fs
        } else {
            now.0 * FS
        };
        self.busy_fs = self.busy_fs.max(begins) + wire * self.fs_per_byte;
        self.sent.add(&frame);
        if !self.up {
            self.lost.add(&frame);
            return None;
        }
        let arrives = self.free_at() + self.delay;
        let first = self.flight.is_empty();
        self.flight.push_back((arrives, frame));
        first.then_some(arrives)
    }

    /// Takes the frame that arrives now, and returns the time of the next arrival.
    pub(crate) fn arrive(&mut self, now: Nanos) -> (Option<SimFrame>, Option<Nanos>) {
        // After a failure an event may announce an arrival that never comes.
        if self.flight.front().is_none_or(|(at, _)| *at > now) {
            return (None, None);
        }
        let frame = self.flight.pop_front().map(|(_, frame)| frame);
        (frame, self.flight.front().map(|(at, _)| *at))
    }

    /// Takes the link down; the frames in flight are lost.
    pub(crate) fn fail(&mut self) {
        self.up = false;
        for (_, frame) in self.flight.drain(..) {
            self.lost.add(&frame);
        }
    }

    pub(crate) const fn is_up(&self) -> bool {
        self.up
    }

    pub(crate) fn in_flight(&self) -> Tally {
        let mut tally = Tally::default();
        for (_, frame) in &self.flight {
            tally.add(frame);
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_follow_each_other_at_the_rate() {
        let mut link = Link::new(100_000_000_000, Nanos(5_000), End::Host(0));
        let wire = u64::from(wire_len(1_226));
        assert_eq!(wire, 1_250, "100 ns at 100 Gb/s");
        assert_eq!(
            link.send(SimFrame::of_len(1_226), Nanos(1_000)),
            Some(Nanos(6_100))
        );
        assert_eq!(link.send(SimFrame::of_len(1_226), Nanos(1_000)), None);
        assert_eq!(link.free_at(), Nanos(1_200));
        assert!(link.arrive(Nanos(6_099)).0.is_none());
        let (frame, next) = link.arrive(Nanos(6_100));
        assert!(frame.is_some() && next == Some(Nanos(6_200)));
        let mut exact = Link::new(100_000_000_000, Nanos(0), End::Host(0));
        for _ in 0..1_000 {
            let now = exact.free_at();
            exact.send(SimFrame::of_len(4_154), now);
        }
        assert_eq!(
            exact.free_at(),
            Nanos(334_240),
            "4,178 bytes a thousand times"
        );
        // Half of the second frame is on the wire.
        assert_eq!(link.carried(Nanos(1_150)), 1_250 + 625);
        assert_eq!(link.carried(Nanos(9_000)), 2 * 1_250);
        link.fail();
        assert_eq!((link.lost.frames, link.in_flight().frames), (1, 0));
    }
}
