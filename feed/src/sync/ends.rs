//! Table of ends in parts, with a hash of each part, and the queue of changes still to be passed on.

use std::collections::BTreeMap;
use std::time::Duration;

use npcc_api::ends::{End, EndRow, Key};
use npcc_pipeline::bits::mix;

use super::parts::{PARTS, hash, part_of};
use super::pending::Pending;

/// Most ends of a part: its rows fit into one message. A table of 65,536 ends has 64 in each.
pub(super) const MOST_OF_PART: u16 = 200;

/// Table of ends.
#[derive(Debug)]
pub(super) struct Ends {
    seed: u64,
    most: usize,
    rows: BTreeMap<(u16, Key), End>,
    hashes: Vec<u64>,
    sizes: Vec<u16>,
    pending: Pending,
}

impl Ends {
    /// Position before all ends.
    pub(super) const FIRST: (u16, Key) = (0, Key::FIRST);

    /// Makes an empty table of at most `most` ends.
    pub(super) fn new(seed: u64, most: usize) -> Self {
        Self {
            seed,
            most,
            rows: BTreeMap::new(),
            hashes: vec![0; PARTS],
            sizes: vec![0; PARTS],
            pending: Pending::default(),
        }
    }

    /// Returns the part of an identity.
    pub(super) fn part(&self, key: &Key) -> u16 {
        part_of(hash(self.seed, key))
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn get(&self, key: &Key) -> Option<&End> {
        self.rows.get(&(self.part(key), *key))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &End> {
        self.rows.values()
    }

    /// Returns the ends of a part.
    pub(super) fn of_part(&self, part: u16) -> impl Iterator<Item = &End> {
        let first = Key::FIRST;
        let from = self.rows.range((part, first)..);
        from.take_while(move |((of, _), _)| *of == part)
            .map(|(_, end)| end)
    }

    pub(super) fn size(&self, part: u16) -> u16 {
        self.sizes[usize::from(part)]
    }

    /// Returns the hash of a part: the sum over its ends, in any order.
    pub(super) fn hash_of(&self, part: u16) -> u64 {
        self.hashes[usize::from(part)]
    }

    /// Returns the hash of all ends.
    pub(super) fn hash(&self) -> u64 {
        let parts = self.hashes.iter().zip(0u64..);
        parts.fold(0, |sum, (part, at)| {
            sum.wrapping_add(mix(part.wrapping_add(at)))
        })
    }

    /// Adds or replaces an end; returns false if the table or the part is full.
    pub(super) fn insert(&mut self, end: End) -> bool {
        let key = end.key();
        let part = self.part(&key);
        let at = usize::from(part);
        let before = self.rows.get(&(part, key)).copied();
        if before == Some(end) {
            return true;
        }
        if let Some(before) = before {
            self.hashes[at] = self.hashes[at].wrapping_sub(hash(self.seed, &before));
        } else if self.rows.len() >= self.most || self.sizes[at] >= MOST_OF_PART {
            return false;
        } else {
            self.sizes[at] += 1;
        }
        self.hashes[at] = self.hashes[at].wrapping_add(hash(self.seed, &end));
        self.rows.insert((part, key), end);
        self.pending.push(key);
        true
    }

    /// Removes an end; returns true if it was there.
    pub(super) fn remove(&mut self, key: &Key) -> bool {
        let part = self.part(key);
        let at = usize::from(part);
        let Some(before) = self.rows.remove(&(part, *key)) else {
            return false;
        };
        self.hashes[at] = self.hashes[at].wrapping_sub(hash(self.seed, &before));
        self.sizes[at] -= 1;
        self.pending.push(*key);
        true
    }

    /// Makes the ends of a part those of `rows`; returns the number of rows that did not fit.
    pub(super) fn replace(&mut self, part: u16, rows: &[End]) -> usize {
        let gone: Vec<Key> = {
            let keys: std::collections::HashSet<Key> = rows.iter().map(End::key).collect();
            let present = self.of_part(part).map(End::key);
            present.filter(|key| !keys.contains(key)).collect()
        };
        for key in &gone {
            self.remove(key);
        }
        rows.iter().filter(|end| !self.insert(**end)).count()
    }

    /// Divides the same ends anew by another seed; nothing becomes pending.
    pub(super) fn reseed(&mut self, seed: u64) {
        let mut other = Self::new(seed, self.most);
        for end in self.rows.values() {
            // A part that is too full by the new seed loses ends until its peer sends it again.
            if !other.insert(*end) {
                self.pending.push(end.key());
            }
        }
        other.pending = std::mem::take(&mut self.pending);
        *self = other;
    }

    /// Marks those of the next `most` ends as still to be passed on whose last frame is less than `within` older than the newest of all;
    /// returns the position of the end after them.
    pub(super) fn repeat(
        &mut self,
        from: (u16, Key),
        most: usize,
        within: Duration,
    ) -> Option<(u16, Key)> {
        let newest = self.iter().map(|end| end.last_seen).max().unwrap_or(0);
        let mut next = self.rows.range(from..);
        for (_, end) in next.by_ref().take(most) {
            let age = Duration::from_micros(newest - end.last_seen);
            if age < within {
                self.pending.push(end.key());
            }
        }
        next.next().map(|(position, _)| *position)
    }

    /// Takes the next change: the end as it is now, or that it is gone.
    pub(super) fn next_change(&mut self) -> Option<EndRow> {
        let key = self.pending.pop()?;
        let end = self.get(&key);
        Some(end.map_or(EndRow::Gone(key), |end| EndRow::End(*end)))
    }

    pub(super) fn changes(&self) -> usize {
        self.pending.len()
    }

    /// Drops all queued removals once more changes wait than twice the table's capacity; returns the number dropped.
    pub(super) fn bound_changes(&mut self) -> usize {
        if self.pending.len() <= 2 * self.most {
            return 0;
        }
        let (rows, seed) = (&self.rows, self.seed);
        self.pending.retain(|key| {
            let part = part_of(hash(seed, key));
            rows.contains_key(&(part, *key))
        })
    }
}
