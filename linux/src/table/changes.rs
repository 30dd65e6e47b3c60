//! Changes of the model since they were last taken.

use std::collections::BTreeSet;
use std::net::IpAddr;

use npcc_pipeline::route::prefix::Prefix;

use super::ways::WayId;

/// Changes of the model since they were last taken.
#[derive(Debug, Default)]
pub struct Changes {
    /// Prefixes whose routes changed; may contain duplicates.
    pub prefixes: Vec<Prefix>,
    /// Neighbours whose MAC address appeared, changed or disappeared.
    pub neighbors: BTreeSet<(u32, IpAddr)>,
    /// Next-hop objects that changed, including the groups that contain them.
    pub objects: BTreeSet<u32>,
    /// Next-hop sets that were created, possibly under a reused number.
    pub ways: BTreeSet<WayId>,
    /// Links that appeared, disappeared, or changed address or state.
    pub links: BTreeSet<u32>,
    /// True if a local address appeared or disappeared; that alone changes no route.
    pub addresses: bool,
    /// True if so much may have changed that every prefix must be examined.
    pub everything: bool,
}

impl Changes {
    /// Returns true if nothing changed that concerns routes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let none = self.prefixes.is_empty() && self.neighbors.is_empty();
        let none = none && self.objects.is_empty() && self.ways.is_empty();
        none && self.links.is_empty() && !self.everything
    }
}
