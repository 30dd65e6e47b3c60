//! Probe of a worker that is measured: a paced source and traffic templates, beside the appliance's own telemetry.

use npcc_engine::clock::Now;
use npcc_engine::control::crossing_timing::ThresholdCrossing;
use npcc_engine::worker::probe::Probe;
use npcc_engine::worker::telemetry::Telemetry;
use npcc_pipeline::counters::Stage;
use npcc_pipeline::counters::WorkerStats;
use npcc_pipeline::frame::FrameBuf;
use npcc_pipeline::units::{BURST, Nanos, PortId};

use crate::pace::{PacedSource, Schedule};
use crate::template::Templates;

/// Port with the source.
const SOURCE: PortId = PortId(0);
/// Port whose frames are timed.
const SINK: PortId = PortId(1);

/// Instruments of one worker.
#[derive(Debug)]
pub struct Instruments {
    telemetry: Telemetry,
    source: Option<PacedSource>,
    templates: Option<Templates>,
}

impl Instruments {
    /// Creates the instruments: `schedule` admits the first port's frames (`None`: whenever the worker has time), and `templates` rewrite them.
    #[must_use]
    pub fn new(
        telemetry: Telemetry,
        schedule: Option<Schedule>,
        templates: Option<Templates>,
    ) -> Instruments {
        Instruments {
            telemetry,
            source: schedule.map(|schedule| PacedSource::new(schedule, SOURCE, SINK)),
            templates,
        }
    }
}

impl Probe for Instruments {
    #[inline]
    fn turn_begins(&mut self) {
        self.telemetry.turn_begins();
    }

    #[inline]
    fn rx_limit(&mut self, port: PortId, now: Nanos) -> usize {
        let source = self.source.as_mut();
        source.map_or(BURST, |source| source.due(port, now))
    }

    #[inline]
    fn received(&mut self, port: PortId, frames: &mut [impl FrameBuf]) {
        if let Some(source) = &mut self.source {
            source.received(port, frames.len());
        }
        if let Some(templates) = self.templates.as_mut().filter(|_| port == SOURCE) {
            for frame in frames {
                templates.rewrite(frame.data_mut());
            }
        }
    }

    #[inline]
    fn stage_ends(&mut self, stage: Stage) {
        self.telemetry.stage_ends(stage);
    }

    #[inline]
    fn sent(&mut self, port: PortId, frames: usize, clock: &impl Now) {
        if let Some(source) = &mut self.source {
            source.sent(port, frames, clock.now(), |what, time| {
                self.telemetry.tell(what, time);
            });
        }
    }

    #[inline]
    fn cnp_queued(&mut self, answers: ThresholdCrossing) {
        self.telemetry.cnp_queued(answers);
    }

    #[inline]
    fn cnps_offered(&mut self, clock: &impl Now) {
        self.telemetry.cnps_offered(clock);
    }

    #[inline]
    fn turn_ends(&mut self, received: usize, stats: &WorkerStats) {
        self.telemetry.turn_ends(received, stats);
    }
}
