//! Doubt of an end whose packets come with several UDP source ports, and how it ends.
//!
//! One of two ports may be made up, and the end may be of a connection that has no port of its own. While both are seen its port says
//! nothing. It says something again when only the port of the majority was seen for [`LIVE`], more than the longest time between two of a
//! flow's records: a packet with another now and then, once in that time, keeps it in doubt, and no longer than that.

use npcc_pipeline::units::Nanos;

use super::LIVE;

/// Packets by which one port may be ahead of the others: another that comes to stay has as many to make good.
const MOST_AHEAD: u8 = 4;

/// Which port an end in doubt has, if one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Doubt {
    /// The port most packets had, and by how many it is ahead.
    port: u16,
    ahead: u8,
    /// When something last spoke against it.
    since: Nanos,
}

impl Doubt {
    /// Doubt that begins now.
    pub(super) const fn of(now: Nanos) -> Doubt {
        Doubt {
            port: 0,
            ahead: 0,
            since: now,
        }
    }

    /// Something but a port speaks against the end.
    pub(super) const fn renew(&mut self, now: Nanos) {
        self.since = now;
    }

    /// Takes in the port of a packet; whether the doubt is over, and this the end's port.
    pub(super) fn settles_on(&mut self, port: u16, now: Nanos) -> bool {
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
