//! Metadata of a captured frame: a header of fixed length before its bytes.

use crate::bits::low8;
use crate::drop::DropReason;
use crate::units::{MAX_PORTS, Nanos, PRIORITIES, PortId, Priority, WorkerId};

crate::named! {
    /// Stage at which a frame was captured. All but the first three occur only for frames that are followed
    /// ([`super::Tracked`]).
    pub enum Kind {
        /// Frame was received.
        Received = "received",
        /// Frame was handed to a device.
        Sent = "sent",
        /// Frame was dropped.
        Dropped = "dropped",
        /// Frame made by the switch, or sent by Linux, was queued.
        Made = "made",
        /// Frame was admitted, and waits in its queue.
        Queued = "queued",
        /// Frame was admitted, and bypasses its idle queue.
        Bypassed = "bypassed",
        /// Frame was admitted, and goes to the worker that owns its egress port.
        HandedOver = "handed_over",
        /// Frame was given to Linux.
        Punted = "punted",
        /// MAC control frame was consumed.
        Consumed = "consumed",
    }
}

impl Kind {
    /// Returns true if nothing more happens to the frame.
    #[must_use]
    pub const fn is_last(self) -> bool {
        matches!(
            self,
            Kind::Sent | Kind::Dropped | Kind::Punted | Kind::Consumed
        )
    }
}

/// Further metadata of a frame that is followed; all zero for any other frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Notes {
    /// Wire bytes of the shared buffer in use, by all workers.
    pub pool: u64,
    /// Wire bytes that the frame's ingress group holds.
    pub group: u64,
    /// Wire bytes that the frame's ingress group holds in headroom.
    pub headroom: u64,
    /// Next-hop group that the destination leads to; set for a received frame.
    pub next_hops: u32,
    /// Hash of the flow, whose low bits are its bucket in the next-hop group; set for a received frame.
    pub flow_hash: u32,
}

/// Metadata of one captured frame: what happened to it, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Number of the capture.
    pub capture: u32,
    /// Number of the frame among those that are followed; 0 if it is not followed.
    pub trace: u32,
    /// Stage at which the frame was captured.
    pub kind: Kind,
    /// Drop reason of a dropped frame.
    pub reason: Option<DropReason>,
    /// Ingress port; `None` if the switch made the frame.
    pub ingress: Option<PortId>,
    /// Egress port, once it is known.
    pub egress: Option<PortId>,
    /// Priority of its egress queue; for a received frame, the frame's priority.
    pub priority: Option<Priority>,
    /// Worker that captured the frame.
    pub worker: WorkerId,
    /// Flag bits [`Event::MADE`], [`Event::REWRITTEN`] and [`Event::WATCHED`].
    pub flags: u8,
    /// Length of the whole frame in bytes; fewer may have been captured.
    pub len: u16,
    /// Time at which the frame's burst was received, admitted or sent.
    pub time: Nanos,
    /// Wire bytes that wait in its queue without it, if the queue is one of this worker's.
    pub depth: u64,
    /// Further metadata, of a frame that is followed.
    pub notes: Notes,
}

/// Length of an encoded event in octets; the frame's bytes follow it.
pub const HEAD: usize = 68;
/// Encoding of no port, no priority or no reason.
const NONE: u8 = u8::MAX;

impl Event {
    /// Flag of a frame that the switch or Linux made.
    pub const MADE: u8 = 1;
    /// Flag of a frame whose bytes are those it would be sent with: TTL, VLAN and MAC addresses are the next hop's.
    pub const REWRITTEN: u8 = 2;
    /// Flag of a frame whose flow NPCC observes.
    pub const WATCHED: u8 = 4;

    /// Encodes the event, little-endian.
    #[must_use]
    pub fn encode(&self) -> [u8; HEAD] {
        let index = |index: Option<usize>| index.map_or(NONE, low8);
        let octets = [
            low8(self.kind.index()),
            index(self.reason.map(DropReason::index)),
            index(self.ingress.map(PortId::index)),
            index(self.egress.map(PortId::index)),
            index(self.priority.map(Priority::index)),
            self.worker.0,
            self.flags,
            0,
        ];
        let notes = &self.notes;
        let mut out = [0; HEAD];
        let mut room = out.as_mut_slice();
        for part in [
            &self.capture.to_le_bytes()[..],
            &self.trace.to_le_bytes(),
            &octets,
            &u32::from(self.len).to_le_bytes(),
            &self.time.0.to_le_bytes(),
            &self.depth.to_le_bytes(),
            &notes.pool.to_le_bytes(),
            &notes.group.to_le_bytes(),
            &notes.headroom.to_le_bytes(),
            &notes.next_hops.to_le_bytes(),
            &notes.flow_hash.to_le_bytes(),
        ] {
            if let Some((place, rest)) = std::mem::take(&mut room).split_at_mut_checked(part.len())
            {
                place.copy_from_slice(part);
                room = rest;
            }
        }
        out
    }

    /// Decodes an event and the frame's bytes behind it; `None` if `record` is not an event.
    #[must_use]
    pub fn decode(record: &[u8]) -> Option<(Event, &[u8])> {
        let (head, frame) = record.split_at_checked(HEAD)?;
        let mut parts = Parts(head);
        let (capture, trace) = (parts.u32()?, parts.u32()?);
        let [kind, reason, ingress, egress, priority, worker, flags, _] = parts.take()?;
        let known = |index: u8| (index != NONE).then_some(usize::from(index));
        let port = |index: u8| known(index).filter(|index| *index < MAX_PORTS);
        let port = |index: u8| port(index).map(|index| PortId(low8(index)));
        let event = Event {
            capture,
            trace,
            kind: Kind::from_index(usize::from(kind))?,
            reason: known(reason).and_then(DropReason::from_index),
            ingress: port(ingress),
            egress: port(egress),
            priority: known(priority)
                .filter(|index| *index < PRIORITIES)
                .map(|index| Priority::new(low8(index))),
            worker: WorkerId(worker),
            flags,
            len: u16::try_from(parts.u32()?).ok()?,
            time: Nanos(parts.u64()?),
            depth: parts.u64()?,
            notes: Notes {
                pool: parts.u64()?,
                group: parts.u64()?,
                headroom: parts.u64()?,
                next_hops: parts.u32()?,
                flow_hash: parts.u32()?,
            },
        };
        Some((event, frame))
    }

    /// Returns true if all of `flags` are set.
    #[must_use]
    pub const fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}

/// Octets that are yet to be decoded.
struct Parts<'a>(&'a [u8]);

impl Parts<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_event_is_read_as_it_was_written(
            numbers in prop::array::uniform4(any::<u32>()), words in prop::array::uniform5(any::<u64>()),
            kind in 0..Kind::COUNT, reason in prop::option::of(0..DropReason::COUNT),
            ports in prop::array::uniform2(prop::option::of(0u8..32)), priority in prop::option::of(0u8..8),
            (worker, flags, len) in any::<(u8, u8, u16)>(), frame in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let [capture, trace, next_hops, flow_hash] = numbers;
            let [time, depth, pool, group, headroom] = words;
            let event = Event {
                capture, trace, kind: Kind::ALL[kind], reason: reason.map(|index| DropReason::ALL[index]),
                ingress: ports[0].map(PortId), egress: ports[1].map(PortId), priority: priority.map(Priority::new),
                worker: WorkerId(worker), flags, len, time: Nanos(time), depth,
                notes: Notes { pool, group, headroom, next_hops, flow_hash },
            };
            let record = [&event.encode()[..], &frame].concat();
            prop_assert_eq!(Event::decode(&record), Some((event, &frame[..])));
        }

        #[test]
        fn any_octets_are_an_event_or_none(record in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Event::decode(&record);
        }
    }
}
