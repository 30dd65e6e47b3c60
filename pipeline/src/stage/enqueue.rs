//! Stage 5: into the egress queue, after the last chances to be dropped; here NPCC sees the frame.

use super::parse::is_v6;
use crate::bits::low32;
use crate::buffer::{Buffer, GroupId, Receipt};
use crate::counters::{Counters, PortCounters};
use crate::drop::Drop;
use crate::egress::fifo::FifoStore;
use crate::egress::port::EgressPort;
use crate::frame::{FlowSlot, FrameBuf, Meta, MetaFlags, Queued, wire_len};
use crate::parse::Parsed;
use crate::tap::{FlowTap, Sighting, watched};
use crate::units::{Nanos, PortId, Priority};
use crate::wire::bth::{HEADER_LEN, RoceClass};

/// The egress side a frame is handed to.
#[derive(Debug)]
pub struct Egress<'a, B, T> {
    /// All ports of the worker.
    pub ports: &'a mut [EgressPort],
    /// Their cells.
    pub store: &'a mut FifoStore<Queued<B>>,
    /// The shared buffer.
    pub buffer: &'a mut Buffer,
    /// NPCC's eye.
    pub tap: &'a mut T,
    /// When.
    pub now: Nanos,
}

impl<B: FrameBuf, T: FlowTap> Egress<'_, B, T> {
    /// Queues one routed frame.
    ///
    /// # Errors
    /// The frame and the reason it was refused.
    #[inline]
    pub fn accept(
        &mut self,
        buf: B,
        parsed: &Parsed,
        priority: Priority,
        ingress: PortId,
        egress: PortId,
    ) -> Result<(), (B, Drop)> {
        let Some(port) = self.ports.get_mut(egress.index()) else {
            return Err((buf, Drop::NoRoute));
        };
        let Some(queue) = port.admission(priority) else {
            return Err((buf, Drop::PfcStorm));
        };
        let ect = parsed.ecn() != 0;
        if !queue.lossless && !ect && port.wred_strikes(priority) {
            return Err((buf, Drop::Wred));
        }
        let wire = wire_len(buf.data().len());
        let group = GroupId::new(ingress, priority);
        if let Err(reason) = self.buffer.charge(group, wire, queue) {
            return Err((buf, reason));
        }
        let mut meta = Meta {
            arrived: low32(self.now.0),
            slot: FlowSlot::NONE,
            wire_len: wire,
            ingress,
            egress,
            priority,
            l3_off: parsed.l3_off,
            flags: flags(parsed),
        };
        if let Some(roce) = parsed.roce
            && watched(self.tap.ports(), ingress, egress)
        {
            let sighting = Sighting {
                data: buf.data(),
                parsed,
                roce,
                meta: &meta,
                now: self.now,
            };
            meta.slot = self.tap.enqueued(&sighting);
        }
        port.push(self.store, Queued { buf, meta }, self.now)
            .map_err(|queued| {
                self.buffer.release(Receipt::of(&queued.meta));
                (queued.buf, Drop::BufferFull)
            })
    }
}

/// What may be done to the frame on its way out.
#[inline]
fn flags(parsed: &Parsed) -> MetaFlags {
    let mut flags = if is_v6(parsed) { MetaFlags::IPV6 } else { 0 };
    let class_allows = parsed.roce.is_none_or(|roce| roce.class.may_be_marked());
    if class_allows {
        flags |= match parsed.ecn() {
            0 => 0,
            3 => MetaFlags::MARKED,
            _ => MetaFlags::MARKABLE,
        };
    }
    MetaFlags(flags)
}

/// Counts what RoCEv2 says about itself on arrival: CE, CNP, NAK.
#[inline]
pub fn count_roce(data: &[u8], parsed: &Parsed, counters: &PortCounters) {
    let Some(roce) = parsed.roce else { return };
    if parsed.ecn() == 3 {
        counters.ce_in.add(1);
    }
    match roce.class {
        RoceClass::Cnp => counters.cnp_in.add(1),
        RoceClass::Unsupported => counters.roce_unsupported.add(1),
        RoceClass::Ack => {
            // AETH: bits 6..5 of the syndrome tell ACK, RNR NAK and NAK apart (IBTA 9.7.5.2.1).
            match data
                .get(usize::from(roce.bth_off) + HEADER_LEN)
                .map(|syndrome| syndrome >> 5)
            {
                Some(0b001) => counters.rnr_in.add(1),
                Some(0b011) => counters.nak_in.add(1),
                _ => {}
            }
        }
        _ => {}
    }
}

/// Counts an accepted or refused frame on its queue.
#[inline]
pub fn count_queue(
    counters: &Counters,
    egress: PortId,
    priority: Priority,
    bytes: Result<u64, Drop>,
) {
    let port = counters.port(egress.index());
    if let Some(queue) = port.and_then(|port| port.queues.get(priority.index())) {
        match bytes {
            Ok(bytes) => queue.enqueued.add(1, bytes),
            Err(reason) => {
                queue.dropped.add(1);
                if reason == Drop::Wred {
                    queue.wred_dropped.add(1);
                }
            }
        }
    }
}
