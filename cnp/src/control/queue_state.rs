//! State of a watched queue as the control core reads it, and the part of its depth that a pause caused.
//!
//! While the peer pauses a queue, all that comes in waits, at whatever rate. That is no overload: senders cut for it would leave the link idle
//! for as long as they need to come back. So the bytes that the link could have carried meanwhile are taken off the depth that the detector
//! and the policies see, until the queue has once been shorter than those bytes; bytes that came in beyond the drain rate stay. The backlog itself is
//! left to ECN, which marks by the whole depth: a link that is paused again and again is slower than its rate, and NPCC does not know by
//! how much.

use npcc_pipeline::units::{BitRate, Nanos};

/// State of a watched queue at one evaluation. Made from a depth alone, it is that of a queue that is never paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueState {
    /// Wire bytes waiting in the switch. Frames that the device has taken are not among them.
    pub depth: u64,
    /// Total time for which the peer had the queue paused until now, including a pause that lasts.
    pub paused: Nanos,
    /// Ports whose senders we are pausing in this priority now, as a port set.
    pub xoff_asserted: u32,
    /// Wire bytes that ever entered the queue, including those that have left. `None` where nobody counts them, or nothing waits: the queue is then taken
    /// to drain at its configured rate.
    pub entered: Option<u64>,
}

impl From<u64> for QueueState {
    fn from(depth: u64) -> QueueState {
        QueueState {
            depth,
            ..QueueState::default()
        }
    }
}

/// Backlog that pauses of the queue caused.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PauseBacklog {
    bytes: u64,
    /// Total paused time at the previous evaluation, and the time of that evaluation.
    paused: Nanos,
    at: Nanos,
}

impl PauseBacklog {
    /// Takes the state of a queue that drains at this rate; returns the part of its depth that no pause caused.
    pub(super) fn update(&mut self, state: &QueueState, drain: BitRate, now: Nanos) -> u64 {
        let paused = state.paused.since(self.paused).min(now.since(self.at));
        (self.paused, self.at) = (state.paused, now);
        self.bytes = self.bytes.saturating_add(drain.bytes_in(paused));
        self.bytes = self.bytes.min(state.depth);
        state.depth - self.bytes
    }

    /// Returns true if part of the queue is backlog of a pause.
    pub(super) const fn is_any(&self) -> bool {
        self.bytes > 0
    }

    /// Subtracts the backlog of pauses from a depth read between two evaluations.
    pub(super) fn without(&self, depth: u64) -> u64 {
        depth.saturating_sub(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAIN: BitRate = BitRate(100_000_000_000);

    fn looks(pause_backlog: &mut PauseBacklog, looks: &[(u64, u64, u64)]) -> Vec<u64> {
        let look = |(us, depth, paused): &(u64, u64, u64)| {
            let state = QueueState {
                depth: *depth,
                paused: Nanos::from_micros(*paused),
                ..QueueState::default()
            };
            pause_backlog.update(&state, DRAIN, Nanos::from_micros(*us))
        };
        looks.iter().map(look).collect()
    }

    #[test]
    fn bytes_the_link_could_have_carried_are_pause_backlog_and_the_rest_is_not() {
        let mut pause_backlog = PauseBacklog::default();
        // 100G come in for 40 us of pause: 12,500 bytes a microsecond. Then 200G for 20 us of it.
        let seen = looks(
            &mut pause_backlog,
            &[
                (20, 0, 0),
                (40, 250_000, 20),
                (60, 500_000, 40),
                (80, 1_000_000, 60),
            ],
        );
        assert_eq!(seen, [0, 0, 0, 250_000]);
        assert!(pause_backlog.bytes > 0);
        // It ends; the queue falls below what the pause had kept, and grows again.
        let seen = looks(
            &mut pause_backlog,
            &[(100, 750_000, 60), (120, 300_000, 60), (140, 500_000, 60)],
        );
        assert_eq!(seen, [0, 0, 200_000]);
        assert_eq!(
            looks(&mut pause_backlog, &[(160, 0, 60), (180, 400_000, 60)]),
            [0, 400_000]
        );
        assert_eq!(pause_backlog.bytes, 0);
    }

    #[test]
    fn a_pause_reported_late_counts_for_at_most_the_time_since_the_last_evaluation() {
        let mut pause_backlog = PauseBacklog::default();
        let seen = looks(
            &mut pause_backlog,
            &[(20, 100_000, 0), (40, 900_000, 1_000_000)],
        );
        assert_eq!(seen, [100_000, 650_000]);
    }
}
