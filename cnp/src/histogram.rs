//! A distribution of times with one writer and any number of readers: 16 buckets for every doubling, so a quantile is right
//! to 6.25 %. No allocation after construction.

use npcc_pipeline::counters::{Counter, Gauge};
use npcc_pipeline::units::Nanos;

/// Buckets for every doubling.
const SUB: u64 = 1 << SUB_BITS;
const SUB_BITS: u32 = 4;
/// Up to 2^40 ns, 18 minutes.
const BUCKETS: usize = (40 - SUB_BITS as usize + 1) << SUB_BITS;

/// See the module's text.
#[derive(Debug)]
pub struct Histogram {
    buckets: Box<[Counter]>,
    max: Gauge,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            buckets: (0..BUCKETS).map(|_| Counter::default()).collect(),
            max: Gauge::default(),
        }
    }
}

impl Histogram {
    /// Counts one time. The writer only.
    pub fn record(&self, time: Nanos) {
        if let Some(bucket) = self.buckets.get(bucket_of(time.0)) {
            bucket.add(1);
        }
        self.max.raise(time.0);
    }

    /// Times counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(Counter::get).sum()
    }

    /// The longest.
    #[must_use]
    pub fn max(&self) -> Nanos {
        Nanos(self.max.get())
    }

    /// The time that `percent` of all do not exceed, rounded up to its bucket's end; zero when nothing was counted.
    #[must_use]
    pub fn percentile(&self, percent: u8) -> Nanos {
        let wanted = (u128::from(self.count()) * u128::from(percent.min(100))).div_ceil(100);
        let mut seen = 0u128;
        for (index, bucket) in self.buckets.iter().enumerate() {
            seen += u128::from(bucket.get());
            if wanted > 0 && seen >= wanted {
                return Nanos(end_of(index).min(self.max.get()));
            }
        }
        Nanos::ZERO
    }
}

fn bucket_of(value: u64) -> usize {
    let doubling = (value | SUB).ilog2() - SUB_BITS;
    let index = u64::from(doubling) * SUB + (value >> doubling);
    usize::try_from(index)
        .unwrap_or(usize::MAX)
        .min(BUCKETS - 1)
}

/// The largest value of a bucket.
fn end_of(index: usize) -> u64 {
    let index = u64::try_from(index).unwrap_or(u64::MAX);
    if index < 2 * SUB {
        return index;
    }
    let doubling = index / SUB - 1;
    let step = index % SUB + SUB;
    ((step + 1) << doubling) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_ends_at_most_a_sixteenth_above_its_values(value in 0u64..1 << 40) {
            let end = end_of(bucket_of(value));
            prop_assert!(end >= value && end - value <= value / 16, "{value} in a bucket up to {end}");
        }
    }

    #[test]
    fn percentiles_of_a_line() {
        let histogram = Histogram::default();
        assert_eq!(histogram.percentile(99), Nanos::ZERO);
        (1..=100u64).for_each(|us| histogram.record(Nanos::from_micros(us)));
        let p50 = histogram.percentile(50).0;
        assert!((50_000..=53_200).contains(&p50), "{p50}");
        assert_eq!(histogram.percentile(100), Nanos::from_micros(100));
        assert_eq!(
            (histogram.count(), histogram.max()),
            (100, Nanos::from_micros(100))
        );
    }
}
