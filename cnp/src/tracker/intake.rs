//! Intake of workers' reports: records of packets, and messages of the connection manager.

use arrayvec::ArrayVec;
use npcc_pipeline::units::{MAX_PORTS, Nanos};
use npcc_pipeline::wire::bth::RoceClass;

use super::FlowTracker;
use super::flows::queue_flow;
use crate::deadline::Deadline;
use crate::flow_cache::{CacheReader, Quotas};
use crate::uncounted::Uncounted;
use npcc_roce::cm::copy::CmCopy;
use npcc_roce::cm::message::Message;
use npcc_roce::fixed_map::{NONE, TOGETHER};
use npcc_roce::pair::connections::{ConnectionTable, EndpointId};
use npcc_roce::pair::psn::{expects_reply, is_positive_reply};
use npcc_roce::sample::{PacketSample, SampleFlags};

/// Maximum number of QP1 packets processed per tick, from each worker.
const MESSAGES_PER_TICK: usize = 64;
/// Number of QP1 packets processed between two looks at the clock.
const MESSAGES_TOGETHER: usize = 8;
/// Maximum number of new endpoints per tick and worker, in equal parts for the ports that have records: entering one costs several times what the
/// record of a known one does.
const NEW_PER_TICK: usize = 64;
/// Minimum part of a port.
const LEAST_NEW: usize = 8;
/// Maximum number of endpoints whose sequence numbers are compared with those of replies, per tick.
const COMPARED_PER_TICK: usize = 1_024;

impl FlowTracker {
    /// Processes records of all workers, a limited number from each, until the deadline; another worker's first each time.
    pub(crate) fn drain(&mut self, now: Nanos, deadline: &Deadline<'_>) {
        self.check.refresh();
        self.connections.refill_psn_budget(COMPARED_PER_TICK);
        self.drained = 0;
        let readers = self.readers.len();
        let first = (self.first_reader + 1) % readers.max(1);
        self.first_reader = first;
        for reader in (0..readers).map(|next| (first + next) % readers) {
            self.observe_messages(reader, now, deadline);
            // A flood of new flows must not hold up those that are to be signalled, nor new ones of other ports.
            let ports = self
                .readers
                .get(reader)
                .map_or(0, CacheReader::ports_waiting);
            let quota = (NEW_PER_TICK / ports.max(1)).max(LEAST_NEW);
            let mut quotas = [quota; MAX_PORTS];
            let mut left = self.records_per_tick;
            loop {
                let records = self.pop(reader, left, &quotas);
                if records.is_empty() {
                    break;
                }
                left -= records.len();
                self.drained += records.len();
                self.status.records.add(records.len() as u64);
                let places = self.prefetch(&records);
                for (at, record) in records.iter().enumerate() {
                    let (endpoint, flow) = places.of(at);
                    let known = self.connections.find_at(endpoint, &record.key);
                    let entered = self.connections.entered();
                    self.observe_record(record, reader, known, flow, now);
                    if self.connections.entered() > entered
                        && let Some(quota) = quotas.get_mut(record.ingress.index())
                    {
                        *quota = quota.saturating_sub(1);
                    }
                }
                // Every worker is served, if only a little.
                if deadline.is_over() {
                    break;
                }
            }
            self.wake_flows(reader, now, deadline);
        }
    }

    /// Takes up to `most` records of a worker, and no more than are processed together.
    pub(super) fn pop(
        &mut self,
        reader: usize,
        most: usize,
        quotas: &Quotas,
    ) -> ArrayVec<PacketSample, TOGETHER> {
        let reader = self.readers.get_mut(reader);
        reader.map_or_else(ArrayVec::new, |reader| reader.pop_together(most, quotas))
    }

    /// Processes messages that a worker passed on, a limited number, until the deadline.
    fn observe_messages(&mut self, reader: usize, now: Nanos, deadline: &Deadline<'_>) {
        for _ in 0..MESSAGES_PER_TICK / MESSAGES_TOGETHER {
            let Some(reader) = self.readers.get_mut(reader) else {
                return;
            };
            let messages = reader.pop_messages::<MESSAGES_TOGETHER>();
            for message in &messages {
                self.observe_message(message, now);
            }
            if messages.is_empty() || deadline.is_over() {
                return;
            }
        }
    }

    /// Processes a message of the connection manager.
    fn observe_message(&mut self, copy: &CmCopy, now: Nanos) {
        let status = &self.status;
        status.cm.heard.add(1);
        if !self.settings.trusts(copy.ingress) {
            status.untrusted.add(1);
            return;
        }
        if !self.check.admits(&copy.key, copy.ingress) {
            status.wrong_port.add(1);
            return;
        }
        if !copy.is_intact() {
            status.cm.damaged.add(1);
            return;
        }
        let Some(message) = copy.message() else {
            status.cm.foreign.add(1);
            return;
        };
        if matches!(message, Message::Req { .. } | Message::Rep { .. })
            && !self.new_connections.admit(&copy.key, copy.ingress, now)
        {
            status.rate_limited.add(1);
            return;
        }
        self.connections
            .observe_message((&copy.key, copy.ingress), &message, copy.time);
    }

    /// Processes a record of an endpoint that is known or not, and whose flow may be at `hint`.
    pub(super) fn observe_record(
        &mut self,
        record: &PacketSample,
        reader: usize,
        known: Option<EndpointId>,
        hint: u32,
        now: Nanos,
    ) {
        if !ConnectionTable::teaches(record) {
            return;
        }
        // No sender slows down at a CNP without BECN.
        if record.class == RoceClass::Cnp && !record.flags.has(SampleFlags::BECN) {
            self.status.cnps_damaged.add(1);
            return;
        }
        let endpoint = match self.observe_endpoint(record, reader, known, now) {
            Ok(endpoint) => endpoint,
            Err(why) => {
                self.refuse(record, reader, why);
                return;
            }
        };
        self.hosts.see(record, &self.status.hosts);
        // Nothing below changes the state of the record's own endpoint.
        let resolution = self.connections.resolve(endpoint, now);
        if matches!(record.class, RoceClass::Data | RoceClass::Datagram) {
            self.see_flow(record, reader, (endpoint, resolution), hint, now);
        } else if record.class == RoceClass::Cnp {
            self.status.cnps_passed.add(1);
        }
        if record.class != RoceClass::Datagram && expects_reply(record) {
            self.host_rtt.record_request(record);
        }
        // This packet may answer a flow of the other direction, and so give that flow a sender or take it away.
        let Some((partner, evidence)) = resolution.partner else {
            return;
        };
        if let Some(request) = self
            .connections
            .key(partner)
            .filter(|_| evidence >= self.settings.evidence && is_positive_reply(record))
        {
            self.host_rtt.record_reply(record, &request);
        }
        let answered = self.connections.endpoint(partner).map(|state| state.flow);
        if let Some(flow) = answered.filter(|flow| self.owns(*flow, partner)) {
            self.refresh_pairing(flow, now);
            self.flows.publish(flow);
            if record.class == RoceClass::Cnp {
                self.record_cnp_seen(flow, now);
            }
        }
    }

    /// Learns from a record of an endpoint that is known or not, unless its port, its source or a full table forbids it.
    fn observe_endpoint(
        &mut self,
        record: &PacketSample,
        reader: usize,
        known: Option<EndpointId>,
        now: Nanos,
    ) -> Result<EndpointId, Uncounted> {
        if !self.settings.trusts(record.ingress) {
            return Err(Uncounted::UntrustedPort);
        }
        // Checked before the source's rate limit, so that nobody uses up another's.
        if !self.check.admits(&record.key, record.ingress) {
            return Err(Uncounted::WrongPort);
        }
        if known.is_none() && !self.new_ends.admit(&record.key, record.ingress, now) {
            return Err(Uncounted::RateLimited);
        }
        let readers = &self.readers;
        let live = |reader: usize, slot| readers.get(reader)?.read(slot)?.request;
        // READ RESPONSEs that leave by a watched queue answer requests that come in there.
        if self.queue_index(&queue_flow(record)).is_some()
            && known
                .is_some_and(|endpoint| self.connections.is_unrequested(endpoint, record, &live))
        {
            return Err(Uncounted::Unrequested);
        }
        self.connections
            .observe_known(record, reader, known, live)
            .ok_or(Uncounted::NoEndpoint)
    }

    /// Refuses to learn from a record: the state stays as it is, and a contributor without an entry gets none.
    fn refuse(&mut self, record: &PacketSample, reader: usize, why: Uncounted) {
        match why {
            Uncounted::UntrustedPort => self.status.untrusted.add(1),
            Uncounted::WrongPort => self.status.wrong_port.add(1),
            Uncounted::RateLimited => self.status.rate_limited.add(1),
            _ => {}
        }
        let key = queue_flow(record);
        if !matches!(record.class, RoceClass::Data | RoceClass::Datagram)
            || self.queue_index(&key).is_none()
        {
            return;
        }
        let known = self.flows.find_at(NONE, &key);
        let flow = known.and_then(|index| self.flows.get(index));
        if flow.is_none_or(|flow| (flow.reader, flow.slot) != (reader, record.slot)) {
            self.count_aside(record, reader, why);
        }
    }

    /// Counts a packet of a contributor that has no entry in the flow table.
    pub(super) fn count_aside(&mut self, record: &PacketSample, reader: usize, why: Uncounted) {
        let slot = self.readers.get(reader).and_then(|of| of.read(record.slot));
        let bytes = slot.map(|slot| slot.bytes);
        let fresh = self.uncounted_slots.fresh((record, reader), bytes);
        let counts = why.pick(&self.status.uncounted);
        counts.records.add(1);
        counts.bytes.add(fresh);
        if let Some(port) = self.status.uncounted_ports.get(record.ingress.index()) {
            port.add(fresh);
        }
    }
}
