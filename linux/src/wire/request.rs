//! Requests to the kernel: dumps, and changes of its state.

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::Emitable;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, LinkAttribute, LinkFlags, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAttribute, NeighbourExtFlags, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteNextHop, RouteProtocol, RouteScope, RouteType,
    RouteVia,
};
use netlink_packet_route::rule::RuleMessage;
use netlink_packet_route::{AddressFamily as Family, RouteNetlinkMessage as Message};
use npcc_pipeline::units::Mac;

use super::message::{HEADER, REPLACE};
use super::nexthop;
use super::route::{self, Hop};

/// `NLM_F_REQUEST | NLM_F_ACK`.
pub(super) const ASK: u16 = 0x1 | 0x4;
/// `NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH`.
const DUMP: u16 = 0x1 | 0x300;
/// `NLM_F_CREATE`.
const CREATE: u16 = 0x400;
/// `NLA_F_NESTED`.
pub(super) const NESTED: u16 = 0x8000;
/// `RTPROT_STATIC`: the origin of configured routes.
pub const STATIC: u8 = 4;

/// Netlink request, encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request(Vec<u8>);

impl Request {
    pub(super) fn new(kind: u16, flags: u16, fixed: &[u8]) -> Request {
        let mut bytes = vec![0; HEADER];
        put(&mut bytes, 4, &kind.to_ne_bytes());
        put(&mut bytes, 6, &flags.to_ne_bytes());
        bytes.extend(fixed);
        Request(bytes)
    }

    fn of(flags: u16, message: &Message) -> Request {
        let mut body = vec![0; message.buffer_len()];
        message.emit(&mut body);
        Request::new(message.message_type(), flags, &body)
    }

    pub(super) fn with(mut self, kind: u16, value: &[u8]) -> Request {
        let len = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
        self.0.extend(len.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Returns the octets of one attribute, to be nested in another.
    pub(super) fn attributes_of(kind: u16, value: &[u8]) -> Vec<u8> {
        Request(vec![]).with(kind, value).0
    }

    /// Returns the octets to send, with the sequence number that its answer will have.
    #[must_use]
    pub fn numbered(mut self, sequence: u32) -> Vec<u8> {
        let len = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        put(&mut self.0, 0, &len.to_ne_bytes());
        put(&mut self.0, 8, &sequence.to_ne_bytes());
        self.0
    }
}

fn put(bytes: &mut [u8], offset: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(offset..offset + value.len()) {
        place.copy_from_slice(value);
    }
}

/// Objects that can be dumped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dump {
    /// All links.
    Links,
    /// All addresses.
    Addresses,
    /// All next-hop objects.
    NextHops,
    /// All neighbours.
    Neighbors,
    /// Routes of a family in a table.
    Routes {
        /// True for IPv6, false for IPv4.
        v6: bool,
        /// Routing table, [`route::MAIN`], [`route::LOCAL`] or [`route::DEFAULT`].
        table: u32,
    },
    /// Rules of policy routing of a family.
    Rules {
        /// True for IPv6, false for IPv4.
        v6: bool,
    },
}

impl Dump {
    /// All dumps, in an order in which each refers to earlier ones only.
    pub const ALL: [Dump; 11] = [
        Dump::Links,
        Dump::Addresses,
        Dump::NextHops,
        Dump::Neighbors,
        Dump::Routes {
            v6: false,
            table: route::LOCAL,
        },
        Dump::Routes {
            v6: false,
            table: route::MAIN,
        },
        Dump::Routes {
            v6: true,
            table: route::LOCAL,
        },
        Dump::Routes {
            v6: true,
            table: route::MAIN,
        },
        Dump::Routes {
            v6: false,
            table: route::DEFAULT,
        },
        Dump::Rules { v6: false },
        Dump::Rules { v6: true },
    ];
}

/// Builds the request for a dump.
#[must_use]
pub fn dump(what: Dump) -> Request {
    let message = match what {
        Dump::Links => Message::GetLink(LinkMessage::default()),
        Dump::Addresses => Message::GetAddress(AddressMessage::default()),
        Dump::Neighbors => Message::GetNeighbour(NeighbourMessage::default()),
        Dump::NextHops => return Request::new(nexthop::GET, DUMP, &[0; nexthop::FIXED]),
        Dump::Routes { v6, table } => {
            let mut route = RouteMessage::default();
            route.header.address_family = if v6 { Family::Inet6 } else { Family::Inet };
            route.attributes = vec![RouteAttribute::Table(table)];
            Message::GetRoute(route)
        }
        Dump::Rules { v6 } => {
            let mut rule = RuleMessage::default();
            rule.header.family = if v6 { Family::Inet6 } else { Family::Inet };
            Message::GetRule(rule)
        }
    };
    Request::of(DUMP, &message)
}

/// Builds the request for one link, by its index.
#[must_use]
pub fn link(index: u32) -> Request {
    let mut link = LinkMessage::default();
    link.header.index = index;
    Request::of(ASK, &Message::GetLink(link))
}

/// Link settings to change; `None` leaves a setting unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkSettings<'a> {
    /// Administrative state: up or down.
    pub up: Option<bool>,
    /// Carrier: on or off.
    pub carrier: Option<bool>,
    /// MAC address.
    pub mac: Option<Mac>,
    /// IP MTU in octets.
    pub mtu: Option<u32>,
    /// Description of the link (`ifalias`).
    pub alias: Option<&'a str>,
    /// True to disable the automatic IPv6 link-local address (`addrgenmode none`).
    pub no_address_of_its_own: bool,
}

/// Builds the request that changes a link's settings.
#[must_use]
pub fn set_link(index: u32, settings: &LinkSettings<'_>) -> Request {
    let mut link = LinkMessage::default();
    link.header.index = index;
    if let Some(up) = settings.up {
        link.header.change_mask = LinkFlags::Up;
        link.header.flags.set(LinkFlags::Up, up);
    }
    let no_address = || AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
    let no_address = || LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![no_address()])]);
    let attributes = [
        settings
            .mac
            .map(|mac| LinkAttribute::Address(mac.0.to_vec())),
        settings.mtu.map(LinkAttribute::Mtu),
        settings
            .alias
            .map(|alias| LinkAttribute::IfAlias(alias.to_owned())),
        settings
            .carrier
            .map(|carrier| LinkAttribute::Carrier(carrier.into())),
        settings.no_address_of_its_own.then(no_address),
    ];
    link.attributes = attributes.into_iter().flatten().collect();
    Request::of(ASK, &Message::NewLink(link))
}

fn address(index: u32, net: IpNet, flags: AddressHeaderFlags) -> AddressMessage {
    let mut address = AddressMessage::default();
    address.header.family = family(net.addr());
    address.header.prefix_len = net.prefix_len();
    address.header.flags = flags;
    address.header.index = index;
    address.attributes = vec![
        AddressAttribute::Local(net.addr()),
        AddressAttribute::Address(net.addr()),
    ];
    address
}

/// Builds the request that adds an address to a link.
#[must_use]
pub fn add_address(index: u32, net: IpNet) -> Request {
    // The addresses are the configuration's, and the data path has no time to wait for duplicate address detection.
    let address = address(index, net, AddressHeaderFlags::Nodad);
    Request::of(ASK | CREATE | REPLACE, &Message::NewAddress(address))
}

/// Builds the request that removes an address from a link.
#[must_use]
pub fn remove_address(index: u32, net: IpNet) -> Request {
    let address = address(index, net, AddressHeaderFlags::empty());
    Request::of(ASK, &Message::DelAddress(address))
}

fn neighbor(index: u32, ip: IpAddr) -> NeighbourMessage {
    let mut neighbor = NeighbourMessage::default();
    neighbor.header.family = family(ip);
    neighbor.header.ifindex = index;
    neighbor.attributes = vec![NeighbourAttribute::Destination(ip.into())];
    neighbor
}

/// Builds the request that makes a neighbour permanent with this MAC address, whatever it was before.
#[must_use]
pub fn set_neighbor(index: u32, ip: IpAddr, mac: Mac) -> Request {
    let mut neighbor = neighbor(index, ip);
    neighbor.header.state = NeighbourState::Permanent;
    let mac = NeighbourAttribute::LinkLayerAddress(mac.0.to_vec());
    neighbor.attributes.push(mac);
    Request::of(ASK | CREATE | REPLACE, &Message::NewNeighbour(neighbor))
}

/// Mode of neighbour resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolve {
    /// Resolves once, as if a packet were sent there.
    Now,
    /// Resolves, and has the kernel keep it resolved, though it sees no data traffic.
    AndKeep,
}

/// Builds the request to resolve a neighbour.
#[must_use]
pub fn resolve(index: u32, ip: IpAddr, how: Resolve) -> Request {
    let mut neighbor = neighbor(index, ip);
    match how {
        Resolve::Now => neighbor.header.flags = NeighbourFlags::Use,
        Resolve::AndKeep => {
            neighbor.header.flags = NeighbourFlags::ExtLearned;
            let managed = NeighbourAttribute::ExtFlags(NeighbourExtFlags::Managed);
            neighbor.attributes.push(managed);
        }
    }
    Request::of(ASK | CREATE | REPLACE, &Message::NewNeighbour(neighbor))
}

/// Builds the request to delete a neighbour that was to be kept resolved.
#[must_use]
pub fn forget(index: u32, ip: IpAddr) -> Request {
    Request::of(ASK, &Message::DelNeighbour(neighbor(index, ip)))
}

fn static_route(net: IpNet, metric: u32) -> RouteMessage {
    let mut route = RouteMessage::default();
    route.header.address_family = family(net.addr());
    route.header.destination_prefix_length = net.prefix_len();
    route.header.table = RouteHeader::RT_TABLE_MAIN;
    route.header.protocol = RouteProtocol::Static;
    route.attributes = vec![
        RouteAttribute::Destination(net.network().into()),
        RouteAttribute::Priority(metric),
    ];
    route
}

/// Builds the request that adds a static route to the main table, replacing one of the same prefix and metric.
#[must_use]
pub fn add_route(net: IpNet, hops: &[Hop], metric: u32) -> Request {
    let mut route = static_route(net, metric);
    route.header.kind = RouteType::Unicast;
    let attached = hops.iter().all(|hop| hop.gateway.is_none());
    match hops {
        [] => route.header.kind = RouteType::BlackHole,
        _ if attached && net.addr().is_ipv4() => route.header.scope = RouteScope::Link,
        _ => {}
    }
    match hops {
        [] => {}
        [hop] => {
            route.attributes.push(RouteAttribute::Oif(hop.link));
            route.attributes.extend(gateway(*hop, net));
        }
        several => {
            let hops = several.iter().map(|hop| {
                let mut next = RouteNextHop::default();
                next.hops = u8::try_from(hop.weight.max(1) - 1).unwrap_or(u8::MAX);
                next.interface_index = hop.link;
                next.attributes.extend(gateway(*hop, net));
                next
            });
            let hops = RouteAttribute::MultiPath(hops.collect());
            route.attributes.push(hops);
        }
    }
    Request::of(ASK | CREATE | REPLACE, &Message::NewRoute(route))
}

fn gateway(hop: Hop, net: IpNet) -> Option<RouteAttribute> {
    match hop.gateway? {
        ip if ip.is_ipv4() == net.addr().is_ipv4() => Some(RouteAttribute::Gateway(ip.into())),
        IpAddr::V6(ip) => Some(RouteAttribute::Via(RouteVia::Inet6(ip))),
        IpAddr::V4(_) => None,
    }
}

/// Builds the request that removes a static route of the main table.
#[must_use]
pub fn remove_route(net: IpNet, metric: u32) -> Request {
    let mut route = static_route(net, metric);
    // Matches any scope.
    route.header.scope = RouteScope::NoWhere;
    Request::of(ASK, &Message::DelRoute(route))
}

/// Builds the request for the kernel's own decision about a packet to a destination; `sender` is its source address, if that is to decide.
#[must_use]
pub fn look_up(destination: IpAddr, sender: Option<IpAddr>) -> Request {
    let full = |ip: IpAddr| if ip.is_ipv4() { 32 } else { 128 };
    let mut route = RouteMessage::default();
    route.header.address_family = family(destination);
    route.header.destination_prefix_length = full(destination);
    route.attributes = vec![RouteAttribute::Destination(destination.into())];
    if let Some(sender) = sender {
        route.header.source_prefix_length = full(sender);
        route.attributes.push(RouteAttribute::Source(sender.into()));
    }
    Request::of(ASK, &Message::GetRoute(route))
}

const fn family(ip: IpAddr) -> Family {
    match ip {
        IpAddr::V4(_) => Family::Inet,
        IpAddr::V6(_) => Family::Inet6,
    }
}
