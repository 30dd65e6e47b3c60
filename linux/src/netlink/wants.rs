//! Desired kernel state of the configuration: addresses, neighbours and static routes, installed again whenever a link is set up.
//!
//! The kernel removes IPv4 routes with the link they use, and IPv6 addresses of a link too; no one else would restore
//! them. State that a new configuration does not contain any more is removed; state of others in the kernel stays.

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

/// Static route of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticRoute {
    /// Destination prefix.
    pub prefix: IpNet,
    /// Next hops, each the name of a link and a gateway on it; an empty list drops.
    pub via: Vec<(String, Option<IpAddr>)>,
    /// Metric of the route; the lower, the better.
    pub metric: u32,
}

/// Static neighbour of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticNeighbor {
    /// Name of the link it is on.
    pub link: String,
    /// IP address of the neighbour.
    pub address: IpAddr,
    /// MAC address of the neighbour.
    pub mac: Mac,
}

/// Desired kernel state of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Addresses, by the name of their link.
    pub addresses: BTreeMap<String, Vec<IpNet>>,
    /// Neighbours.
    pub neighbors: Vec<StaticNeighbor>,
    /// Routes.
    pub routes: Vec<StaticRoute>,
}

/// Desired kernel state, and the links it applies to.
#[derive(Debug, Default)]
pub struct Wants {
    /// Index of each of the switch's links, and the link-local address derived from its MAC address, by name.
    links: BTreeMap<String, (u32, IpNet)>,
    now: Wanted,
}

/// Refusal of a request by the kernel.
#[derive(Debug, thiserror::Error)]
#[error("Linux refused {what}: {source}")]
pub struct RefusedByLinux {
    /// Description of the request.
    pub what: String,
    /// Answer of the kernel.
    pub source: io::Error,
}

/// Sends requests, and collects refusals.
struct Asking<'a> {
    requests: &'a mut Requests,
    refused: Vec<RefusedByLinux>,
}

impl Asking<'_> {
    /// Sends a request; `fine` are error numbers that count as success.
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
    /// Creates the desired state for links that [`Wants::link`] adds.
    #[must_use]
    pub const fn new(now: Wanted) -> Wants {
        Wants {
            links: BTreeMap::new(),
            now,
        }
    }

    /// Adds a link; it gets the link-local address derived from its MAC address, beside the configured ones.
    pub fn link(&mut self, name: &str, index: u32, mac: Mac) {
        let own = IpNet::V6(Ipv6Net::new_assert(link_local(mac), 64));
        self.links.insert(name.to_owned(), (index, own));
    }

    /// Iterates over the names of the switch's links.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.links.keys().map(String::as_str)
    }

    /// Installs the addresses and neighbours of a link; returns refusals.
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
            // A kernel without IPv6 has no use for the address either.
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

    /// Returns the position of an address among those configured on a link; beyond the last for any other.
    #[must_use]
    pub fn rank(&self, link: &str, address: IpAddr) -> usize {
        let wanted = self.now.addresses.get(link).map_or(&[][..], Vec::as_slice);
        let place = wanted.iter().position(|net| net.addr() == address);
        place.unwrap_or(wanted.len())
    }

    /// Installs all routes whose links exist; returns refusals.
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

    /// Changes the desired state: removes what it does not contain any more, and installs everything it contains; returns refusals.
    pub fn change(&mut self, to: Wanted, requests: &mut Requests) -> Vec<RefusedByLinux> {
        let from = std::mem::replace(&mut self.now, to);
        let mut asking = Asking {
            requests: &mut *requests,
            refused: vec![],
        };
        // It may have disappeared with its link, or been removed by another process.
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
