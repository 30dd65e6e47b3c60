//! Tap of a worker's packet path: counts the flows' packets and shows some of them to the control core.

use npcc_pipeline::burst::{Record as Known, Run, RunHead};
use npcc_pipeline::frame::{FlowSlot, FrameBuf, Meta};
use npcc_pipeline::icrc;
use npcc_pipeline::parse::parse;
use npcc_pipeline::shares::Source;
use npcc_pipeline::tap::{FlowTap, Sighting};
use npcc_pipeline::units::{Nanos, PortId};
use npcc_pipeline::wire::bth::{GSI_QPN, HEADER_LEN, RoceClass, Traits};

use super::cache_key::CacheKey;
use super::count::{Watch, asleep, contribution};
use super::entry::{Sign, Turn};
use super::pace::is_round;
use super::slot::Slot;
use super::{FlowCache, QUOTA, stamp};
use npcc_roce::cm::copy::CmCopy;
use npcc_roce::key::{FlowKey, Qpn, low32};
use npcc_roce::sample::{PacketSample, SlotRef};

impl FlowCache {
    /// Handles a packet that the fast loop leaves: counts it, and shows it if due. Returns the slot it was counted in.
    #[inline(never)]
    fn look<B: FrameBuf>(
        &mut self,
        head: &RunHead,
        (buf, known): (&B, &Known),
        watch: &Watch,
    ) -> FlowSlot {
        if !known.is_roce() {
            return FlowSlot::NONE;
        }
        let key = CacheKey::of_known(known, buf.data(), watch.queue);
        let Some(key) = key.filter(|_| known.traits.any(watch.wanted)) else {
            return sighting(head, (buf, known), watch.now, |sighting| self.see(sighting));
        };
        let ingress = head.group.ingress();
        // The noted slot was loaded ahead. With many flows, that at home may be another flow's, and far away.
        let noted = known.slot.0 as usize;
        let slot = if self.holds(noted, &key) {
            Some(noted)
        } else {
            self.find(&key, ingress, watch.now)
        };
        let Some(slot) = slot else {
            return FlowSlot::NONE;
        };
        let (Some(entry), Some(shared)) = (self.entries.get(slot), self.shared.slots.get(slot))
        else {
            return FlowSlot::NONE;
        };
        let paused = tally(shared, known.traits, (known.len, known.ack_psn), watch.now);
        if let Some((before, bytes)) = paused {
            self.wake(slot, before, bytes);
        }
        let round = watch.many && is_round(shared.packets());
        let sign = Sign::of(known, round);
        let counted = FlowSlot(low32(slot as u64));
        let turn = entry.turn(sign, watch.age, self.pace.refresh, shared);
        if let Some(turn) = turn
            && self.may_show(turn, (ingress, &key), known.len, watch.now)
        {
            sighting(head, (buf, known), watch.now, |sighting| {
                self.show(sighting, &key, counted, turn);
                counted
            });
        }
        counted
    }

    /// Returns true if the port's ring was found full in this turn of the control core, and then counts a dropped sample.
    #[inline]
    fn is_full(&self, port: PortId, now: Nanos) -> bool {
        let full = self.rings.is_full(port, now);
        if full {
            self.shared.counters.sample_drops.add(1);
        }
        full
    }

    /// Sets the quota of a run that came in by port `ingress`.
    #[inline]
    pub(super) fn begin_run(&mut self, ingress: PortId, now: Nanos) {
        self.quota = match self.has_many() {
            true if self.rings.is_full(ingress, now) => 0,
            true => QUOTA,
            false => usize::MAX,
        };
    }

    /// Returns true if there is room and budget to show a packet of `len` bytes now, and takes the budget; counts a dropped sample otherwise.
    fn may_show(
        &mut self,
        turn: Turn,
        (ingress, key): (PortId, &CacheKey),
        len: u16,
        now: Nanos,
    ) -> bool {
        let is_paced = matches!(turn, Turn::Chosen | Turn::Refresh);
        let is_first = !is_paced && turn != Turn::Cnp;
        if is_first && !self.take_quota() {
            // The flow's next packet is shown instead.
            return false;
        }
        if self.is_full(ingress, now) {
            return false;
        }
        if is_paced {
            return true;
        }
        let may = self.budget.admits((ingress, source(key)), len, now);
        if !may {
            self.shared.counters.sample_drops.add(1);
        }
        may
    }

    /// Finds the slot of a packet with this key that came in by port `ingress`.
    #[inline]
    fn find(&mut self, key: &CacheKey, ingress: PortId, now: Nanos) -> Option<usize> {
        let (home, tag) = self.home(key.pair);
        if self.holds(home, key) {
            return Some(home);
        }
        self.elsewhere((home, tag), key, ingress, now)
    }

    /// Counts a packet with this key, and shows it if due.
    fn count_and_show(&mut self, sighting: &Sighting<'_>, key: &CacheKey) -> FlowSlot {
        let ingress = sighting.meta.group.ingress();
        let Some(slot) = self.find(key, ingress, sighting.now) else {
            return FlowSlot::NONE;
        };
        if let Some(shared) = self.shared.slots.get(slot) {
            let roce = &sighting.roce;
            let traits = Traits::of(roce.opcode).with_class(roce.class);
            let paused = tally(
                shared,
                traits,
                (sighting.meta.len, roce.ack_psn),
                sighting.now,
            );
            if let Some((before, bytes)) = paused {
                self.wake(slot, before, bytes);
            }
        }
        self.show_if_due(sighting, key, slot)
    }

    /// Shows a counted packet if due.
    fn show_if_due(&mut self, sighting: &Sighting<'_>, key: &CacheKey, slot: usize) -> FlowSlot {
        let (Some(entry), Some(shared)) = (self.entries.get(slot), self.shared.slots.get(slot))
        else {
            return FlowSlot::NONE;
        };
        let round = self.has_many() && is_round(shared.packets());
        let sign = Sign::of(&known(sighting), round);
        let counted = FlowSlot(low32(slot as u64));
        let (now, meta) = (stamp(sighting.now), sighting.meta);
        if let Some(turn) = entry.turn(sign, now, self.pace.refresh, shared)
            && self.may_show(turn, (meta.group.ingress(), key), meta.len, sighting.now)
        {
            self.show(sighting, key, counted, turn);
        }
        counted
    }

    /// Shows a counted packet to the control core.
    #[cold]
    fn show(&mut self, sighting: &Sighting<'_>, key: &CacheKey, counted: FlowSlot, turn: Turn) {
        let moment = stamp(sighting.now);
        let slot = counted.0 as usize;
        let (Some(entry), Some(shared)) = (self.entries.get_mut(slot), self.shared.slots.get(slot))
        else {
            return;
        };
        let (key, ingress) = (key.flow(), sighting.meta.group.ingress());
        let counters = &self.shared.counters;
        let reference = SlotRef {
            slot: counted,
            generation: shared.generation(),
        };
        let Some(record) = PacketSample::of(sighting, key, reference, shared.packets()) else {
            return;
        };
        let right = icrc::verify(sighting.data, sighting.parsed) == Some(true);
        if !right && let Some(damaged) = self.shared.damaged.get(ingress.index()) {
            damaged.add(1);
        }
        let port = (right && record.class != RoceClass::Cnp).then_some(record.udp_port);
        if right && !self.rings.push(record, sighting.now) {
            self.pace.lose();
            counters.sample_drops.add(1);
            return;
        }
        entry.shown(turn, (moment, self.pace.more), port, shared);
        counters.samples.add(u64::from(right));
        if matches!(turn, Turn::Refresh) {
            self.pace.note(moment);
        }
    }

    /// Hands a whole QP1 packet to the control core.
    #[cold]
    fn copy(&mut self, sighting: &Sighting<'_>) {
        let key = FlowKey::of_packet(sighting.data, sighting.parsed, Qpn::new(GSI_QPN));
        let Some(copy) = key.and_then(|key| CmCopy::of(sighting, key)) else {
            return;
        };
        let from = (copy.ingress, Source::of_words(copy.key.src));
        let counters = &self.shared.counters.seen;
        if self.budget.admits_message(from, sighting.now) && self.messages.push(copy, sighting.now)
        {
            counters.messages.add(1);
            return;
        }
        counters.message_drops.add(1);
        if let Some(lost) = self.shared.lost_messages.get(copy.ingress.index()) {
            lost.add(1);
        }
    }

    /// Counts one RoCEv2 frame that was accepted into a queue, and shows it if due. Returns the slot it was
    /// counted in.
    #[inline(never)]
    pub fn see(&mut self, sighting: &Sighting<'_>) -> FlowSlot {
        let (meta, class) = (sighting.meta, sighting.roce.class);
        let wanted = self.wanted(meta.group.ingress(), meta.egress);
        match class {
            RoceClass::Management if wanted != 0 => self.copy(sighting),
            RoceClass::Unsupported => self.shared.counters.seen.unsupported.add(1),
            _ => {}
        }
        if wanted & class.bit() == 0 {
            return FlowSlot::NONE;
        }
        let Some(key) = CacheKey::of_sighting(sighting) else {
            return FlowSlot::NONE;
        };
        self.count_and_show(sighting, &key)
    }
}

impl FlowTap for FlowCache {
    #[inline]
    fn enqueued<B: FrameBuf>(&mut self, run: &mut Run<B>, now: Nanos) {
        let (head, mut watch) = (run.head, self.watch(&run.head, now));
        let (frames, mut records) = run.parts_mut();
        let mut frames: &[B] = frames;
        if !records.iter().any(Known::is_roce) {
            // Their records name no slot yet.
            return;
        }
        self.begin_run(head.group.ingress(), now);
        if watch.many {
            watch.common = self.note(records, watch.queue);
            self.warm(records);
        } else {
            watch.common = self.note_home(records, watch.queue);
        }
        loop {
            let counted = self.count(frames, records, &watch);
            let (Some([buf, frames_left @ ..]), Some([record, records_left @ ..])) =
                (frames.get(counted..), records.get_mut(counted..))
            else {
                break;
            };
            record.slot = self.look(&head, (buf, &*record), &watch);
            (frames, records) = (frames_left, records_left);
        }
    }

    #[inline]
    fn owe(&mut self, meta: &Meta) -> bool {
        self.owe_strike(meta)
    }

    #[inline]
    fn may_owe(&self) -> bool {
        self.has_owing()
    }

    #[inline]
    fn redeem(&mut self, slot: FlowSlot) -> bool {
        self.redeem_strike(slot)
    }

    #[inline]
    fn has_returned(&self, now: Nanos) -> bool {
        self.expects_returned(now)
    }

    fn ports(&self) -> u32 {
        self.ports
    }
}

/// Sender of the packets with this key.
pub(super) fn source(key: &CacheKey) -> Source {
    Source::of_words(key.flow().src)
}

/// Parses a frame again and shows it, if it is RoCEv2.
fn sighting<B: FrameBuf>(
    head: &RunHead,
    (buf, known): (&B, &Known),
    now: Nanos,
    show: impl FnOnce(&Sighting<'_>) -> FlowSlot,
) -> FlowSlot {
    let data = buf.data();
    let Ok(parsed) = parse(data) else {
        return FlowSlot::NONE;
    };
    let Some(roce) = parsed.roce else {
        return FlowSlot::NONE;
    };
    show(&Sighting {
        data,
        addresses: known.addresses,
        parsed: &parsed,
        roce,
        meta: &head.meta(known),
        now,
    })
}

/// Record that the packet path would have made of a frame.
fn known(sighting: &Sighting<'_>) -> Known {
    let known = Known::of(sighting.parsed, sighting.meta.len);
    let syndrome = sighting
        .data
        .get(usize::from(sighting.roce.bth_off) + HEADER_LEN);
    match syndrome {
        Some(syndrome) if known.traits.is_negative(*syndrome) => Known {
            traits: known.traits.with(Traits::NEGATIVE),
            ..known
        },
        _ => known,
    }
}

/// Counts a packet of `len` bytes in its slot; of a flow that had paused, returns the time of its packet before, and the bytes it contributes.
#[inline(always)]
fn tally(
    shared: &Slot,
    traits: Traits,
    (len, ack_psn): (u16, u32),
    now: Nanos,
) -> Option<(Nanos, u64)> {
    let bytes = contribution(traits, len);
    shared.contribute(bytes);
    shared.note_request_if(traits.any(Traits::REQUEST), ack_psn);
    let before = shared.count(now);
    (before < asleep(now)).then_some((before, bytes))
}
