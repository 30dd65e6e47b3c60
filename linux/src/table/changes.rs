//! What changed in the model since it was last asked.

use std::collections::BTreeSet;
use std::net::IpAddr;

use npcc_pipeline::route::prefix::Prefix;

use super::ways::WayId;

/// See the module's text.
#[derive(Debug, Default)]
pub struct Changes {
    /// Prefixes whose routes changed, some more than once.
    pub prefixes: Vec<Prefix>,
    /// Neighbours whose MAC address came, changed or went.
    pub neighbors: BTreeSet<(u32, IpAddr)>,
    /// Next-hop objects that are another thing now, the groups that have them as members too.
    pub objects: BTreeSet<u32>,
    /// Ways that were made, under a number that may have been another's.
    pub ways: BTreeSet<WayId>,
    /// Links that came, went, or have another address or state.
    pub links: BTreeSet<u32>,
    /// An address of ours came or went; that alone changes no route.
    pub addresses: bool,
    /// So much may have changed that every prefix is to be looked at.
    pub everything: bool,
}

impl Changes {
    /// Nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let none = self.prefixes.is_empty() && self.neighbors.is_empty();
        let none = none && self.objects.is_empty() && self.ways.is_empty();
        none && self.links.is_empty() && !self.everything
    }
}
