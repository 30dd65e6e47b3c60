//! Capacity of the route tables, and the errors of a route for which there is none.

use super::edit::Full;
use super::ids::NoId;

/// Capacity of the route tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteCapacity {
    /// Number of IPv4 prefixes; each longer than /24 may need a group of 256 entries.
    pub ipv4_routes: usize,
    /// Number of IPv6 prefixes; each may need up to 13 groups, most need one to three.
    pub ipv6_routes: usize,
    /// Number of distinct next hops in use at a time.
    pub adjacencies: usize,
    /// Number of distinct sets of next hops in use at a time.
    pub groups: usize,
}

/// Reason for which a route was refused; nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// The image has no group left.
    #[error(transparent)]
    Full(#[from] Full),
    /// More routes than configured.
    #[error(
        "the RIB is full: {limit} routes of this family; raise routing.ipv4_routes or ipv6_routes"
    )]
    TooMany {
        /// Configured number of routes.
        limit: usize,
    },
    /// Every adjacency or next-hop group is in use.
    #[error("no room for another next hop (of {limit})")]
    NextHops {
        /// Number of slots there are.
        limit: usize,
    },
    /// A worker has not passed since the last commit.
    #[error("a worker still reads the previous table; try again")]
    Busy,
}

impl From<NoId> for RouteError {
    fn from(full: NoId) -> RouteError {
        RouteError::NextHops { limit: full.limit }
    }
}
