//! What looks on while a worker works: hooks in the worker's loop, each of which does nothing unless a probe says more.

use npcc_pipeline::units::{BURST, Nanos, PortId};

use super::frame::Frame;
use super::stages::Stage;
use super::stats::WorkerStats;
use crate::clock::Clock;
use crate::control::reaction::Crossing;

/// A probe sees each turn of one worker's loop. `()` sees nothing and costs nothing; [`super::telemetry::Telemetry`] is the
/// appliance's own.
pub trait Probe: std::fmt::Debug + Send + 'static {
    /// A turn begins.
    #[inline]
    fn turn_begins(&mut self) {}

    /// A port of the worker's own is about to be polled: how many frames may it take in, at most?
    #[inline]
    fn admits(&mut self, _port: PortId, _now: Nanos) -> usize {
        BURST
    }

    /// A port's receive queue gave these frames, which nobody has looked at yet.
    #[inline]
    fn received(&mut self, _port: PortId, _frames: &mut [Frame]) {}

    /// A stage of the turn is over.
    #[inline]
    fn stage_ends(&mut self, _stage: Stage) {}

    /// A port's device took so many frames.
    #[inline]
    fn sent(&mut self, _port: PortId, _frames: usize, _clock: &Clock) {}

    /// A CNP that answers a crossing was queued; at most a burst of them is queued a turn.
    #[inline]
    fn cnp_queued(&mut self, _answers: Crossing) {}

    /// The turn's CNPs have been offered to the devices.
    #[inline]
    fn cnps_offered(&mut self, _clock: &Clock) {}

    /// The turn is over and took in so many frames.
    #[inline]
    fn turn_ends(&mut self, _received: usize, _stats: &WorkerStats) {}
}

impl Probe for () {}
