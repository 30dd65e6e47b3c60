//! How a worker counts and shows what its packet path lets through.

use npcc_pipeline::frame::{FlowSlot, FrameBuf, Meta};
use npcc_pipeline::parse::Roce;
use npcc_pipeline::stage::packet::Packet;
use npcc_pipeline::stage::train::{Car, Kin};
use npcc_pipeline::tap::{FlowTap, Sighting};
use npcc_pipeline::units::{Nanos, PortId};
use npcc_pipeline::wire::bth::{GSI_QPN, HEADER_LEN, RoceClass, Traits};

use super::entry::{Sign, Turn};
use super::pace::is_round;
use super::slot::Slot;
use super::warm::Hint;
use super::{FlowCache, RING_TURN, stamp};
use crate::cm::copy::CmCopy;
use crate::key::{FlowKey, Qpn, QueueFlow, low32, queue_bits, words_v4};
use crate::sample::{Record, SlotRef};

/// ACK and NAK of RC.
const ACKNOWLEDGE: u8 = 0x11;
/// Of the last word of the BTH: a reply is asked for, and the packet sequence number.
pub(super) const ACK_REQ: u32 = 1 << 31;
pub(super) const PSN_MASK: u32 = 0x00ff_ffff;

/// What of a packet is counted.
#[derive(Debug, Clone, Copy)]
struct Weight {
    traits: Traits,
    wire_len: u16,
    /// Above the 24 bits of the sequence number anything.
    ack_psn: u32,
}

/// What is asked of packets of one queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watch {
    /// Classes that are counted.
    pub(super) wanted: u16,
    pub(super) queue: u64,
    /// Packets name their slots: there are many flows.
    pub(super) many: bool,
    /// `now`, as a [`stamp`].
    pub(super) age: u32,
    pub(super) now: Nanos,
}

/// What was done about a packet before its headers are looked at again.
#[derive(Debug, Clone, Copy)]
enum SoFar {
    /// It is not at home.
    Nothing,
    /// It was counted in this slot, and may have to be shown.
    Counted(usize),
    /// It was counted in this slot, and is to be shown.
    Due(usize, Turn),
}

impl FlowCache {
    /// Classes counted between two ports, as a set.
    #[inline]
    fn wanted(&self, ingress: PortId, egress: PortId) -> u16 {
        // An ACK that enters names the queue pair at the near side; one that leaves says how long the near side takes.
        const EITHER: u16 =
            RoceClass::Data.bit() | RoceClass::Datagram.bit() | RoceClass::Ack.bit();
        const ENTERING: u16 =
            EITHER | RoceClass::ReadRequest.bit() | RoceClass::Atomic.bit() | RoceClass::Cnp.bit();
        if self.ports & ingress.bit() != 0 {
            ENTERING
        } else if self.ports & egress.bit() != 0 {
            EITHER
        } else {
            0
        }
    }

    /// What is asked of all packets of one queue.
    #[inline]
    pub(super) fn watch(&self, meta: &Meta, now: Nanos) -> Watch {
        Watch {
            wanted: self.wanted(meta.group.ingress(), meta.egress),
            queue: queue_bits(meta.egress, meta.priority),
            many: self.has_many(),
            age: stamp(now),
            now,
        }
    }

    /// Counts a packet, and shows it when it is its turn.
    #[inline]
    pub(super) fn count_packet<B: FrameBuf>(
        &mut self,
        buf: &B,
        packet: &mut Packet,
        watch: &Watch,
    ) {
        let (brief, now, age) = (&packet.brief, watch.now, watch.age);
        if !brief.traits.any(watch.wanted) {
            packet.meta.slot = self.other(buf, packet, now);
            return;
        }
        let words = words_v4(brief.addresses, brief.dest_qp(), watch.queue);
        let guess = if watch.many {
            packet.meta.slot.0 as usize
        } else {
            self.home(&words).0
        };
        let Some(shared) = self.shared.slots.get(guess) else {
            return;
        };
        if !shared.is(&words) {
            packet.meta.slot = self.look_closer(buf, packet, SoFar::Nothing, now);
            return;
        }
        let weight = Weight {
            traits: brief.traits,
            wire_len: packet.meta.wire_len,
            ack_psn: brief.ack_psn(),
        };
        tally(shared, weight, now);
        packet.meta.slot = FlowSlot(low32(guess as u64));
        if !brief.traits.any(Traits::PLAIN) {
            self.look_closer(buf, packet, SoFar::Counted(guess), now);
            return;
        }
        let (notable, psn) = (brief.ack_psn() & ACK_REQ != 0, brief.ack_psn() & PSN_MASK);
        let round = watch.many && is_round(shared.packets());
        let quiet = !round
            && shared.is_quiet(brief.src_port, age, self.pace.refresh)
            && (!notable || shared.passes(psn));
        if !quiet {
            let sign = Sign {
                port: Some(brief.src_port),
                notable: notable.then_some(psn),
                urgent: false,
                round,
            };
            let entry = self.entries.get(guess);
            let turn = entry.and_then(|entry| entry.turn(sign, age, self.pace.refresh, shared));
            if let Some(turn) = turn {
                self.look_closer(buf, packet, SoFar::Due(guess, turn), now);
            }
        }
    }

    /// The slot of a packet of this key.
    #[inline]
    fn find(&mut self, words: &[u64; 5], now: Nanos) -> Option<usize> {
        let (home, tag) = self.home(words);
        if self.holds(home, words) {
            return Some(home);
        }
        self.elsewhere(home, tag, *words, now)
    }

    /// A common frame of a class that is counted: one whose headers are to be looked at again.
    #[inline(never)]
    fn look_closer<B: FrameBuf>(
        &mut self,
        buf: &B,
        packet: &Packet,
        so_far: SoFar,
        now: Nanos,
    ) -> FlowSlot {
        if let SoFar::Due(slot, _) = so_far
            && self.full_in == stamp(now) >> RING_TURN
        {
            self.shared.counters.sample_drops.add(1);
            return FlowSlot(low32(slot as u64));
        }
        let parsed = packet.parsed(buf.data());
        let Some(roce) = &parsed.roce else {
            return FlowSlot::NONE;
        };
        let queue = queue_bits(packet.meta.egress, packet.meta.priority);
        let words = words_v4(packet.brief.addresses, packet.brief.dest_qp(), queue);
        let sighting = Sighting {
            data: buf.data(),
            parsed: &parsed,
            roce: *roce,
            meta: &packet.meta,
            now,
        };
        match so_far {
            SoFar::Nothing => self.count_and_show(&sighting, words),
            SoFar::Counted(slot) => self.show_if_due(&sighting, words, slot),
            SoFar::Due(slot, turn) => {
                let slot = FlowSlot(low32(slot as u64));
                self.show(&sighting, words, slot, turn);
                slot
            }
        }
    }

    /// A frame that is not common, or not of a class that is counted.
    #[inline(never)]
    fn other<B: FrameBuf>(&mut self, buf: &B, packet: &Packet, now: Nanos) -> FlowSlot {
        let parsed = packet.parsed(buf.data());
        match parsed.roce {
            Some(roce) => self.enqueued(&Sighting {
                data: buf.data(),
                parsed: &parsed,
                roce,
                meta: &packet.meta,
                now,
            }),
            None => FlowSlot::NONE,
        }
    }

    /// Counts a packet of this key, and shows it when it is its turn.
    fn count_and_show(&mut self, sighting: &Sighting<'_>, words: [u64; 5]) -> FlowSlot {
        let Some(slot) = self.find(&words, sighting.now) else {
            return FlowSlot::NONE;
        };
        if let Some(shared) = self.shared.slots.get(slot) {
            let roce = &sighting.roce;
            let weight = Weight {
                traits: Traits::of(roce.opcode).with_class(roce.class),
                wire_len: sighting.meta.wire_len,
                ack_psn: roce.ack_psn,
            };
            tally(shared, weight, sighting.now);
        }
        self.show_if_due(sighting, words, slot)
    }

    /// Shows a counted packet when it is its turn.
    fn show_if_due(&mut self, sighting: &Sighting<'_>, words: [u64; 5], slot: usize) -> FlowSlot {
        let (Some(entry), Some(shared)) = (self.entries.get(slot), self.shared.slots.get(slot))
        else {
            return FlowSlot::NONE;
        };
        let urgent = is_urgent(sighting.data, &sighting.roce);
        let round = self.has_many() && is_round(shared.packets());
        let sign = Sign::of(&sighting.roce, urgent, round);
        let counted = FlowSlot(low32(slot as u64));
        let now = stamp(sighting.now);
        if let Some(turn) = entry.turn(sign, now, self.pace.refresh, shared) {
            self.show(sighting, words, counted, turn);
        }
        counted
    }

    /// Shows a counted packet to the control core. A ring found full is not asked again before the control core's
    /// next turn: with more flows than the ring takes, every packet would ask.
    #[cold]
    fn show(&mut self, sighting: &Sighting<'_>, words: [u64; 5], counted: FlowSlot, turn: Turn) {
        let moment = stamp(sighting.now);
        if self.full_in == moment >> RING_TURN {
            self.shared.counters.sample_drops.add(1);
            return;
        }
        let slot = counted.0 as usize;
        let (Some(entry), Some(shared)) = (self.entries.get_mut(slot), self.shared.slots.get(slot))
        else {
            return;
        };
        let reference = SlotRef {
            slot: counted,
            generation: shared.generation(),
        };
        let key = QueueFlow::from_words(words).key;
        let Some(record) = Record::of(sighting, key, reference, shared.packets()) else {
            return;
        };
        let counters = &self.shared.counters;
        if self.ring.push(record).is_ok() {
            entry.shown(turn, moment, self.pace.more, shared);
            counters.samples.add(1);
            if matches!(turn, Turn::Refresh) {
                self.pace.note(moment);
            }
        } else {
            self.pace.lose();
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
        let wanted = self.wanted(meta.group.ingress(), meta.egress);
        match class {
            RoceClass::Management if wanted != 0 => self.copy(sighting),
            RoceClass::Unsupported => self.shared.counters.unsupported.add(1),
            _ => {}
        }
        if wanted & class.bit() == 0 {
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
        self.count_and_show(sighting, words)
    }

    #[inline]
    fn enqueued_run<B: FrameBuf>(&mut self, frames: &[B], packets: &mut [Packet], now: Nanos) {
        let Some(first) = packets.first().map(|first| first.meta) else {
            return;
        };
        let watch = self.watch(&first, now);
        if watch.many {
            let hints = packets.iter_mut().filter_map(Hint::of_packet);
            self.note(hints, watch.queue);
            self.warm(packets.iter().map(|packet| packet.meta.slot));
        }
        for (buf, packet) in frames.iter().zip(packets) {
            self.count_packet(buf, packet, &watch);
        }
    }

    #[inline]
    fn enqueued_train<B: FrameBuf>(
        &mut self,
        frames: &[B],
        cars: &mut [Car],
        kin: &Kin,
        now: Nanos,
    ) {
        self.enqueue_train(frames, cars, kin, now);
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

/// Counts a packet in its slot.
#[inline(always)]
fn tally(shared: &Slot, weight: Weight, now: Nanos) {
    if weight
        .traits
        .any(RoceClass::Data.bit() | RoceClass::Datagram.bit())
    {
        shared.contribute(weight.wire_len.into());
    }
    if weight.traits.any(Traits::REQUEST) {
        shared.request(weight.ack_psn);
    }
    shared.count(now);
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
