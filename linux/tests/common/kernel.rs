//! Model kernel: it changes its tables as Linux does, and notifies of as little.
#![allow(unreachable_pub, reason = "a test's own")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use npcc_linux::wire::address::Address;
use npcc_linux::wire::event::Event;
use npcc_linux::wire::link::Link;
use npcc_linux::wire::neighbor::Neighbor;
use npcc_linux::wire::nexthop::{NextHop, NextHopKind};
use npcc_linux::wire::route::{Action, Hop, Place, Preference, Route, Table, Way};
use npcc_pipeline::route::prefix::{Family, Prefix};
use npcc_pipeline::units::Mac;

/// Route, with those of its hops that are dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub action: Action,
    pub way: Way,
    pub source: Option<IpAddr>,
    pub dead: BTreeSet<u32>,
}

/// Model kernel, see the module's text.
#[derive(Debug, Default)]
pub struct Kernel {
    pub links: BTreeMap<u32, Link>,
    pub addresses: BTreeSet<Address>,
    pub neighbors: BTreeMap<(u32, IpAddr), Mac>,
    pub next_hops: BTreeMap<u32, NextHopKind>,
    /// Routes by table, prefix and metric: one each, as FRR has them.
    pub routes: BTreeMap<(Table, Prefix, u32), Held>,
    said: Vec<Event>,
}

impl Kernel {
    /// Creates links 1 to `n`, up and with carrier.
    pub fn new(n: u32) -> Kernel {
        let link = |index| Link {
            index,
            name: format!("p{index}"),
            up: true,
            carrier: true,
            mac: Some(Mac([2, 0, 0, 0, 0, index as u8])),
            mtu: 9000,
            macvlan_over: None,
        };
        Kernel {
            links: (1..=n).map(|index| (index, link(index))).collect(),
            ..Kernel::default()
        }
    }

    /// Takes the notifications since the last call.
    pub fn said(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.said)
    }

    /// Sets a link up or down.
    pub fn admin(&mut self, index: u32, up: bool, loud: bool) {
        let link = self.links.get_mut(&index).unwrap();
        if link.up == up {
            return;
        }
        link.up = up;
        let link = link.clone();
        self.said.push(Event::Link(link));
        if up {
            for route in self.routes.values_mut() {
                route.dead.remove(&index);
            }
            return;
        }
        self.flush_next_hops(index, loud);
        self.neighbors_go(index);
        self.die(
            index,
            |key, route| key.1.family() == Family::V6 || route.action != Action::Deliver,
            loud,
        );
    }

    /// Sets or clears a link's carrier.
    pub fn carrier(&mut self, index: u32, carrier: bool, loud: bool) {
        let link = self.links.get_mut(&index).unwrap();
        if link.carrier == carrier {
            return;
        }
        link.carrier = carrier;
        let link = link.clone();
        self.said.push(Event::Link(link));
        if !carrier {
            self.flush_next_hops(index, loud);
            self.neighbors_go(index);
        }
    }

    fn neighbors_go(&mut self, index: u32) {
        let gone: Vec<_> = self
            .neighbors
            .keys()
            .filter(|(link, _)| *link == index)
            .copied()
            .collect();
        for (link, address) in gone {
            self.neighbor(link, address, None);
        }
    }

    /// Removes objects of a link silently, and the IPv4 routes over them; those of IPv6 are notified if `loud`.
    fn flush_next_hops(&mut self, index: u32, loud: bool) {
        let by =
            |kind: &NextHopKind| matches!(kind, NextHopKind::By { link, .. } if *link == index);
        let ids: Vec<u32> = self
            .next_hops
            .iter()
            .filter(|(_, kind)| by(kind))
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            self.next_hop_goes(id, false, loud);
        }
    }

    fn next_hop_goes(&mut self, id: u32, said: bool, loud: bool) {
        if self.next_hops.remove(&id).is_none() {
            return;
        }
        if said {
            self.said.push(Event::NextHopGone(id));
        }
        let mut empty = vec![];
        for (group, kind) in &mut self.next_hops {
            if let NextHopKind::Group(members) = kind {
                let before = members.len();
                members.retain(|(member, _)| *member != id);
                if members.is_empty() {
                    empty.push(*group);
                } else if members.len() != before && said {
                    self.said.push(Event::NextHop(NextHop {
                        id: *group,
                        kind: kind.clone(),
                    }));
                }
            }
        }
        for group in empty {
            self.next_hop_goes(group, said, loud);
        }
        let by: Vec<_> = self
            .routes
            .iter()
            .filter(|(_, route)| route.way == Way::Object(id))
            .map(|(key, _)| *key)
            .collect();
        for key in by {
            let route = self.routes.remove(&key).unwrap();
            if loud && key.1.family() == Family::V6 {
                self.said.push(Event::RouteGone(message(key, &route)));
            }
        }
    }

    /// Removes plain routes whose hops are all dead silently; those of IPv6 are notified if `loud`.
    fn die(
        &mut self,
        index: u32,
        mortal: impl Fn(&(Table, Prefix, u32), &Held) -> bool,
        loud: bool,
    ) {
        let mut gone = vec![];
        for (key, route) in &mut self.routes {
            let Way::Hops(hops) = &route.way else {
                continue;
            };
            if !hops.iter().any(|hop| hop.link == index) || !mortal(key, route) {
                continue;
            }
            route.dead.insert(index);
            if hops.iter().all(|hop| route.dead.contains(&hop.link)) {
                gone.push(*key);
            }
        }
        for key in gone {
            let route = self.routes.remove(&key).unwrap();
            if loud && key.1.family() == Family::V6 {
                self.said.push(Event::RouteGone(message(key, &route)));
            }
        }
    }

    /// Adds an address to a link, with the routes that come with it.
    pub fn add_address(&mut self, address: Address) {
        if !self.links[&address.link].up || !self.addresses.insert(address) {
            return;
        }
        self.said.push(Event::Address(address));
        for ((_, prefix, _), route) in &mut self.routes {
            if address.address.is_ipv4() && prefix.family() == Family::V4 {
                route.dead.remove(&address.link);
            }
        }
        let hop = vec![Hop {
            link: address.link,
            gateway: None,
            weight: 1,
        }];
        let own = Prefix::host(address.address);
        let source = Some(address.address).filter(IpAddr::is_ipv4);
        self.put(
            Table::Local,
            own,
            0,
            Action::Deliver,
            Way::Hops(hop),
            source,
        );
    }

    /// Removes an address from a link: routes with it as source disappear silently, and with the last one all over the link.
    pub fn remove_address(&mut self, address: Address) {
        if !self.addresses.remove(&address) {
            return;
        }
        self.said.push(Event::AddressGone(address));
        if self
            .addresses
            .iter()
            .all(|one| one.address != address.address)
        {
            self.remove(Table::Local, Prefix::host(address.address), 0);
            self.routes.retain(|(table, _, _), route| {
                *table == Table::Local || route.source != Some(address.address)
            });
        }
        let ipv4 = |one: &Address| one.link == address.link && one.address.is_ipv4();
        if address.address.is_ipv4() && !self.addresses.iter().any(ipv4) {
            self.die(address.link, |key, _| key.1.family() == Family::V4, false);
        }
    }

    /// Sets or clears a neighbour's MAC address.
    pub fn neighbor(&mut self, link: u32, address: IpAddr, mac: Option<Mac>) {
        let there = self.links[&link].up && self.links[&link].carrier;
        let reported = |mac, state| Neighbor {
            link,
            address,
            mac,
            state,
            managed: false,
        };
        match mac {
            Some(mac) if there => {
                self.neighbors.insert((link, address), mac);
                self.said.push(Event::Neighbor(reported(Some(mac), 2)));
            }
            _ => {
                if self.neighbors.remove(&(link, address)).is_some() {
                    self.said.push(Event::NeighborGone(reported(None, 0x20)));
                }
            }
        }
    }

    /// Creates or replaces an object, if its links and members exist.
    pub fn next_hop(&mut self, id: u32, kind: NextHopKind) {
        let fits = match &kind {
            NextHopKind::By { link, .. } => {
                let link = &self.links[link];
                // An object does not become a group, nor the other way round.
                link.up
                    && link.carrier
                    && !matches!(self.next_hops.get(&id), Some(NextHopKind::Group(_)))
            }
            NextHopKind::Group(members) => {
                let single = |(id, _): &(u32, u16)| {
                    !matches!(
                        self.next_hops.get(id),
                        None | Some(NextHopKind::Group(_) | NextHopKind::Blackhole)
                    )
                };
                members.iter().all(single)
                    && !matches!(
                        self.next_hops.get(&id),
                        Some(NextHopKind::By { .. } | NextHopKind::Blackhole)
                    )
            }
            _ => !self.next_hops.contains_key(&id),
        };
        if fits {
            self.next_hops.insert(id, kind.clone());
            self.said.push(Event::NextHop(NextHop { id, kind }));
        }
    }

    /// Removes an object, and all routes over it.
    pub fn remove_next_hop(&mut self, id: u32, loud: bool) {
        self.next_hop_goes(id, true, loud);
    }

    /// Adds a route, if its links and objects exist; one of the same prefix and metric is replaced.
    pub fn add_route(
        &mut self,
        prefix: Prefix,
        metric: u32,
        action: Action,
        way: Way,
        source: Option<IpAddr>,
    ) {
        let ipv4 = prefix.family() == Family::V4;
        let fits = match &way {
            Way::Object(id) => self.next_hops.contains_key(id),
            Way::Hops(hops) => hops.iter().all(|hop| {
                let address = |one: &Address| one.link == hop.link && one.address.is_ipv4() == ipv4;
                self.links[&hop.link].up && (!ipv4 || self.addresses.iter().any(address))
            }),
        };
        let source =
            source.filter(|source| ipv4 && self.addresses.iter().any(|one| one.address == *source));
        if fits {
            self.put(Table::Main, prefix, metric, action, way, source);
        }
    }

    fn put(
        &mut self,
        table: Table,
        prefix: Prefix,
        metric: u32,
        action: Action,
        way: Way,
        source: Option<IpAddr>,
    ) {
        let route = Held {
            action,
            way,
            source,
            dead: BTreeSet::new(),
        };
        let key = (table, prefix, metric);
        let place = match prefix.family() {
            _ if self.routes.contains_key(&key) => Place::Instead,
            Family::V4 => Place::First,
            Family::V6 => Place::Last,
        };
        let reported = Route {
            place,
            ..message(key, &route)
        };
        self.said.push(Event::Route(reported));
        self.routes.insert(key, route);
    }

    /// Removes a route.
    pub fn remove_route(&mut self, prefix: Prefix, metric: u32) {
        self.remove(Table::Main, prefix, metric);
    }

    fn remove(&mut self, table: Table, prefix: Prefix, metric: u32) {
        let key = (table, prefix, metric);
        if let Some(route) = self.routes.remove(&key) {
            self.said.push(Event::RouteGone(message(key, &route)));
        }
    }

    /// Returns the whole state, as dumps would show it, in the order of `Dump::ALL`.
    pub fn dumps(&self) -> [Vec<Event>; 8] {
        let routes = |family: Family, table: Table| {
            let of = self
                .routes
                .iter()
                .filter(move |((at, prefix, _), _)| (*at, prefix.family()) == (table, family));
            of.map(|(key, route)| Event::Route(message(*key, route)))
                .collect()
        };
        let neighbor = |(link, address): &(u32, IpAddr), mac: &Mac| Neighbor {
            link: *link,
            address: *address,
            mac: Some(*mac),
            state: 4,
            managed: false,
        };
        [
            self.links.values().cloned().map(Event::Link).collect(),
            self.addresses.iter().copied().map(Event::Address).collect(),
            self.next_hops
                .iter()
                .map(|(id, kind)| {
                    Event::NextHop(NextHop {
                        id: *id,
                        kind: kind.clone(),
                    })
                })
                .collect(),
            self.neighbors
                .iter()
                .map(|(key, mac)| Event::Neighbor(neighbor(key, mac)))
                .collect(),
            routes(Family::V4, Table::Local),
            routes(Family::V4, Table::Main),
            routes(Family::V6, Table::Local),
            routes(Family::V6, Table::Main),
        ]
    }
}

fn message((table, prefix, metric): (Table, Prefix, u32), route: &Held) -> Route {
    Route {
        table,
        prefix,
        metric,
        action: route.action,
        way: route.way.clone(),
        source: route.source,
        protocol: 186,
        place: Place::First,
        dead: route.dead.iter().copied().collect(),
        mtu: 0,
        preference: Preference::Medium,
        expires: None,
    }
}
