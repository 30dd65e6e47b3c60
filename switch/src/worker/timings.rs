//! Times that workers take and the management thread keeps, as distributions (HDR histograms, three digits).
//!
//! Law: a worker puts a time into a ring and never waits. A ring that is full loses the time and counts it.

use hdrhistogram::Histogram;
use npcc_pipeline::units::Nanos;
use rtrb::{Consumer, Producer, RingBuffer};

/// Times on the way from one worker: the management thread looks every 10 ms.
const RING: usize = 65_536;
/// The longest that is told apart, in ns: longer ones count as this, 17 s.
const LONGEST: u64 = 1 << 34;

npcc_pipeline::named! {
    /// What took that long.
    pub enum What {
        /// From the enqueue that crosses `shallow` to the CNP in the device's hands; the filter's ticks are part of it.
        Shallow = "shallow",
        /// From the enqueue that crosses `hard`, where no filter applies, to the CNP in the device's hands.
        Hard = "hard",
        /// From the moment a frame of a paced source was due to the device that takes it.
        Latency = "latency",
    }
}

/// One time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    what: What,
    time: Nanos,
}

/// A worker's end.
#[derive(Debug)]
pub struct Times {
    ring: Producer<Timing>,
}

impl Times {
    /// Tells a time; whether it was taken.
    #[inline]
    pub fn tell(&mut self, what: What, time: Nanos) -> bool {
        self.ring.push(Timing { what, time }).is_ok()
    }
}

/// Both ends of one worker's ring.
#[must_use]
pub fn ring() -> (Times, Consumer<Timing>) {
    let (ring, consumer) = RingBuffer::new(RING);
    (Times { ring }, consumer)
}

/// A distribution, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Distribution {
    /// Times.
    pub count: u64,
    /// Half of them took no longer.
    pub p50: u64,
    /// 99 % took no longer.
    pub p99: u64,
    /// 99.9 % took no longer.
    pub p999: u64,
    /// The longest.
    pub max: u64,
}

/// The management thread's end: what all workers told.
#[derive(Debug)]
pub struct Timings {
    rings: Vec<Consumer<Timing>>,
    all: [Histogram<u64>; What::COUNT],
}

impl Timings {
    /// Nothing told yet.
    ///
    /// # Errors
    /// When memory is short.
    pub fn new(
        rings: Vec<Consumer<Timing>>,
    ) -> Result<Timings, hdrhistogram::errors::CreationError> {
        let one = || Histogram::new_with_bounds(1, LONGEST, 3);
        Ok(Timings {
            rings,
            all: [one()?, one()?, one()?],
        })
    }

    /// Takes in what the workers told since.
    pub fn take_in(&mut self) {
        for ring in &mut self.rings {
            while let Ok(Timing { what, time }) = ring.pop() {
                if let Some(histogram) = self.all.get_mut(what.index()) {
                    histogram.saturating_record(time.0.max(1));
                }
            }
        }
    }

    /// Starts all distributions anew.
    pub fn clear(&mut self) {
        self.take_in();
        self.all.iter_mut().for_each(Histogram::reset);
    }

    /// How many times of one lie in each bin up to and with these bounds, the last bin for all longer ones; and the sum of all, in ns.
    #[must_use]
    pub fn spread(&self, what: What, bounds: &[u64]) -> (Vec<u64>, u64) {
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

    /// What is known of one.
    #[must_use]
    pub fn of(&self, what: What) -> Distribution {
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
    fn each_distribution_has_the_times_that_were_told_of_it() {
        let (mut times, consumer) = ring();
        let mut timings = Timings::new(vec![consumer]).unwrap();
        (1..=1000).for_each(|us| assert!(times.tell(What::Hard, Nanos::from_micros(us))));
        times.tell(What::Latency, Nanos(u64::MAX));
        timings.take_in();
        let hard = timings.of(What::Hard);
        let near = |got: u64, us: u64| got >= us * 1_000 && got - us * 1_000 <= us;
        assert!(near(hard.p50, 500) && near(hard.p99, 990), "{hard:?}");
        assert!(near(hard.p999, 999) && near(hard.max, 1_000), "{hard:?}");
        assert_eq!((hard.count, timings.of(What::Latency).count), (1000, 1));
        assert!(timings.of(What::Latency).max >= LONGEST - LONGEST / 1_000);
        assert_eq!(timings.of(What::Shallow), Distribution::default());
        // Each time counts as the highest that is not told apart from it: three digits.
        let (bins, sum) = timings.spread(What::Hard, &[100_500, 900_900]);
        assert_eq!(bins, [100, 800, 100]);
        assert!((500_500_000..501_000_000).contains(&sum), "{sum}");
        timings.clear();
        assert_eq!(timings.spread(What::Hard, &[5]), (vec![0, 0], 0));
        assert_eq!(timings.of(What::Hard), Distribution::default());
    }

    #[test]
    fn a_full_ring_loses_times_and_keeps_nobody_waiting() {
        let (mut times, consumer) = ring();
        let mut timings = Timings::new(vec![consumer]).unwrap();
        let told = (0..RING + 10).filter(|_| times.tell(What::Shallow, Nanos(5)));
        assert_eq!(told.count(), RING);
        timings.take_in();
        assert_eq!(timings.of(What::Shallow).count, RING as u64);
    }
}
