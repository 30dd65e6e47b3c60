//! One lookup image: 24 bits at the root, 8 bits a level below (DIR-24-8 for IPv4, the same stride on for IPv6).
//!
//! An entry is a value or the number of the 256-entry group one level down. Beside each entry stands the length of the
//! prefix that put it there (read by the writer only), so that a deleted prefix gives its entries back to the covering
//! route and to nobody else. A group lives while a prefix longer than its base lives in it, so nothing leaks however often
//! a route flaps.
//!
//! Entries are relaxed atomics: one thread writes while no worker reads this image ([`super::fib`]), and a relaxed load is
//! a plain load.

use std::sync::atomic::{AtomicU32, Ordering};

use zerocopy::FromZeros;

use super::prefix::Prefix;

const ROOT_BITS: u8 = 24;
const STRIDE: u8 = 8;
const GROUP: usize = 256;
/// The entry names a group.
const EXTENDED: u32 = 1 << 31;

/// No room for another group of 256 entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the route table is full: {groups} groups of 256 entries are in use; raise routing.ipv4_routes or ipv6_routes"
)]
pub struct Full {
    /// Groups the image was built with.
    pub groups: usize,
}

/// A value and the length of the prefix it came from; (0, 0) is "no route".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin {
    /// Next-hop-group id.
    pub value: u32,
    /// Bits of the prefix.
    pub len: u8,
}

/// The readers' half: entries only.
#[derive(Debug)]
pub struct Image {
    root: Box<[AtomicU32]>,
    groups: Box<[AtomicU32]>,
}

/// The writer's half: lengths, and which groups are free.
#[derive(Debug)]
pub struct ImageState {
    root_len: Box<[u8]>,
    group_len: Box<[u8]>,
    /// Prefixes longer than the group's base that live in it.
    population: Box<[u32]>,
    free: Vec<u32>,
}

/// Zeroed memory that costs nothing until touched.
fn zeroed<T: FromZeros>(n: usize) -> Box<[T]> {
    T::new_vec_zeroed(n).unwrap_or_default().into_boxed_slice()
}

impl Image {
    /// An empty image with room for `groups` groups, and its writer's half.
    #[must_use]
    pub fn new(groups: usize) -> (Image, ImageState) {
        let image = Image {
            root: zeroed(1 << ROOT_BITS),
            groups: zeroed(groups * GROUP),
        };
        let state = ImageState {
            root_len: zeroed(1 << ROOT_BITS),
            group_len: zeroed(groups * GROUP),
            population: zeroed(groups),
            free: (0..u32::try_from(groups).unwrap_or(u32::MAX))
                .rev()
                .collect(),
        };
        (image, state)
    }

    /// The value for an IPv4 address; 0 when only the default route covers it.
    #[inline]
    #[must_use]
    pub fn lookup_v4(&self, address: u32) -> u32 {
        let entry = load(&self.root, (address >> 8) as usize);
        if entry & EXTENDED == 0 {
            return entry;
        }
        load(&self.groups, slot(entry, (address & 0xff) as usize))
    }

    /// The value for an IPv6 address; 0 when only the default route covers it.
    #[inline]
    #[must_use]
    pub fn lookup_v6(&self, address: u128) -> u32 {
        let mut entry = load(&self.root, root_index(address));
        let mut shift = 128 - ROOT_BITS;
        while entry & EXTENDED != 0 && shift >= STRIDE {
            shift -= STRIDE;
            entry = load(
                &self.groups,
                slot(entry, (address >> shift) as usize & 0xff),
            );
        }
        entry
    }

    /// Inserts or replaces `prefix`. `new` says whether the RIB did not have it before.
    ///
    /// # Errors
    /// [`Full`], and nothing changed, when groups run out.
    pub fn insert(
        &self,
        state: &mut ImageState,
        prefix: Prefix,
        value: u32,
        new: bool,
    ) -> Result<(), Full> {
        let missing = self.missing_groups(prefix);
        if missing > state.free.len() {
            return Err(Full {
                groups: state.population.len(),
            });
        }
        let origin = Origin {
            value,
            len: prefix.len(),
        };
        self.walk(state, prefix, if new { 1 } else { 0 }, |held| {
            (held.len <= origin.len).then_some(origin)
        });
        Ok(())
    }

    /// Removes `prefix`; its entries go to `cover`, the longest prefix left that holds it.
    pub fn remove(&self, state: &mut ImageState, prefix: Prefix, cover: Origin) {
        self.walk(state, prefix, -1, |held| {
            (held.len == prefix.len()).then_some(cover)
        });
    }

    /// Groups that do not exist yet on the way to `prefix`.
    fn missing_groups(&self, prefix: Prefix) -> usize {
        let levels = usize::from(prefix.len().saturating_sub(ROOT_BITS).div_ceil(STRIDE));
        let mut entry = load(&self.root, root_index(prefix.bits()));
        let mut existing = 0;
        while existing < levels && entry & EXTENDED != 0 {
            existing += 1;
            entry = load(
                &self.groups,
                slot(entry, stride_index(prefix.bits(), existing - 1)),
            );
        }
        levels - existing
    }

    /// Goes down to the level where `prefix` ends, making groups, and rewrites its entries there and below.
    fn walk(
        &self,
        state: &mut ImageState,
        prefix: Prefix,
        change: i32,
        rule: impl Fn(Origin) -> Option<Origin> + Copy,
    ) {
        let bits = prefix.bits();
        if prefix.len() <= ROOT_BITS {
            let first = root_index(bits);
            let count = 1usize << (ROOT_BITS - prefix.len());
            for index in first..first + count {
                self.rewrite(state, Place::Root(index), rule);
            }
            return;
        }
        let mut place = Place::Root(root_index(bits));
        let mut path = [None; 13];
        let mut base = ROOT_BITS;
        let mut level = 0;
        loop {
            let Some(group) = self.descend(state, place) else {
                return;
            };
            if let Some(population) = state.population.get_mut(group as usize) {
                *population = population.wrapping_add_signed(change);
            }
            if let Some(step) = path.get_mut(level) {
                *step = Some((place, group));
            }
            let index = stride_index(bits, level);
            base += STRIDE;
            level += 1;
            if prefix.len() <= base {
                let count = 1usize << (base - prefix.len());
                for entry in index..index + count {
                    self.rewrite(state, Place::Group(group, entry), rule);
                }
                break;
            }
            place = Place::Group(group, index);
        }
        for (place, group) in path.iter().rev().flatten() {
            self.collapse(state, *place, *group);
        }
    }

    /// The group under `place`, made from the entry's own value when there is none.
    fn descend(&self, state: &mut ImageState, place: Place) -> Option<u32> {
        let entry = self.read(place);
        if entry & EXTENDED != 0 {
            return Some(entry & !EXTENDED);
        }
        let group = state.free.pop()?;
        let len = state.len(place);
        for index in 0..GROUP {
            let inner = Place::Group(group, index);
            self.write(inner, entry);
            state.set_len(inner, len);
        }
        self.write(place, EXTENDED | group);
        Some(group)
    }

    /// Gives a group back when no longer prefix lives in it: all its entries are then the covering route's.
    fn collapse(&self, state: &mut ImageState, place: Place, group: u32) {
        if state.population.get(group as usize).copied() != Some(0) {
            return;
        }
        let first = Place::Group(group, 0);
        self.write(place, self.read(first));
        state.set_len(place, state.len(first));
        state.free.push(group);
    }

    /// Applies `rule` to an entry, or to everything below it.
    fn rewrite(
        &self,
        state: &mut ImageState,
        place: Place,
        rule: impl Fn(Origin) -> Option<Origin> + Copy,
    ) {
        let entry = self.read(place);
        if entry & EXTENDED != 0 {
            for index in 0..GROUP {
                self.rewrite(state, Place::Group(entry & !EXTENDED, index), rule);
            }
            return;
        }
        if let Some(origin) = rule(Origin {
            value: entry,
            len: state.len(place),
        }) {
            state.set_len(place, origin.len);
            self.write(place, origin.value & !EXTENDED);
        }
    }

    fn read(&self, place: Place) -> u32 {
        let (entries, index) = self.at(place);
        load(entries, index)
    }

    fn write(&self, place: Place, entry: u32) {
        let (entries, index) = self.at(place);
        if let Some(slot) = entries.get(index) {
            slot.store(entry, Ordering::Relaxed);
        }
    }

    fn at(&self, place: Place) -> (&[AtomicU32], usize) {
        match place {
            Place::Root(index) => (&self.root, index),
            Place::Group(group, index) => (&self.groups, slot(group, index)),
        }
    }
}

impl ImageState {
    fn len(&self, place: Place) -> u8 {
        match place {
            Place::Root(index) => self.root_len.get(index),
            Place::Group(group, index) => self.group_len.get(slot(group, index)),
        }
        .copied()
        .unwrap_or_default()
    }

    fn set_len(&mut self, place: Place, len: u8) {
        let held = match place {
            Place::Root(index) => self.root_len.get_mut(index),
            Place::Group(group, index) => self.group_len.get_mut(slot(group, index)),
        };
        if let Some(held) = held {
            *held = len;
        }
    }

    /// Groups in use.
    #[must_use]
    pub fn groups_used(&self) -> usize {
        self.population.len() - self.free.len()
    }
}

/// Where an entry stands.
#[derive(Debug, Clone, Copy)]
enum Place {
    Root(usize),
    Group(u32, usize),
}

#[inline]
fn load(entries: &[AtomicU32], index: usize) -> u32 {
    entries
        .get(index)
        .map_or(0, |entry| entry.load(Ordering::Relaxed))
}

#[inline]
const fn root_index(bits: u128) -> usize {
    (bits >> (128 - ROOT_BITS)) as usize
}

/// The 8 bits that choose an entry in the group `level` levels under the root.
#[inline]
const fn stride_index(bits: u128, level: usize) -> usize {
    (bits >> (128 - ROOT_BITS as usize - STRIDE as usize * (level + 1))) as usize & 0xff
}

#[inline]
const fn slot(entry: u32, index: usize) -> usize {
    ((entry & !EXTENDED) as usize) * GROUP + index
}
