//! Arrivals by port, and which links are full: packets that come by those may be held back before they get here.
//!
//! A sender whose flow shares a full link (its host's link with the host's other flows, or a leaf's uplink with other hosts') may be allowed to
//! send more than is seen of it, so that a CNP takes effect before any effect can be seen.

use npcc_pipeline::units::{BitRate, Nanos, PortId};

/// Shortest time over which arrivals are counted: over less, a burst of frames on a fast link says nothing.
const SHORTEST: Nanos = Nanos::from_micros(10);
/// Share of a link's rate that makes it full, in quarters: small frames leave out much of it for the gaps between them.
const FULL: u64 = 3;
/// Limit on what a flow is taken to be allowed to send while its link is full: 8 times the bytes that it sends, in 65,536ths of them. Three more cuts
/// by half then show that its sender does not respond.
const MOST: u32 = 8 << 16;
/// Number of counts that are kept.
const COUNTS: usize = 16;

/// Total bytes of a port at each count, the latest first.
type Totals = [u64; COUNTS];

/// Recent arrivals by port.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// Wire rate of each port (0 where it is not known), and its totals.
    ports: Box<[(BitRate, Totals)]>,
    /// Times of the counts, the latest first.
    times: [Nanos; COUNTS],
}

impl Arrivals {
    /// Makes the counts of ports with these wire rates, 0 for one whose rate is not known.
    pub(super) fn new(rates: &[BitRate]) -> Arrivals {
        Arrivals {
            ports: rates.iter().map(|rate| (*rate, [0; COUNTS])).collect(),
            times: [Nanos::ZERO; COUNTS],
        }
    }

    /// Takes the total bytes that have come by each port.
    pub(crate) fn count(&mut self, now: Nanos, total: impl Fn(PortId) -> u64) {
        let [latest, ..] = self.times;
        if now.since(latest) < SHORTEST {
            return;
        }
        put(&mut self.times, now);
        for ((_, totals), id) in self.ports.iter_mut().zip((0u8..).map(PortId)) {
            put(totals, total(id));
        }
    }

    /// Bytes that came by a port over a time, as far as counts go back, if its link was full in one of them: frames that wait before it come later.
    fn of_full_link(&self, port: PortId, time: Nanos) -> Option<u64> {
        let (rate, totals) = self.ports.get(port.index())?;
        let mut spans = self.times.windows(2).zip(totals.windows(2));
        let is_full = |(times, totals): (&[Nanos], &[u64])| {
            let (&[now, then], &[all, before]) = (times, totals) else {
                return false;
            };
            let came = all.saturating_sub(before);
            rate.0 > 0 && came > 0 && came * 4 >= rate.bytes_in(now.since(then)) * FULL
        };
        if !spans.any(is_full) {
            return None;
        }
        let (now, all) = (self.times.first()?, totals.first()?);
        let counts = || self.times.iter().zip(totals).skip(1);
        let far = counts().find(|(then, _)| now.since(**then) >= time);
        let (then, before) = far.or_else(|| counts().last())?;
        let passed = u128::from(now.since(*then).0.max(1));
        let came = u128::from(all.saturating_sub(*before)) * u128::from(time.0) / passed;
        u64::try_from(came).ok()
    }
}

impl Arrivals {
    /// Bytes that a flow may have been allowed to send in a time, in 65,536ths of the `bytes` it sent: all that came by its port, if the port's link
    /// was full; else no more than it sent.
    pub(super) fn allowed(&self, port: PortId, bytes: u64, time: Nanos) -> u32 {
        let came = u128::from(self.of_full_link(port, time).unwrap_or(0));
        let share = (came << 16) / u128::from(bytes.max(1));
        u32::try_from(share)
            .unwrap_or(u32::MAX)
            .clamp(1 << 16, MOST)
    }
}

/// Puts a value at the front; the last one is dropped.
fn put<T: Copy>(all: &mut [T; COUNTS], value: T) {
    all.rotate_right(1);
    let [first, ..] = all;
    *first = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rate of 100 Gb/s: 12,500 bytes a microsecond.
    const RATE: BitRate = BitRate(100_000_000_000);

    /// Bytes reported of a full link after counts 20 us apart of what came.
    fn after(came: &[u64]) -> Option<u64> {
        let mut arrivals = Arrivals::new(&[RATE, BitRate(0)]);
        let (mut total, mut now) = (0, Nanos::ZERO);
        for came in came {
            (total, now) = (total + came, now + Nanos::from_micros(20));
            arrivals.count(now, |_| total);
            // Too soon after it, and nothing came.
            arrivals.count(now + Nanos(9_999), |_| total);
        }
        let one = |port| arrivals.of_full_link(PortId(port), Nanos::from_micros(100));
        // The rate of port 1 is not known, and there is no port 2.
        assert_eq!((one(1), one(2)), (None, None));
        one(0)
    }

    #[test]
    fn a_link_is_full_once_most_of_it_was_in_use_until_that_is_forgotten() {
        assert_eq!(after(&[187_000; 9]), None);
        assert_eq!(after(&[188_000; 9]), Some(940_000));
        assert_eq!(after(&[]), None);
        let mut came = vec![1, 1, 250_000, 250_000, 0];
        assert_eq!(after(&came), Some(500_002));
        came.extend([0; 12]);
        assert_eq!(after(&came), Some(0));
        came.extend([0; 2]);
        assert_eq!(after(&came), None);
        // Counts that cover less than the time are scaled up to it.
        assert_eq!(after(&[250_000, 250_000, 0]), Some(833_333));
    }

    #[test]
    fn what_a_full_link_allows_is_what_others_take_of_it_beside_the_flow() {
        let mut arrivals = Arrivals::new(&[RATE]);
        for step in 1..=10 {
            arrivals.count(Nanos::from_micros(20 * step), |_| 250_000 * step);
        }
        let allowed = |bytes| arrivals.allowed(PortId(0), bytes, Nanos::from_micros(40));
        let shares = [500_000, 250_000, 600_000, 1, 0].map(allowed);
        assert_eq!(shares, [1 << 16, 2 << 16, 1 << 16, MOST, MOST]);
    }
}
