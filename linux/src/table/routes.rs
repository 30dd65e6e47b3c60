//! Routes by prefix: several routes of a prefix are in the kernel's order of preference.

use npcc_pipeline::route::prefix::{Family, Prefix};

use super::prefixes::Prefixes;
use super::sweep::Epoch;
use super::ways::WayId;
use crate::wire::route::{Action, Place, Preference, Table};

/// Route of a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Metric of the route; the lower, the better.
    pub metric: u32,
    /// Next-hop set of the route.
    pub way: WayId,
    /// Routing table that contains the route.
    pub table: Table,
    /// Action of the route: forward, deliver locally or drop.
    pub action: Action,
    /// Preference among routes of the same table and metric.
    pub preference: Preference,
    /// Origin of the route (`RTPROT_*`).
    pub protocol: u8,
    pub(super) seen: Epoch,
}

impl Entry {
    /// Returns true if the kernel takes one route for a change of the other: same table and metric.
    pub(super) fn beside(&self, other: &Entry) -> bool {
        (self.table, self.metric) == (other.table, other.metric)
    }

    /// Returns the order of preference: the least is used.
    const fn rank(&self) -> (Table, u32, Preference) {
        (self.table, self.metric, self.preference)
    }
}

/// Routes of a prefix: nearly always one.
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

/// All routes of the local and main tables.
#[derive(Debug, Default)]
pub struct Routes {
    by_prefix: Prefixes<Entries>,
}

impl Routes {
    /// Returns the routes of a prefix, the preferred one first.
    #[must_use]
    pub fn of(&self, prefix: Prefix) -> &[Entry] {
        self.by_prefix.get(prefix).map_or(&[], Entries::as_slice)
    }

    /// Returns the preferred route of a prefix.
    #[must_use]
    pub fn best(&self, prefix: Prefix) -> Option<&Entry> {
        self.of(prefix).first()
    }

    /// Iterates over all routes.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, &Entry)> {
        let all = self.by_prefix.iter();
        all.flat_map(|(prefix, entries)| entries.as_slice().iter().map(move |one| (prefix, one)))
    }

    /// Iterates over the preferred routes of all prefixes.
    pub fn all_best(&self) -> impl Iterator<Item = (Prefix, &Entry)> {
        let all = self.by_prefix.iter();
        all.filter_map(|(prefix, entries)| Some((prefix, entries.as_slice().first()?)))
    }

    /// Iterates over the preferred routes of all prefixes that contain this one, itself included, the longest first.
    pub fn covering(&self, prefix: Prefix) -> impl Iterator<Item = (Prefix, &Entry)> {
        let covers = self.by_prefix.covering(prefix);
        covers.filter_map(|(prefix, entries)| Some((prefix, entries.as_slice().first()?)))
    }

    /// Number of prefixes with a route.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_prefix.len()
    }

    /// Number of prefixes of a family with a route.
    #[must_use]
    pub fn len_of(&self, family: Family) -> usize {
        self.by_prefix.len_of(family)
    }

    /// Returns true if there are no routes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_prefix.is_empty()
    }

    pub(super) fn of_mut(&mut self, prefix: Prefix) -> &mut [Entry] {
        let entries = self.by_prefix.get_mut(prefix);
        entries.map_or(&mut [], Entries::as_mut_slice)
    }

    /// Adds a route to those of its prefix; returns the one that it replaced.
    pub(super) fn put(&mut self, prefix: Prefix, entry: Entry, place: Place) -> Option<Entry> {
        let Some(entries) = self.by_prefix.get_mut(prefix) else {
            self.by_prefix.insert(prefix, Entries::One(entry));
            return None;
        };
        let all = entries.as_mut_slice();
        if place == Place::Instead
            && let Some(before) = all.iter_mut().find(|one| one.beside(&entry))
        {
            let replaced = std::mem::replace(before, entry);
            // Its preference may be another; the order among equals stays.
            all.sort_by_key(Entry::rank);
            return Some(replaced);
        }
        let at = all.partition_point(|one| match place {
            Place::First => one.rank() < entry.rank(),
            Place::Last | Place::Instead => one.rank() <= entry.rank(),
        });
        let mut several = all.to_vec();
        several.insert(at, entry);
        *entries = Entries::Several(several);
        None
    }

    /// Removes the routes of a prefix for which a condition holds; returns them.
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

    /// Returns the prefixes with a route for which a condition holds.
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
