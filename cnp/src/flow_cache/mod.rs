//! The worker's half of sampling: counts every flow of an NPCC port, and shows the control core a few packets of each.
//!
//! ```text
//!   worker (private)              shared, 64 bytes a slot                    control core
//!   time of CNP last shown   ->   key, bytes, packets, last seen          ->  reads
//!   8 tags a set                  what may still be shown
//!                                 ring of flows that send again   ->  reads those that send
//!                                 ring of strikes owed            ->  pays with CNPs
//!                            <-   control word                           <-  writes
//!                            ------ ring of records ------------------->     pairs
//! ```
//! A packet is *shown* when its record goes into the ring of records.
//!
//! Law: a packet costs one hash and one probe, of its home slot or of its set of eight slots, and never waits for the control core. Every word has
//! one writer. A new flow takes a slot of its set whose flow was unseen for [`BUSY`] or had one packet only. If there is none, its frames are not
//! counted here, but by `cache_full`. So a flood of new flows pushes out no live flow, and flows of one packet each keep out no new one. Bytes are
//! counted for [`Data`](npcc_pipeline::wire::bth::RoceClass::Data) and datagrams only: ACK, CNP and CM never contribute to congestion.

mod allowance;
mod budget;
mod cache_key;
mod count;
mod entry;
mod owed_strikes;
mod pace;
mod reader;
mod rings;
mod slot;
mod tap;
mod warm;
mod woken;

use std::sync::Arc;

use npcc_pipeline::sync::AtomicU64;
use npcc_pipeline::units::{Nanos, PortId};
use rtrb::{Producer, RingBuffer};

use budget::Budget;
use cache_key::{Addresses, CacheKey};
use entry::{DETAILS_ANY, Entry};
use npcc_roce::cm::copy::CmCopy;
use npcc_roce::key::{KeyHasher, low32};
use npcc_roce::sample::PacketSample;
use owed_strikes::OWED_STRIKES;
pub use owed_strikes::OwedStrike;
use pace::Pace;
pub use reader::{CacheCount, CacheCounters, CacheReader, CacheShared};
pub(crate) use rings::Quotas;
use rings::Rings;
use slot::Slot;
pub use slot::{SlotControl, SlotReading};
use tap::source;
pub(crate) use woken::ASLEEP;
use woken::Woken;

/// Number of keys that share a set.
const WAYS: usize = 8;
/// A way seen this recently is not given to another flow.
pub const BUSY: Nanos = Nanos::from_millis(10);
/// Capacity of each ingress port's ring of QP1 packets on their way to the control core, 400 bytes each.
const MESSAGES: usize = 1_024;

/// Number of packets of a run that may be shown or begin a flow while there are many flows: each costs as much as ten that are counted, so a run
/// of 64 never costs twice as much. The others' flows are shown, or begin, with one of their next packets.
const QUOTA: usize = 4;

/// The value 1 in every octet.
const ONES: u64 = u64::MAX / 0xff;

/// Shift from ns to age units: ages are kept in units of 1,024 ns and wrap after 73 minutes.
const AGE_SHIFT: u32 = 10;

/// Log2, in age units, of the turns in which a ring found full is not tried again: 16 units (16 us), in which the control core drains a few times.
const RING_TURN: u32 = 4;

const fn stamp(time: Nanos) -> u32 {
    low32(time.0 >> AGE_SHIFT)
}

/// The worker's side of the flow cache. Implements [`FlowTap`](npcc_pipeline::tap::FlowTap).
#[derive(Debug)]
pub struct FlowCache {
    /// Tags of each set, one word a set: eight low hash bits a way, lowest set, the first way in the low octet; 0 is free.
    tags: Box<[u64]>,
    entries: Box<[Entry]>,
    /// Addresses of IPv6 flows.
    wide: Box<[Addresses]>,
    shared: Arc<CacheShared>,
    rings: Rings<PacketSample>,
    messages: Rings<CmCopy>,
    owed_strikes: Producer<OwedStrike>,
    ports: u32,
    hasher: KeyHasher,
    /// Number of slots that some flow has, or had.
    taken: usize,
    pace: Pace,
    budget: Budget,
    /// Packets of the present run that may still be shown, and flows that may still begin: [`QUOTA`] at most while there are many flows, and none while
    /// the ring of the ingress port is full.
    quota: usize,
}

impl FlowCache {
    /// Makes a cache of at least `slots` flows for the ports in `ports`, and a ring of `ring` records (96 bytes each) for each ingress port.
    ///
    /// Messages have rings of their own, of [`MESSAGES`] each. `seed` should differ from start to start, so that nobody can aim at one set.
    #[must_use]
    pub fn new(slots: usize, ports: u32, ring: usize, seed: u64) -> (FlowCache, CacheReader) {
        let sets = slots.div_ceil(WAYS).next_power_of_two();
        let shared = Arc::new(CacheShared {
            slots: (0..sets * WAYS).map(|_| Slot::default()).collect(),
            woken: Woken::new(),
            returns_until: AtomicU64::new(0),
            owing: AtomicU64::new(0),
            counters: CacheCounters::default(),
            damaged: Default::default(),
            lost_messages: Default::default(),
        });
        let (rings, waiting) = Rings::new(ring);
        let (messages, copies) = Rings::new(MESSAGES);
        let (debts, owed) = RingBuffer::new(OWED_STRIKES);
        let cache = FlowCache {
            tags: vec![0; sets].into_boxed_slice(),
            entries: vec![Entry::default(); sets * WAYS].into_boxed_slice(),
            wide: vec![[0; 32]; sets * WAYS].into_boxed_slice(),
            shared: Arc::clone(&shared),
            rings,
            messages,
            owed_strikes: debts,
            ports,
            hasher: KeyHasher::new(seed),
            taken: 0,
            pace: Pace::new(),
            budget: Budget::new(seed),
            quota: usize::MAX,
        };
        (
            cache,
            CacheReader {
                waiting,
                messages: copies,
                owed_strikes: owed,
                woken: 0,
                shared,
            },
        )
    }

    /// Returns true if a slot belongs to the flow with this key.
    #[inline]
    fn holds(&self, slot: usize, key: &CacheKey) -> bool {
        let slots = &self.shared.slots;
        let ours = slots.get(slot).is_some_and(|slot| slot.is(&key.pair));
        ours && (key.is_v4() || self.wide.get(slot) == Some(&key.addresses))
    }

    /// Home slot of a key, where most flows are, and the tag by which the others are found in its set.
    #[inline]
    fn home(&self, pair: [u64; 2]) -> (usize, u64) {
        let hash = self.hasher.of_pair(pair);
        // The tag takes bits above those that choose the slot, of up to 2^24.
        (place(hash, self.shared.slots.len() - 1), hash >> 56 | 1)
    }

    /// Finds the slot of a key that is not at home: one of the same set, made for it if need be and if the budget of its sender admits it.
    fn elsewhere(
        &mut self,
        (home, tag): (usize, u64),
        key: &CacheKey,
        ingress: PortId,
        now: Nanos,
    ) -> Option<usize> {
        let set = home / WAYS;
        let tags = *self.tags.get(set)?;
        let mut matches = matching(tags, tag);
        while matches != 0 {
            let slot = set * WAYS + matches.trailing_zeros() as usize / 8;
            if self.holds(slot, key) {
                return Some(slot);
            }
            matches &= matches - 1;
        }
        let from = (ingress, source(key));
        if !self.take_quota() || !self.budget.admits_newcomer(from, now) {
            self.shared.counters.cache_full.add(1);
            return None;
        }
        self.replace(home, tag, key, now)
    }

    /// Takes one from the quota of the present run; returns false if it is used up.
    #[inline]
    fn take_quota(&mut self) -> bool {
        let left = self.quota > 0;
        self.quota -= usize::from(left);
        left
    }

    /// Gives a new key the free slot at home, or the one of its set that was longest unseen, unless all are busy: a flow of which a
    /// single packet was seen is not.
    #[cold]
    fn replace(&mut self, home: usize, tag: u64, key: &CacheKey, now: Nanos) -> Option<usize> {
        let first = home / WAYS * WAYS;
        let tags = self.tags.get_mut(home / WAYS)?;
        let known = tags.to_le_bytes();
        let slots = self.shared.slots.get(first..first + WAYS)?;
        let ages = (first..)
            .zip(slots.iter().zip(&known))
            .map(|(slot, (shared, known))| {
                let unseen = match known {
                    0 => u64::MAX,
                    _ => now.since(shared.last_seen()).0,
                };
                let is_free = unseen > BUSY.0 || shared.packets() == 1;
                ((unseen > BUSY.0, is_free, unseen), slot == home, slot)
            });
        let ((_, is_free, _), _, slot) = ages.max()?;
        let counters = &self.shared.counters;
        if !is_free {
            counters.cache_full.add(1);
            return None;
        }
        let shift = 8 * u32::try_from(slot - first).ok()?;
        match *tags >> shift & 0xff {
            0 => self.taken += 1,
            _ => counters.replaced.add(1),
        }
        self.pace.note(stamp(now));
        *tags = *tags & !(0xff << shift) | tag << shift;
        let shared = self.shared.slots.get(slot)?;
        shared.renew(key.pair, key.queue(), stamp(now), DETAILS_ANY);
        *self.entries.get_mut(slot)? = Entry::new(stamp(now));
        if !key.is_v4() {
            *self.wide.get_mut(slot)? = key.addresses;
        }
        Some(slot)
    }
}

/// Slot that a hash names.
#[inline]
const fn place(hash: u64, mask: usize) -> usize {
    (hash >> 32) as usize & mask
}

/// Ways of a set that have this tag, as the high bits of their octets. All eight at once: an octet that is equal becomes
/// zero. The way above such an octet may match falsely; its key tells.
#[inline]
const fn matching(tags: u64, tag: u64) -> u64 {
    let differ = tags ^ tag.wrapping_mul(ONES);
    differ.wrapping_sub(ONES) & !differ & (ONES << 7)
}

const _: () = assert!(size_of::<PacketSample>() <= 96);

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
