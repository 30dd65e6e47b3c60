//! Majority port of an endpoint whose packets come with several UDP source ports.
//!
//! One of two ports may be made up, and the endpoint may be of a connection that has no port of its own. While both are seen its port proves
//! nothing. It counts again once only the port of the majority was seen for [`LIVE`], more than the longest time between two of a
//! flow's records: a packet with another now and then, once in that time, keeps it without one, and no longer than that.

use npcc_pipeline::units::Nanos;

use super::LIVE;

/// Limit on the packets by which one port may be ahead of the others: another that comes to stay has as many to make good.
const MOST_AHEAD: u8 = 4;

/// State of the search for an endpoint's port.
#[derive(Debug, Clone, Copy)]
pub(super) struct PortMajority {
    /// Port that most packets had, and the number of packets by which it is ahead.
    port: u16,
    ahead: u8,
    /// Time at which something last spoke against it.
    since: Nanos,
}

impl PortMajority {
    /// Search that begins now.
    pub(super) const fn of(now: Nanos) -> PortMajority {
        PortMajority {
            port: 0,
            ahead: 0,
            since: now,
        }
    }

    /// Restarts the search, because of something other than a port.
    pub(super) const fn restart(&mut self, now: Nanos) {
        self.since = now;
    }

    /// Counts the port of a packet; returns true if the search is over, and this is the endpoint's port.
    pub(super) fn accepts(&mut self, port: u16, now: Nanos) -> bool {
        if self.port == port {
            self.ahead = MOST_AHEAD.min(self.ahead + 1);
            return now.since(self.since) >= LIVE;
        }
        self.since = now;
        if self.ahead == 0 {
            (self.port, self.ahead) = (port, 1);
        } else {
            self.ahead -= 1;
        }
        false
    }
}
