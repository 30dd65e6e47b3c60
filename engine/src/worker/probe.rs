//! Observation hooks in the worker's loop, each of which does nothing by default.

use npcc_pipeline::counters::Stage;
use npcc_pipeline::counters::WorkerStats;
use npcc_pipeline::frame::FrameBuf;
use npcc_pipeline::units::{BURST, Nanos, PortId};

use crate::clock::Now;
use crate::control::crossing_timing::ThresholdCrossing;

/// Observer of each turn of one worker's loop. `()` observes nothing and costs nothing; [`super::telemetry::Telemetry`] is the appliance's
/// own.
pub trait Probe: std::fmt::Debug + Send + 'static {
    /// Begins a turn.
    #[inline]
    fn turn_begins(&mut self) {}

    /// Returns the most frames to receive from a port of the worker's own, which is about to be polled.
    #[inline]
    fn rx_limit(&mut self, _port: PortId, _now: Nanos) -> usize {
        BURST
    }

    /// Sees frames that a port's receive queue returned, before they are parsed.
    #[inline]
    fn received(&mut self, _port: PortId, _frames: &mut [impl FrameBuf]) {}

    /// Ends a stage of the turn.
    #[inline]
    fn stage_ends(&mut self, _stage: Stage) {}

    /// Sees the number of frames that a port's device took.
    #[inline]
    fn sent(&mut self, _port: PortId, _frames: usize, _clock: &impl Now) {}

    /// Sees that a CNP that answers a crossing was queued; at most a burst of them is queued a turn.
    #[inline]
    fn cnp_queued(&mut self, _answers: ThresholdCrossing) {}

    /// Sees that the turn's CNPs have been offered to the devices.
    #[inline]
    fn cnps_offered(&mut self, _clock: &impl Now) {}

    /// Ends the turn, which received this number of frames.
    #[inline]
    fn turn_ends(&mut self, _received: usize, _stats: &WorkerStats) {}
}

impl Probe for () {}
