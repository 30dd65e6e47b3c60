//! Brings the lines of a burst's flows in before they are counted.
//!
//! With few flows all of them stay in the core's own cache and nothing is done here. With many, each packet waits for a line
//! from memory, and a wrong guess about what it holds keeps the next packet's from being asked for. So they are all asked for
//! first, by loads that nothing depends on.

use std::hint::black_box;

use npcc_pipeline::frame::FlowSlot;
use npcc_pipeline::stage::packet::Packet;
use npcc_pipeline::stage::train::Car;

use super::{FlowCache, WAYS, matching};
use crate::key::{low32, words_v4};

/// So many flows fit into a core's second-level cache, at 64 bytes each.
const FEW: usize = 4_096;

/// What names a common frame's flow, and where its slot is noted.
pub(super) struct Hint<'a> {
    addresses: u64,
    dest_qp: u32,
    slot: &'a mut FlowSlot,
}

impl Hint<'_> {
    pub(super) fn of_car(car: &mut Car) -> Hint<'_> {
        Hint {
            addresses: car.addresses,
            dest_qp: car.dest_qp(),
            slot: &mut car.slot,
        }
    }

    /// `None` where it is not common.
    pub(super) fn of_packet(packet: &mut Packet) -> Option<Hint<'_>> {
        let brief = &packet.brief;
        brief.is_common().then_some(Hint {
            addresses: brief.addresses,
            dest_qp: brief.dest_qp(),
            slot: &mut packet.meta.slot,
        })
    }
}

impl FlowCache {
    /// Whether there are more flows than stay in the core's own cache.
    #[inline]
    pub(super) fn has_many(&self) -> bool {
        self.taken > FEW
    }

    /// Notes for each of these frames of one queue the slot its tag names. Any class of packet: it costs little to be wrong.
    #[inline(never)]
    pub(super) fn note<'a>(&self, hints: impl Iterator<Item = Hint<'a>>, queue: u64) {
        for hint in hints {
            let words = words_v4(hint.addresses, hint.dest_qp, queue);
            let (home, tag) = self.home(&words);
            let Some(tags) = self.tags.get(home / WAYS) else {
                continue;
            };
            let way = first_way(matching(*tags, tag), home % WAYS);
            *hint.slot = FlowSlot(low32((home / WAYS * WAYS + way) as u64));
        }
    }

    /// Loads slots. A loop of few instructions, so that the core sees the loads of many frames at a time and has as many lines on
    /// their way as it can.
    #[inline]
    pub(super) fn warm(&self, noted: impl Iterator<Item = FlowSlot>) {
        let slots = noted.filter_map(|slot| self.shared.slots.get(slot.0 as usize));
        black_box(slots.fold(0, |sum, slot| sum ^ slot.last_seen().0));
    }
}

/// The first way whose tag matches, in turn from `home`; `home` when none does. Without a branch, which would be guessed wrong
/// for one flow in a few, and wait for its tags to find out.
const fn first_way(matches: u64, home: usize) -> usize {
    let from_home = matches.rotate_right(low32(home as u64) * 8);
    (home + from_home.trailing_zeros() as usize / 8) % WAYS
}
