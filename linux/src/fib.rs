//! Interface to the switch's forwarding tables: routes to next-hop groups, and groups to next hops.

use std::net::IpAddr;

use npcc_pipeline::route::nexthop::{Adjacency, NextHopGroupId};
use npcc_pipeline::route::prefix::Prefix;

/// Next hop of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Adjacency: port, VLAN and MAC address, or local delivery or drop.
    ///
    /// `Unresolved` has port and VLAN; `Local` has those of the interface the address is on, or port 0 for one that is no port's.
    pub adjacency: Adjacency,
    /// Weight of the next hop relative to the others'; at least 1.
    pub weight: u16,
    /// Gateway to resolve if the adjacency is `Unresolved`; `None` resolves the frame's own destination.
    pub gateway: Option<IpAddr>,
}

/// Change that the switch has no capacity for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Forwarding tables of the switch.
///
/// Changes come in an order in which each is valid by itself: a group is made before a route uses it, and is removed after the
/// last one; then its number may be reused. No frame needs to see the changes between two [`Fib::commit`]s.
pub trait Fib: Send {
    /// Creates a group of these members; without members, its routes are treated as absent.
    ///
    /// # Errors
    /// The switch has no capacity left.
    fn make_group(&mut self, members: &[Member]) -> Result<NextHopGroupId, Refused>;

    /// Replaces the members of a group, for every route that uses it.
    ///
    /// # Errors
    /// The switch has no capacity left; the group is unchanged.
    fn change_group(&mut self, group: NextHopGroupId, members: &[Member]) -> Result<(), Refused>;

    /// Removes a group that no route uses any more.
    fn remove_group(&mut self, group: NextHopGroupId);

    /// Points a prefix to a group, replacing its previous one.
    ///
    /// # Errors
    /// The switch has no capacity left; the route is unchanged.
    fn set_route(&mut self, prefix: Prefix, group: NextHopGroupId) -> Result<(), Refused>;

    /// Removes a prefix.
    fn remove_route(&mut self, prefix: Prefix);

    /// Makes all changes since the last commit visible to the workers.
    fn commit(&mut self);
}
