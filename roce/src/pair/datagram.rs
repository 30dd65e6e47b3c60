//! Evidence `deth`: an unreliable datagram names its sender's queue pair in its DETH (datagram extended
//! transport header), so no partner is looked for.
//!
//! Several queue pairs of a host may send to one; which of them filled the queue is not known then. When another sender is seen
//! than before, nobody is signalled until only one has been seen for a second. Anybody can write another's queue pair there, so as with
//! connections both directions must have been seen: a sender is believed only while datagrams of the receiver's host are addressed to its
//! queue pair, and never while that is known as one of a connection.

use npcc_pipeline::units::Nanos;

use super::Evidence;
use super::Pairing;
use super::endpoints::Endpoint;
use crate::key::Qpn;

/// Time for which no other sender may have been seen, once there were two.
pub(crate) const ALONE: Nanos = Nanos(1_000_000_000);

impl Endpoint {
    /// Records a datagram's sender; `first`: none was seen here before.
    pub(super) fn observe_sender(&mut self, sender: Qpn, first: bool, now: Nanos) {
        if !first && self.sender != sender {
            self.suspect_until = self.suspect_until.max(now + ALONE);
        }
        self.sender = sender;
    }

    /// Pairing with the sender of datagrams to this endpoint; `answered` is the endpoint of that sender's queue pair.
    pub(super) fn datagrams_sender(&self, answered: Option<&Endpoint>, now: Nanos) -> Pairing {
        let is_doubted =
            |endpoint: &Endpoint| !endpoint.transport.is_ud() || endpoint.suspect_until > now;
        match answered {
            _ if is_doubted(self) => Pairing::Unpaired,
            None => Pairing::Cold,
            Some(answered) if is_doubted(answered) => Pairing::Unpaired,
            Some(_) => Pairing::Paired(self.sender, Evidence::Deth),
        }
    }
}
