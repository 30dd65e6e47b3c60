//! Mapping of kernel links to ports of the switch.

use std::collections::{BTreeMap, BTreeSet};

use npcc_pipeline::units::{Mac, PortId, RefusedMac};

use crate::table::links::Links;
use crate::wire::neighbor::Neighbor;

/// Port and VLAN that a link stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Port of the switch.
    pub port: PortId,
    /// VLAN of the frames sent, 0 for untagged.
    pub vlan: u16,
    /// MAC address of the switch on that interface.
    pub mac: Mac,
}

/// Ports by the name of their link, and by its index where the link exists.
#[derive(Debug, Default)]
pub struct Ports {
    by_name: BTreeMap<String, Place>,
    by_link: BTreeMap<u32, Place>,
    /// Macvlans over these links: their MAC addresses are the switch's own there too.
    macvlans: BTreeMap<u32, Place>,
    /// MAC addresses of all ports.
    own: BTreeSet<Mac>,
}

impl Ports {
    /// Creates the mapping from ports by link name.
    #[must_use]
    pub fn new(by_name: BTreeMap<String, Place>) -> Ports {
        Ports {
            own: by_name.values().map(|place| place.mac).collect(),
            by_name,
            by_link: BTreeMap::new(),
            macvlans: BTreeMap::new(),
        }
    }

    /// Returns the port and VLAN of a link, or of the one that a macvlan is over.
    #[must_use]
    pub fn place(&self, link: u32) -> Option<Place> {
        self.own(link).or_else(|| self.macvlans.get(&link).copied())
    }

    /// Returns the port and VLAN of a link of the switch's own.
    #[must_use]
    pub fn own(&self, link: u32) -> Option<Place> {
        self.by_link.get(&link).copied()
    }

    /// Returns the link of a port's VLAN.
    #[must_use]
    pub fn link(&self, port: PortId, vlan: u16) -> Option<u32> {
        let mut links = self.by_link.iter();
        let found = links.find(|(_, place)| (place.port, place.vlan) == (port, vlan));
        found.map(|(link, _)| *link)
    }

    /// Returns the reason why no frame is sent to a neighbour's MAC address; `None` if frames are sent, or if it has none.
    #[must_use]
    pub fn refused_mac(&self, neighbor: &Neighbor) -> Option<RefusedMac> {
        neighbor
            .mac?
            .refused_as_neighbor(|mac| self.own.contains(&mac))
    }

    /// Returns the MAC address to which frames for a neighbour are sent, while there is one.
    #[must_use]
    pub fn destination(&self, neighbor: &Neighbor) -> Option<Mac> {
        neighbor
            .mac
            .filter(|_| self.refused_mac(neighbor).is_none())
    }

    /// Updates the mapping from the existing links; returns true if it changed.
    pub fn refresh(&mut self, links: &Links) -> bool {
        let known = links.iter().filter_map(|link| {
            let place = self.by_name.get(&link.name)?;
            Some((link.index, *place))
        });
        let now: BTreeMap<u32, Place> = known.collect();
        let macvlans = links.iter().filter_map(|link| {
            let place = now.get(&link.macvlan_over?)?;
            let mac = link.mac?;
            Some((link.index, Place { mac, ..*place }))
        });
        let macvlans: BTreeMap<u32, Place> = macvlans.collect();
        let changed = now != self.by_link || macvlans != self.macvlans;
        (self.by_link, self.macvlans) = (now, macvlans);
        changed
    }
}
