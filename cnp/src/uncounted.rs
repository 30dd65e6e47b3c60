//! Contributors that have no entry in the flow table: why, and how many bytes they put into watched queues.
//!
//! What a worker counts in a slot is counted here by what was added since the slot's record before. So many slots are
//! remembered; of one that is not, the packet shown counts alone, so that the sums are never too large.

use npcc_pipeline::counters::Counter;
use npcc_pipeline::{counters, named};

use crate::sample::{Record, SlotRef};

/// Slots remembered, of all workers.
const SLOTS: usize = 4_096;

named! {
    /// Why a contributor has no entry in the flow table.
    pub enum Uncounted {
        /// It came in by a port that is not trusted.
        UntrustedPort = "untrusted_port",
        /// Its source does not lie behind the port it came in by.
        WrongPort = "wrong_port",
        /// Its source began too many at this port, too fast.
        RateLimited = "rate_limited",
        /// It answers a READ that nobody asked for.
        Unasked = "unasked",
        /// The table of connections' ends is full.
        NoEnd = "ends_full",
        /// The flow table has no place for it.
        NoRoom = "flows_full",
    }
}

counters! {
    /// What is counted of them, by reason.
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

/// The control core's side.
#[derive(Debug)]
pub(crate) struct Aside {
    seen: Box<[Seen]>,
}

impl Aside {
    pub(crate) fn new() -> Aside {
        let none = Seen {
            reader: usize::MAX,
            slot: SlotRef::NONE,
            bytes: 0,
        };
        Aside {
            seen: vec![none; SLOTS].into_boxed_slice(),
        }
    }

    /// The bytes that a record of a contributor without an entry adds; `bytes` is what its slot has counted by now.
    pub(crate) fn fresh(&mut self, (record, reader): (&Record, usize), bytes: Option<u64>) -> u64 {
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

    /// The bytes of a slot that were counted here, or before the packet that is its flow's first.
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
