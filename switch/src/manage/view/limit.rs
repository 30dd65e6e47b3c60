//! Limit of events that hosts cause, so that they displace no others.

use npcc_pipeline::units::Nanos;

/// Time in which so many events are given.
const WINDOW: Nanos = Nanos::from_millis(60_000);
/// Most events in that time: the journal keeps 256 of all kinds.
const MOST: u32 = 16;

/// Limit of a kind of event.
#[derive(Debug, Default)]
pub struct Limit {
    began: Nanos,
    given: u32,
}

impl Limit {
    /// Returns true if an event may be given at `now`.
    pub(super) fn admits(&mut self, now: Nanos) -> bool {
        if now.since(self.began) >= WINDOW {
            (self.began, self.given) = (now, 0);
        }
        let admitted = self.given < MOST;
        self.given += u32::from(admitted);
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_hosts_are_so_many_a_minute() {
        let mut limit = Limit::default();
        let mut given = |from: u64| {
            let times = (0..100).map(|n| Nanos(from + n));
            times.filter(|now| limit.admits(*now)).count()
        };
        let start = 7 * WINDOW.0;
        assert_eq!(given(start), 16);
        assert_eq!(given(start + WINDOW.0 - 100), 0);
        assert_eq!(given(start + WINDOW.0), 16);
    }
}
