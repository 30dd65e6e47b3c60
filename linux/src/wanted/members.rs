//! Members of a group as ports, VLANs and MAC addresses.

use std::net::IpAddr;

use npcc_pipeline::route::nexthop::{Adjacency, Kind};
use npcc_pipeline::route::prefix::Family;
use npcc_pipeline::units::PortId;

use super::ports::Ports;
use crate::fib::Member;
use crate::table::model::Model;
use crate::table::ways::WayId;
use crate::wire::nexthop::NextHopKind;
use crate::wire::route::{Hop, Way};

/// Key of a group: routes with the same key share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKey {
    /// Local delivery, for an address on this link.
    Local(u32),
    /// Silent drop.
    Drop,
    /// Rejection, as if there were no route.
    Refuse,
    /// Next-hop object of this id, with the MTU that the routes allow, or 0.
    Object(u32, u16),
    /// Next hops of the routes' own; those of IPv4 die with a link's last address.
    Way(WayId, Family),
    /// Delivery to an attached neighbour, with the MTU that its route allows, or 0.
    Host(u32, IpAddr, u16),
}

/// Members of a group, and the neighbours whose MAC addresses they depend on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Members {
    /// Members in a stable order.
    pub all: Vec<Member>,
    /// Neighbours, by link, on which the members depend.
    pub hangs_on: Vec<(u32, IpAddr)>,
    /// True if a next hop has no gateway, so that the group decides on each host of a link; also if it is not among the members now.
    pub attaches: bool,
}

/// Returns the current next hops of a next-hop set.
///
/// Objects are followed two levels deep, as deep as the kernel lets them be nested, so that it ends.
#[must_use]
pub fn hops(model: &Model, way: &Way) -> Vec<Hop> {
    match way {
        Way::Hops(hops) => hops.clone(),
        Way::Object(id) => match model.next_hops().get(*id) {
            Some(NextHopKind::Group(members)) => {
                let each = members.iter();
                each.filter_map(|(id, weight)| single(model, *id, *weight))
                    .collect()
            }
            _ => single(model, *id, 1).into_iter().collect(),
        },
    }
}

fn single(model: &Model, id: u32, weight: u16) -> Option<Hop> {
    match model.next_hops().get(id)? {
        NextHopKind::By { link, gateway } => Some(Hop {
            link: *link,
            gateway: *gateway,
            weight,
        }),
        NextHopKind::Blackhole | NextHopKind::Group(_) | NextHopKind::Unusable => None,
    }
}

/// Returns true if routes over a next-hop set can be forwarded: a next hop is behind a port of the switch, or drops.
#[must_use]
pub fn usable(model: &Model, ports: &Ports, way: &Way) -> bool {
    drops(model, way)
        || hops(model, way)
            .iter()
            .any(|hop| ports.place(hop.link).is_some())
}

/// Returns true for an object that drops, or a group that contains one.
fn drops(model: &Model, way: &Way) -> bool {
    let blackhole = |id: u32| model.next_hops().get(id) == Some(&NextHopKind::Blackhole);
    match way {
        Way::Hops(_) => false,
        Way::Object(id) => match model.next_hops().get(*id) {
            Some(NextHopKind::Group(members)) => members.iter().any(|(id, _)| blackhole(*id)),
            _ => blackhole(*id),
        },
    }
}

/// Computes the current members of a group.
#[must_use]
pub fn members(model: &Model, ports: &Ports, key: GroupKey) -> Members {
    let one = |adjacency| Members {
        all: vec![Member {
            adjacency,
            weight: 1,
            gateway: None,
        }],
        hangs_on: vec![],
        attaches: false,
    };
    match key {
        GroupKey::Drop => one(Adjacency::unusable(Kind::Blackhole)),
        GroupKey::Refuse => one(Adjacency::unusable(Kind::NoRoute)),
        GroupKey::Local(link) => one(match ports.place(link) {
            Some(place) => Adjacency {
                port: place.port,
                vlan: place.vlan,
                ..Adjacency::unusable(Kind::Local)
            },
            None => Adjacency {
                port: PortId(0),
                ..Adjacency::unusable(Kind::Local)
            },
        }),
        GroupKey::Host(link, address, mtu) => {
            let hop = Hop {
                link,
                gateway: Some(address),
                weight: 1,
            };
            by_hops(model, ports, &[hop], mtu)
        }
        GroupKey::Way(id, family) => {
            let ipv4 = family == Family::V4;
            let hops = model.ways().hops(id).iter();
            let alive = hops.filter(|hop| model.links().carries(hop.link, ipv4));
            let alive: Vec<Hop> = alive.copied().collect();
            let mtu = model.ways().get(id).map_or(0, |taken| taken.mtu);
            by_hops(model, ports, &alive, mtu)
        }
        GroupKey::Object(id, mtu) => {
            let way = Way::Object(id);
            if drops(model, &way) {
                return one(Adjacency::unusable(Kind::Blackhole));
            }
            by_hops(model, ports, &hops(model, &way), mtu)
        }
    }
}

fn by_hops(model: &Model, ports: &Ports, hops: &[Hop], mtu: u16) -> Members {
    let mut members = Members::default();
    for hop in hops {
        let Some(place) = ports.place(hop.link) else {
            continue;
        };
        members.attaches |= hop.gateway.is_none();
        let mut adjacency = Adjacency {
            port: place.port,
            vlan: place.vlan,
            mtu,
            ..Adjacency::unusable(Kind::Unresolved)
        };
        if let Some(gateway) = hop.gateway {
            members.hangs_on.push((hop.link, gateway));
            let neighbor = model.neighbors().get(hop.link, gateway);
            if let Some(mac) = neighbor.and_then(|one| ports.destination(one)) {
                adjacency.kind = Kind::Forward;
                adjacency.dst = mac;
                adjacency.src = place.mac;
            }
        }
        members.all.push(Member {
            adjacency,
            weight: hop.weight.max(1),
            gateway: hop.gateway,
        });
    }
    // Frames to an unresolved member would be lost while another member could take them.
    let forwards = |member: &Member| member.adjacency.kind == Kind::Forward;
    if members.all.iter().any(forwards) {
        members.all.retain(forwards);
    }
    members
}
