//! Readings and time from which the shown counters and peaks count: what they were at the last `clear`.

use std::collections::HashMap;
use std::time::SystemTime;

use super::PortReading;

/// Baselines of all users. Only clients of the socket that may change things have any.
#[derive(Debug)]
pub struct Baselines {
    counters: HashMap<u32, Vec<Option<PortReading>>>,
    /// Time since which the user watermarks count: one for all users.
    pub(super) watermarks_since: SystemTime,
}

impl Default for Baselines {
    /// Returns those of a start: nobody has cleared anything.
    fn default() -> Baselines {
        Baselines {
            counters: HashMap::new(),
            watermarks_since: SystemTime::now(),
        }
    }
}

impl Baselines {
    /// Sets a user's baselines of these ports, given by index; those of other ports and users stay.
    pub(super) fn set(&mut self, user: u32, readings: Vec<(usize, PortReading)>) {
        let ports = self.counters.entry(user).or_default();
        for (index, reading) in readings {
            ports.resize_with(ports.len().max(index + 1), || None);
            if let Some(baseline) = ports.get_mut(index) {
                *baseline = Some(reading);
            }
        }
    }

    /// Returns a user's baselines by port: `None`, or no entry, for one that it has not cleared.
    pub(super) fn of(&self, user: u32) -> Vec<Option<PortReading>> {
        self.counters.get(&user).cloned().unwrap_or_default()
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
