//! What the control core knows of flows: takes in records, reads byte counts, keeps flows, ends and pairing together.

mod contributions;
mod warm;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use arrayvec::ArrayVec;
use npcc_pipeline::units::{MAX_PORTS, Nanos, PRIORITIES, PortId, Priority};
use npcc_pipeline::wire::bth::RoceClass;

use crate::cm::copy::CmCopy;
use crate::cm::message::Message;
use crate::control::config::{ControlConfig, EcnMode, Settings};
use crate::dynamics::Measure;
use crate::fixed_map::TOGETHER;
use crate::flow_cache::CacheReader;
use crate::hosts::Hosts;
use crate::key::{FlowKey, Qpn, QueueFlow};
use crate::near::NearSide;
use crate::pair::book::{EndId, PairBook};
use crate::pair::psn::{asks, is_answer};
use crate::pair::{Evidence, Judgement, Pairing};
use crate::response::ResponseConfig;
use crate::sample::Record;
use crate::source_limit::SourceLimit;
use crate::status::NpccStatus;
use crate::table::{Flow, FlowTable, QueueList};

/// Most workers.
pub(crate) const MAX_READERS: usize = 32;
/// Flows of quiet queues are looked at this often.
const SLOW: Nanos = Nanos::from_millis(10);
/// Of each quiet queue so many flows are looked at in a tick in any case, however late it is and however many records it has
/// taken in.
const LEAST_READS: usize = 64;
/// QP1 packets taken in per tick, from each worker.
const MESSAGES_PER_TICK: usize = 64;
/// New ends per tick and worker: entering one costs several times what an old one's record does.
const NEW_PER_TICK: u64 = 64;
/// Ends whose sequence numbers are compared with those of replies, per tick.
const COMPARED_PER_TICK: usize = 1_024;
/// No watched queue.
const UNWATCHED: u8 = u8::MAX;

/// Ends that a core's own cache holds.
const FEW: usize = 1_024;

/// The flow of a record in its queue.
const fn queue_flow(record: &Record) -> QueueFlow {
    QueueFlow {
        key: record.key,
        egress: record.egress,
        priority: record.priority,
    }
}

#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) flows: FlowTable,
    pub(crate) book: PairBook,
    readers: ArrayVec<CacheReader, MAX_READERS>,
    sources: SourceLimit,
    pub(crate) hosts: Hosts,
    near: NearSide,
    pub(crate) status: Arc<NpccStatus>,
    lists: Box<[QueueList]>,
    /// By port and priority.
    queue_of: [[u8; PRIORITIES]; MAX_PORTS],
    paired: [u64; Evidence::COUNT],
    window: Nanos,
    response: ResponseConfig,
    pub(crate) measure: Measure,
    tick: Nanos,
    floor: Evidence,
    trusted: u32,
    verify_cm: bool,
    ecn: EcnMode,
    records_per_tick: usize,
    reads_per_tick: usize,
    /// Most reads of a quiet queue in a tick, as ticks were on time with so many.
    quiet_reads: usize,
    /// Records taken in by this tick.
    drained: usize,
}

impl Ledger {
    pub(crate) fn new(config: &ControlConfig, period: Nanos, status: Arc<NpccStatus>) -> Ledger {
        let mut queue_of = [[UNWATCHED; PRIORITIES]; MAX_PORTS];
        for (index, queue) in (0..UNWATCHED).zip(&config.queues) {
            let port = queue_of.get_mut(queue.port.index());
            if let Some(slot) = port.and_then(|port| port.get_mut(queue.priority.index())) {
                *slot = index;
            }
        }
        let window = config.window();
        Ledger {
            flows: FlowTable::new(config.flows, config.hash_seed),
            book: PairBook::new(config.ends, config.hash_seed),
            readers: ArrayVec::new(),
            sources: SourceLimit::new(config.new_flows, config.new_flows_burst, config.hash_seed),
            hosts: Hosts::new(config.hash_seed),
            near: NearSide::new(config.hash_seed),
            status,
            lists: vec![QueueList::EMPTY; config.queues.len()].into_boxed_slice(),
            queue_of,
            paired: [0; Evidence::COUNT],
            window,
            response: ResponseConfig {
                feedback: config.feedback,
                window,
            },
            measure: Measure::new(config.feedback, period),
            tick: config.tick,
            floor: config.evidence,
            trusted: config.trusted_ports,
            verify_cm: config.verify_cm,
            ecn: config.ecn,
            records_per_tick: config.records_per_tick,
            reads_per_tick: config.reads_per_tick.max(1),
            quiet_reads: config.reads_per_tick.max(1),
            drained: 0,
        }
    }

    /// Goes by other settings from now on; what is known stays.
    pub(crate) const fn reconfigure(&mut self, settings: &Settings, period: Nanos) {
        self.floor = settings.evidence;
        self.trusted = settings.trusted_ports;
        self.ecn = settings.ecn;
        self.response.feedback = settings.feedback;
        self.measure = Measure::new(settings.feedback, period);
    }

    /// Takes a worker's cache; `false` when there are too many.
    pub(crate) fn attach(&mut self, reader: CacheReader) -> bool {
        self.readers.try_push(reader).is_ok()
    }

    /// Takes in records of all workers, so many from each.
    pub(crate) fn drain(&mut self, now: Nanos) {
        self.book.refill(COMPARED_PER_TICK);
        self.drained = 0;
        for reader in 0..self.readers.len() {
            for _ in 0..MESSAGES_PER_TICK {
                let message = self
                    .readers
                    .get_mut(reader)
                    .and_then(CacheReader::pop_message);
                let Some(message) = message else {
                    break;
                };
                self.hear(&message, now);
            }
            let entered = self.book.entered();
            let mut left = self.records_per_tick;
            loop {
                // A flood of new flows must not hold up those that are to be told.
                let new = NEW_PER_TICK.saturating_sub(self.book.entered() - entered);
                let most = left.min(usize::try_from(new).unwrap_or(usize::MAX));
                let records = self.pop(reader, most);
                if records.is_empty() {
                    break;
                }
                left -= records.len();
                self.drained += records.len();
                self.status.records.add(records.len() as u64);
                let places = self.warm(&records);
                for (at, record) in records.iter().enumerate() {
                    let (end, flow) = places.of(at);
                    let known = self.book.find_at(end, &record.key);
                    self.take(record, reader, known, flow, now);
                }
            }
        }
    }

    /// Up to `most` records of a worker, and no more than are taken in together.
    fn pop(&mut self, reader: usize, most: usize) -> ArrayVec<Record, TOGETHER> {
        let reader = self.readers.get_mut(reader);
        reader.map_or_else(ArrayVec::new, |reader| reader.pop_together(most))
    }

    /// Touches all memory there will ever be, so that no tick waits for the system to find a page.
    pub(crate) fn touch_memory(&mut self) {
        let address = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let key = FlowKey::new(address, address, Qpn::default());
        self.book.touch_memory(key);
        self.flows.touch_memory(QueueFlow {
            key,
            egress: PortId(0),
            priority: Priority::new(0),
        });
    }

    /// Takes in messages of the connection manager.
    fn hear(&mut self, copy: &CmCopy, now: Nanos) {
        let status = &self.status;
        status.cm.heard.add(1);
        if self.trusted & copy.ingress.bit() == 0 {
            status.untrusted.add(1);
            return;
        }
        if self.verify_cm && !copy.is_intact() {
            status.cm.damaged.add(1);
            return;
        }
        let Some(message) = copy.message() else {
            status.cm.foreign.add(1);
            return;
        };
        if matches!(message, Message::Req { .. } | Message::Rep { .. })
            && !self.sources.admit(&copy.key, now)
        {
            status.rate_limited.add(1);
            return;
        }
        self.book.hear(&copy.key, &message, now);
    }

    /// Takes in a record of an end that is known or not, and whose flow may be at `hint`.
    fn take(
        &mut self,
        record: &Record,
        reader: usize,
        known: Option<EndId>,
        hint: u32,
        now: Nanos,
    ) {
        let trusted = self.trusted & record.ingress.bit() != 0;
        let end = if trusted {
            self.learn(record, reader, known, now)
        } else {
            None
        };
        // Nothing below changes what is known of the record's own end.
        let judged = end.map(|end| (end, self.book.judge(end, now)));
        if trusted {
            self.hosts.see(record, &self.status.hosts);
        } else {
            self.status.untrusted.add(1);
        }
        if matches!(record.class, RoceClass::Data | RoceClass::Datagram) {
            self.see_flow(record, reader, judged, hint, now);
        } else if record.class == RoceClass::Cnp {
            self.status.cnps_passed.add(1);
        }
        if end.is_some() && record.class != RoceClass::Datagram && asks(record) {
            self.near.asked(record);
        }
        // A packet that comes back may settle, or unsettle, the flow it answers.
        let Some((partner, evidence)) = judged.and_then(|(_, judged)| judged.partner) else {
            return;
        };
        if let Some(request) = self
            .book
            .key(partner)
            .filter(|_| evidence >= self.floor && is_answer(record))
        {
            self.near.answered(record, &request);
        }
        let answered = self.book.end(partner).map(|state| state.flow);
        if let Some(flow) = answered.filter(|flow| self.owns(*flow, partner)) {
            self.settle(flow, now);
            self.flows.publish(flow);
            if record.class == RoceClass::Cnp {
                self.told_by_receiver(flow, now);
                self.tell(flow, record.time + self.response.feedback, now);
            }
        }
    }

    /// Time from a CNP to a flow's sender to its effect.
    pub(crate) fn feedback(&self, index: u32) -> Nanos {
        let default = self.response.feedback;
        let flow = self.flows.get(index);
        flow.map_or(default, |flow| flow.dynamics.feedback(default))
    }

    fn told_by_receiver(&mut self, index: u32, now: Nanos) {
        if let Some(flow) = self.flows.get_mut(index) {
            let rate = flow.dynamics.predicted();
            flow.dynamics.told(rate, now);
        }
    }

    /// Flows of a queue that contributed lately.
    pub(crate) fn listed(&self, queue: usize) -> usize {
        self.lists.get(queue).map_or(0, QueueList::len)
    }

    fn owns(&self, flow: u32, end: EndId) -> bool {
        let key = self.flows.flow_key(flow);
        key.is_some() && key == self.book.key(end)
    }

    fn learn(
        &mut self,
        record: &Record,
        reader: usize,
        known: Option<EndId>,
        now: Nanos,
    ) -> Option<EndId> {
        if !PairBook::teaches(record) {
            return None;
        }
        if known.is_none() && !self.sources.admit(&record.key, now) {
            self.status.rate_limited.add(1);
            return None;
        }
        let readers = &self.readers;
        let live = |reader: usize, slot| readers.get(reader)?.read(slot)?.request;
        self.book.observe_known(record, reader, known, live)
    }

    fn queue_index(&self, key: &QueueFlow) -> Option<usize> {
        let queue = *self
            .queue_of
            .get(key.egress.index())?
            .get(key.priority.index())?;
        (queue != UNWATCHED).then_some(usize::from(queue))
    }

    fn see_flow(
        &mut self,
        record: &Record,
        reader: usize,
        judged: Option<(EndId, Judgement)>,
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
            }
            flow.ingress = record.ingress;
            flow.last_seen = record.time;
            flow.trusted = self.trusted & record.ingress.bit() != 0;
            flow.end = end;
        }
        if let Some(state) = end.and_then(|end| self.book.end_mut(end)) {
            state.flow = index;
        }
        if let Some(list) = self.lists.get_mut(queue) {
            self.flows.list(list, index);
        }
        self.settle_as(index, judged, now);
        self.flows.publish(index);
    }

    fn insert(&mut self, key: QueueFlow, flow: Flow, now: Nanos) -> Option<u32> {
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

    fn count(&mut self, evidence: Evidence, step: i64) {
        if let Some(count) = self.paired.get_mut(evidence.index()) {
            *count = count.saturating_add_signed(step);
        }
    }

    fn unlist(&mut self, index: u32) {
        let queue = self.flows.key(index).and_then(|key| self.queue_index(&key));
        if let Some(list) = queue.and_then(|queue| self.lists.get_mut(queue)) {
            self.flows.unlist(list, index);
        }
    }

    /// Looks at a flow's pairing again, and says what it is at this moment.
    pub(crate) fn settle(&mut self, index: u32, now: Nanos) -> Pairing {
        let end = self.flows.get(index).and_then(|flow| flow.end);
        let end = end.filter(|end| self.book.key(*end) == self.flows.flow_key(index));
        let judged = end.map(|end| (end, self.book.judge(end, now)));
        self.settle_as(index, judged, now)
    }

    /// The same, when what is known of its end has been asked.
    fn settle_as(&mut self, index: u32, judged: Option<(EndId, Judgement)>, now: Nanos) -> Pairing {
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
            self.book.settle_with(end, judged.partner);
        }
        let evidence = pairing.evidence();
        let near = key.and_then(|key| self.near.delay(&key));
        if let Some(flow) = self.flows.get_mut(index) {
            flow.dynamics.learn_near(near);
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

    /// Marks a flow as told at least until then.
    pub(crate) fn tell(&mut self, index: u32, until: Nanos, now: Nanos) {
        let known = self.flows.get(index).map(|flow| flow.notified_until);
        self.tell_until(index, until.max(known.unwrap_or(until)), now);
    }

    /// Marks a flow as told until then, and no longer.
    pub(crate) fn tell_until(&mut self, index: u32, until: Nanos, now: Nanos) {
        if !self.ecn.minds_notified() || until <= now {
            return;
        }
        let Some(flow) = self.flows.get_mut(index) else {
            return;
        };
        flow.notified_until = until;
        let (until, evidence) = (flow.notified_until, flow.evidence);
        self.write_control(index, until, evidence);
    }

    fn write_control(&self, index: u32, until: Nanos, evidence: Evidence) {
        let Some(flow) = self.flows.get(index) else {
            return;
        };
        if let Some(reader) = self.readers.get(flow.reader) {
            reader.tell(
                flow.slot,
                until,
                evidence >= self.floor && evidence != Evidence::None,
            );
        }
    }

    /// Forgets what is old; publishes gauges. Bounded work.
    pub(crate) fn tidy(&mut self, now: Nanos) {
        self.book.age(now);
        let status = &self.status;
        status.flows.set(self.flows.len() as u64);
        status.ends.set(self.book.len() as u64);
        status.ends_refused.set(self.book.refused());
        status.ends_displaced.set(self.book.displaced());
        status.cm.contradicted.set(self.book.contradicted());
        for (evidence, count) in Evidence::ALL.into_iter().zip(self.paired) {
            status.paired(evidence).set(count);
        }
    }
}
