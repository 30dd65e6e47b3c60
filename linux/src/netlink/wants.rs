//! What the configuration wants the kernel to have: addresses, neighbours and static routes, put again whenever a link rises.
//!
//! The kernel takes IPv4 routes away with the link they lead by, and IPv6 addresses of a link too; nobody else would put these
//! back. What another configuration does not want any more is taken away; what others put into the kernel stays.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv6Net};
use nix::errno::Errno;
use npcc_pipeline::punt::interface::link_local;
use npcc_pipeline::units::Mac;

use super::requests::Requests;
use crate::wire::request::{
    Request, add_address, add_route, forget, remove_address, remove_route, set_neighbor,
};
use crate::wire::route::Hop;

/// A static route of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticRoute {
    /// Its destinations.
    pub prefix: IpNet,
    /// Its next hops, each the name of a link and a gateway on it; none drops.
    pub via: Vec<(String, Option<IpAddr>)>,
    /// The lower, the better.
    pub metric: u32,
}

/// A neighbour whose MAC address the configuration knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticNeighbor {
    /// The name of the link it is on.
    pub link: String,
    /// Its address.
    pub address: IpAddr,
    /// Its MAC address.
    pub mac: Mac,
}

/// All that a configuration wants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Addresses, by the name of their link.
    pub addresses: BTreeMap<String, Vec<IpNet>>,
    /// Neighbours.
    pub neighbors: Vec<StaticNeighbor>,
    /// Routes.
    pub routes: Vec<StaticRoute>,
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct Wants {
    /// The index of each of our links and the link-local address its MAC address makes, by name.
    links: BTreeMap<String, (u32, IpNet)>,
    now: Wanted,
}

/// Something the kernel refused.
#[derive(Debug, thiserror::Error)]
#[error("Linux refused {what}: {source}")]
pub struct RefusedByLinux {
    /// What was asked for.
    pub what: String,
    /// Its answer.
    pub source: io::Error,
}

/// Asks, and keeps what was refused.
struct Asking<'a> {
    requests: &'a mut Requests,
    refused: Vec<RefusedByLinux>,
}

impl Asking<'_> {
    /// `fine` are answers that are as good as yes.
    fn ask(&mut self, request: Request, what: impl FnOnce() -> String, fine: &[Errno]) {
        if let Err(source) = self.requests.ask(request) {
            let errno = source.raw_os_error().map(Errno::from_raw);
            if errno.is_none_or(|errno| !fine.contains(&errno)) {
                let what = what();
                self.refused.push(RefusedByLinux { what, source });
            }
        }
    }
}

impl Wants {
    /// This is wanted of links that [`Wants::link`] names.
    #[must_use]
    pub const fn new(now: Wanted) -> Wants {
        Wants {
            links: BTreeMap::new(),
            now,
        }
    }

    /// There is a link; it gets the link-local address its MAC address makes, beside those that are wanted.
    pub fn link(&mut self, name: &str, index: u32, mac: Mac) {
        let own = IpNet::V6(Ipv6Net::new_assert(link_local(mac), 64));
        self.links.insert(name.to_owned(), (index, own));
    }

    /// Puts the addresses and neighbours of a link.
    pub fn put_link(&self, index: u32, requests: &mut Requests) -> Vec<RefusedByLinux> {
        let mut asking = Asking {
            requests,
            refused: vec![],
        };
        let found = self.links.iter().find(|(_, (link, _))| *link == index);
        let Some((name, (_, own))) = found else {
            return vec![];
        };
        let addresses = self.now.addresses.get(name).into_iter().flatten();
        for net in std::iter::once(own).chain(addresses) {
            // Without IPv6 in the kernel there is nobody to talk to by it either.
            let no_ipv6 = [Errno::EOPNOTSUPP];
            let fine: &[Errno] = if net.addr().is_ipv6() { &no_ipv6 } else { &[] };
            asking.ask(
                add_address(index, *net),
                || format!("address {net} on {name}"),
                fine,
            );
        }
        for one in self.now.neighbors.iter().filter(|one| one.link == *name) {
            let what = || format!("neighbour {} on {name}", one.address);
            asking.ask(set_neighbor(index, one.address, one.mac), what, &[]);
        }
        asking.refused
    }

    /// The place of an address among those wanted of a link; past the last for another's.
    #[must_use]
    pub fn rank(&self, link: &str, address: IpAddr) -> usize {
        let wanted = self.now.addresses.get(link).map_or(&[][..], Vec::as_slice);
        let place = wanted.iter().position(|net| net.addr() == address);
        place.unwrap_or(wanted.len())
    }

    /// Puts all routes whose links there are.
    pub fn put_routes(&self, requests: &mut Requests) -> Vec<RefusedByLinux> {
        let mut asking = Asking {
            requests,
            refused: vec![],
        };
        for route in &self.now.routes {
            let hop = |(name, gateway): &(String, Option<IpAddr>)| {
                let (link, _) = self.links.get(name)?;
                Some(Hop {
                    link: *link,
                    gateway: *gateway,
                    weight: 1,
                })
            };
            let hops: Vec<Hop> = route.via.iter().filter_map(hop).collect();
            if hops.is_empty() && !route.via.is_empty() {
                continue;
            }
            let request = add_route(route.prefix, &hops, route.metric);
            asking.ask(request, || format!("route {}", route.prefix), &[]);
        }
        asking.refused
    }

    /// From now on this is wanted: what it has no more is taken away, and all it has is put.
    pub fn change(&mut self, to: Wanted, requests: &mut Requests) -> Vec<RefusedByLinux> {
        let from = std::mem::replace(&mut self.now, to);
        let mut asking = Asking {
            requests: &mut *requests,
            refused: vec![],
        };
        // It may have gone with its link, or by another's hand.
        let gone = [
            Errno::ESRCH,
            Errno::EADDRNOTAVAIL,
            Errno::ENOENT,
            Errno::ENODEV,
        ];
        let key = |route: &StaticRoute| (route.prefix, route.metric);
        let kept: Vec<_> = self.now.routes.iter().map(key).collect();
        for route in from
            .routes
            .iter()
            .filter(|route| !kept.contains(&key(route)))
        {
            let request = remove_route(route.prefix, route.metric);
            asking.ask(
                request,
                || format!("to remove route {}", route.prefix),
                &gone,
            );
        }
        for (name, (index, _)) in &self.links {
            let kept = |one: &StaticNeighbor| {
                let mut now = self.now.neighbors.iter();
                now.any(|now| (&now.link, now.address) == (&one.link, one.address))
            };
            let neighbors = from.neighbors.iter().filter(|one| one.link == *name);
            for one in neighbors.filter(|one| !kept(one)) {
                let what = || format!("to remove neighbour {}", one.address);
                asking.ask(forget(*index, one.address), what, &gone);
            }
            let now = self.now.addresses.get(name);
            let before = from.addresses.get(name).into_iter().flatten();
            for net in before.filter(|net| now.is_none_or(|now| !now.contains(net))) {
                let what = || format!("to remove address {net}");
                asking.ask(remove_address(*index, *net), what, &gone);
            }
        }
        let mut refused = asking.refused;
        let links: Vec<u32> = self.links.values().map(|(index, _)| *index).collect();
        for index in links {
            refused.extend(self.put_link(index, requests));
        }
        refused.extend(self.put_routes(requests));
        refused
    }
}
