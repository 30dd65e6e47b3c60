//! Timings that workers take and the management thread keeps, as distributions (HDR histograms, three digits).
//!
//! Law: a worker puts a timing into a ring and never waits. If the ring is full the timing is lost.

use hdrhistogram::Histogram;
use npcc_pipeline::units::Nanos;
use rtrb::{Consumer, Producer, RingBuffer};

/// Capacity of one worker's ring: the management thread drains it every 10 ms.
const RING: usize = 65_536;
/// Longest timing that is distinguished, in ns: longer ones count as this, 17 s.
const LONGEST: u64 = 1 << 34;

npcc_pipeline::named! {
    /// Kind of a timing.
    pub enum TimingKind {
        /// From the enqueue that crosses `shallow` to the offer of the first CNP after it to the device; with policy `npcc` its filter's ticks included.
        Shallow = "shallow",
        /// From the enqueue that crosses `hard`, where policy `npcc` does not filter, to the offer of the first CNP after it to the device.
        Hard = "hard",
        /// From the time when a frame of a paced source was due to the device taking it.
        Latency = "latency",
    }
}

/// One timing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    what: TimingKind,
    time: Nanos,
}

/// Worker's end of the ring.
#[derive(Debug)]
pub struct Times {
    ring: Producer<Timing>,
}

impl Times {
    /// Records a timing; returns true if the ring took it.
    #[inline]
    pub fn tell(&mut self, what: TimingKind, time: Nanos) -> bool {
        self.ring.push(Timing { what, time }).is_ok()
    }
}

/// Makes one worker's ring.
#[must_use]
pub fn ring() -> (Times, Consumer<Timing>) {
    let (ring, consumer) = RingBuffer::new(RING);
    (Times { ring }, consumer)
}

/// Distribution of timings, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Distribution {
    /// Number of timings.
    pub count: u64,
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Maximum.
    pub max: u64,
}

/// Management thread's end of the rings, with the distributions of all workers.
#[derive(Debug)]
pub struct Timings {
    rings: Vec<Consumer<Timing>>,
    all: [Histogram<u64>; TimingKind::COUNT],
}

impl Timings {
    /// Starts with empty distributions.
    ///
    /// # Errors
    /// Fails if memory is short.
    pub fn new(
        rings: Vec<Consumer<Timing>>,
    ) -> Result<Timings, hdrhistogram::errors::CreationError> {
        let one = || Histogram::new_with_bounds(1, LONGEST, 3);
        Ok(Timings {
            rings,
            all: [one()?, one()?, one()?],
        })
    }

    /// Drains the workers' rings.
    pub fn take_in(&mut self) {
        for ring in &mut self.rings {
            while let Ok(Timing { what, time }) = ring.pop() {
                if let Some(histogram) = self.all.get_mut(what.index()) {
                    histogram.saturating_record(time.0.max(1));
                }
            }
        }
    }

    /// Resets all distributions.
    pub fn clear(&mut self) {
        self.take_in();
        self.all.iter_mut().for_each(Histogram::reset);
    }

    /// Returns the number of timings of a kind in each bin, with inclusive upper bounds and a last bin for all longer ones, and the sum of
    /// all, in ns.
    #[must_use]
    pub fn spread(&self, what: TimingKind, bounds: &[u64]) -> (Vec<u64>, u64) {
        let mut bins = vec![0; bounds.len() + 1];
        let mut sum = 0u64;
        let recorded = self.all.get(what.index()).into_iter();
        for step in recorded.flat_map(Histogram::iter_recorded) {
            let (time, times) = (step.value_iterated_to(), step.count_since_last_iteration());
            if let Some(bin) = bins.get_mut(bounds.partition_point(|bound| *bound < time)) {
                *bin += times;
            }
            sum = sum.saturating_add(time.saturating_mul(times));
        }
        (bins, sum)
    }

    /// Returns the distribution of a kind.
    #[must_use]
    pub fn of(&self, what: TimingKind) -> Distribution {
        let Some(histogram) = self.all.get(what.index()).filter(|one| !one.is_empty()) else {
            return Distribution::default();
        };
        Distribution {
            count: histogram.len(),
            p50: histogram.value_at_quantile(0.5),
            p99: histogram.value_at_quantile(0.99),
            p999: histogram.value_at_quantile(0.999),
            max: histogram.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_distribution_has_the_times_recorded_of_its_kind() {
        let (mut times, consumer) = ring();
        let mut timings = Timings::new(vec![consumer]).unwrap();
        (1..=1000).for_each(|us| assert!(times.tell(TimingKind::Hard, Nanos::from_micros(us))));
        times.tell(TimingKind::Latency, Nanos(u64::MAX));
        timings.take_in();
        let hard = timings.of(TimingKind::Hard);
        let near = |got: u64, us: u64| got >= us * 1_000 && got - us * 1_000 <= us;
        assert!(near(hard.p50, 500) && near(hard.p99, 990), "{hard:?}");
        assert!(near(hard.p999, 999) && near(hard.max, 1_000), "{hard:?}");
        assert_eq!(
            (hard.count, timings.of(TimingKind::Latency).count),
            (1000, 1)
        );
        assert!(timings.of(TimingKind::Latency).max >= LONGEST - LONGEST / 1_000);
        assert_eq!(timings.of(TimingKind::Shallow), Distribution::default());
        // Each timing counts as the highest value of its histogram step: three digits.
        let (bins, sum) = timings.spread(TimingKind::Hard, &[100_500, 900_900]);
        assert_eq!(bins, [100, 800, 100]);
        assert!((500_500_000..501_000_000).contains(&sum), "{sum}");
        timings.clear();
        assert_eq!(timings.spread(TimingKind::Hard, &[5]), (vec![0, 0], 0));
        assert_eq!(timings.of(TimingKind::Hard), Distribution::default());
    }

    #[test]
    fn a_full_ring_loses_times_and_keeps_nobody_waiting() {
        let (mut times, consumer) = ring();
        let mut timings = Timings::new(vec![consumer]).unwrap();
        let reported = (0..RING + 10).filter(|_| times.tell(TimingKind::Shallow, Nanos(5)));
        assert_eq!(reported.count(), RING);
        timings.take_in();
        assert_eq!(timings.of(TimingKind::Shallow).count, RING as u64);
    }
}
