//! Links and our addresses on them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::sweep::Epoch;
use crate::wire::address::Address;
use crate::wire::link::Link;

/// Links by index, and addresses by link.
#[derive(Debug, Default)]
pub struct Links {
    links: BTreeMap<u32, (Link, Epoch)>,
    addresses: BTreeMap<Address, Epoch>,
    /// Links whose last IPv4 address went: IPv4 routes by them are dead until the link is switched on or gets an address.
    without_ipv4: BTreeSet<u32>,
}

/// What became of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkChange {
    /// Anything at all.
    pub any: bool,
    /// Its name came or changed, so it may be a port now, or none any more.
    pub name: bool,
    /// It was switched on.
    pub rose: bool,
    /// It was switched off.
    pub fell: bool,
}

impl Links {
    /// The link of an index.
    #[must_use]
    pub fn get(&self, index: u32) -> Option<&Link> {
        self.links.get(&index).map(|(link, _)| link)
    }

    /// The link of a name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Link> {
        let mut links = self.iter();
        links.find(|link| link.name == name)
    }

    /// Every link.
    pub fn iter(&self) -> impl Iterator<Item = &Link> {
        self.links.values().map(|(link, _)| link)
    }

    /// Every address of ours.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.addresses.keys()
    }

    /// Whether packets can leave by a link: it is there, switched on, and for IPv4 has not lost its addresses.
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

    /// Takes a link with its addresses away; `false` when there was none.
    pub(super) fn remove(&mut self, index: u32) -> bool {
        self.addresses.retain(|address, _| address.link != index);
        self.without_ipv4.remove(&index);
        self.links.remove(&index).is_some()
    }

    /// Puts an address; whether IPv4 routes by its link come to life with it.
    pub(super) fn add_address(&mut self, address: Address, epoch: Epoch) -> bool {
        self.addresses.insert(address, epoch);
        address.address.is_ipv4() && self.without_ipv4.remove(&address.link)
    }

    /// Takes an address away; `false` when there was none.
    pub(super) fn remove_address(&mut self, address: &Address) -> bool {
        self.addresses.remove(address).is_some()
    }

    /// Whether a link has an IPv4 address.
    pub(super) fn has_ipv4(&self, index: u32) -> bool {
        let mut own = self.addresses.keys().filter(|one| one.link == index);
        own.any(|one| one.address.is_ipv4())
    }

    /// IPv4 routes by a link are dead, though it is switched on; whether that is new.
    pub(super) fn lost_ipv4(&mut self, index: u32) -> bool {
        self.without_ipv4.insert(index)
    }

    /// They are not, as far as is known; whether that is new.
    pub(super) fn found_ipv4(&mut self, index: u32) -> bool {
        self.without_ipv4.remove(&index)
    }

    /// Whether an address is still on some link.
    pub(super) fn has(&self, address: IpAddr) -> bool {
        self.addresses.keys().any(|one| one.address == address)
    }

    /// The links no dump of this number named.
    pub(super) fn stale_links(&self, epoch: Epoch) -> Vec<u32> {
        let stale = self.links.iter().filter(|(_, (_, seen))| *seen != epoch);
        stale.map(|(index, _)| *index).collect()
    }

    /// The addresses no dump of this number named.
    pub(super) fn stale_addresses(&self, epoch: Epoch) -> Vec<Address> {
        let stale = self.addresses.iter().filter(|(_, seen)| **seen != epoch);
        stale.map(|(address, _)| *address).collect()
    }
}
