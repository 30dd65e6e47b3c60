//! The worker's half of sampling: counts every flow of an NPCC port, and shows the control core a few packets of each.
//!
//! ```text
//!   worker (private)              shared, 64 bytes a slot                    control core
//!   set of 8 tags + 8 ages   ->   generation, bytes, packets, last seen  ->  reads
//!   8 keys, sample budgets   <-   control word                           <-  writes
//!                            ------ ring of records ------------------->     pairs
//! ```
//! Law: one hash and one set probe per packet; a frame is never held up. Every word has one writer. When all ways of a set
//! were seen within [`BUSY`], the frame goes uncounted and `cache_full` says so, so that a flood of new flows cannot push
//! out live ones. Bytes are counted for [`RoceClass::Data`] only: ACK, CNP and CM never contribute to congestion.

mod reader;
mod slot;

use std::sync::Arc;

use npcc_pipeline::frame::FlowSlot;
use npcc_pipeline::tap::{FlowTap, Sighting};
use npcc_pipeline::units::Nanos;
use npcc_pipeline::wire::bth::{Bth, GSI_QPN, HEADER_LEN, RoceClass};
use rtrb::{Producer, RingBuffer};
use zerocopy::FromBytes;

use crate::cm::copy::CmCopy;
use crate::key::{FlowKey, KeyHasher, Qpn, QueueFlow, low32};
use crate::pair::psn::is_request;
use crate::sample::{Record, SlotRef, has_aeth};
pub use reader::{CacheCounters, CacheReader, CacheShared};
use slot::Slot;
pub use slot::SlotReading;

/// Keys that share a set.
const WAYS: usize = 8;
/// A way seen this recently is not given to another flow.
pub const BUSY: Nanos = Nanos::from_millis(10);
/// One packet of every flow is shown this often, so that contradictions are still seen.
pub const REFRESH: Nanos = Nanos::from_millis(10);
/// So long a refresh waits for a packet that the other direction shows the answer of.
const PATIENCE: Nanos = Nanos::from_millis(15);
/// Two passing CNPs (or NAKs) of one flow are shown no closer than this: NICs ignore closer ones (facts 5.5).
pub const CNP_GAP: Nanos = Nanos::from_micros(4);
/// Details of a flow not yet paired: any packet, and packets with AckReq or AETH only.
const DETAILS_ANY: u8 = 8;
const DETAILS_NOTABLE: u8 = 8;

/// Chosen packets shown after each refresh, while the flow is still not paired.
const AGAIN: u8 = 4;
/// Notable packets between two refreshes, in powers of two, of which all are chosen.
const CHOOSY: u8 = 2;
/// ACK and NAK of RC.
const ACKNOWLEDGE: u8 = 0x11;
/// Changes of a flow's UDP source port that are shown at once, of those within [`REFRESH`].
const CHANGES: u8 = 4;
/// QP1 packets on their way to the control core, 400 bytes each.
const MESSAGES: usize = 1_024;

/// One in every octet.
const ONES: u64 = u64::MAX / 0xff;

/// Ages are kept in units of 1,024 ns and wrap after 73 minutes.
const AGE_SHIFT: u32 = 10;

const fn stamp(time: Nanos) -> u32 {
    low32(time.0 >> AGE_SHIFT)
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Set {
    /// Eight low hash bits a way, lowest set, the first way in the low octet; 0 is free.
    tags: u64,
    /// When last seen.
    seen: [u32; WAYS],
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Entry {
    key: [u64; 5],
    generation: u32,
    refreshed: u32,
    cnp_shown: u32,
    /// UDP source port.
    port: u16,
    any: u8,
    notable: u8,
    /// Chosen packets still shown, until the next refresh.
    again: u8,
    /// One notable packet in two to the power of this is chosen.
    choice: u8,
    /// Notable packets since the last refresh.
    notables: u16,
    /// Changes of the port still shown, until the next refresh.
    changes: u8,
    fresh: bool,
}

/// The worker's side. Implements [`FlowTap`].
#[derive(Debug)]
pub struct FlowCache {
    sets: Box<[Set]>,
    entries: Box<[Entry]>,
    shared: Arc<CacheShared>,
    ring: Producer<Record>,
    messages: Producer<CmCopy>,
    mask: usize,
    ports: u32,
    hasher: KeyHasher,
}

impl FlowCache {
    /// A cache of at least `slots` flows for the ports in `ports`, and a ring of `ring` records (96 bytes each).
    ///
    /// `seed` should differ from start to start, so that nobody can aim at one set.
    #[must_use]
    pub fn new(slots: usize, ports: u32, ring: usize, seed: u64) -> (FlowCache, CacheReader) {
        let sets = slots.div_ceil(WAYS).next_power_of_two();
        let shared = Arc::new(CacheShared {
            slots: (0..sets * WAYS).map(|_| Slot::default()).collect(),
            counters: CacheCounters::default(),
        });
        let (producer, consumer) = RingBuffer::new(ring.max(1));
        let (messages, copies) = RingBuffer::new(MESSAGES);
        let cache = FlowCache {
            sets: vec![Set::default(); sets].into_boxed_slice(),
            entries: vec![Entry::default(); sets * WAYS].into_boxed_slice(),
            shared: Arc::clone(&shared),
            ring: producer,
            messages,
            mask: sets - 1,
            ports,
            hasher: KeyHasher::new(seed),
        };
        (
            cache,
            CacheReader {
                ring: consumer,
                messages: copies,
                shared,
            },
        )
    }

    /// The slot of this key, made for it if need be.
    #[inline]
    fn slot_of(&mut self, key: &QueueFlow, now: u32) -> Option<usize> {
        let words = key.words();
        let hash = self.hasher.of_words(&words);
        let tag = hash & 0xff | 1;
        let index = low32(hash >> 32) as usize & self.mask;
        let set = self.sets.get_mut(index)?;
        // All eight at once: an octet that is equal becomes zero. One above such an octet may be taken for another; its key
        // tells.
        let differ = set.tags ^ (tag * ONES);
        let mut matches = differ.wrapping_sub(ONES) & !differ & (ONES << 7);
        while matches != 0 {
            let way = matches.trailing_zeros() as usize / 8;
            let slot = index * WAYS + way;
            if self
                .entries
                .get(slot)
                .is_some_and(|entry| entry.key == words)
            {
                *set.seen.get_mut(way)? = now;
                return Some(slot);
            }
            matches &= matches - 1;
        }
        self.replace(index, tag, words, now)
    }

    /// Gives the way longest unseen to a new key, unless all are busy.
    #[cold]
    fn replace(&mut self, index: usize, tag: u64, words: [u64; 5], now: u32) -> Option<usize> {
        let set = self.sets.get_mut(index)?;
        let known = set.tags.to_le_bytes();
        let age = |(known, seen): (&u8, &u32)| match known {
            0 => u32::MAX,
            _ => now.wrapping_sub(*seen),
        };
        let ages = known.iter().zip(&set.seen).map(age).enumerate();
        let (way, oldest) = ages.max_by_key(|(_, age)| *age)?;
        let counters = &self.shared.counters;
        if oldest <= stamp(BUSY) {
            counters.cache_full.add(1);
            return None;
        }
        let shift = 8 * u32::try_from(way).ok()?;
        let free = set.tags >> shift & 0xff == 0;
        set.tags = set.tags & !(0xff << shift) | tag << shift;
        *set.seen.get_mut(way)? = now;
        counters.replaced.add(u64::from(!free));
        let slot = index * WAYS + way;
        let generation = self.shared.slots.get(slot)?.renew();
        *self.entries.get_mut(slot)? = Entry {
            key: words,
            generation,
            refreshed: now,
            cnp_shown: now,
            port: 0,
            any: DETAILS_ANY,
            notable: DETAILS_NOTABLE,
            again: 0,
            choice: 0,
            notables: 0,
            changes: CHANGES,
            fresh: true,
        };
        Some(slot)
    }

    /// Counts the packet, and shows it when it is its turn.
    #[inline]
    fn count(&mut self, sighting: &Sighting<'_>, key: &QueueFlow, base: &Bth) -> FlowSlot {
        let now = stamp(sighting.now);
        let Some(slot) = self.slot_of(key, now) else {
            return FlowSlot::NONE;
        };
        let (Some(entry), Some(shared)) = (self.entries.get_mut(slot), self.shared.slots.get(slot))
        else {
            return FlowSlot::NONE;
        };
        let class = sighting.roce.class;
        let bytes = if class == RoceClass::Data {
            u64::from(sighting.meta.wire_len)
        } else {
            0
        };
        let request = is_request(base.opcode).then(|| base.psn());
        let packets = shared.count(bytes, request, sighting.now);
        let flow_slot = FlowSlot(u32::try_from(slot).unwrap_or(u32::MAX));
        let notable = (base.ack_req() || has_aeth(base.opcode)).then(|| base.psn());
        entry.notables = entry.notables.saturating_add(u16::from(notable.is_some()));
        let urgent = class == RoceClass::Cnp || is_nak(sighting, base.opcode);
        let moved = entry.moves(class, source_port(sighting));
        if let Some(turn) = entry.turn(urgent, notable, moved, now, shared) {
            let reference = SlotRef {
                slot: flow_slot,
                generation: entry.generation,
            };
            if let Some(record) = Record::of(sighting, key.key, reference, low32(packets)) {
                let counters = &self.shared.counters;
                if self.ring.push(record).is_ok() {
                    entry.shown(turn, now);
                    counters.samples.add(1);
                } else {
                    counters.sample_drops.add(1);
                }
            }
        }
        flow_slot
    }
}

/// Why a packet is shown.
#[derive(Debug, Clone, Copy)]
enum Turn {
    Notable,
    Any,
    Chosen,
    Refresh,
    Moved,
    Cnp,
}

/// 0 when there is none.
#[inline]
fn source_port(sighting: &Sighting<'_>) -> u16 {
    let udp = sighting.data.get(usize::from(sighting.parsed.l4_off)..);
    let port = udp.and_then(|udp| udp.first_chunk());
    port.map_or(0, |port| u16::from_be_bytes(*port))
}

/// Whether an ACK is a NAK or RNR NAK.
#[inline]
fn is_nak(sighting: &Sighting<'_>, opcode: u8) -> bool {
    if opcode != ACKNOWLEDGE {
        return false;
    }
    let aeth = usize::from(sighting.roce.bth_off) + HEADER_LEN;
    let syndrome = sighting.data.get(aeth);
    syndrome.is_some_and(|syndrome| syndrome & 0b0110_0000 != 0)
}

impl Entry {
    /// Takes a packet's UDP source port; `true` when it is another than before. A CNP has one of its own.
    #[inline]
    fn moves(&mut self, class: RoceClass, port: u16) -> bool {
        if self.port == port || class == RoceClass::Cnp {
            return false;
        }
        std::mem::replace(&mut self.port, port) != 0
    }

    /// Whether a packet with this number is one of the few that are shown: a request and its reply have the same number, so
    /// that both directions show the same few.
    #[inline]
    fn is_chosen(&self, psn: u32) -> bool {
        psn.wrapping_mul(0x9e37_79b1).leading_zeros() >= u32::from(self.choice)
    }

    /// `notable` is the number of a packet with AckReq or AETH.
    #[inline]
    fn turn(
        &self,
        urgent: bool,
        notable: Option<u32>,
        moved: bool,
        now: u32,
        shared: &Slot,
    ) -> Option<Turn> {
        let since = now.wrapping_sub(self.refreshed);
        if urgent {
            let due = self.fresh || now.wrapping_sub(self.cnp_shown) >= stamp(CNP_GAP);
            return due.then_some(Turn::Cnp);
        }
        if since >= stamp(REFRESH) {
            let chosen = notable.is_some_and(|psn| self.is_chosen(psn));
            if chosen || self.notables == 0 || since >= stamp(PATIENCE) {
                return Some(Turn::Refresh);
            }
        }
        // Another connection may have taken the queue pair's number: its sender is another.
        if moved && self.changes > 0 {
            return Some(Turn::Moved);
        }
        let turn = match (notable, self.notable, self.any, self.again) {
            (Some(_), 1.., ..) => Turn::Notable,
            (_, _, 1.., _) => Turn::Any,
            (Some(psn), _, _, 1..) if self.is_chosen(psn) => Turn::Chosen,
            _ => return None,
        };
        (!shared.is_paired(self.generation)).then_some(turn)
    }

    fn shown(&mut self, turn: Turn, now: u32) {
        self.fresh = false;
        self.refreshed = now;
        match turn {
            Turn::Notable => self.notable -= 1,
            Turn::Any => self.any -= 1,
            Turn::Chosen => self.again -= 1,
            Turn::Refresh => {
                self.changes = CHANGES;
                self.again = AGAIN;
                let power = self.notables.checked_ilog2().unwrap_or(0);
                self.choice = u8::try_from(power).unwrap_or(0).saturating_sub(CHOOSY);
                self.notables = 0;
            }
            Turn::Moved => self.changes -= 1,
            Turn::Cnp => self.cnp_shown = now,
        }
    }
}

impl FlowCache {
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
    #[inline]
    fn enqueued(&mut self, sighting: &Sighting<'_>) -> FlowSlot {
        let entering = self.ports & sighting.meta.ingress.bit() != 0;
        let leaving = self.ports & sighting.meta.egress.bit() != 0;
        let wanted = match sighting.roce.class {
            // An ACK that enters names the queue pair at the near side; one that leaves says how long the near side takes.
            RoceClass::Data | RoceClass::Ack => entering || leaving,
            RoceClass::ReadRequest | RoceClass::Atomic | RoceClass::Cnp => entering,
            RoceClass::Management | RoceClass::Datagram | RoceClass::Unsupported => false,
        };
        match sighting.roce.class {
            RoceClass::Management if entering || leaving => self.copy(sighting),
            RoceClass::Unsupported => self.shared.counters.unsupported.add(1),
            RoceClass::Datagram => self.shared.counters.datagrams.add(1),
            _ => {}
        }
        let bth = sighting
            .data
            .get(usize::from(sighting.roce.bth_off)..)
            .unwrap_or_default();
        let Ok((base, _)) = Bth::ref_from_prefix(bth) else {
            return FlowSlot::NONE;
        };
        match FlowKey::of_packet(sighting.data, sighting.parsed, Qpn::new(base.dest_qp())) {
            Some(key) if wanted => {
                let meta = sighting.meta;
                let key = QueueFlow {
                    key,
                    egress: meta.egress,
                    priority: meta.priority,
                };
                self.count(sighting, &key, base)
            }
            _ => FlowSlot::NONE,
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

const _: () = assert!(size_of::<Entry>() == 64 && size_of::<Set>() == 64);
const _: () = assert!(size_of::<Record>() <= 96);

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
