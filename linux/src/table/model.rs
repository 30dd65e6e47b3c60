//! The whole state, and what each event does to it.
//!
//! After a dump come messages that were under way before it, so an event may be of something that is as it says already, or
//! gone: what goes with it goes all the same, as a message before it may have brought that back.

use std::collections::{BTreeSet, HashSet};
use std::net::IpAddr;

use npcc_pipeline::route::prefix::{Family, Prefix};

use super::changes::Changes;
use super::links::Links;
use super::neighbors::Neighbors;
use super::next_hops::NextHops;
use super::routes::{Entry, Routes};
use super::sweep::Epoch;
use super::ways::{Taken, WayId, Ways};
use crate::wire::address::Address;
use crate::wire::event::Event;
use crate::wire::link::Link;
use crate::wire::neighbor::Neighbor;
use crate::wire::nexthop::{Kind, NextHop};
use crate::wire::request::Dump;
use crate::wire::route::{self, Action, Hop, Place, Route, Table, Way};

/// `RTPROT_RA`: IPv6 routes of router advertisements, which are never put together to one with several next hops.
const ROUTER_ADVERTISEMENT: u8 = 9;

/// What became of a link, for the routes by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// It is gone.
    All,
    /// It was switched off: routes for IPv4 addresses of ours stay.
    Power,
    /// Its last IPv4 address is gone, and all IPv4 routes with it.
    Ipv4,
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct Model {
    links: Links,
    neighbors: Neighbors,
    next_hops: NextHops,
    ways: Ways,
    routes: Routes,
    changes: Changes,
    epoch: Epoch,
    doubts: u64,
    /// What comes may have been under way before the last dump.
    late: bool,
    risen: BTreeSet<u32>,
}

impl Model {
    /// Links and addresses.
    #[must_use]
    pub const fn links(&self) -> &Links {
        &self.links
    }

    /// Neighbours.
    #[must_use]
    pub const fn neighbors(&self) -> &Neighbors {
        &self.neighbors
    }

    /// Next-hop objects.
    #[must_use]
    pub const fn next_hops(&self) -> &NextHops {
        &self.next_hops
    }

    /// By what routes lead.
    #[must_use]
    pub const fn ways(&self) -> &Ways {
        &self.ways
    }

    /// Routes.
    #[must_use]
    pub const fn routes(&self) -> &Routes {
        &self.routes
    }

    /// What changed since this was last asked.
    pub fn take_changes(&mut self) -> Changes {
        std::mem::take(&mut self.changes)
    }

    /// Links that were switched on since this was last asked.
    pub fn take_risen(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.risen)
    }

    /// How often a message did not fit what is here, so that only a dump can tell: one of a route gone that stands here otherwise,
    /// one by a next-hop object that is not here, or, among those of [`Model::apply_late`], one of a link or address gone, or of a
    /// route beside another of the same prefix and metric.
    #[must_use]
    pub const fn doubts(&self) -> u64 {
        self.doubts
    }

    /// Takes in what a message of the stream says; whether anything is otherwise now.
    pub fn apply(&mut self, event: Event) -> bool {
        match event {
            Event::Link(link) => self.link(link),
            Event::LinkGone(index) => self.link_gone(index),
            Event::Address(address) => self.address(address),
            Event::AddressGone(address) => self.address_gone(&address),
            Event::Neighbor(neighbor) => self.neighbor(neighbor),
            Event::NeighborGone(neighbor) => self.neighbor_gone(neighbor.link, neighbor.address),
            Event::NextHop(hop) => self.next_hop(hop),
            Event::NextHopGone(id) => self.next_hop_gone(id),
            Event::Route(route) => self.route(route),
            Event::RouteGone(route) => self.route_gone(route),
        }
    }

    /// Takes in what a message of a dump says: dumps name the routes of a prefix in their order.
    pub fn apply_dumped(&mut self, event: Event) -> bool {
        match event {
            Event::Link(link) => {
                // Routes with a dead next hop, which come later, tell otherwise.
                if self.links.found_ipv4(link.index) {
                    self.changes.links.insert(link.index);
                }
                self.link(link)
            }
            Event::Route(route) => {
                self.learn_dead(&route);
                self.route(Route {
                    place: Place::Last,
                    ..route
                })
            }
            other => self.apply(other),
        }
    }

    /// Learns from a dumped route which links IPv4's do not leave by, though they are switched on.
    fn learn_dead(&mut self, route: &Route) {
        let Way::Hops(hops) = &route.way else {
            return;
        };
        let ipv4 = route.prefix.family() == Family::V4 && route.action == Action::Forward;
        for link in hops.iter().map(|hop| hop.link).filter(|_| ipv4) {
            let up = self.links.get(link).is_some_and(|link| link.up);
            let learned = if route.dead.contains(&link) {
                up && self.links.lost_ipv4(link)
            } else {
                self.links.found_ipv4(link)
            };
            if learned {
                self.changes.links.insert(link);
            }
        }
    }

    /// Takes in what a message says that came while a dump was made, so that the dump may have shown it, and later ones, already.
    pub fn apply_late(&mut self, event: Event) -> bool {
        // What goes silently with a link or an address is what was by it then, which a dump of later does not show.
        let silent = match &event {
            Event::Link(link) => !link.up || !link.carrier,
            Event::LinkGone(_) | Event::AddressGone(_) => true,
            _ => false,
        };
        self.doubts += u64::from(silent);
        self.late = true;
        let changed = self.apply(event);
        self.late = false;
        changed
    }

    /// Before a dump: what it does not name is to go.
    pub const fn begin_sweep(&mut self) {
        self.epoch = self.epoch.next();
    }

    /// After a dump that was whole: takes away what it did not name; how many that are.
    pub fn sweep(&mut self, what: Dump) -> usize {
        self.sweep_but(what, (&HashSet::new(), &HashSet::new(), &HashSet::new()))
    }

    /// As [`Model::sweep`], but spares routes of these prefixes, these neighbours and these objects.
    pub fn sweep_but(
        &mut self,
        what: Dump,
        (prefixes, neighbors, objects): (&HashSet<Prefix>, &HashSet<(u32, IpAddr)>, &HashSet<u32>),
    ) -> usize {
        let epoch = self.epoch;
        match what {
            Dump::Links => {
                let stale = self.links.stale_links(epoch);
                stale.iter().filter(|index| self.link_gone(**index)).count()
            }
            Dump::Addresses => {
                let stale = self.links.stale_addresses(epoch);
                let gone = stale.iter().filter(|address| self.address_gone(address));
                gone.count()
            }
            Dump::NextHops => {
                let mut stale = self.next_hops.stale(epoch);
                stale.retain(|id| !objects.contains(id));
                stale.iter().filter(|id| self.next_hop_gone(**id)).count()
            }
            Dump::Neighbors => {
                let mut stale = self.neighbors.which(|_, seen| seen != epoch);
                stale.retain(|neighbor| !neighbors.contains(neighbor));
                for (link, address) in &stale {
                    self.neighbor_gone(*link, *address);
                }
                stale.len()
            }
            Dump::Routes { v6, table } => {
                let family = if v6 { Family::V6 } else { Family::V4 };
                let table = if table == route::LOCAL {
                    Table::Local
                } else {
                    Table::Main
                };
                let stale = |entry: &Entry| entry.seen != epoch && entry.table == table;
                let mut found = self
                    .routes
                    .which(|prefix, entry| prefix.family() == family && stale(entry));
                found.retain(|prefix| !prefixes.contains(prefix));
                self.drop_entries(&found, stale)
            }
        }
    }

    fn link(&mut self, link: Link) -> bool {
        let Link {
            index, up, carrier, ..
        } = link;
        let change = self.links.set(link, self.epoch);
        if change.any {
            self.changes.links.insert(index);
            self.changes.everything |= change.name;
        }
        if change.rose {
            self.risen.insert(index);
        }
        // No object is by a link without carrier; of neighbours the kernel tells one by one.
        if !up || !carrier {
            for id in self.next_hops.by_link(index) {
                self.next_hop_gone(id);
            }
        }
        // A link that is off can be given IPv6 addresses, and so routes for us: they stay.
        if change.fell || self.late && !up {
            self.drop_dead(index, Lost::Power);
        }
        change.any
    }

    fn link_gone(&mut self, index: u32) -> bool {
        let known = self.links.remove(index);
        for id in self.next_hops.by_link(index) {
            self.next_hop_gone(id);
        }
        for (link, address) in self.neighbors.which(|one, _| one.link == index) {
            self.neighbor_gone(link, address);
        }
        self.drop_dead(index, Lost::All);
        self.changes.links.insert(index);
        self.changes.everything |= known;
        known
    }

    fn address(&mut self, address: Address) -> bool {
        let revived = self.links.add_address(address, self.epoch);
        if revived {
            self.changes.links.insert(address.link);
        }
        revived
    }

    fn address_gone(&mut self, address: &Address) -> bool {
        let known = self.links.remove_address(address);
        let ip = address.address;
        if !ip.is_ipv4() {
            return known;
        }
        if !self.links.has(ip) {
            let from: BTreeSet<WayId> = self.ways_which(|taken| taken.source == Some(ip));
            self.drop_ways(
                |_, entry| entry.table == Table::Main && from.contains(&entry.way),
                &from,
            );
        }
        if !self.links.has_ipv4(address.link) {
            self.links.lost_ipv4(address.link);
            self.changes.links.insert(address.link);
            self.drop_dead(address.link, Lost::Ipv4);
        }
        known
    }

    fn neighbor(&mut self, neighbor: Neighbor) -> bool {
        let key = (neighbor.link, neighbor.address);
        let changed = self.neighbors.set(neighbor, self.epoch);
        if changed {
            self.changes.neighbors.insert(key);
        }
        changed
    }

    fn neighbor_gone(&mut self, link: u32, address: IpAddr) -> bool {
        let changed = self.neighbors.remove(link, address);
        if changed {
            self.changes.neighbors.insert((link, address));
        }
        changed
    }

    fn next_hop(&mut self, hop: NextHop) -> bool {
        let id = hop.id;
        if let Kind::Group(members) = &hop.kind
            && members
                .iter()
                .any(|(id, _)| self.next_hops.get(*id).is_none())
        {
            self.doubts += 1;
        }
        if !self.next_hops.set(hop, self.epoch) {
            return false;
        }
        self.changes.objects.insert(id);
        self.changes.objects.extend(self.next_hops.groups_of(id));
        true
    }

    /// The kernel tells of none of this when a link lost its carrier, and not of the routes when compat mode is off.
    fn next_hop_gone(&mut self, id: u32) -> bool {
        let (mut gone, smaller) = self.next_hops.remove(id);
        let known = !gone.is_empty();
        if !known {
            gone.push(id);
        }
        self.changes.objects.extend(gone.iter().chain(&smaller));
        let lost =
            self.ways_which(|taken| matches!(taken.way, Way::Object(id) if gone.contains(&id)));
        self.drop_ways(|_, entry| lost.contains(&entry.way), &lost);
        known
    }

    fn route(&mut self, route: Route) -> bool {
        let prefix = route.prefix;
        let taken = Taken {
            way: route.way,
            source: route.source,
        };
        let mut entry = Entry {
            metric: route.metric,
            way: WayId(u32::MAX),
            table: route.table,
            action: route.action,
            protocol: route.protocol,
            seen: self.epoch,
        };
        if let Some(way) = self.ways.find(&taken) {
            entry.way = way;
            let same =
                |one: &Entry| one.beside(&entry) && (one.way, one.action) == (way, entry.action);
            let mut all = self.routes.of_mut(prefix).iter_mut();
            if let Some(one) = all.find(|one| same(one)) {
                *one = entry;
                return false;
            }
        }
        if let Way::Object(id) = taken.way
            && self.next_hops.get(id).is_none()
        {
            self.doubts += 1;
        }
        // What IPv6 tells of is the whole of several next hops, though one was added.
        let joins = self.joins(prefix, &taken, &entry);
        if joins {
            let before = self.routes.of(prefix).iter();
            let mut before = before.filter(|one| self.has_joined(prefix, one, &entry));
            let way = before.next().map(|one| one.way);
            self.routes
                .remove(prefix, |one| one.beside(&entry) && Some(one.way) == way);
            way.into_iter().for_each(|way| self.ways.release(way));
        }
        let (way, new) = self.ways.hold(taken);
        if new {
            self.changes.ways.insert(way);
        }
        entry.way = way;
        if let Some(before) = self.routes.put(prefix, entry, route.place) {
            self.ways.release(before.way);
        }
        let mut beside = self
            .routes
            .of(prefix)
            .iter()
            .filter(|one| one.beside(&entry));
        if self.late && beside.nth(1).is_some() {
            self.doubts += 1;
        }
        self.changes.prefixes.push(prefix);
        true
    }

    /// Whether a route is of those that IPv6 puts together to one with several next hops.
    fn joins(&self, prefix: Prefix, taken: &Taken, entry: &Entry) -> bool {
        let Way::Hops(hops) = &taken.way else {
            return false;
        };
        let gateways = !hops.is_empty() && hops.iter().all(|hop| hop.gateway.is_some());
        let forwards = entry.action == Action::Forward && entry.protocol != ROUTER_ADVERTISEMENT;
        prefix.family() == Family::V6 && forwards && gateways
    }

    fn has_joined(&self, prefix: Prefix, one: &Entry, other: &Entry) -> bool {
        let taken = self.ways.get(one.way);
        one.beside(other) && taken.is_some_and(|taken| self.joins(prefix, taken, one))
    }

    fn route_gone(&mut self, route: Route) -> bool {
        let prefix = route.prefix;
        let taken = Taken {
            way: route.way,
            source: route.source,
        };
        let is = |one: &Entry| {
            (one.table, one.metric, one.action) == (route.table, route.metric, route.action)
        };
        if let Some(way) = self.ways.find(&taken) {
            let gone = self.routes.remove(prefix, |one| is(one) && one.way == way);
            if !gone.is_empty() {
                gone.iter().for_each(|one| self.ways.release(one.way));
                self.changes.prefixes.push(prefix);
                return true;
            }
        }
        if self.shrink(prefix, &taken, is) {
            return true;
        }
        if self.routes.of(prefix).iter().any(is) {
            self.doubts += 1;
        }
        false
    }

    /// Takes single next hops out of an IPv6 route with several, if the message was of such.
    fn shrink(&mut self, prefix: Prefix, taken: &Taken, is: impl Fn(&Entry) -> bool) -> bool {
        let Way::Hops(out) = &taken.way else {
            return false;
        };
        let among = |hop: &Hop, hops: &[Hop]| {
            hops.iter()
                .any(|one| (one.link, one.gateway) == (hop.link, hop.gateway))
        };
        let all = self.routes.of(prefix).iter().filter(|one| is(one));
        let mut whole = all.filter(|one| {
            let hops = self.ways.hops(one.way);
            self.has_joined(prefix, one, one) && out.iter().all(|hop| among(hop, hops))
        });
        let Some(entry) = whole.next().copied().filter(|_| !out.is_empty()) else {
            return false;
        };
        let hops = self.ways.hops(entry.way).iter();
        let mut left: Vec<Hop> = hops.filter(|hop| !among(hop, out)).copied().collect();
        if let [only] = left.as_mut_slice() {
            only.weight = 1;
        }
        self.routes
            .remove(prefix, |one| one.beside(&entry) && one.way == entry.way);
        self.ways.release(entry.way);
        if !left.is_empty() {
            let (way, new) = self.ways.hold(Taken {
                way: Way::Hops(left),
                source: taken.source,
            });
            if new {
                self.changes.ways.insert(way);
            }
            self.routes.put(prefix, Entry { way, ..entry }, Place::Last);
        }
        self.changes.prefixes.push(prefix);
        true
    }

    /// Takes away the routes that lead by nothing now.
    fn drop_dead(&mut self, link: u32, lost: Lost) {
        let dead = |taken: &Taken, ipv4: bool| match &taken.way {
            Way::Hops(hops) => {
                hops.iter().any(|hop| hop.link == link)
                    && hops.iter().all(|hop| !self.links.carries(hop.link, ipv4))
            }
            Way::Object(_) => false,
        };
        let v4 = self.ways_which(|taken| dead(taken, true));
        let v6 = self.ways_which(|taken| lost != Lost::Ipv4 && dead(taken, false));
        let either: BTreeSet<WayId> = v4.union(&v6).copied().collect();
        self.drop_ways(
            |prefix, entry| match prefix.family() {
                Family::V4 => {
                    (lost != Lost::Power || entry.action != Action::Deliver)
                        && v4.contains(&entry.way)
                }
                Family::V6 => v6.contains(&entry.way),
            },
            &either,
        );
    }

    fn ways_which(&self, holds: impl Fn(&Taken) -> bool) -> BTreeSet<WayId> {
        let found = self.ways.iter().filter(|(_, taken)| holds(taken));
        found.map(|(id, _)| id).collect()
    }

    /// Takes away the routes by some ways that a condition holds of.
    fn drop_ways(&mut self, gone: impl Fn(Prefix, &Entry) -> bool, ways: &BTreeSet<WayId>) {
        if ways.is_empty() {
            return;
        }
        for prefix in self.routes.which(&gone) {
            self.drop_entries(&[prefix], |entry| gone(prefix, entry));
        }
    }

    fn drop_entries(&mut self, prefixes: &[Prefix], gone: impl Fn(&Entry) -> bool) -> usize {
        let mut count = 0;
        for prefix in prefixes {
            let out = self.routes.remove(*prefix, &gone);
            out.iter().for_each(|entry| self.ways.release(entry.way));
            count += out.len();
        }
        self.changes.prefixes.extend(prefixes);
        count
    }
}
