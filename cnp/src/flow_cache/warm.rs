//! Brings the lines of a burst's flows in before they are counted.
//!
//! Each packet waits for its flow's line, from the second-level cache where flows are few and from memory where they are many, and
//! a wrong guess about what it holds keeps the next packet's from being asked for. So they are all asked for first, by loads
//! that nothing depends on. Of few flows nearly all are at home; of many the tags of a set tell where each is.

use std::hint::black_box;

use npcc_pipeline::burst::Record;
use npcc_pipeline::frame::FlowSlot;

use super::{FlowCache, WAYS, matching, place};
use crate::key::{low32, words_v4};

/// So many flows fit into a core's second-level cache, at 64 bytes each.
const FEW: usize = 4_096;

impl FlowCache {
    /// Whether there are more flows than stay in the core's own cache.
    #[inline]
    pub(super) fn has_many(&self) -> bool {
        self.taken > FEW
    }

    /// Notes in each of these records of one run the slot its hash names, and loads it. Any class of packet: it costs little to
    /// be wrong.
    #[inline(never)]
    pub(super) fn note_home(&self, records: &mut [Record], queue: u64) {
        let (slots, hasher) = (&*self.shared.slots, self.hasher.v4());
        let Some(mask) = slots.len().checked_sub(1) else {
            return;
        };
        let mut sum = 0;
        for record in records {
            let [tail, addresses, ..] = words_v4(record.addresses, record.dest_qp(), queue);
            let home = place(hasher.hash([tail, addresses]), mask);
            record.slot = FlowSlot(low32(home as u64));
            if let Some(slot) = slots.get(home) {
                sum ^= slot.last_seen().0;
            }
        }
        black_box(sum);
    }

    /// Notes in each of these records of one run the slot its tag names. Any class of packet: it costs little to be wrong.
    #[inline(never)]
    pub(super) fn note(&self, records: &mut [Record], queue: u64) {
        for record in records {
            let words = words_v4(record.addresses, record.dest_qp(), queue);
            let (home, tag) = self.home(&words);
            let Some(tags) = self.tags.get(home / WAYS) else {
                continue;
            };
            let way = first_way(matching(*tags, tag), home % WAYS);
            record.slot = FlowSlot(low32((home / WAYS * WAYS + way) as u64));
        }
    }

    /// Loads slots. A loop of few instructions, so that the core sees the loads of many frames at a time and has as many lines on
    /// their way as it can.
    #[inline]
    pub(super) fn warm(&self, records: &[Record]) {
        let slots = records
            .iter()
            .filter_map(|record| self.shared.slots.get(record.slot.0 as usize));
        black_box(slots.fold(0, |sum, slot| sum ^ slot.last_seen().0));
    }
}

/// The first way whose tag matches, in turn from `home`; `home` when none does. Without a branch, which would be guessed wrong
/// for one flow in a few, and wait for its tags to find out.
const fn first_way(matches: u64, home: usize) -> usize {
    let from_home = matches.rotate_right(low32(home as u64) * 8);
    (home + from_home.trailing_zeros() as usize / 8) % WAYS
}
