//! Measurements recorded while a run goes on.

use std::net::Ipv4Addr;

use npcc_pipeline::units::Nanos;

/// Maximum number of points of the curves.
pub(crate) const POINTS: u64 = 600;
/// Resolution of the distribution of the depth: about one full frame.
const STEP: u64 = 4_096;

/// One point of a run's curves.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// Time since the start of the traffic.
    pub at: Nanos,
    /// Maximum depth of the reported queue since the last point, that at the last point included, in wire bytes.
    pub depth: u64,
    /// Sum of the senders' rates, in Gb/s.
    pub offered: f64,
    /// Throughput of the reported link since the last point, in Gb/s.
    pub through: f64,
    /// Total time hosts were paused until now, summed over the hosts.
    pub paused: Nanos,
    /// CNPs that reached senders until now.
    pub cnps: u64,
}

/// Measurements of a run in progress.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// Port toward each host, by switch.
    pub(crate) routes: Vec<Vec<u8>>,
    pub(crate) started: Option<Nanos>,
    pub(crate) peak: u64,
    /// Maximum depth since the last point of the curves.
    pub(crate) high: u64,
    /// Depth of the reported queue since `depth_since`, and the integral of the depth until then, in bytes times ns.
    pub(crate) depth: u64,
    pub(crate) depth_since: Nanos,
    pub(crate) area: u128,
    /// Time in ns at each depth since the start, in steps of [`STEP`] bytes.
    pub(crate) times: Vec<u64>,
    pub(crate) kmin: u64,
    pub(crate) exceeded: bool,
    pub(crate) drained_at: Option<Nanos>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) through_at_start: u64,
    pub(crate) through_before: u64,
    pub(crate) utilisation: Option<f64>,
    pub(crate) goodput_since: Nanos,
    /// Start of the last flow; packets that each has delivered when the window began; time from the start until all were near their
    /// fair share.
    pub(crate) joined: Nanos,
    pub(crate) window: Vec<u64>,
    pub(crate) converged: Option<Nanos>,
    /// Completion time of each burst, by group.
    pub(crate) bursts: Vec<Vec<Nanos>>,
    /// Shortest possible completion time of a burst, on otherwise idle links, by group.
    pub(crate) ideals: Vec<Option<Nanos>>,
}

/// Returns the address of host `index`: 10.x.y.z counted up from 10.0.0.1.
pub(crate) const fn address(index: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0001 + index)
}

impl Record {
    /// Returns the egress port of a frame under the current routes; `None` for MAC control.
    pub(crate) fn route_of(&self, switch: u32, frame: &[u8]) -> Option<u8> {
        if frame[12..14] != [8, 0] {
            return None;
        }
        let host = u32::from_be_bytes([frame[30], frame[31], frame[32], frame[33]]) - 0x0a00_0001;
        self.routes[switch as usize].get(host as usize).copied()
    }

    /// Starts the measurements.
    pub(crate) fn start(&mut self, through: u64, now: Nanos) {
        self.started = Some(now);
        (self.through_at_start, self.through_before) = (through, through);
        (self.high, self.area, self.depth_since) = (self.depth, 0, now);
    }

    /// Records the depth of the reported queue after a frame joined or left it. The queue has drained when it is at `kmin` or below
    /// after its peak.
    pub(crate) fn depth(&mut self, depth: u64, now: Nanos) {
        if self.started.is_none() {
            self.depth = depth;
            return;
        }
        self.lasted(now);
        self.depth = depth;
        if depth > self.peak {
            self.peak = depth;
            self.drained_at = None;
        }
        self.high = self.high.max(depth);
        if depth > self.kmin {
            self.exceeded = true;
        } else if self.exceeded && self.drained_at.is_none() {
            self.drained_at = Some(now);
        }
    }

    /// Returns the maximum depth since the last call, and starts the next interval from the depth now.
    pub(crate) fn take_high(&mut self) -> u64 {
        std::mem::replace(&mut self.high, self.depth)
    }

    /// Counts the time for which the depth has been what it is.
    fn lasted(&mut self, now: Nanos) {
        let time = now.since(self.depth_since).0;
        self.area += u128::from(self.depth) * u128::from(time);
        let at = usize::try_from(self.depth / STEP).unwrap_or(usize::MAX);
        if at >= self.times.len() {
            self.times.resize(at + 1, 0);
        }
        self.times[at] += time;
        self.depth_since = now;
    }

    /// Returns the mean depth over the time since the start, and the depth that it did not exceed for 99 % of that time.
    pub(crate) fn mean_and_p99(&mut self, now: Nanos) -> (u64, u64) {
        self.lasted(now);
        let time = self.times.iter().sum::<u64>().max(1);
        let mean = u64::try_from(self.area / u128::from(time)).unwrap_or(u64::MAX);
        // From the deepest down, to where the queue was for the last hundredth of the time.
        let mut left = time / 100;
        let below = self.times.iter().rposition(|at| {
            let is_rest = *at > left;
            left = left.saturating_sub(*at);
            is_rest
        });
        let p99 = below.map_or(0, |at| (at as u64 * STEP).min(self.peak));
        (mean, p99)
    }

    /// Returns the share of the time since the start in which the queue was above `kmin`, after [`Record::mean_and_p99`].
    pub(crate) fn above(&self) -> f64 {
        let time: u64 = self.times.iter().sum();
        let depths = self.times.iter().zip(0u64..);
        let above = depths.filter(|(_, at)| at * STEP > self.kmin);
        above.map(|(time, _)| *time).sum::<u64>() as f64 / time.max(1) as f64
    }

    /// Records that a burst of this group arrived whole, and the time it took.
    pub(crate) fn completed(&mut self, group: usize, time: Nanos) {
        self.bursts[group].push(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_by_the_time_that_it_lasts() {
        let mut record = Record::default();
        record.depth(500, Nanos(0));
        record.start(0, Nanos(1_000));
        // 500 bytes for 100 ns, 1,500 for 300 and none for 600.
        record.depth(1_500, Nanos(1_100));
        record.depth(0, Nanos(1_400));
        assert_eq!((record.peak, record.take_high()), (1_500, 1_500));
        assert_eq!(record.mean_and_p99(Nanos(2_000)), (500, 0));
    }

    #[test]
    fn the_deepest_hundredth_of_the_time_is_beyond_p99() {
        let mut record = Record::default();
        record.start(0, Nanos(0));
        for (from, depth) in [(0, 2), (900, 5), (980, 7), (991, 9)] {
            record.depth(depth * STEP, Nanos(from));
        }
        // 9 ns at 9 steps, 11 at 7.
        assert_eq!(record.mean_and_p99(Nanos(1_000)).1, 7 * STEP);
        record.kmin = 5 * STEP;
        assert!((record.above() - 0.02).abs() < 1e-12, "above, not at it");
    }

    #[test]
    fn an_interval_starts_at_the_depth_now() {
        let mut record = Record::default();
        record.start(0, Nanos(0));
        record.depth(3_000, Nanos(10));
        assert_eq!(record.take_high(), 3_000);
        // Frames leave, and none joins.
        record.depth(2_000, Nanos(20));
        record.depth(1_000, Nanos(30));
        assert_eq!((record.take_high(), record.take_high()), (3_000, 1_000));
    }
}
