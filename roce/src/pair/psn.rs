//! Evidence `psn`: replies carry the sequence numbers of the requests they answer.
//!
//! ```text
//!   request to end Y with PSN q, AckReq set or ending a message   (SEND, WRITE, READ REQUEST, ATOMIC, FLUSH, ATOMIC WRITE)
//!   reply   to end X with PSN q                                   (ACK, READ RESPONSE FIRST or ONLY, ATOMIC ACK)
//!   => X and Y are the two ends of one connection, three times over
//! ```
//! A reply supports a match only if its number is exactly one that was seen to ask for a reply, and no other endpoint of that
//! direction can have sent it ([`super::senders`]): where connections move in lock step numbers prove nothing, and nothing is
//! concluded. A reply far from where its partner is, or that fits another endpoint, or two endpoints that claim the same one, undo the
//! match. Numbers are 24 bits and wrap.
//!
//! Unseen packets cannot be compared, so two more conditions hold. Numbers must be random: an endpoint whose first number is
//! below [`SMALL`] may have begun at 0, as all of NCCL's do, and one such connection of which only the data are seen and one of
//! which only the answers are seen would fit exactly. And few replies may fit nobody: each is of a connection whose
//! data take another path, and by chance its number is one that another was seen to ask for, once in 2^22 for each of the
//! others. Where the two together come to more than 1 in 2^14, no match between these addresses is believed.

use super::endpoints::psn_state::PsnState;
use super::endpoints::psns::{NEAR, SMALL, distance, follows};
use super::endpoints::{Endpoint, Endpoints, LIVE};
use super::port_hash;
use super::senders::Senders;
use crate::key::low32;
use crate::links::NONE;
use crate::sample::{PacketSample, SlotRef};
use npcc_pipeline::units::Nanos;
use npcc_pipeline::wire::bth::{RoceClass, is_request};

/// Opcode of an RC READ REQUEST.
const READ_REQUEST: u8 = 0x0c;
/// Number of replies that must fit.
const SUPPORTS: u8 = 3;
/// Limit on the product of endpoints without a sender and endpoints of a direction, above which chance is too likely: four requests each, of 2^24
/// numbers.
const CHANCE: u64 = 1 << 8;

/// Returns true if a request with this opcode is answered even without AckReq, or is the last of a message.
const fn ends_message(opcode: u8) -> bool {
    matches!(opcode, 0x02..=0x05 | 0x08..=0x0c | 0x13 | 0x14 | 0x16 | 0x17 | 0x1c | 0x1d)
}

/// Returns true for a reply that carries a request's number: ACK, READ RESPONSE FIRST and ONLY, ATOMIC ACK.
const fn is_reply(opcode: u8) -> bool {
    matches!(opcode, 0x0d | 0x10..=0x12)
}

/// Returns true for data that answer a READ REQUEST.
const fn is_read_response(opcode: u8) -> bool {
    matches!(opcode, 0x0d..=0x10)
}

/// Syndrome bits that are 0 in an ACK and not in a NAK, whose number is one not received.
const ACK_MASK: u8 = 0b0110_0000;

/// Returns true if a record is of a request that is answered with its own number, if with any.
pub const fn expects_reply(record: &PacketSample) -> bool {
    is_request(record.opcode) && (record.asks_for_reply() || ends_message(record.opcode))
}

/// Returns true if a record is of a reply that carries its request's number.
pub fn is_positive_reply(record: &PacketSample) -> bool {
    let positive = |syndrome| syndrome & ACK_MASK == 0;
    is_reply(record.opcode)
        && record.class != RoceClass::Cnp
        && record.syndrome.is_none_or(positive)
}

impl Endpoints {
    /// Processes the sequence number of a packet to `endpoint`; `read_psn` returns the present number of requests in a slot. Returns a request's number
    /// and the endpoint's packet count, where numbers count packets.
    pub(super) fn observe_psn(
        &mut self,
        endpoint: u32,
        record: &PacketSample,
        reader: usize,
        read_psn: &impl Fn(usize, SlotRef) -> Option<u32>,
    ) -> Option<(u32, u32)> {
        if is_request(record.opcode) {
            self.observe_request(endpoint, record, reader);
            if expects_reply(record)
                && let Some(state) = self.endpoint_mut(endpoint)
            {
                state.psn.ackreq_psns.rotate_right(1);
                if let Some(mark) = state.psn.ackreq_psns.first_mut() {
                    *mark = record.psn;
                }
            }
            let counts = |state: &&Endpoint| !state.psn.reads;
            return self
                .endpoint(endpoint)
                .filter(counts)
                .map(|state| (record.psn, state.sent.packets));
        }
        if is_positive_reply(record) {
            self.check_port_fit(endpoint, record, read_psn);
            if port_hash::partner(self, endpoint).is_none() {
                self.observe_reply(endpoint, record.psn, record.time, read_psn);
            }
        }
        None
    }

    /// Processes a request. One whose number does not go on from the last is another connection's, with the same queue pair number and
    /// UDP source port.
    fn observe_request(&mut self, endpoint: u32, record: &PacketSample, reader: usize) {
        let Some(state) = self.endpoint_mut(endpoint) else {
            return;
        };
        state.psn.reads |= record.opcode == READ_REQUEST;
        let (packets, last) = (low32(state.packets), state.sent.last);
        let since = packets.wrapping_sub(state.sent.packets);
        if !state.psn.reads && last != NONE && !follows(last, record.psn, since) {
            self.reset_psn(endpoint);
            self.restart_steadiness(endpoint, record.time);
            if !self.count_port_change(endpoint, record.time) {
                // Packets of several connections share this endpoint, so its UDP source port proves nothing until a majority accepts one.
                self.set_port(endpoint, None, record.time);
            }
        }
        self.index_psn(endpoint, record, reader);
        if let Some(state) = self.endpoint_mut(endpoint) {
            state.sent.packets = packets;
        }
    }

    /// Returns true if a READ RESPONSE to `endpoint` answers no request: packets of its connection's other direction pass here, and none of their requests
    /// can have its number, or one that the answer to a long READ comes to.
    pub(super) fn is_unrequested(
        &self,
        endpoint: u32,
        record: &PacketSample,
        read_psn: &impl Fn(usize, SlotRef) -> Option<u32>,
    ) -> bool {
        let requester = self
            .other_endpoint(endpoint)
            .filter(|_| is_read_response(record.opcode));
        let Some(requester) = requester.and_then(|requester| self.endpoint(requester)) else {
            return false;
        };
        let (psn, now) = (record.psn, record.time);
        if requester.packets == 0 || now.since(requester.last_seen) >= LIVE {
            return false;
        }
        let last = (requester.sent.last != NONE).then_some(requester.sent.last);
        let present = requester
            .counted_at()
            .and_then(|(reader, slot)| read_psn(reader, slot));
        present.or(last).is_none_or(|present| {
            let held = last.is_some() && requester.sent.holds(present, psn, now);
            !held && distance(present, psn) > NEAR
        })
    }

    /// Endpoint of the other direction that packets to `endpoint` most likely belong with: its partner, or the only one on its port.
    fn other_endpoint(&self, endpoint: u32) -> Option<u32> {
        let state = self.endpoint(endpoint)?;
        let is_partner = |other: &u32| {
            self.endpoint(*other).is_some_and(|other| {
                other.pair == state.pair && [endpoint, NONE].contains(&other.partner)
            })
        };
        let sole = || {
            let group = self
                .opposite(endpoint)
                .filter(|group| group.endpoints.len == 1);
            group.map(|group| group.endpoints.head)
        };
        Some(state.partner).filter(is_partner).or_else(sole)
    }

    fn observe_reply(
        &mut self,
        endpoint: u32,
        psn: u32,
        now: Nanos,
        read_psn: &impl Fn(usize, SlotRef) -> Option<u32>,
    ) {
        let known = self
            .endpoint(endpoint)
            .map(|state| (state.psn.candidate, state.psn.candidate_serial));
        let (candidate, serial) = known.unwrap_or((NONE, 0));
        let same = self
            .endpoint(candidate)
            .is_some_and(|state| state.serial == serial);
        if candidate != NONE && !same {
            // The candidate is gone, and another endpoint is in its place.
            self.unmatch(endpoint);
        }
        let candidate = if same { candidate } else { NONE };
        if let Some(present) = self.present_psn(candidate, read_psn) {
            if self.is_far(candidate, present, psn, now) {
                // The reply is far from where its partner is.
                self.unmatch(endpoint);
            } else if partner(self, endpoint) == Some(candidate) {
                return;
            }
        }
        match self.senders(endpoint, psn, now, read_psn) {
            Senders::One(fits) => {
                self.set_orphan(endpoint, false);
                let marked = |state: &Endpoint| {
                    state.sent.first >= SMALL && state.psn.ackreq_psns.contains(&psn)
                };
                // A network that hashes addresses and ports sends all packets of a port one way: where a connection's answers are seen, so are its data.
                let port = self.port(endpoint);
                if port.is_some()
                    && port == self.port(fits)
                    && self.endpoint(fits).is_some_and(marked)
                {
                    self.support(endpoint, fits, psn);
                }
            }
            Senders::Nobody => self.set_orphan(endpoint, true),
            Senders::Unknown => {}
        }
    }

    fn support(&mut self, endpoint: u32, fits: u32, psn: u32) {
        let Some(state) = self.endpoint(endpoint) else {
            return;
        };
        let (candidate, again) = (state.psn.candidate, state.psn.supported == psn);
        if candidate != NONE && candidate != fits {
            self.unmatch(endpoint);
            return;
        }
        if again {
            return;
        }
        let claimed = self.endpoint(fits).map_or(NONE, |state| state.psn.claimed);
        if claimed != NONE && claimed != endpoint {
            // Two endpoints fit it: one is made up, or of the connection before.
            self.unmatch(claimed);
            self.unmatch(endpoint);
            return;
        }
        let serial = self.endpoint(fits).map_or(0, |state| state.serial);
        let Some(state) = self.endpoint_mut(endpoint) else {
            return;
        };
        (state.psn.candidate, state.psn.candidate_serial) = (fits, serial);
        state.psn.supports = state.psn.supports.saturating_add(1);
        state.psn.supported = psn;
        if state.psn.supports < SUPPORTS {
            return;
        }
        if let Some(other) = self.endpoint_mut(fits) {
            other.psn.claimed = endpoint;
        }
    }

    /// Undoes the match of replies to this endpoint.
    fn unmatch(&mut self, endpoint: u32) {
        let Some(state) = self.endpoint_mut(endpoint) else {
            return;
        };
        let candidate = std::mem::replace(&mut state.psn.candidate, NONE);
        (state.psn.supports, state.psn.supported) = (0, NONE);
        if let Some(other) = self.endpoint_mut(candidate)
            && other.psn.claimed == endpoint
        {
            other.psn.claimed = NONE;
        }
    }

    /// Forgets all numbers of an endpoint: another connection begins, or none is left.
    pub(super) fn reset_psn(&mut self, endpoint: u32) {
        let claimed = self
            .endpoint(endpoint)
            .map_or(NONE, |state| state.psn.claimed);
        self.unmatch(claimed);
        self.unmatch(endpoint);
        self.set_orphan(endpoint, false);
        self.clear_sent_psns(endpoint);
        if let Some(state) = self.endpoint_mut(endpoint) {
            state.psn = PsnState::new();
        }
    }

    /// Returns true if no request in flight to this endpoint can have the reply's number.
    fn is_far(&self, requests: u32, present: u32, psn: u32, now: Nanos) -> bool {
        distance(present, psn) > NEAR
            && self
                .endpoint(requests)
                .is_some_and(|state| !state.sent.holds(present, psn, now))
    }

    /// Compares a reply with the only opposite endpoint on the same UDP source port: if it does not answer that one, the equal port proves nothing.
    ///
    /// If the worker's present number is at hand, the reply's must be among those of the last requests, to the packet: cards that take
    /// the port from their own queue pair bring the data of one connection and the answers of another to one port, and of those
    /// one in 128 are near. What is in flight is known once requests were seen for 20 ms; an answer that fits then is needed.
    fn check_port_fit(
        &mut self,
        endpoint: u32,
        reply: &PacketSample,
        read_psn: &impl Fn(usize, SlotRef) -> Option<u32>,
    ) {
        let sole = self
            .opposite(endpoint)
            .filter(|group| group.endpoints.len == 1);
        let Some(other) = sole.map(|group| group.endpoints.head) else {
            return;
        };
        let sent = self.endpoint(other).map(|state| state.sent);
        let Some(sent) = sent.filter(|sent| sent.last != NONE) else {
            return;
        };
        let at_hand = self
            .request_slot(other)
            .and_then(|(reader, slot)| read_psn(reader, slot));
        let (psn, now) = (reply.psn, reply.time);
        let fits = sent.holds(at_hand.unwrap_or(sent.last), psn, now);
        // The last number shown may be old.
        let refuted = !fits && (at_hand.is_some() || distance(sent.last, psn) > NEAR);
        if !(refuted || fits && sent.is_known(now)) {
            return;
        }
        for endpoint in [endpoint, other] {
            let Some(state) = self.endpoint_mut(endpoint) else {
                continue;
            };
            let before = state.psn.port;
            if refuted {
                (state.psn.port, state.misfit) = (before.after_misfit(), now);
            } else {
                state.psn.port = before.after_fit(now.since(state.misfit));
            }
        }
    }
}

/// Returns the endpoint that replies fit, from either side, if both sides do not differ.
pub(super) fn partner(endpoints: &Endpoints, endpoint: u32) -> Option<u32> {
    let state = endpoints.endpoint(endpoint)?;
    if endpoints.chance(endpoint) > CHANCE {
        return None;
    }
    let psn = &state.psn;
    let own = (psn.supports >= SUPPORTS).then_some(psn.candidate);
    let own = own.filter(|other| {
        endpoints
            .endpoint(*other)
            .is_some_and(|other| other.psn.claimed == endpoint)
    });
    let others = (psn.claimed != NONE).then_some(psn.claimed);
    match (own, others) {
        (Some(own), Some(others)) if own != others => None,
        (own, others) => own.or(others),
    }
}
