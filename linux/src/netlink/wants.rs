//! Desired kernel state of the configuration: addresses, neighbours and static routes, installed again whenever a link is set up.
//!
//! The kernel removes IPv4 routes with the link they use, and IPv6 addresses of a link too; no one else would restore
//! them. State that a new configuration does not contain any more is removed; state of others in the kernel stays.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use ipnet::{IpNet, Ipv6Net};
use nix::errno::Errno;
use npcc_pipeline::punt::interface::link_local;
use npcc_pipeline::units::Mac;

use super::requests::Requests;
use crate::table::links::Links;
use crate::wire::request::{
    LinkSettings, Request, add_address, add_route, forget, remove_address, remove_route, set_link,
    set_neighbor,
};
use crate::wire::route::Hop;

/// Shortest interval at which a link's settings are set back.
const SET_BACK_EVERY: Duration = Duration::from_secs(1);

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
    /// Each of the switch's links, by name.
    links: BTreeMap<String, Own>,
    now: Wanted,
}

/// Link of the switch.
#[derive(Debug)]
struct Own {
    index: u32,
    /// Link-local address derived from its MAC address.
    address: IpNet,
    mac: Mac,
    mtu: u32,
    /// Time at which a setting was last set back.
    set_back: Option<Instant>,
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
    pub fn link(&mut self, name: &str, index: u32, mac: Mac, mtu: u32) {
        let own = Own {
            index,
            address: IpNet::V6(Ipv6Net::new_assert(link_local(mac), 64)),
            mac,
            mtu,
            set_back: None,
        };
        self.links.insert(name.to_owned(), own);
    }

    /// Sets back the MAC address and the MTU of the switch's links that somebody changed: the packet path has those of the file, so hosts
    /// would send to a MAC address that is dropped. Each link at most once a second, in case somebody sets it again and again. Returns the
    /// link's name and what was done, and refusals.
    pub fn set_links_back(
        &mut self,
        now: Instant,
        links: &Links,
        requests: &mut Requests,
    ) -> (Vec<(String, String)>, Vec<RefusedByLinux>) {
        let mut asking = Asking {
            requests,
            refused: vec![],
        };
        let mut done = vec![];
        for (name, own) in &mut self.links {
            let Some(link) = links.get(own.index).filter(|link| link.name == *name) else {
                continue;
            };
            let mac = (link.mac != Some(own.mac)).then_some(own.mac);
            let mtu = (link.mtu != own.mtu).then_some(own.mtu);
            let lately = own.set_back.is_some_and(|at| now < at + SET_BACK_EVERY);
            if mac.is_none() && mtu.is_none() || lately {
                continue;
            }
            own.set_back = Some(now);
            let settings = LinkSettings {
                mac,
                mtu,
                ..LinkSettings::default()
            };
            let before = asking.refused.len();
            let what = || format!("to set the MAC address and MTU of {name} back");
            asking.ask(set_link(own.index, &settings), what, &[]);
            if asking.refused.len() > before {
                continue;
            }
            if let Some(mac) = mac {
                let was = link
                    .mac
                    .map_or_else(|| "none".to_owned(), |was| was.to_string());
                done.push((name.clone(), format!("MAC address {was} set back to {mac}")));
            }
            if let Some(mtu) = mtu {
                done.push((name.clone(), format!("MTU {} set back to {mtu}", link.mtu)));
            }
        }
        (done, asking.refused)
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
        let found = self.links.iter().find(|(_, own)| own.index == index);
        let Some((name, own)) = found else {
            return vec![];
        };
        let addresses = self.now.addresses.get(name).into_iter().flatten();
        for net in std::iter::once(&own.address).chain(addresses) {
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
                let own = self.links.get(name)?;
                Some(Hop {
                    link: own.index,
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
        for (name, Own { index, .. }) in &self.links {
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
        let links: Vec<u32> = self.links.values().map(|own| own.index).collect();
        for index in links {
            refused.extend(self.put_link(index, requests));
        }
        refused.extend(self.put_routes(requests));
        refused
    }
}
