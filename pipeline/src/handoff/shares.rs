//! Division of a channel's room among those that send into it, as a switch divides its buffer by dynamic thresholds (Choudhury and Hahne,
//! 1998, with a factor of 1).
//!
//! Law: no more frames of one priority of one ingress port are in a channel than were free before the latest run of them. So one flood takes
//! half of the channel and a burst at most, two take a third each, and there is always room for others.

use std::collections::VecDeque;

use crate::bits::low8;
use crate::buffer::GroupId;

/// Account of a channel's sending end: the frames in the channel, by priority and ingress port.
#[derive(Debug)]
pub(super) struct Shares {
    /// Runs in the channel, oldest first: index of the ingress group, and number of frames.
    runs: VecDeque<(u8, u8)>,
    /// Frames of all these runs.
    frames: usize,
    /// Frames of these runs by ingress group of this worker.
    by_group: Box<[u16; 256]>,
}

impl Shares {
    /// Creates the account of an empty channel for up to `room` frames.
    pub(super) fn new(room: usize) -> Shares {
        Shares {
            runs: VecDeque::with_capacity(room),
            frames: 0,
            by_group: Box::new([0; 256]),
        }
    }

    /// Returns the number of frames of a group that may be sent now, if the channel has `free` slots and `frames` frames.
    #[inline]
    pub(super) fn room(&mut self, group: GroupId, free: usize, frames: usize) -> usize {
        self.forget_taken(frames);
        let held = self.by_group.get(group.index()).copied().unwrap_or(0);
        free.saturating_sub(held.into())
    }

    /// Forgets the oldest runs, which the reader has taken: `frames` are left.
    #[inline]
    fn forget_taken(&mut self, frames: usize) {
        while self.frames > frames
            && let Some((group, taken)) = self.runs.pop_front()
        {
            self.frames -= usize::from(taken);
            if let Some(held) = self.by_group.get_mut(usize::from(group)) {
                *held -= u16::from(taken);
            }
        }
    }

    /// Adds a run that was sent, of `frames` frames.
    #[inline]
    pub(super) fn add(&mut self, group: GroupId, frames: usize) {
        let (index, count) = (group.index(), low8(frames));
        self.runs.push_back((low8(index), count));
        self.frames += usize::from(count);
        if let Some(held) = self.by_group.get_mut(index) {
            *held += u16::from(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{PortId, Priority, WorkerId};

    const ROOM: usize = 1_024;

    fn group(port: u8, priority: u8) -> GroupId {
        GroupId::new(WorkerId(3), PortId(port), Priority::new(priority))
    }

    /// Channel whose reader has taken so many frames.
    struct Channel {
        shares: Shares,
        inside: usize,
    }

    impl Channel {
        /// Sends runs of `frames` frames until no more of them fits; returns the number of frames sent.
        fn flood(&mut self, group: GroupId, frames: usize) -> usize {
            let before = self.inside;
            loop {
                let room = self.shares.room(group, ROOM - self.inside, self.inside);
                let count = frames.min(room);
                if count == 0 {
                    return self.inside - before;
                }
                self.shares.add(group, count);
                self.inside += count;
            }
        }
    }

    #[test]
    fn a_flood_leaves_room_for_other_ports_and_other_priorities() {
        for frames in [1, 7, 64] {
            let mut channel = Channel {
                shares: Shares::new(ROOM),
                inside: 0,
            };
            let first = channel.flood(group(0, 0), frames);
            assert!(first.abs_diff(ROOM / 2) <= frames, "{first}");
            let second = channel.flood(group(0, 1), frames);
            let third = channel.flood(group(31, 7), frames);
            assert!(second.abs_diff(ROOM / 4) <= frames, "{second}");
            assert!(third.abs_diff(ROOM / 8) <= frames, "{third}");
            assert_eq!(channel.flood(group(0, 0), frames), 0, "it has its share");
            // The reader takes the flood: then there is room again, and the shares become equal.
            channel.inside -= first;
            assert!(channel.flood(group(0, 0), frames) > 0);
            // An empty channel has no memory.
            channel.inside = 0;
            assert_eq!(channel.flood(group(31, 7), frames), first);
        }
    }
}
