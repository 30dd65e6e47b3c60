//! Delays of the queues' peaks, each at the rate that the port had then.

use npcc_pipeline::units::{BitRate, Nanos, PRIORITIES};

/// Peak of a queue, and its delay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Peak {
    bytes: u64,
    delay: Nanos,
}

/// Peaks of all ports' queues.
#[derive(Debug, Default)]
pub struct Peaks(Vec<[Peak; PRIORITIES]>);

impl Peaks {
    /// Takes in the peaks of a port's queues, in wire bytes, and returns their delays. A peak that is as high as before keeps its delay; the
    /// delay of another is that at `rate`, which the port has now.
    pub(super) fn take_in(
        &mut self,
        port: usize,
        rate: BitRate,
        bytes: impl Iterator<Item = u64>,
    ) -> [Nanos; PRIORITIES] {
        if self.0.len() <= port {
            self.0.resize(port + 1, Default::default());
        }
        let Some(peaks) = self.0.get_mut(port) else {
            return [Nanos::ZERO; PRIORITIES];
        };
        for (peak, bytes) in peaks.iter_mut().zip(bytes) {
            if bytes != peak.bytes {
                let delay = rate.time_of(bytes);
                *peak = Peak { bytes, delay };
            }
        }
        peaks.map(|peak| peak.delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Earlier defect: `set ports.X.speed` made 636 ms of a minute ago 3.1 s.
    #[test]
    fn a_peak_keeps_the_delay_of_its_time() {
        let mut peaks = Peaks::default();
        let mut of = |rate, bytes: u64| {
            let bytes = [0, 0, 0, bytes].into_iter();
            peaks.take_in(1, BitRate(rate), bytes)[3]
        };
        assert_eq!(of(8_000_000, 1_000), Nanos(1_000_000));
        assert_eq!(of(1_000_000, 1_000), Nanos(1_000_000), "as high as before");
        assert_eq!(of(1_000_000, 2_000), Nanos(16_000_000), "a higher one");
        assert_eq!(of(1_000_000, 500), Nanos(4_000_000), "watermarks cleared");
        assert_eq!(of(0, 500), Nanos(4_000_000), "without a speed");
    }
}
