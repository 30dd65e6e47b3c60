//! How a worker counts and shows what its packet path lets through.

use npcc_pipeline::frame::{FlowSlot, FrameBuf, Meta};
use npcc_pipeline::parse::{Parsed, Roce};
use npcc_pipeline::stage::packet::Packet;
use npcc_pipeline::tap::{FlowTap, Sighting};
use npcc_pipeline::units::{Nanos, PortId};
use npcc_pipeline::wire::bth::{GSI_QPN, HEADER_LEN, RoceClass};

use super::entry::{Entry, Turn};
use super::slot::Slot;
use super::warm::FEW;
use super::{FlowCache, RING_TURN, stamp};
use crate::cm::copy::CmCopy;
use crate::key::{FlowKey, Qpn, QueueFlow, low32, queue_bits, words_v4};
use crate::pair::psn::is_request;
use crate::sample::{Record, SlotRef};

/// ACK and NAK of RC.
const ACKNOWLEDGE: u8 = 0x11;

/// A packet as the cache counts it. `B` is what holds its frame.
#[derive(Debug, Clone, Copy)]
struct Seen<'a, B: ?Sized> {
    frame: &'a B,
    roce: &'a Roce,
    wire_len: u16,
    now: Nanos,
}

/// Bytes that are looked at when it is needed only.
trait Frame {
    fn bytes(&self) -> &[u8];
}

impl Frame for [u8] {
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl<B: FrameBuf> Frame for B {
    fn bytes(&self) -> &[u8] {
        self.data()
    }
}

/// A counted packet.
#[derive(Debug, Clone, Copy)]
struct Counted {
    slot: FlowSlot,
    /// Whether it is shown, and why.
    turn: Option<Turn>,
}

impl FlowCache {
    /// Classes counted between two ports, as a set.
    #[inline]
    fn wanted(&self, ingress: PortId, egress: PortId) -> u8 {
        // An ACK that enters names the queue pair at the near side; one that leaves says how long the near side takes.
        const EITHER: u8 = bit(RoceClass::Data) | bit(RoceClass::Datagram) | bit(RoceClass::Ack);
        const ENTERING: u8 =
            EITHER | bit(RoceClass::ReadRequest) | bit(RoceClass::Atomic) | bit(RoceClass::Cnp);
        if self.ports & ingress.bit() != 0 {
            ENTERING
        } else if self.ports & egress.bit() != 0 {
            EITHER
        } else {
            0
        }
    }

    /// Counts a packet of this key.
    #[inline]
    fn count<B: Frame + ?Sized>(&mut self, words: &[u64; 5], seen: Seen<'_, B>) -> Option<Counted> {
        let (home, tag) = self.home(words);
        if let (Some(entry), Some(shared)) =
            (self.entries.get_mut(home), self.shared.slots.get(home))
            && entry.is(words)
        {
            return Some(tally(entry, shared, home, seen));
        }
        let [a, b, c, d, e] = *words;
        self.count_elsewhere(home, tag, [a, b, c, d, e], seen)
    }

    #[inline(never)]
    fn count_elsewhere<B: Frame + ?Sized>(
        &mut self,
        home: usize,
        tag: u64,
        words: [u64; 5],
        seen: Seen<'_, B>,
    ) -> Option<Counted> {
        let slot = self.elsewhere(home, tag, words, seen.now)?;
        let (entry, shared) = (self.entries.get_mut(slot)?, self.shared.slots.get(slot)?);
        Some(tally(entry, shared, slot, seen))
    }

    /// Shows a counted packet to the control core. A ring found full is not asked again before the control core's
    /// next turn: with more flows than the ring takes, every packet would ask.
    #[cold]
    fn show(&mut self, sighting: &Sighting<'_>, words: [u64; 5], counted: Counted, turn: Turn) {
        let moment = stamp(sighting.now);
        if self.full_in == moment >> RING_TURN {
            self.shared.counters.sample_drops.add(1);
            return;
        }
        let slot = counted.slot.0 as usize;
        let (Some(entry), Some(shared)) = (self.entries.get_mut(slot), self.shared.slots.get(slot))
        else {
            return;
        };
        let reference = SlotRef {
            slot: counted.slot,
            generation: entry.generation,
        };
        let key = QueueFlow::from_words(words).key;
        let Some(record) = Record::of(sighting, key, reference, low32(shared.packets())) else {
            return;
        };
        let counters = &self.shared.counters;
        if self.ring.push(record).is_ok() {
            entry.shown(turn, moment);
            counters.samples.add(1);
        } else {
            self.full_in = moment >> RING_TURN;
            counters.sample_drops.add(1);
        }
    }

    /// Hands a QP1 packet over whole.
    #[cold]
    fn copy(&mut self, sighting: &Sighting<'_>) {
        let key = FlowKey::of_packet(sighting.data, sighting.parsed, Qpn::new(GSI_QPN));
        let Some(copy) = key.and_then(|key| CmCopy::of(sighting, key)) else {
            return;
        };
        let counters = &self.shared.counters;
        match self.messages.push(copy) {
            Ok(()) => counters.messages.add(1),
            Err(_) => counters.message_drops.add(1),
        }
    }
}

impl FlowTap for FlowCache {
    #[inline(never)]
    fn enqueued(&mut self, sighting: &Sighting<'_>) -> FlowSlot {
        let (meta, class) = (sighting.meta, sighting.roce.class);
        let wanted = self.wanted(meta.ingress, meta.egress);
        match class {
            RoceClass::Management if wanted != 0 => self.copy(sighting),
            RoceClass::Unsupported => self.shared.counters.unsupported.add(1),
            _ => {}
        }
        if wanted & bit(class) == 0 {
            return FlowSlot::NONE;
        }
        let roce = &sighting.roce;
        let dest_qp = Qpn::new(roce.dest_qp);
        let Some(key) = FlowKey::of_packet(sighting.data, sighting.parsed, dest_qp) else {
            return FlowSlot::NONE;
        };
        let words = QueueFlow {
            key,
            egress: meta.egress,
            priority: meta.priority,
        }
        .words();
        let seen = Seen {
            frame: sighting.data,
            roce,
            wire_len: meta.wire_len,
            now: sighting.now,
        };
        let Some(counted) = self.count(&words, seen) else {
            return FlowSlot::NONE;
        };
        if let Some(turn) = counted.turn {
            self.show(sighting, words, counted, turn);
        }
        counted.slot
    }

    #[inline]
    fn enqueued_run<B: FrameBuf>(&mut self, frames: &[B], packets: &mut [Packet], now: Nanos) {
        let Some(first) = packets.first().map(|first| first.meta) else {
            return;
        };
        let wanted = self.wanted(first.ingress, first.egress);
        let queue = queue_bits(first.egress, first.priority);
        if self.taken > FEW {
            self.warm(packets, queue);
        }
        for (buf, packet) in frames.iter().zip(packets) {
            let v4 = packet.is_v4();
            let Packet { meta, parsed, .. } = packet;
            let Some(roce) = &parsed.roce else {
                continue;
            };
            if !v4 || wanted & bit(roce.class) == 0 {
                meta.slot = self.enqueued(&sighting(buf, parsed, roce, meta, now));
                continue;
            }
            let words = words_v4(parsed.addresses_v4, roce.dest_qp, queue);
            let seen = Seen {
                frame: buf,
                roce,
                wire_len: meta.wire_len,
                now,
            };
            let Some(counted) = self.count(&words, seen) else {
                continue;
            };
            meta.slot = counted.slot;
            if let Some(turn) = counted.turn {
                let words = words_v4(parsed.addresses_v4, roce.dest_qp, queue);
                let sighting = sighting(buf, parsed, roce, meta, now);
                self.show(&sighting, words, counted, turn);
            }
        }
    }

    #[inline]
    fn notified(&self, slot: FlowSlot, now: Nanos) -> bool {
        self.shared
            .slots
            .get(slot.0 as usize)
            .is_some_and(|slot| slot.is_notified(now))
    }

    fn ports(&self) -> u32 {
        self.ports
    }
}

#[inline]
fn sighting<'a, B: FrameBuf>(
    buf: &'a B,
    parsed: &'a Parsed,
    roce: &Roce,
    meta: &'a Meta,
    now: Nanos,
) -> Sighting<'a> {
    Sighting {
        data: buf.data(),
        parsed,
        roce: *roce,
        meta,
        now,
    }
}

#[inline]
const fn bit(class: RoceClass) -> u8 {
    1 << class as u8
}

/// Counts a packet in its slot.
#[inline(always)]
fn tally<B: Frame + ?Sized>(
    entry: &mut Entry,
    shared: &Slot,
    slot: usize,
    seen: Seen<'_, B>,
) -> Counted {
    let (roce, now) = (seen.roce, stamp(seen.now));
    const DATA: u8 = bit(RoceClass::Data) | bit(RoceClass::Datagram);
    let data = bit(roce.class) & DATA != 0;
    if data {
        shared.contribute(seen.wire_len);
    }
    if is_request(roce.opcode) {
        shared.request(roce.psn());
    }
    shared.count(seen.now);
    let turn = if data && entry.is_quiet(roce, now, shared) {
        None
    } else {
        entry.turn(roce, is_urgent(seen.frame.bytes(), roce), now, shared)
    };
    Counted {
        slot: FlowSlot(low32(slot as u64)),
        turn,
    }
}

/// Whether the packet is a CNP, or an ACK that is a NAK or RNR NAK.
#[inline]
fn is_urgent(frame: &[u8], roce: &Roce) -> bool {
    if roce.opcode != ACKNOWLEDGE {
        return roce.class == RoceClass::Cnp;
    }
    let syndrome = frame.get(usize::from(roce.bth_off) + HEADER_LEN);
    syndrome.is_some_and(|syndrome| syndrome & 0b0110_0000 != 0)
}
