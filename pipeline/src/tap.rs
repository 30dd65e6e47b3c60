//! Interface by which the packet path shows RoCEv2 frames to NPCC. The pipeline knows only this trait; `npcc-cnp` implements
//! it.

use crate::burst::{Run, RunHead};
use crate::frame::{FlowSlot, FrameBuf, Meta};
use crate::parse::{Parsed, Roce};
use crate::units::Nanos;

/// A RoCEv2 frame that was admitted to a queue.
#[derive(Debug)]
pub struct Sighting<'a> {
    /// The frame as it will be sent, except that marking may set or clear CE at dequeue.
    pub data: &'a [u8],
    /// Addresses as [the record](crate::burst::Record::addresses) of the frame has them.
    pub addresses: u64,
    /// Parsed headers; the offsets fit `data`.
    pub parsed: &'a Parsed,
    /// RoCEv2 part of the headers.
    pub roce: Roce,
    /// Ports, queue and length of the frame.
    pub meta: &'a Meta,
    /// Time of admission.
    pub now: Nanos,
}

/// Observer of RoCEv2 frames that enter or leave by an NPCC port. Each worker has an observer of its own, and only it calls
/// it.
pub trait FlowTap {
    /// Observes a run that was admitted to a queue: each record is given the flow-cache slot its frame was counted in. The run
    /// may contain frames other than RoCEv2.
    fn enqueued<B: FrameBuf>(&mut self, run: &mut Run<B>, now: Nanos);

    /// Takes over an ECN strike on a frame: instead of CE on the frame, its sender is owed a near CNP. Returns false if the
    /// tap does not take the strike over: the frame must be marked.
    fn owe(&mut self, meta: &Meta) -> bool;

    /// Returns true if [`FlowTap::owe`] would take a strike on any flow.
    fn may_owe(&self) -> bool;

    /// Takes back one strike of the flow in `slot` that was taken over but for which no CNP was sent: the current frame
    /// must be marked CE. Returns false if there is none.
    fn redeem(&mut self, slot: FlowSlot) -> bool;

    /// Returns true if returned strikes may wait for a frame.
    fn has_returned(&self, now: Nanos) -> bool;

    /// Returns the set of ports whose RoCEv2 traffic is observed.
    fn ports(&self) -> u32;
}

/// Tap without NPCC: observes nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTap;

impl FlowTap for NoTap {
    fn enqueued<B: FrameBuf>(&mut self, _: &mut Run<B>, _: Nanos) {}

    fn owe(&mut self, _: &Meta) -> bool {
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
    fn owe(&mut self, meta: &Meta) -> bool {
        self.as_mut().is_some_and(|tap| tap.owe(meta))
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

/// Returns true if a run's ingress or egress port is observed.
#[inline]
#[must_use]
pub(crate) const fn watched(ports: u32, run: &RunHead) -> bool {
    ports & (run.group.ingress().bit() | run.egress.bit()) != 0
}
