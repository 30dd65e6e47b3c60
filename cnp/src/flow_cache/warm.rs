//! Prefetches the cache lines of a burst's flows before they are counted.
//!
//! Each packet waits for its flow's line, from the second-level cache where flows are few and from memory where they are many, and
//! a branch mispredicted on its contents keeps the next packet's load from being issued. So all lines are loaded first, by loads
//! that nothing depends on. With few flows nearly all are at home; with many the tags of a set tell where each is.

use std::hint::black_box;

use npcc_pipeline::burst::Record;
use npcc_pipeline::frame::FlowSlot;

use super::count::Common;
use super::{FlowCache, WAYS, matching, place};
use npcc_roce::key::{low32, pair_of};

/// Number of flows that fit into a core's second-level cache, at 64 bytes each.
const FEW: usize = 4_096;

impl FlowCache {
    /// Returns true if the cache has, or once had, more flows than stay in the core's own cache.
    #[inline]
    pub(super) fn has_many(&self) -> bool {
        self.taken > FEW
    }

    /// Notes in each of these records of one run the slot that its hash names, and loads it. The class of packet does not matter: a useless
    /// load costs little. Returns what the packets have in common.
    #[inline(never)]
    pub(super) fn note_home(&self, records: &mut [Record], queue: u64) -> Common {
        let (slots, hasher) = (&*self.shared.slots, self.hasher.pairs());
        let Some(mask) = slots.len().checked_sub(1) else {
            return Common::NONE;
        };
        let one_more = |(common, sum): (Common, u64), record: &mut Record| {
            let home = place(hasher.hash(pair_of(record, queue)), mask);
            record.slot = FlowSlot(low32(home as u64));
            let loaded = slots.get(home).map_or(0, |slot| slot.last_seen().0);
            (common.and(record), sum ^ loaded)
        };
        let (common, sum) = records.iter_mut().fold((Common::NONE, 0), one_more);
        black_box(sum);
        common
    }

    /// Notes in each of these records of one run the slot that its tag names. The class of packet does not matter: a useless load costs little.
    /// Returns what the packets have in common.
    #[inline(never)]
    pub(super) fn note(&self, records: &mut [Record], queue: u64) -> Common {
        let mut common = Common::NONE;
        for record in records {
            common = common.and(record);
            let (home, tag) = self.home(pair_of(record, queue));
            let Some(tags) = self.tags.get(home / WAYS) else {
                continue;
            };
            let way = first_way(matching(*tags, tag), home % WAYS);
            record.slot = FlowSlot(low32((home / WAYS * WAYS + way) as u64));
        }
        common
    }

    /// Loads the slots of these records. The loop has few instructions, so that the core sees the loads of many frames at a time and has as
    /// many lines on their way as it can.
    #[inline]
    pub(super) fn warm(&self, records: &[Record]) {
        let slots = records
            .iter()
            .filter_map(|record| self.shared.slots.get(record.slot.0 as usize));
        black_box(slots.fold(0, |sum, slot| sum ^ slot.last_seen().0));
    }
}

/// First way whose tag matches, in turn from `home`; `home` when none does. Without a branch, which would be mispredicted
/// for one flow in a few, and wait for its tags to find out.
const fn first_way(matches: u64, home: usize) -> usize {
    let from_home = matches.rotate_right(low32(home as u64) * 8);
    (home + from_home.trailing_zeros() as usize / 8) % WAYS
}
