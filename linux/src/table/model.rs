//! Model of the kernel's whole state, and the effect of each event on it.
//!
//! Notifications queued before a dump arrive after it. An event may thus describe a state the model already holds, or an object that is
//! gone; its side effects are applied anyway, as an earlier notification may have undone them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use npcc_pipeline::route::prefix::{Family, Prefix};

use super::changes::Changes;
use super::links::Links;
use super::neighbors::Neighbors;
use super::next_hops::NextHops;
use super::rib::{Did, Rib};
use super::routes::{Entry, Routes};
use super::sweep::{Epoch, ObjectId};
use super::ways::{Taken, Ways};
use crate::wire::address::Address;
use crate::wire::event::Event;
use crate::wire::link::Link;
use crate::wire::neighbor::Neighbor;
use crate::wire::nexthop::{NextHop, NextHopKind};
use crate::wire::not_followed::NotFollowed;
use crate::wire::request::Dump;
use crate::wire::route::{self, Action, Place, Route, Table, Way};

/// Maximum number of routes and rules that are not followed, of which each is kept to be shown.
const NOT_FOLLOWED: usize = 4_096;

/// Time after which a route has expired by the kernel's clock too, which counts hundredths of a second.
const SURELY: Duration = Duration::from_millis(50);

/// Loss of a link, for the routes over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// The link is gone.
    All,
    /// The link was set down: routes for local IPv4 addresses stay.
    Power,
    /// The link's last IPv4 address is gone, and with it all IPv4 routes.
    Ipv4,
}

/// Model of the kernel's state, see the module's text.
#[derive(Debug, Default)]
pub struct Model {
    links: Links,
    neighbors: Neighbors,
    next_hops: NextHops,
    rib: Rib,
    changes: Changes,
    epoch: Epoch,
    doubts: u64,
    /// True while an event is applied that may have been queued before the last dump.
    late: bool,
    risen: BTreeSet<u32>,
    /// Time at which the next route of a prefix expires, of those with such routes.
    expiring: BTreeMap<Prefix, Instant>,
    /// Routes and rules that are not followed, with the dump that last contained each.
    not_followed: BTreeMap<NotFollowed, Epoch>,
}

impl Model {
    /// Returns links and addresses.
    #[must_use]
    pub const fn links(&self) -> &Links {
        &self.links
    }

    /// Returns the neighbours.
    #[must_use]
    pub const fn neighbors(&self) -> &Neighbors {
        &self.neighbors
    }

    /// Returns the next-hop objects.
    #[must_use]
    pub const fn next_hops(&self) -> &NextHops {
        &self.next_hops
    }

    /// Returns the next-hop sets that routes use.
    #[must_use]
    pub const fn ways(&self) -> &Ways {
        &self.rib.ways
    }

    /// Returns the routes.
    #[must_use]
    pub const fn routes(&self) -> &Routes {
        &self.rib.routes
    }

    /// Iterates over the routes and rules that are not followed, at most 4,096 of them, in the order of prefixes.
    pub fn not_followed(&self) -> impl Iterator<Item = &NotFollowed> {
        self.not_followed.keys()
    }

    /// Takes the changes since the last call.
    pub fn take_changes(&mut self) -> Changes {
        std::mem::take(&mut self.changes)
    }

    /// Takes the links that were set up since the last call.
    pub fn take_risen(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.risen)
    }

    /// Number of notifications that did not match the model, so that only a dump can resolve the difference: removal of a route that the model
    /// holds in another form, use of an unknown next-hop object, or, among those of [`Model::apply_late`], removal of a link, address or
    /// object, or a route beside another of the same prefix and metric.
    #[must_use]
    pub const fn doubts(&self) -> u64 {
        self.doubts
    }

    /// Applies a notification; returns true if forwarding may change by it.
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
            Event::NotFollowed(what) => {
                if self.not_followed.len() < NOT_FOLLOWED || self.not_followed.contains_key(&what) {
                    self.not_followed.insert(what, self.epoch);
                }
                false
            }
            Event::NotFollowedGone(what) => {
                self.not_followed.remove(&what);
                false
            }
        }
    }

    /// Applies a message of a dump: dumps list the routes of a prefix in their order.
    pub fn apply_dumped(&mut self, event: Event) -> bool {
        match event {
            Event::Link(link) => {
                // Routes with a dead next hop, which come later in the dump, may revoke this.
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

    /// Learns from a dumped route over which links IPv4 routes are dead, though the links are up.
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

    /// Applies a notification received during a dump, so that the dump may already contain it, and later ones.
    pub fn apply_late(&mut self, event: Event) -> bool {
        // Routes removed silently with a link or an address are those of that moment, which a later dump does not show.
        let silent = match &event {
            Event::Link(link) => !link.up || !link.carrier,
            Event::LinkGone(_) | Event::AddressGone(_) => true,
            _ => false,
        };
        self.doubts += u64::from(silent);
        let object = matches!(event, Event::NextHopGone(_));
        self.late = true;
        let changed = self.apply(event);
        self.late = false;
        // Its groups may have had other members at that moment.
        self.doubts += u64::from(object && changed);
        changed
    }

    /// Starts a new epoch before a dump; [`Model::sweep`] removes what the dump does not contain.
    pub const fn begin_sweep(&mut self) {
        self.epoch = self.epoch.next();
    }

    /// Removes, after a complete dump, the objects that it did not contain; returns their number.
    pub fn sweep(&mut self, what: Dump) -> usize {
        self.sweep_but(what, &HashSet::new(), |_| true)
    }

    /// Sweeps as [`Model::sweep`], but spares these routes, neighbours and next-hop objects, and counts only the neighbours that `counts`.
    pub fn sweep_but(
        &mut self,
        what: Dump,
        spared: &HashSet<ObjectId>,
        counts: impl Fn(&Neighbor) -> bool,
    ) -> usize {
        let epoch = self.epoch;
        self.not_followed.retain(|one, seen| {
            let is_spared = spared.contains(&ObjectId::Routes(one.prefix)) && one.table.is_some();
            *seen == epoch || !is_in(one, what) || is_spared
        });
        match what {
            Dump::Rules { .. } => 0,
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
                stale.retain(|id| !spared.contains(&ObjectId::NextHop(*id)));
                stale.iter().filter(|id| self.next_hop_gone(**id)).count()
            }
            Dump::Neighbors => {
                let mut stale = self.neighbors.which(|_, seen| seen != epoch);
                stale.retain(|(link, address)| {
                    !spared.contains(&ObjectId::Neighbor(*link, *address))
                });
                let known = stale
                    .iter()
                    .filter_map(|key| self.neighbors.get(key.0, key.1));
                let counted = known.filter(|one| counts(one)).count();
                for (link, address) in &stale {
                    self.neighbor_gone(*link, *address);
                }
                counted
            }
            Dump::Routes { v6, table } => {
                let family = if v6 { Family::V6 } else { Family::V4 };
                let table = match table {
                    route::LOCAL => Table::Local,
                    route::MAIN => Table::Main,
                    // No route of another table is followed.
                    _ => return 0,
                };
                let stale = |entry: &Entry| entry.seen != epoch && entry.table == table;
                let mut found = self
                    .rib
                    .routes
                    .which(|prefix, entry| prefix.family() == family && stale(entry));
                found.retain(|prefix| !spared.contains(&ObjectId::Routes(*prefix)));
                self.rib.drop_entries(&found, stale, &mut self.changes)
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
        // No next-hop object survives on a link without carrier; the kernel notifies of neighbours one by one.
        if !up || !carrier {
            for id in self.next_hops.by_link(index) {
                self.next_hop_gone(id);
            }
        }
        // A link that is down can be given IPv6 addresses, and so local routes: they stay.
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
        self.changes.addresses = true;
        if revived {
            self.changes.links.insert(address.link);
        }
        revived
    }

    fn address_gone(&mut self, address: &Address) -> bool {
        let known = self.links.remove_address(address);
        self.changes.addresses |= known;
        let ip = address.address;
        if !ip.is_ipv4() {
            return known;
        }
        if !self.links.has(ip) {
            let from = self.rib.ways_which(|taken| taken.source == Some(ip));
            if !from.is_empty() {
                let by = |entry: &Entry| entry.table == Table::Main && from.contains(&entry.way);
                self.rib.drop_which(|_, entry| by(entry), &mut self.changes);
            }
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
        if let NextHopKind::Group(members) = &hop.kind
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

    /// Removes an object with its routes: the kernel notifies of neither when a link lost its carrier, and not of the routes when compat mode is off.
    fn next_hop_gone(&mut self, id: u32) -> bool {
        let (mut gone, smaller) = self.next_hops.remove(id);
        let known = !gone.is_empty();
        if !known {
            gone.push(id);
        }
        self.changes.objects.extend(gone.iter().chain(&smaller));
        let by = |taken: &Taken| matches!(taken.way, Way::Object(id) if gone.contains(&id));
        let lost = self.rib.ways_which(by);
        if !lost.is_empty() {
            let by = |entry: &Entry| lost.contains(&entry.way);
            self.rib.drop_which(|_, entry| by(entry), &mut self.changes);
        }
        known
    }

    /// Notes, as a doubt, that routes have expired: the kernel uses them no more, but removes them up to half a minute later, and may have
    /// prolonged them without a notification. The dump that follows says which.
    pub fn expire(&mut self, now: Instant) {
        let before = self.expiring.len();
        self.expiring.retain(|_, at| *at > now);
        self.doubts += u64::from(self.expiring.len() != before);
    }

    fn route(&mut self, route: Route) -> bool {
        match route.expires {
            Some(Duration::ZERO) => {
                let _ = self.rib.gone(route, &mut self.changes);
                return false;
            }
            Some(left) => {
                let at = Instant::now() + left + SURELY;
                let known = self.expiring.entry(route.prefix).or_insert(at);
                *known = at.min(*known);
            }
            None => {}
        }
        if let Way::Object(id) = route.way
            && self.next_hops.get(id).is_none()
        {
            self.doubts += 1;
        }
        let did = self.rib.put(route, self.epoch, &mut self.changes);
        self.doubts += u64::from(self.late && did == Did::Beside);
        did != Did::Nothing
    }

    fn route_gone(&mut self, route: Route) -> bool {
        let did = self.rib.gone(route, &mut self.changes);
        self.doubts += u64::from(did == Did::Unmatched);
        did == Did::Changed
    }

    /// Removes the routes that have no live next hop any more.
    fn drop_dead(&mut self, link: u32, lost: Lost) {
        let dead = |taken: &Taken, ipv4: bool| match &taken.way {
            Way::Hops(hops) => {
                hops.iter().any(|hop| hop.link == link)
                    && hops.iter().all(|hop| !self.links.carries(hop.link, ipv4))
            }
            Way::Object(_) => false,
        };
        let v4 = self.rib.ways_which(|taken| dead(taken, true));
        let v6 = self
            .rib
            .ways_which(|taken| lost != Lost::Ipv4 && dead(taken, false));
        if v4.is_empty() && v6.is_empty() {
            return;
        }
        self.rib.drop_which(
            |prefix, entry| match prefix.family() {
                Family::V4 => {
                    let stays = lost == Lost::Power && entry.action == Action::Deliver;
                    !stays && v4.contains(&entry.way)
                }
                Family::V6 => v6.contains(&entry.way),
            },
            &mut self.changes,
        );
    }
}

/// Returns true if a dump of this kind contains what is not followed.
fn is_in(what: &NotFollowed, dump: Dump) -> bool {
    let is_v6 = what.prefix.family() == Family::V6;
    match (dump, what.table) {
        (Dump::Routes { v6, table }, Some(own)) => (v6, table) == (is_v6, own),
        (Dump::Rules { v6 }, None) => v6 == is_v6,
        _ => false,
    }
}
