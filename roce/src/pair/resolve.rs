//! Finds the sender of packets to an endpoint, by trying the methods in turn, the best evidence first.
//!
//! [`ConnectionTable::resolve`] answers two questions at once: which queue pair sends to the endpoint, and which endpoint is the other direction of its
//! connection. So each method runs only once for both.

use npcc_pipeline::units::Nanos;

use super::connections::{ConnectionTable, EndpointId};
use super::endpoints::Endpoint;
use super::transport::Transport;
use super::{Evidence, Pairing, port, port_hash, psn};
use crate::key::{FlowKey, Qpn};

/// Sender and partner of an endpoint at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolution {
    /// Sender of packets to the endpoint.
    pub pairing: Pairing,
    /// Endpoint of the other direction of its connection, and the evidence.
    pub partner: Option<(EndpointId, Evidence)>,
}

impl Resolution {
    /// Outcome without a partner.
    const fn alone(pairing: Pairing) -> Resolution {
        Resolution {
            pairing,
            partner: None,
        }
    }
}

impl ConnectionTable {
    /// Resolves an endpoint by all evidence at this moment.
    pub fn resolve(&self, endpoint: EndpointId, now: Nanos) -> Resolution {
        let (Some(state), Some(key)) = (self.endpoint(endpoint), self.key(endpoint)) else {
            return Resolution::alone(Pairing::Cold);
        };
        if state.transport.is_ud() {
            return self.resolve_datagrams(state, &key, now);
        }
        if state.suspect_until > now {
            return Resolution::alone(Pairing::Unpaired);
        }
        let seen = self.seen_partner(endpoint, now);
        match self.bound(endpoint, state.transport, &key, now) {
            // Of two contradicting pairs neither is believed.
            Some((_, bound)) if seen.is_some_and(|(partner, _)| Some(partner) != bound) => {
                Resolution::alone(Pairing::Unpaired)
            }
            Some((sender, bound)) => Resolution {
                pairing: Pairing::Paired(sender, Evidence::Cm),
                partner: bound.map(|partner| (partner, Evidence::Cm)),
            },
            None => self.resolve_seen(endpoint, seen, &key, now),
        }
    }

    fn resolve_datagrams(&self, state: &Endpoint, key: &FlowKey, now: Nanos) -> Resolution {
        let reverse = self.find(&key.reversed(state.sender));
        let pairing = state.datagrams_sender(reverse.and_then(|it| self.endpoint(it)), now);
        let partner = reverse.filter(|_| pairing.evidence() == Evidence::Deth);
        Resolution {
            pairing,
            partner: partner.map(|partner| (partner, Evidence::Deth)),
        }
    }

    /// Sender and partner by the endpoint's binding, if it counts: packets confirm it where it needs proof.
    fn bound(
        &self,
        endpoint: EndpointId,
        transport: Transport,
        key: &FlowKey,
        now: Nanos,
    ) -> Option<(Qpn, Option<EndpointId>)> {
        let binding = self.cm.binding(key, now)?;
        let partner = self.find(&key.reversed(binding.sender));
        let counts = binding.is_of(transport)
            && (!binding.needs_proof() || self.confirms(endpoint, partner, binding.sender));
        counts.then_some((binding.sender, partner))
    }

    /// Resolution by the partner that packets show, or by what others reported where they show none.
    fn resolve_seen(
        &self,
        endpoint: EndpointId,
        partner: Option<(EndpointId, Evidence)>,
        key: &FlowKey,
        now: Nanos,
    ) -> Resolution {
        let pairing = match partner {
            Some((partner, evidence)) => match self.key(partner) {
                Some(key) => Pairing::Paired(key.dest_qp(), evidence),
                None => Pairing::Unpaired,
            },
            None => match self.reported_sender(endpoint, key, now) {
                Some(sender) => Pairing::Paired(sender, Evidence::Foreign),
                None if self.endpoints.is_cold(endpoint.0) => Pairing::Cold,
                None => Pairing::Unpaired,
            },
        };
        Resolution { pairing, partner }
    }

    /// Sender that a peer or a host's agent reported, if no binding says otherwise.
    fn reported_sender(&self, endpoint: EndpointId, key: &FlowKey, now: Nanos) -> Option<Qpn> {
        let sender = self.endpoints.reported_sender(endpoint.0, now)?;
        let agrees = |key: &FlowKey, with: Qpn| {
            let binding = self.cm.binding(key, now);
            binding.is_none_or(|binding| binding.sender == with)
        };
        (agrees(key, sender) && agrees(&key.reversed(sender), key.dest_qp())).then_some(sender)
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
        let endpoints = &self.endpoints;
        let by_hash = port_hash::partner(endpoints, endpoint.0).map(|it| (it, Evidence::PortHash));
        let by_psn = || psn::partner(endpoints, endpoint.0).map(|it| (it, Evidence::Psn));
        let by_port = || port::partner(endpoints, endpoint.0, now).map(|it| (it, Evidence::Port));
        let found = by_hash.or_else(by_psn).or_else(by_port);
        found.map(|(partner, evidence)| (EndpointId(partner), evidence))
    }

    /// Sender of packets to this endpoint, by the best evidence at this moment.
    #[must_use]
    pub fn pairing(&self, endpoint: EndpointId, now: Nanos) -> Pairing {
        self.resolve(endpoint, now).pairing
    }

    /// Endpoint of the other direction of this endpoint's connection.
    #[must_use]
    pub fn partner(&self, endpoint: EndpointId, now: Nanos) -> Option<(EndpointId, Evidence)> {
        self.resolve(endpoint, now).partner
    }

    /// Applies the outcome of [`ConnectionTable::pairing`], so that connections outlive their traffic and unpaired endpoints do not.
    pub fn update_partner(&mut self, endpoint: EndpointId, now: Nanos) {
        let partner = self.partner(endpoint, now);
        self.set_partner(endpoint, partner);
    }

    /// Stores the partner found for an endpoint, so that connections outlive their traffic.
    pub fn set_partner(&mut self, endpoint: EndpointId, partner: Option<(EndpointId, Evidence)>) {
        self.endpoints
            .set_partner(endpoint.0, partner.map(|(partner, _)| partner.0));
    }
}
