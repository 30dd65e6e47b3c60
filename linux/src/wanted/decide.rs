//! Desired forwarding of a prefix, decided from the model.

use std::net::IpAddr;

use npcc_pipeline::route::prefix::{Family, Prefix};

use super::members::{GroupKey, hops, usable};
use super::ports::Ports;
use crate::table::model::Model;
use crate::table::routes::Entry;
use crate::wire::neighbor::Neighbor;
use crate::wire::route::{Action, Way};

/// Desired state of a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DesiredRoute {
    /// No route.
    None,
    /// The kernel has a route, but none of its next hops is behind a port of the switch.
    LeftOut,
    /// Route to the group of this key.
    By(GroupKey),
}

/// Decides the desired state of a prefix: its preferred route, or the neighbour of that address where its subnet is attached.
///
/// The kernel looks up table `local` before `main`, whatever the lengths of prefixes; here the longest wins, and `local` among equals.
#[must_use]
pub fn decide(model: &Model, ports: &Ports, prefix: Prefix) -> DesiredRoute {
    if !forwarded(prefix) {
        return DesiredRoute::None;
    }
    let own = model.routes().best(prefix);
    if let Some(entry) = own
        && matches!(entry.action, Action::Deliver | Action::Broadcast)
    {
        return DesiredRoute::By(GroupKey::Local(link_of(model, entry)));
    }
    if is_link_local(prefix) {
        return DesiredRoute::None;
    }
    if let Some((neighbor, mtu)) = attached(model, ports, prefix) {
        return DesiredRoute::By(GroupKey::Host(neighbor.link, neighbor.address, mtu));
    }
    own.map_or(DesiredRoute::None, |entry| by(model, ports, prefix, entry))
}

fn by(model: &Model, ports: &Ports, prefix: Prefix, entry: &Entry) -> DesiredRoute {
    match entry.action {
        Action::Drop => DesiredRoute::By(GroupKey::Drop),
        Action::Refuse => DesiredRoute::By(GroupKey::Refuse),
        Action::Deliver | Action::Broadcast | Action::Forward => {
            let Some(taken) = model.ways().get(entry.way) else {
                return DesiredRoute::LeftOut;
            };
            if !usable(model, ports, &taken.way) {
                return DesiredRoute::LeftOut;
            }
            DesiredRoute::By(match taken.way {
                Way::Object(id) => GroupKey::Object(id, taken.mtu),
                Way::Hops(_) => GroupKey::Way(entry.way, prefix.family()),
            })
        }
    }
}

/// Returns the link of a local address.
fn link_of(model: &Model, entry: &Entry) -> u32 {
    let hops = model.ways().hops(entry.way);
    hops.first().map_or(0, |hop| hop.link)
}

/// Returns the neighbour with a MAC address of a host that a host prefix leads to, if the route there says that its link is attached, and the
/// MTU that this route allows.
#[must_use]
pub fn attached<'a>(
    model: &'a Model,
    ports: &Ports,
    prefix: Prefix,
) -> Option<(&'a Neighbor, u16)> {
    if prefix.len() != full(prefix.family()) {
        return None;
    }
    let mut found = model.neighbors().within(prefix);
    let known =
        |one: &&Neighbor| ports.destination(one).is_some() && ports.place(one.link).is_some();
    let first = found.find(known)?;
    let (_, entry) = model.routes().covering(prefix).next()?;
    let taken = model.ways().get(entry.way)?;
    if entry.action != Action::Forward {
        return None;
    }
    let links = hops(model, &taken.way);
    let attached = |one: &Neighbor| {
        let mut by = links.iter().filter(|hop| hop.gateway.is_none());
        by.any(|hop| hop.link == one.link)
    };
    let mut all = std::iter::once(first).chain(found.filter(known));
    all.find(|one| attached(one)).map(|one| (one, taken.mtu))
}

/// Returns the host prefix of a neighbour's address, if hosts of such addresses are routed to.
#[must_use]
pub fn host(address: IpAddr) -> Option<Prefix> {
    let prefix = Prefix::host(address);
    (forwarded(prefix) && !is_link_local(prefix)).then_some(prefix)
}

const fn full(family: Family) -> u8 {
    match family {
        Family::V4 => 32,
        Family::V6 => 128,
    }
}

/// Returns true if packets to a prefix are forwarded by no route of it, whatever the kernel has: loopback, groups, and link-local addresses.
#[must_use]
pub fn is_aside(prefix: Prefix, action: Action) -> bool {
    let is_ours = matches!(action, Action::Deliver | Action::Broadcast);
    let is_of_a_link = is_link_local(prefix) && !is_ours;
    let routed = forwarded(prefix) && !is_of_a_link;
    !routed
}

/// Returns true if a prefix is neither loopback nor multicast.
fn forwarded(prefix: Prefix) -> bool {
    let top = prefix.bits() >> 120;
    match prefix.family() {
        Family::V4 => !(prefix.len() >= 4 && top >= 224 || prefix.len() >= 8 && top == 127),
        Family::V6 => {
            !(prefix.len() >= 8 && top == 0xff || prefix.len() == 128 && prefix.bits() == 1)
        }
    }
}

/// Returns true within IPv6's `fe80::/10`: link-local addresses, which say nothing about routes.
fn is_link_local(prefix: Prefix) -> bool {
    prefix.family() == Family::V6 && prefix.len() >= 10 && prefix.bits() >> 118 == 0x3fa
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_multicast_and_link_local_are_not_routed() {
        let prefix = |text: &str, len| Prefix::new(text.parse().unwrap(), len).unwrap();
        for (text, len) in [
            ("127.0.0.0", 8),
            ("224.0.0.0", 4),
            ("255.255.255.255", 32),
            ("ff00::", 8),
            ("::1", 128),
        ] {
            assert!(!forwarded(prefix(text, len)), "{text}");
        }
        for (text, len) in [
            ("0.0.0.0", 0),
            ("126.0.0.0", 7),
            ("223.255.255.0", 24),
            ("::", 0),
            ("2001:db8::", 32),
        ] {
            assert!(forwarded(prefix(text, len)), "{text}");
        }
        assert!(is_link_local(prefix("fe80::", 64)) && is_link_local(prefix("febf::1", 128)));
        assert!(!is_link_local(prefix("fec0::1", 128)) && !is_link_local(prefix("fe00::", 9)));
    }
}
