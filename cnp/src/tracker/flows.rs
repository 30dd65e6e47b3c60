//! Flows of watched queues: who is in the table, and whose queue pair sends them.

use npcc_pipeline::units::Nanos;

use super::{FlowTracker, LEAST_READS, SLOW, UNWATCHED};
use crate::key::QueueFlow;
use crate::pair::connections::EndpointId;
use crate::pair::{Evidence, Judgement, Pairing};
use crate::sample::Record;
use crate::table::{Flow, QueueList};

/// The flow of a record in its queue.
const fn queue_flow(record: &Record) -> QueueFlow {
    QueueFlow {
        key: record.key,
        egress: record.egress,
        priority: record.priority,
    }
}

impl FlowTracker {
    /// Flows of a queue that contributed lately.
    pub(crate) fn listed(&self, queue: usize) -> usize {
        self.lists.get(queue).map_or(0, QueueList::len)
    }

    pub(super) fn owns(&self, flow: u32, end: EndpointId) -> bool {
        let key = self.flows.flow_key(flow);
        key.is_some() && key == self.connections.key(end)
    }

    pub(super) fn queue_index(&self, key: &QueueFlow) -> Option<usize> {
        let queue = *self
            .queue_of
            .get(key.egress.index())?
            .get(key.priority.index())?;
        (queue != UNWATCHED).then_some(usize::from(queue))
    }

    pub(super) fn see_flow(
        &mut self,
        record: &Record,
        reader: usize,
        judged: Option<(EndpointId, Judgement)>,
        hint: u32,
        now: Nanos,
    ) {
        let end = judged.map(|(end, _)| end);
        let key = queue_flow(record);
        let Some(queue) = self.queue_index(&key) else {
            return;
        };
        let index = match self.flows.find_at(hint, &key) {
            Some(index) => index,
            None => match self.insert(
                key,
                Flow::new(reader, record.slot, record.ingress, record.time),
                now,
            ) {
                Some(index) => index,
                None => return,
            },
        };
        // A flow that never paused was read within this time.
        let round = self.tick.0 * (self.listed(queue) / LEAST_READS) as u64;
        let unheard = Nanos(2 * SLOW.0.max(2 * round));
        if let Some(flow) = self.flows.get_mut(index) {
            if (flow.reader, flow.slot) != (reader, record.slot) {
                (flow.reader, flow.slot, flow.slot_bytes) = (reader, record.slot, 0);
                flow.notified_until = Nanos::ZERO;
            }
            let paused = flow.window.read_at().since(flow.last_seen) > SLOW;
            if paused || record.time.since(flow.last_seen) > unheard {
                flow.window.resume(record.time);
                flow.resumed = record.time;
            }
            flow.ingress = record.ingress;
            flow.last_seen = record.time;
            flow.trusted = self.trusted & record.ingress.bit() != 0;
            flow.end = end;
        }
        self.note_slot(reader, record.slot.slot.0 as usize, index);
        if let Some(state) = end.and_then(|end| self.connections.end_mut(end)) {
            state.flow = index;
        }
        if let Some(list) = self.lists.get_mut(queue) {
            self.flows.list(list, index);
            self.flows.activate(list, index);
        }
        self.apply_judgement(index, judged, now);
        self.flows.publish(index);
    }

    pub(super) fn insert(&mut self, key: QueueFlow, flow: Flow, now: Nanos) -> Option<u32> {
        if self.flows.is_full() {
            match self.flows.displaceable(now) {
                Some(old) => {
                    self.unlist(old);
                    if let Some((_, old)) = self.flows.remove(old) {
                        self.count(old.evidence, -1);
                    }
                    self.status.flows_displaced.add(1);
                }
                None => {
                    self.status.flows_refused.add(1);
                    return None;
                }
            }
        }
        let index = self.flows.insert(key, flow)?;
        self.count(flow.evidence, 1);
        Some(index)
    }

    pub(super) fn count(&mut self, evidence: Evidence, step: i64) {
        if let Some(count) = self.paired.get_mut(evidence.index()) {
            *count = count.saturating_add_signed(step);
        }
    }

    pub(super) fn unlist(&mut self, index: u32) {
        let queue = self.flows.key(index).and_then(|key| self.queue_index(&key));
        if let Some(list) = queue.and_then(|queue| self.lists.get_mut(queue)) {
            self.flows.unlist(list, index);
        }
    }

    /// Looks at a flow's pairing again, and says what it is at this moment.
    pub(crate) fn refresh_pairing(&mut self, index: u32, now: Nanos) -> Pairing {
        let end = self.flows.get(index).and_then(|flow| flow.end);
        let end = end.filter(|end| self.connections.key(*end) == self.flows.flow_key(index));
        let judged = end.map(|end| (end, self.connections.judge(end, now)));
        self.apply_judgement(index, judged, now)
    }

    /// Takes over what is known of a flow's end, and says what its pairing is at this moment.
    pub(super) fn apply_judgement(
        &mut self,
        index: u32,
        judged: Option<(EndpointId, Judgement)>,
        now: Nanos,
    ) -> Pairing {
        let Some(flow) = self.flows.get(index) else {
            return Pairing::Cold;
        };
        let (old, until, key) = (
            flow.evidence,
            flow.notified_until,
            self.flows.flow_key(index),
        );
        let pairing = judged.map_or(Pairing::Cold, |(_, judged)| judged.pairing);
        if let Some((end, judged)) = judged {
            self.connections.keep_while_paired(end, judged.partner);
        }
        let evidence = pairing.evidence();
        let near = key.and_then(|key| self.near.delay(&key));
        if let Some(flow) = self.flows.get_mut(index) {
            flow.dcqcn.learn_near(near);
            if let Pairing::Paired(qpn, _) = pairing {
                flow.sender = qpn;
            }
            flow.evidence = evidence;
            flow.cold = pairing == Pairing::Cold;
            flow.settled = now;
        }
        if evidence != old {
            self.count(old, -1);
            self.count(evidence, 1);
            self.write_control(index, until, evidence);
        }
        self.flows.touch(index, evidence != Evidence::None);
        pairing
    }
}
