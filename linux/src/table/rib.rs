//! RIB: routes and the next-hop sets they use, both changed together.

use std::collections::BTreeSet;

use npcc_pipeline::route::prefix::{Family, Prefix};

use super::changes::Changes;
use super::routes::{Entry, Routes};
use super::sweep::Epoch;
use super::ways::{Taken, WayId, Ways};
use crate::wire::route::{Action, Hop, Place, Route, Way};

/// `RTPROT_RA`: IPv6 routes of router advertisements, which the kernel never merges into one with several next hops.
const ROUTER_ADVERTISEMENT: u8 = 9;

/// Routes and the next-hop sets they use.
#[derive(Debug, Default)]
pub(super) struct Rib {
    pub(super) ways: Ways,
    pub(super) routes: Routes,
}

/// Effect of a message about a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Did {
    /// The model already held that state.
    Nothing,
    /// The route appeared, changed or disappeared.
    Changed,
    /// The route appeared beside another of the same prefix and metric.
    Beside,
    /// The route to remove does not match the one in the model.
    Unmatched,
}

impl Rib {
    /// Adds or updates a route.
    pub(super) fn put(&mut self, route: Route, seen: Epoch, changes: &mut Changes) -> Did {
        let prefix = route.prefix;
        let taken = Taken {
            way: route.way,
            source: route.source,
            mtu: route.mtu,
        };
        let mut entry = Entry {
            metric: route.metric,
            preference: route.preference,
            way: WayId(u32::MAX),
            table: route.table,
            action: route.action,
            protocol: route.protocol,
            seen,
        };
        if let Some(way) = self.ways.find(&taken) {
            entry.way = way;
            let same =
                |one: &Entry| one.beside(&entry) && (one.way, one.action) == (way, entry.action);
            let mut all = self.routes.of_mut(prefix).iter_mut();
            if let Some(one) = all.find(|one| same(one)) {
                if one.preference == entry.preference {
                    *one = entry;
                    return Did::Nothing;
                }
                // It has another place now.
                self.drop_entries(&[prefix], same, changes);
            }
        }
        // An IPv6 notification contains all next hops of a multipath route, even if only one was added.
        if self.joins(prefix, &taken, &entry) {
            let before = self.routes.of(prefix).iter();
            let mut before = before.filter(|one| self.has_joined(prefix, one, &entry));
            let way = before.next().map(|one| one.way);
            self.routes
                .remove(prefix, |one| one.beside(&entry) && Some(one.way) == way);
            way.into_iter().for_each(|way| self.ways.release(way));
        }
        entry.way = self.hold(taken, changes);
        self.insert(prefix, entry, route.place);
        changes.prefixes.push(prefix);
        let mut beside = self
            .routes
            .of(prefix)
            .iter()
            .filter(|one| one.beside(&entry));
        if beside.nth(1).is_some() {
            Did::Beside
        } else {
            Did::Changed
        }
    }

    /// Removes a route.
    pub(super) fn gone(&mut self, route: Route, changes: &mut Changes) -> Did {
        let prefix = route.prefix;
        let taken = Taken {
            way: route.way,
            source: route.source,
            mtu: route.mtu,
        };
        let is = |one: &Entry| {
            (one.table, one.metric, one.action) == (route.table, route.metric, route.action)
        };
        if let Some(way) = self.ways.find(&taken)
            && self.drop_entries(&[prefix], |one| is(one) && one.way == way, changes) > 0
        {
            return Did::Changed;
        }
        if self.shrink(prefix, &taken, is, changes) {
            Did::Changed
        } else if self.routes.of(prefix).iter().any(is) {
            Did::Unmatched
        } else {
            Did::Nothing
        }
    }

    /// Returns true if a route is one that IPv6 merges into a multipath route.
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

    /// Removes single next hops from an IPv6 multipath route, if the message names such; returns true if it did.
    fn shrink(
        &mut self,
        prefix: Prefix,
        taken: &Taken,
        is: impl Fn(&Entry) -> bool,
        changes: &mut Changes,
    ) -> bool {
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
            let taken = Taken {
                way: Way::Hops(left),
                source: taken.source,
                mtu: taken.mtu,
            };
            let way = self.hold(taken, changes);
            self.insert(prefix, Entry { way, ..entry }, Place::Last);
        }
        changes.prefixes.push(prefix);
        true
    }

    fn hold(&mut self, taken: Taken, changes: &mut Changes) -> WayId {
        let (way, new) = self.ways.hold(taken);
        if new {
            changes.ways.insert(way);
        }
        way
    }

    fn insert(&mut self, prefix: Prefix, entry: Entry, place: Place) {
        if let Some(before) = self.routes.put(prefix, entry, place) {
            self.ways.release(before.way);
        }
    }

    /// Returns the next-hop sets for which a condition holds.
    pub(super) fn ways_which(&self, holds: impl Fn(&Taken) -> bool) -> BTreeSet<WayId> {
        let found = self.ways.iter().filter(|(_, taken)| holds(taken));
        found.map(|(id, _)| id).collect()
    }

    /// Removes all routes for which a condition holds.
    pub(super) fn drop_which(
        &mut self,
        gone: impl Fn(Prefix, &Entry) -> bool,
        changes: &mut Changes,
    ) {
        for prefix in self.routes.which(&gone) {
            self.drop_entries(&[prefix], |entry| gone(prefix, entry), changes);
        }
    }

    /// Removes the routes of some prefixes for which a condition holds; returns their number.
    pub(super) fn drop_entries(
        &mut self,
        prefixes: &[Prefix],
        gone: impl Fn(&Entry) -> bool,
        changes: &mut Changes,
    ) -> usize {
        let mut count = 0;
        for prefix in prefixes {
            let out = self.routes.remove(*prefix, &gone);
            if !out.is_empty() {
                changes.prefixes.push(*prefix);
            }
            out.iter().for_each(|entry| self.ways.release(entry.way));
            count += out.len();
        }
        count
    }
}
