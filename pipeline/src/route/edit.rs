//! Changes to an image that no worker reads, made by the only writer.
//!
//! The length beside each value is that of the prefix that put it there, so that a deleted prefix returns its entries to the
//! covering route and to no other. A group exists while it contains a prefix longer than its base, so nothing leaks however
//! often a route flaps.

use std::alloc::{Layout, handle_alloc_error};
use std::sync::atomic::{AtomicU32, Ordering};

use zerocopy::FromZeros;

use super::image::{
    EXTENDED, GROUP, Image, Origin, ROOT, ROOT_BITS, STRIDE, len_of, load, root_index, slot, zeroed,
};
use super::prefix::Prefix;

/// Number of levels of groups under the root that the longest prefix goes through.
const LEVELS: usize = (128 - ROOT_BITS as usize) / STRIDE as usize;

/// Error: there is no room for another group of 256 entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the route table is full: {groups} groups of 256 entries are in use; raise routing.ipv4_routes or ipv6_routes"
)]
pub struct Full {
    /// Number of groups the image was built with.
    pub groups: usize,
}

/// The writer's half of an image: which groups are free, and how many prefixes keep each of the others.
#[derive(Debug)]
pub struct ImageState {
    /// Number of prefixes in each group that are longer than the group's base.
    population: Box<[u32]>,
    /// Groups that were freed.
    free: Vec<u32>,
    /// First group that was never used, as are all above it.
    fresh: usize,
}

impl ImageState {
    pub(super) fn new(groups: usize) -> ImageState {
        ImageState {
            population: zeroed(groups),
            free: Vec::new(),
            fresh: 0,
        }
    }

    /// Returns the number of groups in use.
    #[must_use]
    pub const fn groups_used(&self) -> usize {
        self.fresh - self.free.len()
    }

    const fn groups_free(&self) -> usize {
        self.population.len() - self.groups_used()
    }

    fn take(&mut self) -> Option<u32> {
        if let Some(group) = self.free.pop() {
            return Some(group);
        }
        let group = u32::try_from(self.fresh)
            .ok()
            .filter(|group| self.fresh < self.population.len() && group & EXTENDED == 0)?;
        self.fresh += 1;
        Some(group)
    }

    /// Changes the number of prefixes in a group.
    fn populate(&mut self, group: u32, change: i32) {
        if let Some(population) = self.population.get_mut(group as usize) {
            *population = population.wrapping_add_signed(change);
        }
    }

    fn is_deserted(&self, group: u32) -> bool {
        self.population.get(group as usize) == Some(&0)
    }

    fn copy_of(&mut self, other: &ImageState) {
        let used = other.fresh.max(self.fresh);
        for (mine, theirs) in self.population.iter_mut().zip(&other.population).take(used) {
            *mine = *theirs;
        }
        self.free.clone_from(&other.free);
        self.fresh = other.fresh;
    }
}

/// Rewrite rule for the entries that a prefix covers.
#[derive(Debug, Clone, Copy)]
struct Rule {
    /// Shortest prefix length of the entries to rewrite.
    least: u32,
    /// Longest prefix length of the entries to rewrite.
    most: u32,
    /// New value of these entries.
    entry: u32,
}

impl Rule {
    /// Rewrites `entries` and all entries below them.
    fn apply(self, groups: &[AtomicU32], entries: &[AtomicU32]) {
        for place in entries {
            let entry = place.load(Ordering::Relaxed);
            if entry & EXTENDED != 0 {
                self.apply(groups, group(groups, entry));
            } else if (self.least..=self.most).contains(&len_of(entry)) {
                place.store(self.entry, Ordering::Relaxed);
            }
        }
    }
}

impl Image {
    /// Returns an empty image with room for `groups` groups, and its writer's half.
    #[must_use]
    pub fn new(groups: usize) -> (Image, ImageState) {
        let image = Image {
            root: <[AtomicU32; ROOT]>::new_box_zeroed()
                .unwrap_or_else(|_| handle_alloc_error(Layout::new::<[AtomicU32; ROOT]>())),
            groups: zeroed(groups * GROUP),
        };
        (image, ImageState::new(groups))
    }

    /// Inserts or replaces `prefix`. `new` is true if the RIB did not have it before.
    ///
    /// # Errors
    /// Returns [`Full`], and changes nothing, if groups run out.
    pub fn insert(
        &self,
        state: &mut ImageState,
        prefix: Prefix,
        value: u16,
        new: bool,
    ) -> Result<(), Full> {
        if new && self.missing_groups(prefix) > state.groups_free() {
            return Err(Full {
                groups: state.population.len(),
            });
        }
        let origin = Origin {
            value,
            len: prefix.len(),
        };
        let rule = Rule {
            least: 0,
            most: u32::from(prefix.len()),
            entry: origin.entry(),
        };
        self.walk(state, prefix, i32::from(new), rule);
        Ok(())
    }

    /// Removes `prefix`; its entries go to `cover`, the longest remaining prefix that contains it.
    pub fn remove(&self, state: &mut ImageState, prefix: Prefix, cover: Origin) {
        let len = u32::from(prefix.len());
        let rule = Rule {
            least: len,
            most: len,
            entry: cover.entry(),
        };
        self.walk(state, prefix, -1, rule);
    }

    /// Makes this image equal to `other`. Memory that neither has touched stays untouched.
    pub fn copy_of(&self, state: &mut ImageState, other: &Image, theirs: &ImageState) {
        let used = theirs.fresh.max(state.fresh) * GROUP;
        copy(&*self.root, &*other.root);
        copy(
            self.groups.get(..used).unwrap_or_default(),
            other.groups.get(..used).unwrap_or_default(),
        );
        state.copy_of(theirs);
    }

    /// Returns the number of groups on the way to `prefix` that do not exist yet.
    fn missing_groups(&self, prefix: Prefix) -> usize {
        let levels = usize::from(prefix.len().saturating_sub(ROOT_BITS).div_ceil(STRIDE));
        let mut entry = load(&*self.root, root_index(prefix.bits()));
        let mut existing = 0;
        while existing < levels && entry & EXTENDED != 0 {
            let index = stride_index(prefix.bits(), existing);
            entry = load(&self.groups, slot(entry, index));
            existing += 1;
        }
        levels - existing
    }

    /// Descends to the level where `prefix` ends, creating groups, and rewrites its entries there and below.
    fn walk(&self, state: &mut ImageState, prefix: Prefix, change: i32, rule: Rule) {
        let bits = prefix.bits();
        let mut first = root_index(bits);
        if prefix.len() <= ROOT_BITS {
            let end = first + (1 << (ROOT_BITS - prefix.len()));
            rule.apply(&self.groups, self.root.get(first..end).unwrap_or_default());
            return;
        }
        let (mut entries, mut base) = (self.root.as_slice(), ROOT_BITS);
        let mut path = [None; LEVELS];
        for (level, step) in path.iter_mut().enumerate() {
            let Some(place) = entries.get(first) else {
                return;
            };
            let Some(found) = self.descend(state, place) else {
                return;
            };
            state.populate(found & !EXTENDED, change);
            *step = Some((place, found));
            entries = group(&self.groups, found);
            first = stride_index(bits, level);
            base += STRIDE;
            if prefix.len() <= base {
                let end = first + (1 << (base - prefix.len()));
                rule.apply(&self.groups, entries.get(first..end).unwrap_or_default());
                break;
            }
        }
        if change < 0 {
            for (place, found) in path.iter().rev().flatten() {
                self.collapse(state, place, *found);
            }
        }
    }

    /// Returns the entry that names the group under `place`; creates the group from the entry's value if there is none.
    fn descend(&self, state: &mut ImageState, place: &AtomicU32) -> Option<u32> {
        let entry = place.load(Ordering::Relaxed);
        if entry & EXTENDED != 0 {
            return Some(entry);
        }
        let made = EXTENDED | state.take()?;
        for inner in group(&self.groups, made) {
            inner.store(entry, Ordering::Relaxed);
        }
        place.store(made, Ordering::Relaxed);
        Some(made)
    }

    /// Frees a group that contains no longer prefix: all its entries are then the covering route's.
    fn collapse(&self, state: &mut ImageState, place: &AtomicU32, found: u32) {
        if state.is_deserted(found & !EXTENDED) {
            place.store(load(&self.groups, slot(found, 0)), Ordering::Relaxed);
            state.free.push(found & !EXTENDED);
        }
    }
}

/// Copies page by page. A page is read only if it need not be written: memory that is read before its first write costs a
/// second fault, and interrupts every other thread.
fn copy(to: &[AtomicU32], from: &[AtomicU32]) {
    const PAGE: usize = 4096 / size_of::<AtomicU32>();
    let is_set = |entry: &AtomicU32| entry.load(Ordering::Relaxed) != 0;
    for (to, from) in to.chunks(PAGE).zip(from.chunks(PAGE)) {
        if from.iter().any(is_set) || to.iter().any(is_set) {
            for (to, from) in to.iter().zip(from) {
                to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
    }
}

/// Returns the entries of the group that `entry` names.
#[inline]
fn group(groups: &[AtomicU32], entry: u32) -> &[AtomicU32] {
    let first = slot(entry, 0);
    groups.get(first..first + GROUP).unwrap_or_default()
}

/// Returns the 8 bits that choose an entry in the group `level` levels under the root.
const fn stride_index(bits: u128, level: usize) -> usize {
    (bits >> (128 - ROOT_BITS as usize - STRIDE as usize * (level + 1))) as usize & 0xff
}
