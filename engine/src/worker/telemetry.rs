//! The appliance's own probe: a worker's stages for `show workers`, and reaction times for `show npcc`.

use arrayvec::ArrayVec;
use npcc_pipeline::counters::Stage;
use npcc_pipeline::counters::WorkerStats;
use npcc_pipeline::units::{BURST, Nanos};

use super::probe::Probe;
use super::stages::Profiler;
use super::timings::{Times, TimingKind};
use crate::clock::Now;
use crate::control::crossing_timing::ThresholdCrossing;

/// Stage profiler of a worker, and its end of the ring of timings.
#[derive(Debug)]
pub struct Telemetry {
    profiler: Profiler,
    times: Times,
    /// Crossings answered by CNPs queued in this turn.
    answered: ArrayVec<ThresholdCrossing, BURST>,
}

impl Telemetry {
    /// Starts a probe that puts timings into `times`.
    #[must_use]
    pub fn new(times: Times) -> Telemetry {
        Telemetry {
            profiler: Profiler::default(),
            times,
            answered: ArrayVec::new(),
        }
    }

    /// Records the duration of an event.
    #[inline]
    pub fn tell(&mut self, what: TimingKind, time: Nanos) {
        // If the ring is full the timing is lost.
        self.times.tell(what, time);
    }
}

impl Probe for Telemetry {
    #[inline]
    fn turn_begins(&mut self) {
        self.profiler.begin();
    }

    #[inline]
    fn stage_ends(&mut self, stage: Stage) {
        self.profiler.ends(stage);
    }

    #[inline]
    fn cnp_queued(&mut self, answers: ThresholdCrossing) {
        // At most a burst of CNPs is queued a turn.
        let _ = self.answered.try_push(answers);
    }

    #[inline]
    fn cnps_offered(&mut self, clock: &impl Now) {
        if !self.answered.is_empty() {
            let now = clock.now();
            for crossing in self.answered.drain(..) {
                self.times.tell(crossing.threshold, now.since(crossing.at));
            }
        }
    }

    #[inline]
    fn turn_ends(&mut self, received: usize, stats: &WorkerStats) {
        self.profiler.end(received, &stats.stages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::timings::ring;

    #[test]
    fn more_crossings_than_a_burst_at_the_stop_are_no_panic() {
        let (times, _reported) = ring();
        let mut telemetry = Telemetry::new(times);
        let crossing = ThresholdCrossing {
            threshold: TimingKind::Shallow,
            at: Nanos(1),
        };
        // A worker that ends injects CNPs in many turns and reports none in between.
        for _ in 0..=2 * BURST {
            telemetry.cnp_queued(crossing);
        }
        assert!(telemetry.answered.is_full());
    }
}
