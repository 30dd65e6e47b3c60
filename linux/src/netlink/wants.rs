//! What the configuration wants the kernel to have: addresses and static routes, put again whenever a link rises.
//!
//! The kernel takes IPv4 routes away with the link they lead by, and IPv6 addresses of a link too; nobody else would put these
//! back.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv6Net};
use nix::errno::Errno;
use npcc_pipeline::units::Mac;

use super::requests::Requests;
use crate::wire::request::{add_address, add_route};
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

/// See the module's text.
#[derive(Debug, Default)]
pub struct Wants {
    /// Index and addresses of each of our links, by name.
    links: BTreeMap<String, (u32, Vec<IpNet>)>,
    routes: Vec<StaticRoute>,
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

impl Wants {
    /// These routes.
    #[must_use]
    pub const fn new(routes: Vec<StaticRoute>) -> Wants {
        Wants {
            links: BTreeMap::new(),
            routes,
        }
    }

    /// A link has these addresses, and the link-local one its MAC address makes.
    pub fn link(&mut self, name: &str, index: u32, mac: Mac, addresses: &[IpNet]) {
        let own = IpNet::V6(link_local(mac));
        let all = std::iter::once(own).chain(addresses.iter().copied());
        self.links.insert(name.to_owned(), (index, all.collect()));
    }

    /// Puts the addresses of a link.
    pub fn put_addresses(&self, index: u32, requests: &mut Requests) -> Vec<RefusedByLinux> {
        let found = self.links.values().find(|(link, _)| *link == index);
        let Some((_, addresses)) = found else {
            return vec![];
        };
        let mut refused = vec![];
        for net in addresses {
            // Without IPv6 in the kernel there is nobody to talk to by it either.
            let done = requests.ask(add_address(index, *net));
            let no_ipv6 = |error: &io::Error| {
                error.raw_os_error() == Some(Errno::EOPNOTSUPP as i32) && net.addr().is_ipv6()
            };
            if let Err(source) = done
                && !no_ipv6(&source)
            {
                let what = format!("address {net}");
                refused.push(RefusedByLinux { what, source });
            }
        }
        refused
    }

    /// Puts all routes whose links there are.
    pub fn put_routes(&self, requests: &mut Requests) -> Vec<RefusedByLinux> {
        let mut refused = vec![];
        for route in &self.routes {
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
            if let Err(source) = requests.ask(add_route(route.prefix, &hops, route.metric)) {
                let what = format!("route {}", route.prefix);
                refused.push(RefusedByLinux { what, source });
            }
        }
        refused
    }
}

/// The link-local address of a MAC address (RFC 4291, appendix A).
fn link_local(mac: Mac) -> Ipv6Net {
    let [a, b, c, d, e, f] = mac.0;
    let half = |high, low| u16::from_be_bytes([high, low]);
    let address = Ipv6Addr::new(
        0xfe80,
        0,
        0,
        0,
        half(a ^ 2, b),
        half(c, 0xff),
        half(0xfe, d),
        half(e, f),
    );
    Ipv6Net::new_assert(address, 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mac_address_makes_the_link_local_address_linux_would() {
        let net = link_local(Mac([0x52, 0x54, 0, 0x12, 0x34, 0x56]));
        assert_eq!(net.to_string(), "fe80::5054:ff:fe12:3456/64");
    }
}
