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

    /// Takes a strike on a frame as a near CNP owed to its sender. `false`: it is not owed, and the frame must be marked.
    /// At `hard` only a sender that is believed to respond can be owed one.
    fn owe(&mut self, meta: &Meta, hard: bool) -> bool;

    /// Whether [`FlowTap::owe`] would take a strike on any flow.
    fn may_owe(&self) -> bool;

    /// Takes one of the strikes on this slot's flow that were owed and returned: the frame in hand must be marked.
    fn redeem(&mut self, slot: FlowSlot) -> bool;

    /// Whether returned strikes may wait for a frame.
    fn has_returned(&self, now: Nanos) -> bool;

    /// Ports whose RoCEv2 traffic is shown, as a port set.
    fn ports(&self) -> u32;
}

/// No NPCC: nothing is watched.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTap;

impl FlowTap for NoTap {
    fn enqueued<B: FrameBuf>(&mut self, _: &mut Run<B>, _: Nanos) {}

    fn owe(&mut self, _: &Meta, _: bool) -> bool {
        false
    }

    fn may_owe(&self) -> bool {
        false
    }

    fn redeem(&mut self, _: FlowSlot) -> bool {
        false
    }

    fn has_returned(&self, _: Nanos) -> bool {
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
    fn owe(&mut self, meta: &Meta, hard: bool) -> bool {
        self.as_mut().is_some_and(|tap| tap.owe(meta, hard))
    }

    #[inline]
    fn may_owe(&self) -> bool {
        self.as_ref().is_some_and(FlowTap::may_owe)
    }

    #[inline]
    fn redeem(&mut self, slot: FlowSlot) -> bool {
        self.as_mut().is_some_and(|tap| tap.redeem(slot))
    }

    #[inline]
    fn has_returned(&self, now: Nanos) -> bool {
        self.as_ref().is_some_and(|tap| tap.has_returned(now))
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
