//! Neighbours, ordered by address, so that those within a prefix are found.

use std::collections::BTreeMap;
use std::net::IpAddr;

use npcc_pipeline::route::prefix::Prefix;

use super::sweep::Epoch;
use crate::wire::neighbor::Neighbor;

/// Neighbours by address and link.
#[derive(Debug, Default)]
pub struct Neighbors {
    all: BTreeMap<(IpAddr, u32), (Neighbor, Epoch)>,
}

impl Neighbors {
    /// Returns a neighbour on a link.
    #[must_use]
    pub fn get(&self, link: u32, address: IpAddr) -> Option<&Neighbor> {
        self.all.get(&(address, link)).map(|(neighbor, _)| neighbor)
    }

    /// Iterates over all neighbours.
    pub fn iter(&self) -> impl Iterator<Item = &Neighbor> {
        self.all.values().map(|(neighbor, _)| neighbor)
    }

    /// Iterates over the neighbours whose address lies in a prefix.
    pub fn within(&self, prefix: Prefix) -> impl Iterator<Item = &Neighbor> {
        let range = (prefix.first(), 0)..=(prefix.last(), u32::MAX);
        self.all.range(range).map(|(_, (neighbor, _))| neighbor)
    }

    /// Adds or updates a neighbour; returns true if its MAC address changed.
    pub(super) fn set(&mut self, neighbor: Neighbor, epoch: Epoch) -> bool {
        let key = (neighbor.address, neighbor.link);
        let before = self.all.insert(key, (neighbor, epoch));
        before.and_then(|(before, _)| before.mac) != neighbor.mac
    }

    /// Removes a neighbour; returns true if it had a MAC address.
    pub(super) fn remove(&mut self, link: u32, address: IpAddr) -> bool {
        let before = self.all.remove(&(address, link));
        before.is_some_and(|(before, _)| before.mac.is_some())
    }

    /// Returns the neighbours for which a condition holds.
    pub(super) fn which(&self, holds: impl Fn(&Neighbor, Epoch) -> bool) -> Vec<(u32, IpAddr)> {
        let found = self.all.iter().filter(|(_, (one, seen))| holds(one, *seen));
        found
            .map(|((address, link), _)| (*link, *address))
            .collect()
    }
}
