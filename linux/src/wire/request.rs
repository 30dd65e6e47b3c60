//! Requests: what we ask the kernel for, and what we want it to have.

use std::net::IpAddr;

use ipnet::IpNet;
use npcc_pipeline::units::Mac;

use super::attribute::{INET6, family_of};
use super::message::HEADER;
use super::nexthop::{self, Kind, NextHop};
use super::route::{self, Hop};
use super::{address, link, neighbor};

/// `NLM_F_REQUEST | NLM_F_ACK`.
pub(super) const ASK: u16 = 0x1 | 0x4;
/// `NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH`.
const DUMP: u16 = 0x1 | 0x300;
/// `NLM_F_CREATE`.
const CREATE: u16 = 0x400;
/// `NLM_F_REPLACE`.
const REPLACE: u16 = 0x100;
/// `NLA_F_NESTED`.
pub(super) const NESTED: u16 = 0x8000;
/// `RTPROT_STATIC`: what the configuration says.
pub const STATIC: u8 = 4;

/// A message as it is written.
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

    pub(super) fn with(mut self, kind: u16, value: &[u8]) -> Request {
        let len = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
        self.0.extend(len.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// The octets of one attribute, to stand within another.
    pub(super) fn attributes_of(kind: u16, value: &[u8]) -> Vec<u8> {
        Request(vec![]).with(kind, value).0
    }

    fn with_number(self, kind: u16, value: u32) -> Request {
        self.with(kind, &value.to_ne_bytes())
    }

    fn with_address(self, kind: u16, value: IpAddr) -> Request {
        match value {
            IpAddr::V4(v4) => self.with(kind, &v4.octets()),
            IpAddr::V6(v6) => self.with(kind, &v6.octets()),
        }
    }

    /// The octets to send, with the number its answer will have.
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

/// What can be dumped.
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
    /// The routes of a family in a table.
    Routes {
        /// [`INET6`], or IPv4.
        v6: bool,
        /// [`route::MAIN`] or [`route::LOCAL`].
        table: u32,
    },
}

impl Dump {
    /// Everything, in the order in which one leads to the other.
    pub const ALL: [Dump; 8] = [
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
    ];
}

/// Asks for a dump.
#[must_use]
pub fn dump(what: Dump) -> Request {
    match what {
        Dump::Links => Request::new(link::GET, DUMP, &[0; link::FIXED]),
        Dump::Addresses => Request::new(address::GET, DUMP, &[0; address::FIXED]),
        Dump::NextHops => Request::new(nexthop::GET, DUMP, &[0; nexthop::FIXED]),
        Dump::Neighbors => Request::new(neighbor::GET, DUMP, &[0; neighbor::FIXED]),
        Dump::Routes { v6, table } => {
            let mut fixed = [0; route::FIXED];
            fixed[0] = if v6 { INET6 } else { super::attribute::INET };
            let request = Request::new(route::GET, DUMP, &fixed);
            request.with_number(route::TABLE, table)
        }
    }
}

/// What a link is to be like; what is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkSettings<'a> {
    /// Switched on or off.
    pub up: Option<bool>,
    /// Carrier or none.
    pub carrier: Option<bool>,
    /// MAC address.
    pub mac: Option<Mac>,
    /// Octets of the largest packet.
    pub mtu: Option<u32>,
    /// What it is for.
    pub alias: Option<&'a str>,
    /// No IPv6 address is made of the MAC address (`addrgenmode none`).
    pub no_address_of_its_own: bool,
}

/// Sets a link up.
#[must_use]
pub fn set_link(index: u32, settings: &LinkSettings<'_>) -> Request {
    let mut fixed = [0; link::FIXED];
    put(&mut fixed, 4, &index.to_ne_bytes());
    if let Some(up) = settings.up {
        put(&mut fixed, 8, &u32::from(up).to_ne_bytes());
        put(&mut fixed, 12, &link::UP.to_ne_bytes());
    }
    let mut request = Request::new(link::NEW, ASK, &fixed);
    if let Some(mac) = settings.mac {
        request = request.with(link::ADDRESS, &mac.0);
    }
    if let Some(mtu) = settings.mtu {
        request = request.with_number(link::MTU, mtu);
    }
    if let Some(alias) = settings.alias {
        request = request.with(link::ALIAS, alias.as_bytes());
    }
    if let Some(carrier) = settings.carrier {
        request = request.with(link::CARRIER, &[u8::from(carrier)]);
    }
    if settings.no_address_of_its_own {
        // IN6_ADDR_GEN_MODE_NONE, within AF_INET6, within AF_SPEC.
        let mode = Request(vec![]).with(link::ADDR_GEN_MODE, &[1]);
        let family = Request(vec![]).with(u16::from(INET6) | NESTED, &mode.0);
        request = request.with(link::AF_SPEC | NESTED, &family.0);
    }
    request
}

/// Gives a link an address.
#[must_use]
pub fn add_address(index: u32, net: IpNet) -> Request {
    let [a, b, c, d] = index.to_ne_bytes();
    // IFA_F_NODAD: the addresses are the configuration's, and the data path has no time to wait.
    let fixed = [family_of(net.addr()), net.prefix_len(), 0x02, 0, a, b, c, d];
    let request = Request::new(address::NEW, ASK | CREATE | REPLACE, &fixed);
    let request = request.with_address(address::LOCAL, net.addr());
    request.with_address(address::ADDRESS, net.addr())
}

/// Takes an address from a link.
#[must_use]
pub fn remove_address(index: u32, net: IpNet) -> Request {
    let [a, b, c, d] = index.to_ne_bytes();
    let fixed = [family_of(net.addr()), net.prefix_len(), 0, 0, a, b, c, d];
    let request = Request::new(address::GONE, ASK, &fixed);
    let request = request.with_address(address::LOCAL, net.addr());
    request.with_address(address::ADDRESS, net.addr())
}

/// Makes a neighbour one whose MAC address is known for good, whatever it was before.
#[must_use]
pub fn set_neighbor(index: u32, ip: IpAddr, mac: Mac) -> Request {
    let [a, b, c, d] = index.to_ne_bytes();
    let [low, high] = neighbor::PERMANENT.to_ne_bytes();
    let fixed = [family_of(ip), 0, 0, 0, a, b, c, d, low, high, 0, 0];
    let request = Request::new(neighbor::NEW, ASK | CREATE | REPLACE, &fixed);
    let request = request.with_address(neighbor::DESTINATION, ip);
    request.with(neighbor::LINK_ADDRESS, &mac.0)
}

/// How a neighbour is to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolve {
    /// Once, as if a packet were sent there.
    Now,
    /// And kept so by the kernel, though it sees none of the data.
    AndKeep,
}

/// Asks the kernel to find a neighbour.
#[must_use]
pub fn resolve(index: u32, ip: IpAddr, how: Resolve) -> Request {
    let [a, b, c, d] = index.to_ne_bytes();
    let flags = match how {
        Resolve::Now => neighbor::USE,
        Resolve::AndKeep => neighbor::EXT_LEARNED,
    };
    let fixed = [family_of(ip), 0, 0, 0, a, b, c, d, 0, 0, flags, 0];
    let request = Request::new(neighbor::NEW, ASK | CREATE | REPLACE, &fixed);
    let request = request.with_address(neighbor::DESTINATION, ip);
    match how {
        Resolve::Now => request,
        Resolve::AndKeep => request.with_number(neighbor::FLAGS_EXT, neighbor::EXT_MANAGED),
    }
}

/// Takes a neighbour back that was to be kept.
#[must_use]
pub fn forget(index: u32, ip: IpAddr) -> Request {
    let [a, b, c, d] = index.to_ne_bytes();
    let fixed = [family_of(ip), 0, 0, 0, a, b, c, d, 0, 0, 0, 0];
    let request = Request::new(neighbor::GONE, ASK, &fixed);
    request.with_address(neighbor::DESTINATION, ip)
}

/// Puts a static route into the main table, in place of one of the same prefix and metric.
#[must_use]
pub fn add_route(net: IpNet, hops: &[Hop], metric: u32) -> Request {
    let kind = if hops.is_empty() { 6 } else { 1 };
    let family = family_of(net.addr());
    let scope = u8::from(hops.iter().all(|hop| hop.gateway.is_none())) * 253;
    let scope = if family == INET6 || kind != 1 {
        0
    } else {
        scope
    };
    let main = 254;
    let fixed = [
        family,
        net.prefix_len(),
        0,
        0,
        main,
        STATIC,
        scope,
        kind,
        0,
        0,
        0,
        0,
    ];
    let request = Request::new(route::NEW, ASK | CREATE | REPLACE, &fixed);
    let request = request.with_address(route::DESTINATION, net.network());
    let request = request.with_number(route::PRIORITY, metric);
    match hops {
        [] => request,
        [hop] => gateway(request.with_number(route::OIF, hop.link), *hop, family),
        several => {
            let mut list = vec![];
            for hop in several {
                let entry = gateway(Request(vec![]), *hop, family).0;
                let len = u16::try_from(entry.len() + 8).unwrap_or(u16::MAX);
                let weight = u8::try_from(hop.weight.max(1) - 1).unwrap_or(u8::MAX);
                list.extend(len.to_ne_bytes());
                list.extend([0, weight]);
                list.extend(hop.link.to_ne_bytes());
                list.extend(entry);
            }
            request.with(route::MULTIPATH, &list)
        }
    }
}

fn gateway(request: Request, hop: Hop, family: u8) -> Request {
    match hop.gateway {
        Some(ip) if family_of(ip) == family => request.with_address(route::GATEWAY, ip),
        Some(IpAddr::V6(ip)) => {
            let family = u16::from(INET6).to_ne_bytes();
            request.with(route::VIA, &[&family[..], &ip.octets()].concat())
        }
        _ => request,
    }
}

/// Removes a static route of the main table.
#[must_use]
pub fn remove_route(net: IpNet, metric: u32) -> Request {
    let fixed = [
        family_of(net.addr()),
        net.prefix_len(),
        0,
        0,
        254,
        STATIC,
        // RT_SCOPE_NOWHERE: whatever its scope is.
        255,
        0,
        0,
        0,
        0,
        0,
    ];
    let request = Request::new(route::GONE, ASK, &fixed);
    let request = request.with_address(route::DESTINATION, net.network());
    request.with_number(route::PRIORITY, metric)
}

/// Makes a next-hop object what is given.
#[must_use]
pub fn set_next_hop(hop: &NextHop) -> Request {
    let mut fixed = [0; nexthop::FIXED];
    let family = match hop.kind {
        Kind::By {
            gateway: Some(ip), ..
        } => family_of(ip),
        Kind::Group(_) => 0,
        _ => super::attribute::INET,
    };
    fixed[0] = family;
    fixed[2] = STATIC;
    let request = Request::new(nexthop::NEW, ASK | CREATE | REPLACE, &fixed);
    let request = request.with_number(nexthop::ID, hop.id);
    match &hop.kind {
        Kind::By { link, gateway } => {
            let request = request.with_number(nexthop::OIF, *link);
            match gateway {
                Some(ip) => request.with_address(nexthop::GATEWAY, *ip),
                None => request,
            }
        }
        Kind::Group(members) => {
            let entries = members
                .iter()
                .map(|(id, weight)| nexthop::member(*id, *weight));
            let list: Vec<u8> = entries.flatten().collect();
            request.with(nexthop::GROUP, &list)
        }
        Kind::Blackhole | Kind::Unusable => request.with(nexthop::BLACKHOLE, &[]),
    }
}

/// Removes a next-hop object, and all routes by it.
#[must_use]
pub fn remove_next_hop(id: u32) -> Request {
    let request = Request::new(nexthop::GONE, ASK, &[0; nexthop::FIXED]);
    request.with_number(nexthop::ID, id)
}
