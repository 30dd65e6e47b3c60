//! What a message says: one link, address, neighbour, next hop or route that is there, or is gone.

use super::address::{self, Address};
use super::link::{self, Link};
use super::message::Message;
use super::neighbor::{self, Neighbor};
use super::nexthop::{self, NextHop};
use super::route::{self, Route};
use super::unread::Unread;

/// A message's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A link is as given.
    Link(Link),
    /// The link of this index is gone.
    LinkGone(u32),
    /// An address is there.
    Address(Address),
    /// An address is gone.
    AddressGone(Address),
    /// A neighbour is as given.
    Neighbor(Neighbor),
    /// A neighbour is gone.
    NeighborGone(Neighbor),
    /// A next-hop object is as given.
    NextHop(NextHop),
    /// The next-hop object of this id is gone.
    NextHopGone(u32),
    /// A route is there.
    Route(Route),
    /// A route is gone.
    RouteGone(Route),
}

/// Reads a message.
///
/// # Errors
/// Why it is no event; the caller counts the malformed.
pub fn event(message: &Message<'_>) -> Result<Event, Unread> {
    let body = message.body;
    match message.kind {
        link::NEW => link::read(body).map(Event::Link),
        link::GONE => link::read(body).map(|link| Event::LinkGone(link.index)),
        address::NEW => address::read(body).map(Event::Address),
        address::GONE => address::read(body).map(Event::AddressGone),
        neighbor::NEW => neighbor::read(body).map(Event::Neighbor),
        neighbor::GONE => neighbor::read(body).map(Event::NeighborGone),
        nexthop::NEW => nexthop::read(body).map(Event::NextHop),
        nexthop::GONE => nexthop::read(body).map(|hop| Event::NextHopGone(hop.id)),
        route::NEW => route::read(body, message.flags).map(Event::Route),
        route::GONE => route::read(body, 0).map(Event::RouteGone),
        _ => Err(Unread::NotOurs),
    }
}
