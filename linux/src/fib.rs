//! What the switch does with what is wanted: routes to groups, and groups to next hops.

use std::net::IpAddr;

use npcc_pipeline::route::nexthop::{Adjacency, NextHopGroupId};
use npcc_pipeline::route::prefix::Prefix;

/// One next hop of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Where to, and what happens.
    ///
    /// `Unresolved` has port and VLAN; `Local` has those of the interface the address is on, or port 0 for one that is no port's.
    pub adjacency: Adjacency,
    /// Its share, against the others'; at least 1.
    pub weight: u16,
    /// Of `Unresolved`, who is to be asked for; without one it is the frame's own destination.
    pub gateway: Option<IpAddr>,
}

/// A change the switch has no room for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// The forwarding tables of the switch.
///
/// Changes come in an order in which each stands by itself: a group is made before a route leads by it, and is removed after the
/// last; then its number may be another's. Between two [`Fib::commit`]s nothing needs to be seen by a frame.
pub trait Fib: Send {
    /// Makes a group of these members; without members, its routes are as none.
    ///
    /// # Errors
    /// There is no room.
    fn make_group(&mut self, members: &[Member]) -> Result<NextHopGroupId, Refused>;

    /// Gives a group other members, for every route that leads by it.
    ///
    /// # Errors
    /// There is no room; the group is as it was.
    fn change_group(&mut self, group: NextHopGroupId, members: &[Member]) -> Result<(), Refused>;

    /// A group that no route leads by any more.
    fn remove_group(&mut self, group: NextHopGroupId);

    /// Lets a prefix lead by a group, whatever it led by before.
    ///
    /// # Errors
    /// There is no room; the route is as it was.
    fn set_route(&mut self, prefix: Prefix, group: NextHopGroupId) -> Result<(), Refused>;

    /// Takes a prefix away.
    fn remove_route(&mut self, prefix: Prefix);

    /// Makes all changes since the last commit visible.
    fn commit(&mut self);
}
