//! Ids of distinct values, with reference counts: an id without references is reused.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Error: every id is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoId {
    /// Number of ids there are.
    pub(super) limit: usize,
}

/// Distinct values, each with an id and a reference count.
#[derive(Debug)]
pub(super) struct Ids<V> {
    /// Id of each value that is referenced.
    pub(super) by_value: HashTable<u16>,
    hasher: RandomState,
    /// Current or last value, and reference count, of each id from `first` on.
    slots: Vec<(V, u32)>,
    /// Ids that were freed.
    free: Vec<u16>,
    first: u16,
    limit: usize,
}

impl<V: Hash + Eq> Ids<V> {
    /// Returns an empty table with ids from `first` to below `limit`.
    pub(super) fn new(first: u16, limit: usize) -> Ids<V> {
        Ids {
            by_value: HashTable::new(),
            hasher: RandomState::default(),
            slots: Vec::new(),
            free: Vec::new(),
            first,
            limit: limit.min(1 << 16),
        }
    }

    /// Returns the value of an id that is referenced.
    pub(super) fn value(&self, number: u16) -> Option<&V> {
        let slot = self.slots.get(usize::from(number.checked_sub(self.first)?));
        slot.filter(|(_, holds)| *holds > 0).map(|(value, _)| value)
    }

    /// Adds a reference to the id of a value; the flag is true if the id is new.
    pub(super) fn hold<Q: Hash + Eq + ?Sized>(
        &mut self,
        value: &Q,
        own: impl FnOnce() -> V,
    ) -> Result<(u16, bool), NoId>
    where
        V: Borrow<Q>,
    {
        let hash = self.hasher.hash_one(value);
        let (slots, first) = (&mut self.slots, self.first);
        let at = |number: u16| usize::from(number.saturating_sub(first));
        let is_value = |number: &u16| {
            let slot = slots.get(at(*number));
            slot.is_some_and(|(held, _)| held.borrow() == value)
        };
        if let Some(number) = self.by_value.find(hash, is_value).copied() {
            if let Some((_, holds)) = slots.get_mut(at(number)) {
                *holds += 1;
            }
            return Ok((number, false));
        }
        let number = self.make(own())?;
        let (slots, first) = (&self.slots, self.first);
        let at = |number: u16| usize::from(number.saturating_sub(first));
        let hash_of = |number: &u16| {
            let slot = slots.get(at(*number));
            slot.map_or(0, |(value, _)| self.hasher.hash_one(value.borrow()))
        };
        self.by_value.insert_unique(hash, number, hash_of);
        Ok((number, true))
    }

    /// Gives a value an id of its own with one reference, which [`Ids::hold`] does not find.
    pub(super) fn make(&mut self, value: V) -> Result<u16, NoId> {
        let number = match self.free.pop() {
            Some(number) => number,
            None => u16::try_from(self.slots.len() + usize::from(self.first))
                .ok()
                .filter(|number| usize::from(*number) < self.limit)
                .ok_or(NoId { limit: self.limit })?,
        };
        match self.slot(number) {
            Some(slot) => *slot = (value, 1),
            None => self.slots.push((value, 1)),
        }
        Ok(number)
    }

    fn slot(&mut self, number: u16) -> Option<&mut (V, u32)> {
        let index = usize::from(number.checked_sub(self.first)?);
        self.slots.get_mut(index)
    }

    /// Adds a reference to an id that has one.
    pub(super) fn hold_again(&mut self, number: u16) {
        if let Some((_, holds)) = self.slot(number) {
            *holds += 1;
        }
    }

    /// Gives an id of [`Ids::make`] another value; returns the old one.
    pub(super) fn replace(&mut self, number: u16, value: V) -> Option<V> {
        let (held, _) = self.slot(number)?;
        Some(std::mem::replace(held, value))
    }

    /// Drops a reference; returns the value if it was the last.
    pub(super) fn release(&mut self, number: u16) -> Option<V>
    where
        V: Clone,
    {
        let index = usize::from(number.checked_sub(self.first)?);
        let (value, holds) = self.slots.get_mut(index)?;
        *holds = holds.checked_sub(1)?;
        if *holds > 0 {
            return None;
        }
        let hash = self.hasher.hash_one(&*value);
        let entry = self.by_value.find_entry(hash, |other| *other == number);
        if let Ok(entry) = entry {
            entry.remove();
        }
        self.free.push(number);
        Some(value.clone())
    }
}
