//! A map of fixed capacity whose entries keep their index, with two lists from oldest to newest use.
//!
//! Chained hashing over one array of heads: inserting and removing is a few stores, never a rehash, never an allocation.
//! Memory is touched as entries are first used. The two lists hold what may go first and what should stay.

use std::hash::Hash;
use std::hint::black_box;

use arrayvec::ArrayVec;
use npcc_pipeline::units::{PortId, Priority};

use crate::key::{FlowKey, KeyHasher, QueueFlow, low32};
pub use crate::links::NONE;
use crate::links::{Entries, Links, List};

/// Places at which entries were found, or nearly: [`FixedMap::find_at`] looks there first.
pub type Hints = ArrayVec<u32, TOGETHER>;

/// Key of a [`FixedMap`].
pub trait MapKey: Copy + Eq + Hash {
    /// Hash of the key, the low bits of which choose the chain.
    fn hash32(&self, hasher: &KeyHasher) -> u32 {
        low32(hasher.hash(self))
    }
}

impl MapKey for QueueFlow {
    fn hash32(&self, hasher: &KeyHasher) -> u32 {
        low32(hasher.of_words(&self.words()) >> 32)
    }
}

impl MapKey for FlowKey {
    fn hash32(&self, hasher: &KeyHasher) -> u32 {
        let anywhere = QueueFlow {
            key: *self,
            egress: PortId(0),
            priority: Priority::new(0),
        };
        anywhere.hash32(hasher)
    }
}

impl MapKey for ([u64; 2], bool) {}

/// Maximum number of keys whose entries are prefetched at once.
pub const TOGETHER: usize = 32;
/// Number of entries of a chain that are prefetched: at most one key in fifty is further down.
const DEEP: usize = 3;

/// A slot of the map. The order of fields puts key and links into one line, however long the value is: a neighbour in a list whose value
/// has lines of its own costs only the key's line.
#[derive(Debug)]
#[repr(C)]
struct Slot<K, V> {
    key: K,
    /// Next slot in the hash chain, or in the free list.
    chain: u32,
    /// Neighbours in the slot's list of use.
    links: Links,
    list: u8,
    /// True if the slot is not in the free list.
    live: bool,
    value: V,
}

/// A map of fixed capacity.
#[derive(Debug)]
pub struct FixedMap<K, V> {
    heads: Box<[u32]>,
    slots: Vec<Slot<K, V>>,
    free: u32,
    /// Lists of use, from the oldest to the newest.
    lists: [List; 2],
    len: usize,
    capacity: usize,
    hasher: KeyHasher,
}

impl<K: MapKey, V: Copy> FixedMap<K, V> {
    /// Makes an empty map for `capacity` entries; `seed` keys its hash, so that nobody can make keys collide.
    pub fn new(capacity: usize, seed: u64) -> FixedMap<K, V> {
        let capacity = capacity.clamp(1, NONE as usize - 1);
        FixedMap {
            heads: vec![NONE; 2 * capacity.next_power_of_two()].into_boxed_slice(),
            slots: Vec::with_capacity(capacity),
            free: NONE,
            lists: [List::EMPTY; 2],
            len: 0,
            capacity,
            hasher: KeyHasher::new(seed),
        }
    }

    /// Returns true if no entry is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of entries in use.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns one more than the largest index that was ever used.
    pub fn places(&self) -> u32 {
        u32::try_from(self.slots.len()).unwrap_or(NONE)
    }

    /// Returns true if no key more fits.
    pub fn is_full(&self) -> bool {
        self.len >= self.capacity
    }

    fn bucket(&self, key: &K) -> usize {
        key.hash32(&self.hasher) as usize & (self.heads.len() - 1)
    }

    fn slot(&self, index: u32) -> Option<&Slot<K, V>> {
        self.slots.get(index as usize)
    }

    fn slot_mut(&mut self, index: u32) -> Option<&mut Slot<K, V>> {
        self.slots.get_mut(index as usize)
    }

    /// Returns the index of a key's entry.
    pub fn find(&self, key: &K) -> Option<u32> {
        // An unused map must not cost a line from memory.
        if self.len == 0 {
            return None;
        }
        let mut index = *self.heads.get(self.bucket(key))?;
        while let Some(slot) = self.slot(index) {
            if slot.key == *key {
                return Some(index);
            }
            index = slot.chain;
        }
        None
    }

    /// Index of the entry with this key, looked for first at a place that [`FixedMap::prefetch`] returned.
    pub fn find_at(&self, hint: u32, key: &K) -> Option<u32> {
        match self.slot(hint) {
            Some(slot) if slot.key == *key && slot.live => Some(hint),
            _ => self.find(key),
        }
    }

    /// Prefetches the entries of up to [`TOGETHER`] keys and their neighbours in the list of use into the cache, so that the
    /// time of many reads from memory is that of a few: found one by one, each would wait for the one before. `look`
    /// reads the parts of a value that will be used. Returns the place at which each was found, or would be.
    pub(crate) fn prefetch(
        &self,
        keys: impl Iterator<Item = K>,
        look: impl Fn(&V) -> u64,
    ) -> Hints {
        let keys: ArrayVec<K, TOGETHER> = keys.take(TOGETHER).collect();
        // Hashed first: the fewer instructions between two loads, the more of them the core has on their way.
        let buckets: ArrayVec<usize, TOGETHER> = keys.iter().map(|key| self.bucket(key)).collect();
        let heads = buckets.iter().map(|bucket| self.heads.get(*bucket));
        let mut found: Hints = heads.map(|head| head.copied().unwrap_or(NONE)).collect();
        let mut sum = 0;
        for _ in 0..DEEP {
            // First all loads, and only then the comparisons that wait for them.
            sum ^= self.sum(&found, |slot| u64::from(slot.chain));
            let mut further = false;
            for (index, key) in found.iter_mut().zip(&keys) {
                if let Some(slot) = self.slot(*index)
                    && slot.key != *key
                    && slot.chain != NONE
                {
                    *index = slot.chain;
                    further = true;
                }
            }
            if !further {
                break;
            }
        }
        black_box(sum);
        self.prefetch_found(&found, look);
        found
    }

    /// Prefetches entries known by their index, and their neighbours in the list of use.
    pub fn prefetch_found(&self, found: &[u32], look: impl Fn(&V) -> u64) {
        self.prefetch_values(found, look);
        let mut sum = 0;
        let of = |index: &u32| self.slot(*index).map_or(Links::NONE, |slot| slot.links);
        for neighbour in [|links: Links| links.previous, |links: Links| links.next] {
            let beside = found.iter().map(|index| neighbour(of(index)));
            let beside: Hints = beside.take(TOGETHER).collect();
            sum ^= self.sum(&beside, |slot| u64::from(slot.links.previous));
        }
        black_box(sum);
    }

    /// Prefetches entries known by their index, without their neighbours.
    pub(crate) fn prefetch_values(&self, found: &[u32], look: impl Fn(&V) -> u64) {
        black_box(self.sum(found, |slot| look(&slot.value) ^ u64::from(slot.chain)));
    }

    fn sum(&self, all: &[u32], of: impl Fn(&Slot<K, V>) -> u64) -> u64 {
        all.iter()
            .filter_map(|index| self.slot(*index))
            .fold(0, |sum, slot| sum ^ of(slot))
    }

    /// Touches all memory there will ever be, so that no page fault comes later. Only for an empty map; any key and value will do.
    pub fn touch_memory(&mut self, key: K, value: V) {
        if self.slots.is_empty() {
            let blank = || Slot {
                key,
                chain: NONE,
                links: Links::NONE,
                list: 0,
                live: false,
                value,
            };
            self.slots.resize_with(self.capacity, blank);
            self.slots.clear();
            self.heads.fill(NONE);
        }
    }

    /// Returns the value of an entry in use.
    pub fn get(&self, index: u32) -> Option<&V> {
        let slot = self.slot(index)?;
        slot.live.then_some(&slot.value)
    }

    /// Returns the value of an entry in use, for changes.
    pub fn get_mut(&mut self, index: u32) -> Option<&mut V> {
        let slot = self.slot_mut(index)?;
        slot.live.then_some(&mut slot.value)
    }

    /// Returns the key of an entry in use.
    pub fn key(&self, index: u32) -> Option<K> {
        let slot = self.slot(index)?;
        slot.live.then_some(slot.key)
    }

    /// Inserts a key that is not in the map, as the newest of list 0; `None` when full.
    pub fn insert(&mut self, key: K, value: V) -> Option<u32> {
        if self.is_full() {
            return None;
        }
        let bucket = self.bucket(&key);
        let head = self.heads.get_mut(bucket)?;
        let fresh = Slot {
            key,
            chain: *head,
            links: Links::NONE,
            list: 0,
            live: true,
            value,
        };
        let index = if self.free == NONE {
            let index = u32::try_from(self.slots.len()).ok()?;
            self.slots.push(fresh);
            index
        } else {
            let index = self.free;
            let slot = self.slots.get_mut(index as usize)?;
            self.free = slot.chain;
            *slot = fresh;
            index
        };
        *head = index;
        self.len += 1;
        self.append(index, 0);
        Some(index)
    }

    /// Frees an entry; returns its key and value, or `None` if it was free.
    pub fn remove(&mut self, index: u32) -> Option<(K, V)> {
        let slot = self.slot_mut(index)?;
        if !std::mem::replace(&mut slot.live, false) {
            return None;
        }
        let (key, chain, value) = (slot.key, slot.chain, slot.value);
        let bucket = self.bucket(&key);
        let head = self.heads.get_mut(bucket)?;
        if *head == index {
            *head = chain;
        } else {
            let mut before = *head;
            while let Some(slot) = self.slot_mut(before) {
                if slot.chain == index {
                    slot.chain = chain;
                    break;
                }
                before = slot.chain;
            }
        }
        self.leave_list(index);
        let free = self.free;
        self.slot_mut(index)?.chain = free;
        self.free = index;
        self.len -= 1;
        Some((key, value))
    }

    /// Moves an entry to the newest end of its list.
    pub fn touch(&mut self, index: u32) {
        if let Some(list) = self.slot(index).map(|slot| slot.list) {
            self.set_list(index, list);
        }
    }

    /// Moves an entry to the newest end of list `list`.
    pub fn set_list(&mut self, index: u32, list: u8) {
        if self.get(index).is_some() {
            self.leave_list(index);
            self.append(index, list);
        }
    }

    /// Number of entries in this list.
    pub fn len_of(&self, list: u8) -> usize {
        self.lists
            .get(usize::from(list))
            .map_or(0, |list| list.len as usize)
    }

    /// Entry of this list that is longest untouched.
    pub fn oldest(&self, list: u8) -> Option<u32> {
        self.lists
            .get(usize::from(list))
            .map(|list| list.head)
            .filter(|index| *index != NONE)
    }

    /// Entries of this list, from the one longest untouched.
    pub fn by_age(&self, list: u8) -> impl Iterator<Item = u32> + '_ {
        let next = |index: &u32| Some(self.slot(*index)?.links.next);
        std::iter::successors(self.oldest(list), move |index| {
            next(index).filter(|index| *index != NONE)
        })
    }

    /// Makes the `count` oldest entries of this list its newest, in their order.
    pub fn rotate(&mut self, list: u8, count: usize) {
        for _ in 0..count.min(self.len_of(list)) {
            if let Some(index) = self.oldest(list) {
                self.touch(index);
            }
        }
    }

    /// List that an entry is in.
    pub(crate) fn list_of(&self, index: u32) -> Option<u8> {
        let slot = self.slot(index)?;
        slot.live.then_some(slot.list)
    }

    /// Number of entries that fit.
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    fn append(&mut self, index: u32, list: u8) {
        if let Some(slot) = self.slot_mut(index) {
            slot.list = list;
        }
        if let Some(list) = self.lists.get_mut(usize::from(list)) {
            list.push_back(self.slots.as_mut_slice(), |slot| &mut slot.links, index);
        }
    }

    fn leave_list(&mut self, index: u32) {
        let list = self.slot(index).map(|slot| usize::from(slot.list));
        if let Some(list) = list.and_then(|list| self.lists.get_mut(list)) {
            list.remove(self.slots.as_mut_slice(), |slot| &mut slot.links, index);
        }
    }
}

impl<K, V> Entries for [Slot<K, V>] {
    type Entry = Slot<K, V>;

    fn entry_mut(&mut self, index: u32) -> Option<&mut Slot<K, V>> {
        self.get_mut(index as usize)
    }
}

impl<K: MapKey, V: Copy> Entries for FixedMap<K, V> {
    type Entry = V;

    fn entry_mut(&mut self, index: u32) -> Option<&mut V> {
        self.get_mut(index)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    impl MapKey for u64 {}

    #[test]
    fn memory_touched_before_and_entries_warmed_change_nothing() {
        let mut map = FixedMap::new(100, 7);
        map.touch_memory(0u64, 0);
        assert_eq!((map.len(), map.find(&0)), (0, None));
        for key in 0..100u64 {
            assert_eq!(map.insert(key, key), u32::try_from(key).ok());
        }
        assert_eq!(map.insert(100, 100), None);
        let looked = std::cell::RefCell::new(std::collections::BTreeSet::new());
        map.prefetch((40..40 + TOGETHER as u64).chain([1_000]), |value| {
            looked.borrow_mut().insert(*value);
            *value
        });
        let found = (40..40 + TOGETHER as u64).filter(|key| looked.borrow().contains(key));
        assert!(found.count() >= TOGETHER - 1, "{looked:?}");
        assert!((0..100).all(|key| {
            map.find(&key)
                .is_some_and(|index| map.get(index) == Some(&key))
        }));
    }

    proptest! {
        #[test]
        fn behaves_as_a_hash_map_with_a_use_order(ops in prop::collection::vec((0u8..4, 0u64..12), 1..200)) {
            let mut map = FixedMap::new(8, 7);
            let mut model: HashMap<u64, u64> = HashMap::new();
            let mut order: [Vec<u64>; 2] = Default::default();
            for (step, (op, key)) in ops.into_iter().enumerate() {
                let step = step as u64;
                let found = map.find(&key);
                prop_assert_eq!(found.is_some(), model.contains_key(&key));
                match (op, found) {
                    (0, None) => {
                        let added = map.insert(key, step);
                        prop_assert_eq!(added.is_some(), model.len() < 8);
                        if added.is_some() {
                            model.insert(key, step);
                            order[0].push(key);
                        }
                    }
                    (1, Some(index)) => {
                        prop_assert_eq!(map.remove(index), Some((key, model.remove(&key).unwrap())));
                        order.iter_mut().for_each(|list| list.retain(|other| *other != key));
                    }
                    (2, Some(index)) => {
                        map.touch(index);
                        let list = order.iter_mut().find(|list| list.contains(&key)).unwrap();
                        list.retain(|other| *other != key);
                        list.push(key);
                    }
                    (3, Some(index)) => {
                        map.set_list(index, 1);
                        order.iter_mut().for_each(|list| list.retain(|other| *other != key));
                        order[1].push(key);
                    }
                    _ => {}
                }
                for list in 0..2 {
                    let oldest = map.oldest(list).and_then(|index| map.key(index));
                    prop_assert_eq!(oldest, order[usize::from(list)].first().copied());
                }
                prop_assert_eq!(map.len(), model.len());
            }
        }
    }
}
