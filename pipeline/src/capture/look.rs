//! A frame at a place of its way, and what is told of it.

use super::event::{Event, Kind, Notes};
use super::filter::Seen;
use crate::bits::low16;
use crate::drop::DropReason;
use crate::units::{Nanos, PortId, Priority, WorkerId};

/// A frame at a place of its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) kind: Kind,
    pub(crate) reason: Option<DropReason>,
    pub(crate) ingress: Option<PortId>,
    pub(crate) egress: Option<PortId>,
    pub(crate) priority: Option<Priority>,
    pub(crate) depth: u64,
    pub(crate) flags: u8,
    pub(crate) notes: Notes,
}

impl Look {
    /// Nothing but what happened.
    pub(crate) const fn of(kind: Kind) -> Look {
        Look {
            kind,
            reason: None,
            ingress: None,
            egress: None,
            priority: None,
            depth: 0,
            flags: 0,
            notes: Notes {
                pool: 0,
                group: 0,
                headroom: 0,
                next_hops: 0,
                flow_hash: 0,
            },
        }
    }

    /// A frame that was dropped.
    pub(crate) const fn dropped(reason: DropReason) -> Look {
        Look {
            reason: Some(reason),
            ..Look::of(Kind::Dropped)
        }
    }

    /// What is told of a frame of so many bytes; `capture` and `trace` are its numbers.
    pub(super) fn event(
        &self,
        (capture, trace): (u32, u32),
        (worker, now): (WorkerId, Nanos),
        len: usize,
    ) -> Event {
        Event {
            capture,
            trace,
            kind: self.kind,
            reason: self.reason,
            ingress: self.ingress,
            egress: self.egress,
            priority: self.priority,
            worker,
            flags: self.flags,
            len: low16(len),
            time: now,
            depth: self.depth,
            notes: self.notes,
        }
    }

    /// What a filter may ask about, if this is anything that is captured when no frame is followed.
    pub(super) const fn seen(&self) -> Option<Seen> {
        match (self.kind, self.reason) {
            (Kind::Received, _) => Some(Seen::Received),
            (Kind::Sent, _) => Some(Seen::Sent),
            (Kind::Dropped, Some(reason)) => Some(Seen::Dropped(reason)),
            _ => None,
        }
    }

    /// The ports it concerns.
    pub(super) fn ports(&self) -> u32 {
        let bit = |port: Option<PortId>| port.map_or(0, PortId::bit);
        match self.kind {
            Kind::Received => bit(self.ingress),
            Kind::Sent => bit(self.egress),
            _ => bit(self.ingress) | bit(self.egress),
        }
    }
}
