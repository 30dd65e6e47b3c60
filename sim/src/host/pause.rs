//! A host's response to PFC frames (802.1Qbb): stops a priority for the given quanta of 512 bit times of its link.

use npcc_pipeline::units::{Nanos, Priority};
use npcc_pipeline::wire::mac_control::Pfc;
use zerocopy::FromBytes;

use super::Gbps;
use crate::num::whole;

/// Pause state of a sender, per priority.
#[derive(Debug, Clone, Copy, Default)]
pub struct PauseState {
    until: [Nanos; 8],
    /// Total time that the pauses received until now have stopped or will stop a priority, summed over priorities.
    pub total: Nanos,
    /// Number of times a running priority was stopped.
    pub xoffs: u64,
}

impl PauseState {
    /// Applies a MAC control payload (the bytes after the EtherType); anything but PFC is ignored.
    pub fn apply(&mut self, payload: &[u8], line: Gbps, now: Nanos) {
        let Ok((frame, _)) = Pfc::ref_from_prefix(payload) else {
            return;
        };
        let Some(classes) = npcc_pipeline::wire::mac_control::pfc_classes(payload) else {
            return;
        };
        for priority in Priority::all_of(classes) {
            let quanta = frame.times[priority.index()].get();
            let until = now + Nanos(whole(f64::from(quanta) * 512.0 / line));
            let old = self.until[priority.index()];
            let left = old.since(now);
            if left == Nanos::ZERO && quanta > 0 {
                self.xoffs += 1;
            }
            self.total = self.total - left + until.since(now);
            self.until[priority.index()] = until;
        }
    }

    /// Returns the time until which this priority is stopped; in the past when it is not.
    #[must_use]
    pub const fn until(&self, priority: Priority) -> Nanos {
        self.until[priority.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_stops_for_its_quanta_and_zero_ends_it() {
        let mut state = PauseState::default();
        let mut frame = [0u8; 46];
        frame[..4].copy_from_slice(&[1, 1, 0, 0b1000]);
        frame[10..12].copy_from_slice(&100u16.to_be_bytes());
        state.apply(&frame, 100.0, Nanos(1_000));
        assert_eq!(state.until(Priority::new(3)), Nanos(1_000 + 512));
        assert_eq!(state.until(Priority::new(2)), Nanos::ZERO, "not named");
        frame[10..12].copy_from_slice(&[0, 0]);
        state.apply(&frame, 100.0, Nanos(1_200));
        assert_eq!(state.until(Priority::new(3)), Nanos(1_200));
        assert_eq!((state.total, state.xoffs), (Nanos(200), 1));
    }
}
