//! The control core's side of the export ([`super::export`]): when an end is exported, and the walk through the table.

use std::sync::Arc;

use npcc_pipeline::sync::Ordering;
use npcc_pipeline::units::Nanos;

use super::connections::ConnectionTable;
use super::endpoints::Endpoints;
use super::export::{CmKind, EndFeed, Row, SeenEnd, Walk};
use super::psn::is_positive_reply;
use crate::cm::message::Message;
use crate::key::FlowKey;
use crate::sample::PacketSample;

/// Shortest time between two exports of an end whose port stays.
const AGAIN: Nanos = Nanos::from_millis(1_000);
/// Ends exported by a walk in each [`STEP`]: 64,000 a second.
const STRIDE: u32 = 64;
const STEP: Nanos = Nanos::from_millis(1);

impl Endpoints {
    /// Exports an endpoint of which a frame was just shown, if it is new or its time has come.
    #[inline]
    pub(super) fn export_seen(&mut self, end: u32, record: &PacketSample) {
        if !self.export.on {
            return;
        }
        let Some(state) = self.endpoint(end) else {
            return;
        };
        let due = |(at, port): (Nanos, u16)| {
            record.time.since(at) >= AGAIN || self.port(end).is_some_and(|now| now != port)
        };
        // Packets that arrive after their connection closed (before `began`) do not export the end again.
        if record.time >= state.began && state.exported.is_none_or(due) {
            let acked = is_positive_reply(record).then_some(record.psn);
            self.export_end(end, acked, record.time);
        }
    }

    fn export_end(&mut self, end: u32, acked_psn: Option<u32>, now: Nanos) {
        // An endpoint in doubt has no port.
        let (Some(key), Some(udp_port)) = (self.key(end), self.port(end)) else {
            return;
        };
        let Some(state) = self.endpoint_mut(end) else {
            return;
        };
        let before = state.exported.replace((now, udp_port));
        let row = Row::End(SeenEnd {
            key,
            udp_port,
            transport: state.transport,
            first_seen: state.began,
            last_seen: state.last_seen,
            packets: state.packets,
            acked_psn,
        });
        if let Some((_, port)) = before.filter(|(_, port)| *port != udp_port) {
            self.export.write(Row::Gone(key, port));
        }
        self.export.write(row);
    }

    /// Exports the removal of an endpoint that was exported before.
    pub(super) fn export_gone(&mut self, end: u32) {
        let (on, key) = (self.export.on, self.key(end));
        let exported = self
            .endpoint_mut(end)
            .and_then(|state| state.exported.take());
        if let (true, Some((_, port)), Some(key)) = (on, exported, key) {
            self.export.write(Row::Gone(key, port));
        }
    }

    /// Exports while there are readers, and continues a requested walk. Bounded work.
    pub(super) fn export_more(&mut self, now: Nanos) {
        let feed = &self.export.feed;
        self.export.on = feed.readers.load(Ordering::Relaxed) > 0;
        if !self.export.on {
            self.export.walk = None;
            return;
        }
        let wanted = feed.wanted.load(Ordering::Relaxed);
        if self.export.walk.is_none() && wanted > self.export.walked {
            self.export.walk = Some(Walk {
                number: wanted,
                next: 0,
                due: now,
            });
        }
        let Some(mut walk) = self.export.walk.filter(|walk| walk.due <= now) else {
            return;
        };
        let last = self.places().min(walk.next.saturating_add(STRIDE));
        for end in walk.next..last {
            let seen = self.endpoint(end).map(|state| state.last_seen);
            if let Some(seen) = seen {
                self.export_end(end, None, seen);
            }
        }
        (walk.next, walk.due) = (last, now + STEP);
        let done = last >= self.places();
        self.export.walk = (!done).then_some(walk);
        if done {
            self.export.walked = walk.number;
            self.export.write(Row::Walked(walk.number));
        }
    }
}

impl ConnectionTable {
    /// Export of ends, for readers on other threads.
    #[must_use]
    pub fn feed(&self) -> Arc<EndFeed> {
        Arc::clone(&self.endpoints.export.feed)
    }

    /// Follows the readers of the export. Bounded work.
    pub fn export(&mut self, now: Nanos) {
        self.endpoints.export_more(now);
    }

    /// Exports a message of the connection manager that begins or ends a connection.
    pub(super) fn export_message(&self, way: &FlowKey, message: &Message, now: Nanos) {
        if !self.endpoints.export.on {
            return;
        }
        let (kind, ids, qpn) = match *message {
            Message::Req { local, qpn, .. } => (CmKind::Req, [local, 0], qpn),
            Message::Rep {
                local, remote, qpn, ..
            } => (CmKind::Rep, [local, remote], qpn),
            Message::Dreq {
                local,
                remote,
                remote_qpn,
            } => (CmKind::Dreq, [local, remote], remote_qpn),
            _ => return,
        };
        let row = Row::Cm(kind, way.with_qp(qpn), ids, now);
        self.endpoints.export.write(row);
    }
}

#[cfg(test)]
#[cfg(not(loom))]
#[path = "exporter_tests.rs"]
mod tests;
