//! Flow table: data flows in watched queues. The control core is its only writer; readers on other threads take
//! consistent snapshots and never make it wait.
//!
//! Fixed capacity, of which flows without evidence have three quarters: anybody can make them up. When there is no room, the flow longest
//! idle that has no evidence goes first, if unseen for [`UNPROVEN_IDLE`] or of a port or source that [holds more](crate::holdings) than the
//! newcomer's, then the longest idle with evidence; a flow with evidence seen within [`IDLE`] is never displaced, and the newcomer is refused.

mod lists;

use std::hint::black_box;
use std::sync::Arc;

use npcc_pipeline::units::{Nanos, PortId};

use crate::dcqcn::DcqcnModel;
use crate::fixed_map::FixedMap;
use crate::holdings::Holder;
use crate::key::{FlowKey, Qpn, QueueFlow, low32};
use crate::pair::Evidence;
use crate::pair::connections::EndpointId;
use crate::plan::Suppressed;
use crate::response::{Response, ResponseWatch};
use crate::sample::SlotRef;
use crate::seqlock::SeqCell;
use crate::window::Window;
use lists::Places;
pub(crate) use lists::{QueueList, RECENT};

/// Time unseen after which a flow contributes to nothing and may be displaced.
pub const IDLE: Nanos = Nanos::from_millis(3_000);
/// Time unseen after which a flow without an answer may be displaced: anybody can make such flows up.
pub const UNPROVEN_IDLE: Nanos = Nanos::from_millis(100);
const WORDS: usize = 13;
const LIVE: u64 = 1 << 63;

/// Private state of one flow.
///
/// In the order of use, a line of 64 bytes a paragraph: fields that every record and every reading needs, further fields that are shown and
/// listed, and fields that readings alone need.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Flow {
    pub(crate) endpoint: Option<EndpointId>,
    /// Index of the worker's cache (`reader`), and the flow's slot in it.
    pub(crate) reader: usize,
    pub(crate) slot: SlotRef,
    /// Byte count of the slot when last read.
    pub(crate) slot_bytes: u64,
    pub(crate) bytes: u64,
    pub(crate) last_seen: Nanos,
    /// Time at which its pairing was last judged.
    pub(crate) settled: Nanos,
    /// [`Flow::bytes`] at its last CNP.
    pub(crate) bytes_at_cnp: u64,

    pub(crate) first_seen: Nanos,
    /// A time soon after it last began to send after a pause, and its bytes until then.
    pub(crate) resumed: (Nanos, u64),
    /// Bytes per window at the rate of the latest reading, if that was long enough to measure one; else 0.
    pub(crate) lately: u64,
    pub(crate) cnps: u64,
    pub(crate) last_cnp: Nanos,
    pub(crate) ingress: PortId,
    /// Holder of the entry while it has no evidence.
    pub(crate) holder: Holder,
    /// Number of strikes returned to the worker, modulo 256.
    pub(crate) returned: u8,
    pub(crate) trusted: bool,
    /// True if its receiver is near: it is left to ECN.
    pub(crate) gated: bool,
    pub(crate) cold: bool,
    pub(crate) evidence: Evidence,
    pub(crate) sender: Qpn,
    places: Places,

    pub(crate) response: ResponseWatch,
    /// Place of its host in the table of responsiveness.
    pub(crate) host: u32,
    /// Time until which it is not tried again, and the reason (`parked_for`).
    pub(crate) backoff_until: Nanos,
    pub(crate) parked_for: Suppressed,
    /// Times that the gate compares. `near`: time to the sender and back as replies show it, taken as one to ten times the default feedback delay.
    /// `far`: round trip to the receiver, where it was measured.
    pub(crate) near: Nanos,
    pub(crate) far: Option<Nanos>,
    /// True if it had paused when last read, and nothing was left to be read.
    pub(crate) asleep: bool,
    pub(crate) window: Window,
    pub(crate) dcqcn: DcqcnModel,
    pub(crate) would: WouldBe,
    /// Reason why it was not signalled when last considered, and the time at which that was last logged.
    pub(crate) refused: Option<(Suppressed, Nanos)>,
}

/// Count and time of the CNPs that would have been sent, where nothing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WouldBe {
    pub(crate) cnps: u64,
    pub(crate) last: Nanos,
}

impl Flow {
    pub(crate) fn new(reader: usize, slot: SlotRef, ingress: PortId, now: Nanos) -> Flow {
        Flow {
            endpoint: None,
            reader,
            slot,
            slot_bytes: 0,
            bytes: 0,
            ingress,
            holder: Holder::NOBODY,
            trusted: true,
            cold: true,
            sender: Qpn::default(),
            evidence: Evidence::None,
            first_seen: now,
            resumed: (now, 0),
            lately: 0,
            last_seen: now,
            settled: Nanos::ZERO,
            bytes_at_cnp: 0,
            returned: 0,
            near: Nanos::ZERO,
            far: None,
            gated: false,
            cnps: 0,
            last_cnp: Nanos::ZERO,
            window: Window::starting(now),
            response: ResponseWatch::default(),
            host: u32::MAX,
            backoff_until: Nanos::ZERO,
            parked_for: Suppressed::Cold,
            asleep: false,
            dcqcn: DcqcnModel::new(now),
            would: WouldBe::default(),
            refused: None,
            places: Places::NOWHERE,
        }
    }
}

/// Snapshot of one flow for readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowSnapshot {
    /// Addresses, the receiver's queue pair, egress port and queue.
    pub flow: QueueFlow,
    /// Queue pair of the sender; meaningful unless `evidence` is none.
    pub sender_qpn: Qpn,
    /// Evidence for the sender's queue pair.
    pub evidence: Evidence,
    /// Response of the flow to its last measured CNPs.
    pub response: Response,
    /// Ingress port.
    pub ingress: PortId,
    /// Wire bytes enqueued since it was first seen.
    pub bytes: u64,
    /// Number of CNPs that we sent for it.
    pub cnps: u64,
    /// Number of CNPs that would have been sent for it, while nothing was sent.
    pub would_send: u64,
    /// True if no packet has come back yet.
    pub cold: bool,
    /// Reason why it was not signalled when last considered.
    pub refused: Option<Suppressed>,
    /// Time of our latest CNP; zero if there was none.
    pub last_cnp: Nanos,
    /// Time of the first packet.
    pub first_seen: Nanos,
    /// Time of the latest packet.
    pub last_seen: Nanos,
    /// Time to the sender and back as replies show it, taken as one to ten times `feedback`; `feedback` until there was a reply.
    pub near: Nanos,
    /// Round trip from here to the receiver, where it was measured.
    pub far: Option<Nanos>,
    /// True if it is left to ECN because its receiver is near.
    pub gated: bool,
}

impl FlowSnapshot {
    fn to_words(self) -> [u64; WORDS] {
        let [a, b, c, d, e] = self.flow.words();
        let meta = u64::from(self.sender_qpn.get())
            | (self.evidence as u64) << 24
            | (self.response as u64) << 32
            | u64::from(self.ingress.0) << 40
            | self.refused.map_or(0, |reason| reason.index() as u64 + 1) << 48
            | u64::from(self.cold) << 56
            | u64::from(self.gated) << 57
            | LIVE;
        [
            a,
            b,
            c,
            d,
            e,
            meta,
            self.bytes,
            self.cnps,
            self.last_cnp.0,
            self.first_seen.0,
            self.last_seen.0,
            self.near.0 << 32 | self.far.map_or(0, |far| far.0 & 0xffff_ffff),
            self.would_send,
        ]
    }

    fn from_words(words: [u64; WORDS]) -> Option<FlowSnapshot> {
        let [
            a,
            b,
            c,
            d,
            e,
            meta,
            bytes,
            cnps,
            last_cnp,
            first_seen,
            last_seen,
            round_trips,
            would_send,
        ] = words;
        let [_, _, _, evidence, response, ingress, refused, flags] = meta.to_le_bytes();
        let refused = usize::from(refused).checked_sub(1);
        (meta & LIVE != 0).then(|| FlowSnapshot {
            flow: QueueFlow::from_words([a, b, c, d, e]),
            sender_qpn: Qpn::new(low32(meta)),
            evidence: Evidence::from_index(usize::from(evidence)).unwrap_or_default(),
            response: Response::from_index(usize::from(response)).unwrap_or_default(),
            ingress: PortId(ingress),
            bytes,
            cnps,
            would_send,
            cold: flags & 1 != 0,
            refused: refused.and_then(Suppressed::from_index),
            last_cnp: Nanos(last_cnp),
            first_seen: Nanos(first_seen),
            last_seen: Nanos(last_seen),
            near: Nanos(round_trips >> 32),
            far: (low32(round_trips) > 0).then(|| Nanos(low32(round_trips).into())),
            gated: flags & 2 != 0,
        })
    }
}

/// The readers' side of the flow table.
#[derive(Debug)]
pub struct FlowView {
    cells: Box<[SeqCell<WORDS>]>,
}

impl FlowView {
    /// Number of places in the table.
    #[must_use]
    pub fn places(&self) -> usize {
        self.cells.len()
    }

    /// Snapshot of the flow at a place, if there is one.
    #[must_use]
    pub fn at(&self, place: usize) -> Option<FlowSnapshot> {
        let words = self.cells.get(place)?.read();
        words.and_then(FlowSnapshot::from_words)
    }

    /// Snapshots of all flows, each as it was at one moment. A flow that is being written all the while is left out.
    pub fn flows(&self) -> impl Iterator<Item = FlowSnapshot> + '_ {
        self.cells
            .iter()
            .filter_map(|cell| cell.read().and_then(FlowSnapshot::from_words))
    }
}

/// The writer's side of the flow table.
#[derive(Debug)]
pub(crate) struct FlowTable {
    flows: FixedMap<QueueFlow, Flow>,
    view: Arc<FlowView>,
}

impl FlowTable {
    pub(crate) fn new(capacity: usize, seed: u64) -> FlowTable {
        let capacity = capacity.max(1);
        let view = FlowView {
            cells: (0..capacity).map(|_| SeqCell::new()).collect(),
        };
        FlowTable {
            flows: FixedMap::new(capacity, seed),
            view: Arc::new(view),
        }
    }

    pub(crate) fn view(&self) -> Arc<FlowView> {
        Arc::clone(&self.view)
    }

    pub(crate) fn len(&self) -> usize {
        self.flows.len()
    }

    /// Prefetches the fields of these flows that a record needs.
    pub(crate) fn prefetch_listed(&self, found: &[u32]) {
        let look = |flow: &Flow| flow.settled.0 ^ flow.cnps ^ u64::from(flow.response.last() as u8);
        self.flows.prefetch_found(found, look);
        self.prefetch_shown(found);
    }

    /// Prefetches the fields of these flows that a reading needs, which is all of them.
    pub(crate) fn prefetch_found(&self, found: &[u32]) {
        let look =
            |flow: &Flow| flow.settled.0 ^ flow.cnps ^ flow.window.read_at().0 ^ flow.dcqcn.look();
        self.flows.prefetch_found(found, look);
        self.prefetch_shown(found);
    }

    /// Prefetches the snapshots of these flows: they are written again.
    fn prefetch_shown(&self, found: &[u32]) {
        let cells = found
            .iter()
            .filter_map(|index| self.view.cells.get(*index as usize));
        black_box(cells.fold(0, |sum, cell| sum ^ cell.look()));
    }

    /// Touches all memory there will ever be.
    pub(crate) fn touch_memory(&mut self, any: QueueFlow) {
        let blank = Flow::new(0, SlotRef::NONE, PortId(0), Nanos::ZERO);
        self.flows.touch_memory(any, blank);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.flows.is_full()
    }

    /// Finds the flow with this key, looked for first at a place that it may have.
    pub(crate) fn find_at(&self, hint: u32, key: &QueueFlow) -> Option<u32> {
        self.flows.find_at(hint, key)
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Flow> {
        self.flows.get(index)
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Flow> {
        self.flows.get_mut(index)
    }

    pub(crate) fn key(&self, index: u32) -> Option<QueueFlow> {
        self.flows.key(index)
    }

    pub(crate) fn insert(&mut self, key: QueueFlow, flow: Flow) -> Option<u32> {
        self.flows.insert(key, flow)
    }

    /// Marks a flow as just used, and as one to be kept before others if `paired`.
    pub(crate) fn touch(&mut self, index: u32, paired: bool) {
        self.flows.set_list(index, u8::from(paired));
    }

    /// Flow longest untouched, of those with evidence if `paired`, else of those without.
    pub(crate) fn oldest(&self, paired: bool) -> Option<u32> {
        self.flows.oldest(u8::from(paired))
    }

    /// Flows without evidence, from the one longest untouched.
    pub(crate) fn unproven(&self) -> impl Iterator<Item = u32> + '_ {
        self.flows.by_age(u8::from(false))
    }

    /// Makes the `count` oldest flows without evidence the newest.
    pub(crate) fn rotate_unproven(&mut self, count: usize) {
        self.flows.rotate(u8::from(false), count);
    }

    /// Returns true if flows without evidence have all the places they may have: three quarters.
    pub(crate) fn is_full_of_unproven(&self) -> bool {
        let capacity = self.flows.capacity();
        self.flows.len_of(u8::from(false)) >= capacity - capacity / 4
    }

    /// Removes a flow that is in no list of a queue.
    pub(crate) fn remove(&mut self, index: u32) -> Option<(QueueFlow, Flow)> {
        if let Some(cell) = self.view.cells.get(index as usize) {
            cell.write(&[0; WORDS]);
        }
        self.flows.remove(index)
    }

    /// Publishes a flow's present state to readers.
    pub(crate) fn publish(&self, index: u32) {
        let (Some(flow), Some(key), Some(cell)) = (
            self.get(index),
            self.key(index),
            self.view.cells.get(index as usize),
        ) else {
            return;
        };
        let snapshot = FlowSnapshot {
            flow: key,
            sender_qpn: flow.sender,
            evidence: flow.evidence,
            response: flow.response.last(),
            ingress: flow.ingress,
            bytes: flow.bytes,
            cnps: flow.cnps,
            would_send: flow.would.cnps,
            cold: flow.cold,
            refused: flow.refused.map(|(reason, _)| reason),
            last_cnp: flow.last_cnp,
            first_seen: flow.first_seen,
            last_seen: flow.last_seen,
            near: flow.near,
            far: flow.far,
            gated: flow.gated,
        };
        cell.write(&snapshot.to_words());
    }

    /// Key of the data direction a flow belongs to.
    pub(crate) fn flow_key(&self, index: u32) -> Option<FlowKey> {
        self.key(index).map(|key| key.key)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
