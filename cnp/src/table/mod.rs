//! Flow table: data flows in watched queues. The control core is its only writer; readers on other threads take
//! consistent snapshots and never make it wait.
//!
//! Fixed capacity, of which flows without evidence have three quarters: anybody can make them up. When there is no room, the flow longest
//! idle that has no evidence goes first, if unseen for [`UNPROVEN_IDLE`] or of a port or source that [holds more](npcc_roce::holdings) than the
//! newcomer's, then the longest idle with evidence; a flow with evidence seen within [`IDLE`] is never displaced, and the newcomer is refused.

mod flow;
mod lists;
mod view;

use std::hint::black_box;
use std::sync::Arc;

use npcc_pipeline::units::{Nanos, PortId};

use crate::seqlock::SeqCell;
pub(crate) use flow::Flow;
pub(crate) use lists::{QueueList, RECENT};
use npcc_roce::fixed_map::FixedMap;
use npcc_roce::key::{FlowKey, QueueFlow};
use npcc_roce::sample::SlotRef;
use view::WORDS;
pub use view::{FlowSnapshot, FlowView};

/// Time unseen after which a flow contributes to nothing and may be displaced.
pub const IDLE: Nanos = Nanos::from_millis(3_000);
/// Time unseen after which a flow without an answer may be displaced: anybody can make such flows up.
pub const UNPROVEN_IDLE: Nanos = Nanos::from_millis(100);

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
        let look =
            |flow: &Flow| flow.pairing_checked.0 ^ flow.cnps ^ u64::from(flow.dcqcn.response as u8);
        self.flows.prefetch_found(found, look);
        self.prefetch_shown(found);
    }

    /// Prefetches the fields of these flows that a reading needs, which is all of them.
    pub(crate) fn prefetch_found(&self, found: &[u32]) {
        let look = |flow: &Flow| {
            flow.pairing_checked.0 ^ flow.cnps ^ flow.window.read_at().0 ^ flow.dcqcn.look()
        };
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
            response: flow.dcqcn.response,
            ingress: flow.ingress,
            bytes: flow.bytes,
            cnps: flow.cnps,
            would_send: flow.dry_run.cnps,
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
