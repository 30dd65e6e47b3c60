//! A TIMELY-like sender (Mittal et al., SIGCOMM'15): the rate follows the gradient of the round-trip time. For comparison.
//!
//! Delays are counted above the shortest round trip seen, so that one set of thresholds serves every distance.

use npcc_pipeline::units::Nanos;

use super::{Gbps, RateControl};

/// Queueing delay, in ns, below which the rate increases additively.
const LOW: f64 = 50_000.0;
/// Queueing delay, in ns, above which the rate decreases multiplicatively.
const HIGH: f64 = 500_000.0;
/// EWMA weight of a new RTT difference.
const WEIGHT: f64 = 0.46;
/// Multiplicative decrease factor.
const BETA: f64 = 0.26;
/// Lower bound, in ns, of the round trip that the gradient is divided by.
const MIN_RTT: f64 = 20_000.0;
/// Number of increases without a decrease before steps grow fivefold.
const HYPER_AFTER: u32 = 5;

/// State of one queue pair of a TIMELY-like sender.
#[derive(Debug, Clone)]
pub struct Timely {
    line: Gbps,
    rate: Gbps,
    base: f64,
    last: Option<f64>,
    difference: f64,
    streak: u32,
    updated: Nanos,
}

impl Timely {
    /// Creates a queue pair at line rate.
    #[must_use]
    pub const fn new(line: Gbps) -> Timely {
        Timely {
            line,
            rate: line,
            base: f64::INFINITY,
            last: None,
            difference: 0.0,
            streak: 0,
            updated: Nanos::ZERO,
        }
    }
}

impl RateControl for Timely {
    fn rate(&mut self, _: Nanos) -> Gbps {
        self.rate
    }

    fn sent(&mut self, _: u64, _: Nanos) {}

    fn cnp(&mut self, _: Option<Nanos>, _: Nanos) {}

    fn rtt(&mut self, rtt: Nanos, now: Nanos) {
        let rtt = rtt.0 as f64;
        self.base = self.base.min(rtt);
        // One completion event per 64 KB in the paper; here at most one per shortest round trip that matters.
        if (now.since(self.updated).0 as f64) < MIN_RTT {
            return;
        }
        self.updated = now;
        let Some(last) = self.last.replace(rtt) else {
            return;
        };
        self.difference = (1.0 - WEIGHT) * self.difference + WEIGHT * (rtt - last);
        let gradient = self.difference / MIN_RTT;
        let queueing = rtt - self.base;
        let step = self.line / 1_000.0;
        if queueing < LOW {
            self.rate += step;
        } else if queueing > HIGH {
            self.rate *= 1.0 - BETA * (1.0 - HIGH / queueing);
            self.streak = 0;
        } else if gradient <= 0.0 {
            self.streak += 1;
            self.rate += if self.streak >= HYPER_AFTER {
                5.0 * step
            } else {
                step
            };
        } else {
            self.rate *= 1.0 - BETA * gradient.min(1.0);
            self.streak = 0;
        }
        self.rate = self.rate.clamp(self.line / 1_000.0, self.line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_growing_delay_slows_and_a_short_one_speeds_up() {
        let mut sender = Timely::new(100.0);
        for step in 0..40 {
            sender.rtt(Nanos(100_000 + step * 30_000), Nanos(step * 25_000));
        }
        let slow = sender.rate(Nanos::ZERO);
        assert!(slow < 50.0, "{slow}");
        for step in 40..400 {
            sender.rtt(Nanos(100_000), Nanos(step * 25_000));
        }
        assert!(sender.rate(Nanos::ZERO) > slow);
    }
}
