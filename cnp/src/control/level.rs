//! What the control core is told of a watched queue at each look, and what of its depth is the doing of a pause.
//!
//! While the peer pauses a queue, all that comes in waits, at whatever rate. That is no overload: senders cut for it would leave the link idle
//! for as long as they need to come back. So the bytes that the link could have carried meanwhile are taken off the depth that the detector
//! and the policies see, until the queue has been shorter than they are; what came in beyond the drain rate stays. The backlog itself is
//! left to ECN, which marks by the whole depth: a link that is paused again and again is slower than its rate, and NPCC does not know by
//! how much.

use npcc_pipeline::units::{BitRate, Nanos};

/// A watched queue at a look. Of a depth alone it is one that is never paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueLevel {
    /// Wire bytes that wait, those still in the device included.
    pub depth: u64,
    /// Time the peer had the queue paused until now, all together; a pause that lasts included.
    pub paused: Nanos,
    /// Ports whose senders we have paused in this priority now, as a port set.
    pub stopped: u32,
    /// Wire bytes that ever entered it, those that are gone included; none where nobody counts them, or nothing waits: its rate is then taken
    /// for what it gets.
    pub entered: Option<u64>,
}

impl From<u64> for QueueLevel {
    fn from(depth: u64) -> QueueLevel {
        QueueLevel {
            depth,
            ..QueueLevel::default()
        }
    }
}

/// The part of a queue that pauses made.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Held {
    bytes: u64,
    /// Time paused until the look before, and when that was.
    paused: Nanos,
    at: Nanos,
}

impl Held {
    /// Takes a look at a queue that drains at this rate; says how much of its depth is not of a pause.
    pub(super) fn take(&mut self, level: &QueueLevel, drain: BitRate, now: Nanos) -> u64 {
        let paused = level.paused.since(self.paused).min(now.since(self.at));
        (self.paused, self.at) = (level.paused, now);
        self.bytes = self.bytes.saturating_add(drain.bytes_in(paused));
        self.bytes = self.bytes.min(level.depth);
        level.depth - self.bytes
    }

    /// Whether some of the queue is of a pause.
    pub(super) const fn is_any(&self) -> bool {
        self.bytes > 0
    }

    /// The same between two looks.
    pub(super) fn without(&self, depth: u64) -> u64 {
        depth.saturating_sub(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAIN: BitRate = BitRate(100_000_000_000);

    fn looks(held: &mut Held, looks: &[(u64, u64, u64)]) -> Vec<u64> {
        let look = |(us, depth, paused): &(u64, u64, u64)| {
            let level = QueueLevel {
                depth: *depth,
                paused: Nanos::from_micros(*paused),
                ..QueueLevel::default()
            };
            held.take(&level, DRAIN, Nanos::from_micros(*us))
        };
        looks.iter().map(look).collect()
    }

    #[test]
    fn what_the_link_could_have_carried_is_the_pauses_and_what_is_beyond_it_is_not() {
        let mut held = Held::default();
        // 100G come in for 40 us of pause: 12,500 bytes a microsecond. Then 200G for 20 us of it.
        let seen = looks(
            &mut held,
            &[
                (20, 0, 0),
                (40, 250_000, 20),
                (60, 500_000, 40),
                (80, 1_000_000, 60),
            ],
        );
        assert_eq!(seen, [0, 0, 0, 250_000]);
        assert!(held.bytes > 0);
        // It ends; the queue falls below what the pause had kept, and grows again.
        let seen = looks(
            &mut held,
            &[(100, 750_000, 60), (120, 300_000, 60), (140, 500_000, 60)],
        );
        assert_eq!(seen, [0, 0, 200_000]);
        assert_eq!(
            looks(&mut held, &[(160, 0, 60), (180, 400_000, 60)]),
            [0, 400_000]
        );
        assert_eq!(held.bytes, 0);
    }

    #[test]
    fn a_pause_that_is_told_late_counts_for_no_more_than_the_time_since_the_look_before() {
        let mut held = Held::default();
        let seen = looks(&mut held, &[(20, 100_000, 0), (40, 900_000, 1_000_000)]);
        assert_eq!(seen, [100_000, 650_000]);
    }
}
