//! Counters from which each user counts: what they were at its last `clear counters`.

use std::collections::HashMap;

use super::PortReading;

/// Baselines of all users. Only clients of the socket that may change things have any.
#[derive(Debug, Default)]
pub struct Baselines(HashMap<u32, Vec<Option<PortReading>>>);

impl Baselines {
    /// Sets a user's baselines of these ports, given by index; those of other ports and users stay.
    pub(super) fn set(&mut self, user: u32, readings: Vec<(usize, PortReading)>) {
        let ports = self.0.entry(user).or_default();
        for (index, reading) in readings {
            ports.resize_with(ports.len().max(index + 1), || None);
            if let Some(baseline) = ports.get_mut(index) {
                *baseline = Some(reading);
            }
        }
    }

    /// Returns a user's baselines by port: `None`, or no entry, for one that it has not cleared.
    pub(super) fn of(&self, user: u32) -> Vec<Option<PortReading>> {
        self.0.get(&user).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One user's `clear counters` once took the evidence from all others.
    #[test]
    fn a_user_clears_its_own_view_and_a_port_alone() {
        let reading = |frames: u64| {
            let mut reading = PortReading::default();
            reading.counts.rx.packets = frames;
            reading
        };
        let of = |baselines: &Baselines, user| -> Vec<Option<u64>> {
            let ports = baselines.of(user).into_iter();
            let frames = |port: PortReading| port.counts.rx.packets;
            ports.map(|port| port.map(frames)).collect()
        };
        let mut baselines = Baselines::default();
        baselines.set(7, vec![(1, reading(5))]);
        assert_eq!(of(&baselines, 7), [None, Some(5)]);
        assert_eq!(of(&baselines, 8), []);
        baselines.set(8, vec![(0, reading(9)), (1, reading(6))]);
        baselines.set(7, vec![(0, reading(9))]);
        assert_eq!(of(&baselines, 7), [Some(9), Some(5)]);
        assert_eq!(of(&baselines, 8), [Some(9), Some(6)]);
    }
}
