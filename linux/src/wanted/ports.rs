//! Which link of the kernel is which port of ours.

use std::collections::BTreeMap;

use npcc_pipeline::units::{Mac, PortId};

use crate::table::links::Links;

/// What a link is for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The port.
    pub port: PortId,
    /// The VLAN frames are sent with, 0 for none.
    pub vlan: u16,
    /// Our address there.
    pub mac: Mac,
}

/// The ports by the name of their link, and as far as there are such links, by index.
#[derive(Debug, Default)]
pub struct Ports {
    by_name: BTreeMap<String, Place>,
    by_link: BTreeMap<u32, Place>,
}

impl Ports {
    /// These are our ports.
    #[must_use]
    pub fn new(by_name: BTreeMap<String, Place>) -> Ports {
        Ports {
            by_name,
            by_link: BTreeMap::new(),
        }
    }

    /// What the link of an index is for us.
    #[must_use]
    pub fn place(&self, link: u32) -> Option<Place> {
        self.by_link.get(&link).copied()
    }

    /// The link of a port's VLAN.
    #[must_use]
    pub fn link(&self, port: PortId, vlan: u16) -> Option<u32> {
        let mut links = self.by_link.iter();
        let found = links.find(|(_, place)| (place.port, place.vlan) == (port, vlan));
        found.map(|(link, _)| *link)
    }

    /// Looks which links there are; whether any is another port's now.
    pub fn refresh(&mut self, links: &Links) -> bool {
        let known = links.iter().filter_map(|link| {
            let place = self.by_name.get(&link.name)?;
            Some((link.index, *place))
        });
        let now: BTreeMap<u32, Place> = known.collect();
        let changed = now != self.by_link;
        self.by_link = now;
        changed
    }
}
