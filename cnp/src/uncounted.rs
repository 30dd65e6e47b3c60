//! Contributors without an entry in the flow table: the reasons, and the bytes they put into watched queues.
//!
//! A worker's count in a slot is counted here by its increase since the slot's last record. A limited number of slots is
//! remembered; for any other, only the packet shown counts, so that the sums are never too large.

use npcc_pipeline::counters::Counter;
use npcc_pipeline::{counters, named};

use npcc_roce::sample::{PacketSample, SlotRef};

/// Number of slots remembered, over all workers.
const SLOTS: usize = 4_096;

named! {
    /// Reason why a contributor has no entry in the flow table.
    pub enum Uncounted {
        /// The packet came in by a port that is not trusted.
        UntrustedPort = "untrusted_port",
        /// The packet's source does not lie behind the port it came in by.
        WrongPort = "wrong_port",
        /// The packet's source began too many entries at this port, too fast.
        RateLimited = "rate_limited",
        /// The packet answers a READ that was never requested.
        Unrequested = "unasked",
        /// The table of connections has no place for the packet's endpoint.
        NoEndpoint = "ends_full",
        /// The flow table has no place for the flow.
        NoRoom = "flows_full",
    }
}

counters! {
    /// Counters of uncounted contributors, by reason.
    pub struct UncountedCounters => UncountedCount {
        /// Packets of contributors without an entry in the flow table that were shown, by reason.
        records: Counter => metric("npcc_uncounted_packets"),
        /// Wire bytes of contributors without an entry in the flow table, at least, by reason.
        bytes: Counter => metric("npcc_uncounted_bytes"),
    }
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    reader: usize,
    slot: SlotRef,
    bytes: u64,
}

/// The control core's side of the count.
#[derive(Debug)]
pub(crate) struct UncountedSlots {
    seen: Box<[Seen]>,
}

impl UncountedSlots {
    pub(crate) fn new() -> UncountedSlots {
        let none = Seen {
            reader: usize::MAX,
            slot: SlotRef::NONE,
            bytes: 0,
        };
        UncountedSlots {
            seen: vec![none; SLOTS].into_boxed_slice(),
        }
    }

    /// Bytes that a record of a contributor without an entry adds; `bytes` is its slot's count by now.
    pub(crate) fn fresh(
        &mut self,
        (record, reader): (&PacketSample, usize),
        bytes: Option<u64>,
    ) -> u64 {
        let mut fresh = u64::from(record.wire_len);
        if let (Some(seen), Some(bytes)) = (self.seen.get_mut(place(record.slot)), bytes) {
            if (seen.reader, seen.slot) == (reader, record.slot) {
                fresh = bytes.saturating_sub(seen.bytes);
            }
            *seen = Seen {
                reader,
                slot: record.slot,
                bytes,
            };
        }
        fresh
    }

    /// Bytes of a slot that were counted here, or before the packet that is its flow's first.
    pub(crate) fn counted(&self, reader: usize, slot: SlotRef) -> u64 {
        self.seen
            .get(place(slot))
            .filter(|seen| (seen.reader, seen.slot) == (reader, slot))
            .map_or(0, |seen| seen.bytes)
    }
}

const fn place(slot: SlotRef) -> usize {
    slot.slot.0 as usize % SLOTS
}
