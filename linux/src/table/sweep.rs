//! Epochs: number of the dump that last contained an object, so that objects missing from a dump can be removed; and the identity of an
//! object, so that some can be spared.

use std::net::IpAddr;

use npcc_pipeline::route::prefix::Prefix;

use crate::wire::event::Event;

/// Identity of an object in a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectId {
    /// Routes of a prefix.
    Routes(Prefix),
    /// Neighbour, by link and address.
    Neighbor(u32, IpAddr),
    /// Next-hop object, by its number.
    NextHop(u32),
}

impl ObjectId {
    /// Returns the object of an event; `None` for links and addresses, and for a next-hop object that is gone.
    #[must_use]
    pub const fn of(event: &Event) -> Option<ObjectId> {
        match event {
            Event::Route(route) | Event::RouteGone(route) => Some(ObjectId::Routes(route.prefix)),
            Event::Neighbor(one) | Event::NeighborGone(one) => {
                Some(ObjectId::Neighbor(one.link, one.address))
            }
            Event::NextHop(hop) => Some(ObjectId::NextHop(hop.id)),
            Event::NotFollowed(one) | Event::NotFollowedGone(one) if one.table.is_some() => {
                Some(ObjectId::Routes(one.prefix))
            }
            _ => None,
        }
    }
}

/// Number of a dump; wraps around.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Epoch(u8);

impl Epoch {
    /// Returns the epoch of the next dump. An object is removed at the end of the dump that did not contain it, so the numbers may be reused.
    #[must_use]
    pub const fn next(self) -> Epoch {
        Epoch(self.0.wrapping_add(1))
    }
}
