//! Events: a link, address, neighbour, next hop or route that is present or gone, as parsed from a message.

use super::address::{self, Address};
use super::link::{self, Link};
use super::message::Message;
use super::neighbor::{self, Neighbor};
use super::nexthop::{self, NextHop};
use super::not_followed::NotFollowed;
use super::route::{self, Read, Route};
use super::rule;
use super::unread::Unread;

/// Content of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Link is present or changed.
    Link(Link),
    /// Link of this index is gone.
    LinkGone(u32),
    /// Address is present.
    Address(Address),
    /// Address is gone.
    AddressGone(Address),
    /// Neighbour is present or changed.
    Neighbor(Neighbor),
    /// Neighbour is gone.
    NeighborGone(Neighbor),
    /// Next-hop object is present or changed.
    NextHop(NextHop),
    /// Next-hop object of this id is gone.
    NextHopGone(u32),
    /// Route is present.
    Route(Route),
    /// Route is gone.
    RouteGone(Route),
    /// Route or rule is present that is not followed.
    NotFollowed(NotFollowed),
    /// Route or rule that is not followed is gone.
    NotFollowedGone(NotFollowed),
}

/// Parses a message.
///
/// # Errors
/// The reason why it is not an event; the caller counts malformed messages.
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
        route::NEW => route::read(body, message.flags).map(|read| match read {
            Read::Route(route) => Event::Route(route),
            Read::NotFollowed(what) => Event::NotFollowed(what),
        }),
        route::GONE => route::read(body, 0).map(|read| match read {
            Read::Route(route) => Event::RouteGone(route),
            Read::NotFollowed(what) => Event::NotFollowedGone(what),
        }),
        rule::NEW => rule::read(body).map(Event::NotFollowed),
        rule::GONE => rule::read(body).map(Event::NotFollowedGone),
        _ => Err(Unread::NotOurs),
    }
}
