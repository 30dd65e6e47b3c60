//! A Swift-like sender (Kumar et al., SIGCOMM'20): a window that follows a delay target. For comparison.
//!
//! Delays are counted above the shortest round trip seen. Below the target the window grows by a fixed step a round trip,
//! above it shrinks in proportion to the excess, at most by half and once a round trip.

use npcc_pipeline::units::Nanos;

use super::{Gbps, RateControl};
use crate::num::whole;

/// Target queueing delay, in ns.
const TARGET: f64 = 50_000.0;
/// Decrease of the window per relative excess of delay.
const BETA: f64 = 0.8;
/// Largest decrease of the window, as a share.
const MOST: f64 = 0.5;
/// Growth of the window per round trip, in bytes.
const STEP: f64 = 16_384.0;
/// Smallest window: one full frame, in bytes.
const LEAST: f64 = 4_200.0;

/// State of one queue pair of a Swift-like sender.
#[derive(Debug, Clone)]
pub struct Swift {
    line: Gbps,
    window: Option<f64>,
    rtt: f64,
    base: f64,
    decreased: Nanos,
}

impl Swift {
    /// Creates a queue pair that sends at line rate until the first round trip is known.
    #[must_use]
    pub const fn new(line: Gbps) -> Swift {
        Swift {
            line,
            window: None,
            rtt: 0.0,
            base: f64::INFINITY,
            decreased: Nanos::ZERO,
        }
    }
}

impl RateControl for Swift {
    fn rate(&mut self, _: Nanos) -> Gbps {
        match self.window {
            // Paced over the round trip, a fifth faster so that the window is what bounds.
            Some(window) => (1.2 * window * 8.0 / self.rtt.max(1.0)).min(self.line),
            None => self.line,
        }
    }

    fn sent(&mut self, _: u64, _: Nanos) {}

    fn cnp(&mut self, _: Option<Nanos>, _: Nanos) {}

    fn rtt(&mut self, rtt: Nanos, now: Nanos) {
        let sample = rtt.0 as f64;
        self.base = self.base.min(sample);
        self.rtt = sample;
        let full = self.line * self.base / 8.0 + self.line * TARGET / 8.0;
        let window = self.window.get_or_insert(full);
        let target = self.base + TARGET;
        if sample <= target {
            *window += STEP * STEP / window.max(STEP);
        } else if now.since(self.decreased).0 as f64 >= sample {
            let cut = (BETA * (sample - target) / sample).min(MOST);
            *window *= 1.0 - cut;
            self.decreased = now;
        }
        *window = window.clamp(LEAST, full.max(LEAST));
    }

    fn window(&self) -> Option<u64> {
        self.window.map(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_shrinks_at_most_by_half_a_round_trip() {
        let mut sender = Swift::new(100.0);
        sender.rtt(Nanos(10_000), Nanos(10_000));
        let full = sender.window().unwrap();
        sender.rtt(Nanos(10_000_000), Nanos(20_000_000));
        assert_eq!(sender.window().unwrap(), full / 2);
        sender.rtt(Nanos(10_000_000), Nanos(20_001_000));
        assert_eq!(sender.window().unwrap(), full / 2, "once a round trip");
    }
}
