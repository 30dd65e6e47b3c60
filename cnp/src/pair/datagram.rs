//! Evidence `deth`: an unreliable datagram names its sender's queue pair in its DETH (datagram extended
//! transport header), so no partner is looked for.
//!
//! Several queue pairs of a host may send to one; which of them filled the queue is not known then. When another sender is seen
//! than before, nobody is signalled until only one has been seen for a second. As with connections, both directions must have been
//! seen: datagrams of the receiver's host to the sender's.

use npcc_pipeline::units::Nanos;

use super::Evidence;
use super::Pairing;
use super::ends::End;
use crate::key::Qpn;

/// How long no other sender may have been seen, once there were two.
pub(crate) const ALONE: Nanos = Nanos(1_000_000_000);

impl End {
    /// Takes in a datagram's sender; `first`: none was seen here before.
    pub(super) fn see_sender(&mut self, sender: Qpn, first: bool, now: Nanos) {
        if !first && self.sender != sender {
            self.doubted_until = self.doubted_until.max(now + ALONE);
        }
        self.sender = sender;
    }

    /// Who sends datagrams to it; `cold`: none came back.
    pub(super) fn datagrams_sender(&self, cold: bool, now: Nanos) -> Pairing {
        if cold {
            Pairing::Cold
        } else if self.doubted_until > now {
            Pairing::Unpaired
        } else {
            Pairing::Paired(self.sender, Evidence::Deth)
        }
    }
}
