//! Finds the sender of packets to an endpoint, by trying the methods in turn, the best evidence first.
//!
//! [`ConnectionTable::judge`] answers two questions at once: which queue pair sends to the endpoint, and which endpoint is the other direction of its
//! connection. So each method runs only once for both.

use npcc_pipeline::units::Nanos;

use super::connections::{ConnectionTable, EndpointId};
use super::{Evidence, Pairing, port, port_hash, psn};
use crate::key::Qpn;

/// Sender and partner of an endpoint at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Judgement {
    /// Sender of packets to the endpoint.
    pub(crate) pairing: Pairing,
    /// Endpoint of the other direction of its connection, and the evidence.
    pub(crate) partner: Option<(EndpointId, Evidence)>,
}

impl ConnectionTable {
    /// Judges an endpoint by all evidence at this moment.
    pub(crate) fn judge(&self, endpoint: EndpointId, now: Nanos) -> Judgement {
        let alone = |pairing| Judgement {
            pairing,
            partner: None,
        };
        let (Some(state), Some(key)) = (self.endpoint(endpoint), self.key(endpoint)) else {
            return alone(Pairing::Cold);
        };
        if state.transport.is_ud() {
            let answered = self.find(&key.reversed(state.sender));
            let pairing =
                state.datagrams_sender(answered.and_then(|endpoint| self.endpoint(endpoint)), now);
            let partner = answered.filter(|_| pairing.evidence() == Evidence::Deth);
            return Judgement {
                pairing,
                partner: partner.map(|partner| (partner, Evidence::Deth)),
            };
        }
        if state.doubted_until > now {
            return alone(Pairing::Unpaired);
        }
        let partner = self.seen_partner(endpoint, now);
        let named = self.cm.named(&key, now);
        if let Some(named) = named.filter(|named| named.is_of(state.transport)) {
            let named_endpoint = self.find(&key.reversed(named.sender));
            let shows_another = partner.is_some_and(|(partner, _)| Some(partner) != named_endpoint);
            if !named.wants_proof() || self.confirms(endpoint, named_endpoint, named.sender) {
                // Of two contradicting pairs neither is believed.
                return if shows_another {
                    alone(Pairing::Unpaired)
                } else {
                    Judgement {
                        pairing: Pairing::Paired(named.sender, Evidence::Cm),
                        partner: named_endpoint.map(|partner| (partner, Evidence::Cm)),
                    }
                };
            }
        }
        let pairing = match partner {
            Some((partner, evidence)) => match self.key(partner) {
                Some(key) => Pairing::Paired(key.dest_qp(), evidence),
                None => Pairing::Unpaired,
            },
            None if self.endpoints.is_cold(endpoint.0) => Pairing::Cold,
            None => Pairing::Unpaired,
        };
        Judgement { pairing, partner }
    }

    /// Returns true if packets confirm a list's pair: the UDP source port is the hash of both queue pairs, or packets to both have one that no others
    /// have.
    fn confirms(&self, endpoint: EndpointId, other: Option<EndpointId>, sender: Qpn) -> bool {
        let (Some(port), Some(key)) = (self.endpoints.port(endpoint.0), self.key(endpoint)) else {
            return false;
        };
        let alone = |endpoint: EndpointId| self.endpoints.is_alone(endpoint.0);
        let other = other.filter(|other| self.endpoints.port(other.0) == Some(port));
        other.is_some_and(alone) || port == port_hash::port_of(key.dest_qp(), sender)
    }

    /// Partner that packets show.
    fn seen_partner(&self, endpoint: EndpointId, now: Nanos) -> Option<(EndpointId, Evidence)> {
        let by =
            |partner: Option<u32>, evidence| partner.map(|index| (EndpointId(index), evidence));
        by(
            port_hash::partner(&self.endpoints, endpoint.0),
            Evidence::PortHash,
        )
        .or_else(|| by(psn::partner(&self.endpoints, endpoint.0), Evidence::Psn))
        .or_else(|| {
            by(
                port::partner(&self.endpoints, endpoint.0, now),
                Evidence::Port,
            )
        })
    }

    /// Sender of packets to this endpoint, by the best evidence at this moment.
    #[must_use]
    pub fn resolve(&self, endpoint: EndpointId, now: Nanos) -> Pairing {
        self.judge(endpoint, now).pairing
    }

    /// Endpoint of the other direction of this endpoint's connection.
    #[must_use]
    pub fn partner(&self, endpoint: EndpointId, now: Nanos) -> Option<(EndpointId, Evidence)> {
        self.judge(endpoint, now).partner
    }

    /// Applies the outcome of [`ConnectionTable::resolve`], so that connections outlive their traffic and unpaired endpoints do not.
    pub fn settle(&mut self, endpoint: EndpointId, now: Nanos) {
        let partner = self.partner(endpoint, now);
        self.keep_while_paired(endpoint, partner);
    }

    /// Stores the partner found for an endpoint, so that connections outlive their traffic.
    pub(crate) fn keep_while_paired(
        &mut self,
        endpoint: EndpointId,
        partner: Option<(EndpointId, Evidence)>,
    ) {
        self.endpoints
            .settle(endpoint.0, partner.map(|(partner, _)| partner.0));
    }
}
