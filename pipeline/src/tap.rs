//! Where the packet path shows RoCEv2 frames to NPCC. The pipeline knows only this trait; `npcc-cnp` implements it.

use crate::burst::{Run, RunHead};
use crate::frame::{FlowSlot, FrameBuf, Meta};
use crate::parse::{Parsed, Roce};
use crate::units::Nanos;

/// A RoCEv2 frame that was accepted into a queue.
#[derive(Debug)]
pub struct Sighting<'a> {
    /// The frame as it will be sent.
    pub data: &'a [u8],
    /// Its headers; offsets fit `data`.
    pub parsed: &'a Parsed,
    /// Its RoCEv2 part.
    pub roce: Roce,
    /// Ports, queue and length.
    pub meta: &'a Meta,
    /// When.
    pub now: Nanos,
}

/// Watches RoCEv2 frames that enter or leave by an NPCC port. Called by one worker only.
pub trait FlowTap {
    /// A run of frames was accepted into a queue: each record learns the slot its frame was counted in. Other frames than
    /// RoCEv2 may be among them.
    fn enqueued<B: FrameBuf>(&mut self, run: &mut Run<B>, now: Nanos);

    /// Whether the sender of this slot's flow has been told, and its effect is still on the way.
    fn notified(&self, slot: FlowSlot, now: Nanos) -> bool;

    /// Ports whose RoCEv2 traffic is shown, as a port set.
    fn ports(&self) -> u32;
}

/// No NPCC: nothing is watched.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTap;

impl FlowTap for NoTap {
    fn enqueued<B: FrameBuf>(&mut self, _: &mut Run<B>, _: Nanos) {}

    fn notified(&self, _: FlowSlot, _: Nanos) -> bool {
        false
    }

    fn ports(&self) -> u32 {
        0
    }
}

impl<T: FlowTap> FlowTap for Option<T> {
    #[inline]
    fn enqueued<B: FrameBuf>(&mut self, run: &mut Run<B>, now: Nanos) {
        if let Some(tap) = self {
            tap.enqueued(run, now);
        }
    }

    #[inline]
    fn notified(&self, slot: FlowSlot, now: Nanos) -> bool {
        self.as_ref().is_some_and(|tap| tap.notified(slot, now))
    }

    fn ports(&self) -> u32 {
        self.as_ref().map_or(0, FlowTap::ports)
    }
}

/// Whether a run is shown.
#[inline]
#[must_use]
pub(crate) const fn watched(ports: u32, run: &RunHead) -> bool {
    ports & (run.group.ingress().bit() | run.egress.bit()) != 0
}
