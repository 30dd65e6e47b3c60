//! Routes by prefix: several of a prefix stand in the order in which the kernel asks them.

use npcc_pipeline::route::prefix::{Family, Prefix};

use super::prefixes::Prefixes;
use super::sweep::Epoch;
use super::ways::WayId;
use crate::wire::route::{Action, Place, Table};

/// A route of a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The lower, the better.
    pub metric: u32,
    /// By what it leads.
    pub way: WayId,
    /// The table it stands in.
    pub table: Table,
    /// What it does.
    pub action: Action,
    /// Who made it (`RTPROT_*`).
    pub protocol: u8,
    pub(super) seen: Epoch,
}

impl Entry {
    /// Whether the kernel takes the one for a change of the other.
    pub(super) fn beside(&self, other: &Entry) -> bool {
        (self.table, self.metric) == (other.table, other.metric)
    }
}

/// The routes of a prefix: nearly always one.
#[derive(Debug)]
enum Entries {
    One(Entry),
    Several(Vec<Entry>),
}

impl Entries {
    fn as_slice(&self) -> &[Entry] {
        match self {
            Entries::One(entry) => std::slice::from_ref(entry),
            Entries::Several(entries) => entries,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [Entry] {
        match self {
            Entries::One(entry) => std::slice::from_mut(entry),
            Entries::Several(entries) => entries,
        }
    }
}

/// Every route of the two tables.
#[derive(Debug, Default)]
pub struct Routes {
    by_prefix: Prefixes<Entries>,
}

impl Routes {
    /// The routes of a prefix, the one that is taken first.
    #[must_use]
    pub fn of(&self, prefix: Prefix) -> &[Entry] {
        self.by_prefix.get(prefix).map_or(&[], Entries::as_slice)
    }

    /// The route of a prefix that is taken.
    #[must_use]
    pub fn best(&self, prefix: Prefix) -> Option<&Entry> {
        self.of(prefix).first()
    }

    /// Every route.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, &Entry)> {
        let all = self.by_prefix.iter();
        all.flat_map(|(prefix, entries)| entries.as_slice().iter().map(move |one| (prefix, one)))
    }

    /// The routes taken of all prefixes that hold this one, itself too, the longest first.
    pub fn covering(&self, prefix: Prefix) -> impl Iterator<Item = (Prefix, &Entry)> {
        let covers = self.by_prefix.covering(prefix);
        covers.filter_map(|(prefix, entries)| Some((prefix, entries.as_slice().first()?)))
    }

    /// Prefixes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_prefix.len()
    }

    /// Prefixes there are of a family.
    #[must_use]
    pub fn len_of(&self, family: Family) -> usize {
        self.by_prefix.len_of(family)
    }

    /// No routes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_prefix.is_empty()
    }

    pub(super) fn of_mut(&mut self, prefix: Prefix) -> &mut [Entry] {
        let entries = self.by_prefix.get_mut(prefix);
        entries.map_or(&mut [], Entries::as_mut_slice)
    }

    /// Puts a route beside those of its prefix; returns the one whose place it took.
    pub(super) fn put(&mut self, prefix: Prefix, entry: Entry, place: Place) -> Option<Entry> {
        let Some(entries) = self.by_prefix.get_mut(prefix) else {
            self.by_prefix.insert(prefix, Entries::One(entry));
            return None;
        };
        let all = entries.as_mut_slice();
        if place == Place::Instead
            && let Some(before) = all.iter_mut().find(|one| one.beside(&entry))
        {
            return Some(std::mem::replace(before, entry));
        }
        let rank = |one: &Entry| (one.table, one.metric);
        let at = all.partition_point(|one| match place {
            Place::First => rank(one) < rank(&entry),
            Place::Last | Place::Instead => rank(one) <= rank(&entry),
        });
        let mut several = all.to_vec();
        several.insert(at, entry);
        *entries = Entries::Several(several);
        None
    }

    /// Takes away the routes of a prefix that a condition holds of.
    pub(super) fn remove(&mut self, prefix: Prefix, gone: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let Some(entries) = self.by_prefix.get_mut(prefix) else {
            return vec![];
        };
        let (out, left): (Vec<Entry>, Vec<Entry>) =
            entries.as_slice().iter().partition(|e| gone(e));
        match left.as_slice() {
            [] => drop(self.by_prefix.remove(prefix)),
            [one] => *entries = Entries::One(*one),
            _ => *entries = Entries::Several(left),
        }
        out
    }

    /// The prefixes with a route that a condition holds of.
    pub(super) fn which(&self, holds: impl Fn(Prefix, &Entry) -> bool) -> Vec<Prefix> {
        let any = |prefix: Prefix, entries: &Entries| {
            entries.as_slice().iter().any(|entry| holds(prefix, entry))
        };
        let found = self
            .by_prefix
            .iter()
            .filter(|(prefix, all)| any(*prefix, all));
        found.map(|(prefix, _)| prefix).collect()
    }
}
