//! Links, and local addresses on them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::sweep::Epoch;
use crate::wire::address::Address;
use crate::wire::link::Link;

/// Links by index, and local addresses by link.
#[derive(Debug, Default)]
pub struct Links {
    links: BTreeMap<u32, (Link, Epoch)>,
    addresses: BTreeMap<Address, Epoch>,
    /// Links that lost their last IPv4 address: IPv4 routes over them are dead until the link is set up or gets an address.
    without_ipv4: BTreeSet<u32>,
}

/// Changes of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkChange {
    /// True if anything changed.
    pub any: bool,
    /// True if the name is new or changed, so that the link may have become a port, or ceased to be one.
    pub name: bool,
    /// True if the link was set up (administratively).
    pub rose: bool,
    /// True if the link was set down (administratively).
    pub fell: bool,
}

impl Links {
    /// Returns the link of an index.
    #[must_use]
    pub fn get(&self, index: u32) -> Option<&Link> {
        self.links.get(&index).map(|(link, _)| link)
    }

    /// Returns the link of a name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Link> {
        let mut links = self.iter();
        links.find(|link| link.name == name)
    }

    /// Iterates over all links.
    pub fn iter(&self) -> impl Iterator<Item = &Link> {
        self.links.values().map(|(link, _)| link)
    }

    /// Iterates over all local addresses.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.addresses.keys()
    }

    /// Returns true if packets can leave by a link: it exists, is up, and for IPv4 has not lost its addresses.
    #[must_use]
    pub fn carries(&self, index: u32, ipv4: bool) -> bool {
        let up = self.get(index).is_some_and(|link| link.up);
        up && !(ipv4 && self.without_ipv4.contains(&index))
    }

    pub(super) fn set(&mut self, link: Link, epoch: Epoch) -> LinkChange {
        let index = link.index;
        let before = self.links.get(&index).map(|(before, _)| before);
        let change = LinkChange {
            any: before != Some(&link),
            name: before.is_none_or(|before| before.name != link.name),
            rose: link.up && before.is_none_or(|before| !before.up),
            fell: !link.up && before.is_none_or(|before| before.up),
        };
        if change.rose {
            self.without_ipv4.remove(&index);
        }
        self.links.insert(index, (link, epoch));
        change
    }

    /// Removes a link with its addresses; returns `false` if it did not exist.
    pub(super) fn remove(&mut self, index: u32) -> bool {
        self.addresses.retain(|address, _| address.link != index);
        self.without_ipv4.remove(&index);
        self.links.remove(&index).is_some()
    }

    /// Adds an address; returns true if it revives IPv4 routes over its link.
    pub(super) fn add_address(&mut self, address: Address, epoch: Epoch) -> bool {
        self.addresses.insert(address, epoch);
        address.address.is_ipv4() && self.without_ipv4.remove(&address.link)
    }

    /// Removes an address; returns `false` if it did not exist.
    pub(super) fn remove_address(&mut self, address: &Address) -> bool {
        self.addresses.remove(address).is_some()
    }

    /// Returns true if a link has an IPv4 address.
    pub(super) fn has_ipv4(&self, index: u32) -> bool {
        let mut own = self.addresses.keys().filter(|one| one.link == index);
        own.any(|one| one.address.is_ipv4())
    }

    /// Marks IPv4 routes over a link as dead, though the link is up; returns true if that is new.
    pub(super) fn lost_ipv4(&mut self, index: u32) -> bool {
        self.without_ipv4.insert(index)
    }

    /// Marks IPv4 routes over a link as alive, as far as is known; returns true if that is new.
    pub(super) fn found_ipv4(&mut self, index: u32) -> bool {
        self.without_ipv4.remove(&index)
    }

    /// Returns true if any link has the address.
    pub(super) fn has(&self, address: IpAddr) -> bool {
        self.addresses.keys().any(|one| one.address == address)
    }

    /// Returns the links that the dump of this epoch did not contain.
    pub(super) fn stale_links(&self, epoch: Epoch) -> Vec<u32> {
        let stale = self.links.iter().filter(|(_, (_, seen))| *seen != epoch);
        stale.map(|(index, _)| *index).collect()
    }

    /// Returns the addresses that the dump of this epoch did not contain.
    pub(super) fn stale_addresses(&self, epoch: Epoch) -> Vec<Address> {
        let stale = self.addresses.iter().filter(|(_, seen)| **seen != epoch);
        stale.map(|(address, _)| *address).collect()
    }
}
