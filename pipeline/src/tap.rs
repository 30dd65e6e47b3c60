//! Where the packet path shows RoCEv2 frames to NPCC. The pipeline knows only this trait; `npcc-cnp` implements it.

use crate::frame::{FlowSlot, FrameBuf, Meta};
use crate::parse::{Parsed, Roce};
use crate::stage::packet::Packet;
use crate::stage::train::{Car, Kin};
use crate::units::{Nanos, PortId};

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
    /// A frame was enqueued. Returns the slot it was counted in.
    fn enqueued(&mut self, sighting: &Sighting<'_>) -> FlowSlot;

    /// Frames of one port were enqueued in one queue: each RoCEv2 frame learns the slot it was counted in.
    #[inline]
    fn enqueued_run<B: FrameBuf>(&mut self, frames: &[B], packets: &mut [Packet], now: Nanos) {
        for (buf, packet) in frames.iter().zip(packets) {
            let parsed = packet.parsed(buf.data());
            if let Some(roce) = parsed.roce {
                packet.meta.slot = self.enqueued(&Sighting {
                    data: buf.data(),
                    parsed: &parsed,
                    roce,
                    meta: &packet.meta,
                    now,
                });
            }
        }
    }

    /// A train was enqueued in one queue: each car learns the slot its frame was counted in.
    #[inline]
    fn enqueued_train<B: FrameBuf>(
        &mut self,
        frames: &[B],
        cars: &mut [Car],
        kin: &Kin,
        now: Nanos,
    ) {
        let mut packet = Packet::NOTHING;
        for (buf, car) in frames.iter().zip(cars) {
            packet.dress(car, kin);
            let one = (std::slice::from_ref(buf), std::slice::from_mut(&mut packet));
            self.enqueued_run(one.0, one.1, now);
            car.slot = packet.meta.slot;
        }
    }

    /// Whether the sender of this slot's flow has been told, and its effect is still on the way.
    fn notified(&self, slot: FlowSlot, now: Nanos) -> bool;

    /// Ports whose RoCEv2 traffic is shown, as a port set.
    fn ports(&self) -> u32;
}

/// No NPCC: nothing is watched.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTap;

impl FlowTap for NoTap {
    fn enqueued(&mut self, _: &Sighting<'_>) -> FlowSlot {
        FlowSlot::NONE
    }

    fn notified(&self, _: FlowSlot, _: Nanos) -> bool {
        false
    }

    fn ports(&self) -> u32 {
        0
    }
}

/// Whether a frame between these ports is shown.
#[inline]
#[must_use]
pub(crate) const fn watched(ports: u32, ingress: PortId, egress: PortId) -> bool {
    ports & (ingress.bit() | egress.bit()) != 0
}
