//! A frame at one stage of the packet path, with the metadata that a capture records.

use super::event::{Event, Kind, Notes};
use super::filter::Seen;
use crate::bits::low16;
use crate::drop::DropReason;
use crate::units::{Nanos, PortId, Priority, WorkerId};

/// Metadata of a frame at one stage of the packet path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CapturePoint {
    pub(crate) kind: Kind,
    pub(crate) reason: Option<DropReason>,
    pub(crate) ingress: Option<PortId>,
    pub(crate) egress: Option<PortId>,
    pub(crate) priority: Option<Priority>,
    pub(crate) depth: u64,
    pub(crate) flags: u8,
    pub(crate) notes: Notes,
}

impl CapturePoint {
    /// Returns metadata with nothing set except the stage.
    pub(crate) const fn of(kind: Kind) -> CapturePoint {
        CapturePoint {
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

    /// Returns the metadata of a dropped frame.
    pub(crate) const fn dropped(reason: DropReason) -> CapturePoint {
        CapturePoint {
            reason: Some(reason),
            ..CapturePoint::of(Kind::Dropped)
        }
    }

    /// Returns the event of a frame of `len` bytes; `capture` and `trace` are its numbers.
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

    /// Returns what a filter tests about the stage; `None` if it is captured only when frames are followed.
    pub(super) const fn seen(&self) -> Option<Seen> {
        match (self.kind, self.reason) {
            (Kind::Received, _) => Some(Seen::Received),
            (Kind::Sent, _) => Some(Seen::Sent),
            (Kind::Dropped, Some(reason)) => Some(Seen::Dropped(reason)),
            _ => None,
        }
    }

    /// Returns the set of ports the frame concerns.
    pub(super) fn ports(&self) -> u32 {
        let bit = |port: Option<PortId>| port.map_or(0, PortId::bit);
        match self.kind {
            Kind::Received => bit(self.ingress),
            Kind::Sent => bit(self.egress),
            _ => bit(self.ingress) | bit(self.egress),
        }
    }
}
