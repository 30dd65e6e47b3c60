//! Flows of watched queues: entry into the table, replacement, and pairing.

use npcc_pipeline::units::Nanos;

use super::{FlowTracker, LEAST_READS, SLOW, UNWATCHED};
use crate::table::{Flow, IDLE, QueueList, UNPROVEN_IDLE};
use crate::uncounted::Uncounted;
use npcc_roce::holdings::{Holder, LOOKED_AT};
use npcc_roce::key::QueueFlow;
use npcc_roce::pair::connections::EndpointId;
use npcc_roce::pair::{Evidence, Pairing, Resolution};
use npcc_roce::sample::PacketSample;

/// Time unseen after which a flow without an answer is forgotten.
const FORGET: Nanos = Nanos::from_millis(6_000);
/// Maximum number of flows forgotten per tick.
const FORGOTTEN_PER_TICK: usize = 8;

/// Key of a record's flow in its queue.
pub(super) const fn queue_flow(record: &PacketSample) -> QueueFlow {
    QueueFlow {
        key: record.key,
        egress: record.egress,
        priority: record.priority,
    }
}

impl FlowTracker {
    /// Number of flows of a queue that contributed lately.
    pub(crate) fn listed(&self, queue: usize) -> usize {
        self.lists.get(queue).map_or(0, QueueList::len)
    }

    pub(super) fn owns(&self, flow: u32, endpoint: EndpointId) -> bool {
        let key = self.flows.flow_key(flow);
        key.is_some() && key == self.connections.key(endpoint)
    }

    pub(crate) fn queue_index(&self, key: &QueueFlow) -> Option<usize> {
        let queue = *self
            .queue_of
            .get(key.egress.index())?
            .get(key.priority.index())?;
        (queue != UNWATCHED).then_some(usize::from(queue))
    }

    /// Index of the watched queue that a flow is in.
    pub(super) fn queue_of_flow(&self, index: u32) -> Option<usize> {
        self.queue_index(&self.flows.key(index)?)
    }

    /// Returns true if a flow is of a moved host: it is listed with a watched queue, and its frames are in another.
    pub(crate) fn is_moved(&self, index: u32) -> bool {
        let moved = self.settings.hosts.unresponsive.priority();
        moved.is_some_and(|moved| {
            let key = self.flows.key(index);
            key.is_some_and(|key| key.priority == moved)
        })
    }

    /// Takes the flows of moved hosts off the lists of watched queues.
    pub(super) fn unlist_moved(&mut self) {
        for queue in 0..self.lists.len() {
            for _ in 0..self.listed(queue) {
                let list = self.lists.get_mut(queue);
                let Some(index) = list.and_then(|list| self.flows.advance(list)) else {
                    break;
                };
                if self.is_moved(index) {
                    self.unlist(index);
                }
            }
        }
    }

    pub(super) fn see_flow(
        &mut self,
        record: &PacketSample,
        reader: usize,
        (endpoint, resolution): (EndpointId, Resolution),
        hint: u32,
        now: Nanos,
    ) {
        let key = queue_flow(record);
        let Some(queue) = self.queue_index(&key) else {
            return;
        };
        let known = self.flows.find_at(hint, &key);
        let at = known
            .and_then(|index| self.flows.get(index))
            .map(|flow| (flow.reader, flow.slot));
        let index = match known {
            Some(index) => index,
            None => match self.enter(key, (record, reader), &resolution, now) {
                Ok(index) => index,
                Err(why) => {
                    self.count_aside(record, reader, why);
                    return;
                }
            },
        };
        // The flow's entry in the queue that it left, where its route changed.
        let left = self.connections.flow_hint(endpoint.0);
        let is_left = left != index && self.flows.flow_key(left) == Some(key.key);
        let sender = self.flows.get(left).filter(|_| is_left);
        let sender = sender.map(|flow| flow.dcqcn);
        // A flow that never paused was read within this time.
        let round = self.tick.0 * (self.listed(queue) / LEAST_READS) as u64;
        let unheard = Nanos(2 * SLOW.0.max(2 * round));
        if let Some(flow) = self.flows.get_mut(index) {
            if (flow.reader, flow.slot) != (reader, record.slot) {
                (flow.reader, flow.slot, flow.slot_bytes) = (reader, record.slot, 0);
                flow.returned = 0;
            }
            let paused = flow.window.read_at().since(flow.last_seen) > SLOW;
            if paused || record.time.since(flow.last_seen) > unheard {
                flow.window.resume(record.time);
            }
            if let Some(sender) = sender {
                flow.dcqcn.adopt_sender(&sender);
            }
            flow.ingress = record.ingress;
            flow.last_seen = record.time;
            flow.endpoint = Some(endpoint);
        }
        self.note_slot(reader, record.slot.slot.0 as usize, index);
        if let Some(state) = self.connections.endpoint_mut(endpoint) {
            state.flow = index;
        }
        if let Some(list) = self.lists.get_mut(queue) {
            self.flows.list(list, index);
            self.flows.activate(list, index);
        }
        self.apply_resolution(index, Some((endpoint, resolution)), now);
        if at != Some((reader, record.slot)) {
            // A control word written there for another flow may pass for this one's: generations wrap.
            self.write_control(index);
        }
        self.flows.publish(index);
    }

    /// Enters a flow, if there is room: a flow without evidence may not take the whole table.
    fn enter(
        &mut self,
        key: QueueFlow,
        (record, reader): (&PacketSample, usize),
        resolution: &Resolution,
        now: Nanos,
    ) -> Result<u32, Uncounted> {
        let proven = resolution.pairing.evidence() != Evidence::None;
        let holder = self.unproven.holder(&key.key, record.ingress);
        if self.flows.is_full() || !proven && self.flows.is_full_of_unproven() {
            let Some(old) = self.displaceable(proven, holder, now) else {
                self.status.flows_refused.add(1);
                return Err(Uncounted::NoRoom);
            };
            self.remove(old);
            self.status.flows_displaced.add(1);
        }
        let mut flow = Flow::new(reader, record.slot, record.ingress, record.time);
        flow.holder = holder;
        flow.slot_bytes = self.uncounted_slots.counted(reader, record.slot);
        let index = self.flows.insert(key, flow).ok_or(Uncounted::NoRoom)?;
        self.count(Evidence::None, 1);
        self.unproven.count(holder, true);
        Ok(index)
    }

    /// Returns the flow that may go: one without evidence before those with it, oldest first, if it is idle or its holder has more than the newcomer's.
    /// A newcomer without evidence displaces only flows without it, unless the table itself is full.
    fn displaceable(&mut self, proven: bool, newcomer: Holder, now: Nanos) -> Option<u32> {
        let may_go = |index: &u32| {
            let flow = self.flows.get(*index);
            flow.is_some_and(|flow| self.unproven.makes_room(flow.holder, newcomer))
                || self.is_idle(*index, UNPROVEN_IDLE, now)
        };
        let unproven = self.flows.unproven().take(LOOKED_AT).find(may_go);
        let paired = || {
            let may = proven || !self.flows.is_full_of_unproven();
            let oldest = self.flows.oldest(true).filter(|_| may);
            oldest.filter(|index| self.is_idle(*index, IDLE, now))
        };
        let found = unproven.or_else(paired);
        if found.is_none() {
            // Moved back, so that the next newcomer looks at others.
            self.flows.rotate_unproven(LOOKED_AT);
        }
        found
    }

    /// Returns true if no packet of a flow was seen for `time`, by its worker either.
    fn is_idle(&self, index: u32, time: Nanos, now: Nanos) -> bool {
        self.flows.get(index).is_some_and(|flow| {
            let reader = self.readers.get(flow.reader);
            let reading = reader.and_then(|reader| reader.read(flow.slot));
            let seen = reading.map_or(flow.last_seen, |slot| slot.last_seen.max(flow.last_seen));
            now.since(seen) >= time
        })
    }

    fn remove(&mut self, index: u32) {
        self.unlist(index);
        if let Some((_, old)) = self.flows.remove(index) {
            self.count(old.evidence, -1);
            if old.evidence == Evidence::None {
                self.unproven.count(old.holder, false);
            }
        }
    }

    /// Forgets a few flows without an answer that are long unseen, as their endpoints are.
    pub(super) fn forget_unproven(&mut self, now: Nanos) {
        for _ in 0..FORGOTTEN_PER_TICK {
            match self.flows.oldest(false) {
                Some(old) if self.is_idle(old, FORGET, now) => self.remove(old),
                _ => break,
            }
        }
    }

    pub(super) fn count(&mut self, evidence: Evidence, step: i64) {
        if let Some(count) = self.paired.get_mut(evidence.index()) {
            *count = count.saturating_add_signed(step);
        }
    }

    pub(super) fn unlist(&mut self, index: u32) {
        let queue = self.queue_of_flow(index);
        if let Some(list) = queue.and_then(|queue| self.lists.get_mut(queue)) {
            self.flows.unlist(list, index);
        }
    }

    /// Judges a flow's pairing again; returns it.
    pub(crate) fn refresh_pairing(&mut self, index: u32, now: Nanos) -> Pairing {
        let endpoint = self.flows.get(index).and_then(|flow| flow.endpoint);
        let endpoint = endpoint
            .filter(|endpoint| self.connections.key(*endpoint) == self.flows.flow_key(index));
        let resolution =
            endpoint.map(|endpoint| (endpoint, self.connections.resolve(endpoint, now)));
        self.apply_resolution(index, resolution, now)
    }

    /// Stores the judgement of a flow's endpoint; returns its pairing at this moment.
    pub(super) fn apply_resolution(
        &mut self,
        index: u32,
        resolution: Option<(EndpointId, Resolution)>,
        now: Nanos,
    ) -> Pairing {
        let Some(flow) = self.flows.get(index) else {
            return Pairing::Cold;
        };
        let (old, holder, key) = (flow.evidence, flow.holder, self.flows.flow_key(index));
        let pairing = resolution.map_or(Pairing::Cold, |(_, resolution)| resolution.pairing);
        if let Some((endpoint, resolution)) = resolution {
            self.connections.set_partner(endpoint, resolution.partner);
        }
        let evidence = pairing.evidence();
        let near = key.and_then(|key| self.host_rtt.delay(&key));
        let far = key.and_then(|key| self.host_rtt.far_delay(&key));
        let settings = &self.settings;
        let mut stale = evidence != old;
        if let Some(flow) = self.flows.get_mut(index) {
            flow.dcqcn.learn_sender_rtt(near);
            (flow.near, flow.far) = (flow.dcqcn.bounded_rtt(settings.feedback), far);
            let gated = settings.leaves_to_ecn(flow.near, far);
            stale |= flow.gated != gated;
            flow.gated = gated;
            if let Pairing::Paired(qpn, _) = pairing {
                flow.sender = qpn;
            }
            flow.evidence = evidence;
            flow.cold = pairing == Pairing::Cold;
            flow.trusted = settings.trusts(flow.ingress);
            // The other inputs of the control word change seldom: hosts' classes and settings.
            stale |= now.since(flow.pairing_checked) >= SLOW;
            flow.pairing_checked = now;
        }
        if evidence != old {
            self.count(old, -1);
            self.count(evidence, 1);
            if let (Evidence::Foreign, Pairing::Paired(sender, _), Some(key)) =
                (evidence, pairing, key)
            {
                self.count_reported_pair(&key, sender);
            }
            if old == Evidence::None || evidence == Evidence::None {
                self.unproven.count(holder, evidence == Evidence::None);
            }
        }
        if stale {
            self.write_control(index);
        }
        self.flows.touch(index, evidence != Evidence::None);
        pairing
    }
}
