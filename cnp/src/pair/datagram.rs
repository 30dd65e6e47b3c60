//! Evidence `deth`: an unreliable datagram names its sender's queue pair in its DETH (datagram extended
//! transport header), so no partner is looked for.
//!
//! Several queue pairs of a host may send to one; which of them filled the queue is not known then, and nobody is signalled until
//! only one has been seen for a second. As with connections, both directions must have been seen: datagrams of the receiver's
//! host to the sender's.

use npcc_pipeline::units::Nanos;

use crate::key::Qpn;

/// How long no other sender may have been seen.
pub(crate) const ALONE: Nanos = Nanos(1_000_000_000);

/// Who sends datagrams to a queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Source {
    last: Qpn,
    /// When another was seen before it.
    disputed: Option<Nanos>,
}

impl Source {
    /// By a first datagram.
    pub(super) const fn new(sender: Qpn) -> Source {
        Source {
            last: sender,
            disputed: None,
        }
    }

    /// By another datagram.
    pub(super) fn see(&mut self, sender: Qpn, now: Nanos) {
        if self.last != sender {
            self.last = sender;
            self.disputed = Some(now);
        }
    }

    /// The only sender.
    pub(super) fn sole(&self, now: Nanos) -> Option<Qpn> {
        let settled = self
            .disputed
            .is_none_or(|disputed| now.since(disputed) >= ALONE);
        settled.then_some(self.last)
    }
}
