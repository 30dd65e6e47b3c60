//! Reconciliation of the desired state with the switch's: only differences are passed on.

use std::collections::BTreeSet;
use std::net::IpAddr;

use npcc_pipeline::route::buckets::BUCKETS;
use npcc_pipeline::route::nexthop::NextHopGroupId;
use npcc_pipeline::route::prefix::Prefix;

use super::decide::{DesiredRoute, decide, host};
use super::groups::{Group, Groups};
use super::members::{GroupKey, hops, members, usable};
use super::ports::Ports;
use super::resolving::{Ask, Resolving};
use crate::fib::{Fib, Refused};
use crate::table::changes::Changes;
use crate::table::model::Model;
use crate::table::prefixes::Prefixes;
use crate::table::ways::WayId;
use crate::wire::nexthop::NextHopKind;
use crate::wire::not_followed::Reason;
use crate::wire::route::Way;

/// Installed state of a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installed {
    /// The prefix is routed to this group.
    By(NextHopGroupId),
    /// The prefix has no next hop behind a port of the switch.
    LeftOut,
    /// The switch had no capacity.
    Refused,
}

/// Result of one reconciliation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Done {
    /// Number of routes set or removed.
    pub routes: usize,
    /// Number of groups set.
    pub groups: usize,
    /// The last refusal, if there was one.
    pub refused: Option<Refused>,
    /// Requests for the kernel to resolve or forget neighbours.
    pub asks: Vec<Ask>,
    /// Number of neighbours whose MAC address came to be refused.
    pub refused_neighbors: usize,
}

/// Numbers of installed routes and groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Number of prefixes that are routed to a group.
    pub routes: usize,
    /// Number of groups.
    pub groups: usize,
    /// Number of prefixes left out, as no next hop is behind a port of the switch.
    pub left_out: usize,
    /// Number of prefixes that the switch had no capacity for.
    pub refused: usize,
}

/// State installed in the switch, for comparison with the desired state.
#[derive(Debug)]
pub struct Differ {
    ports: Ports,
    groups: Groups,
    installed: Prefixes<Installed>,
    resolving: Resolving,
    /// Neighbours behind a port whose MAC address is refused, so that each is counted once.
    refused: BTreeSet<(u32, IpAddr)>,
    figures: Figures,
    /// Groups that no route uses, to be removed when all routes are done.
    idle: BTreeSet<NextHopGroupId>,
    /// Groups that the switch refused to change, to be tried again.
    unset: BTreeSet<NextHopGroupId>,
}

impl Differ {
    /// Creates the state of a switch in which nothing is installed yet.
    #[must_use]
    pub fn new(ports: Ports) -> Differ {
        Differ {
            ports,
            groups: Groups::default(),
            installed: Prefixes::default(),
            resolving: Resolving::default(),
            refused: BTreeSet::new(),
            figures: Figures::default(),
            idle: BTreeSet::new(),
            unset: BTreeSet::new(),
        }
    }

    /// Returns the mapping of links to ports.
    #[must_use]
    pub const fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Returns the numbers of installed routes and groups.
    #[must_use]
    pub fn figures(&self) -> Figures {
        Figures {
            groups: self.groups.len(),
            ..self.figures
        }
    }

    /// Iterates over the installed state of all prefixes.
    pub fn installed(&self) -> impl Iterator<Item = (Prefix, Installed)> {
        self.installed.iter().map(|(prefix, what)| (prefix, *what))
    }

    /// Returns the installed state of the longest prefix that contains `prefix`.
    #[must_use]
    pub fn covering(&self, prefix: Prefix) -> Option<Installed> {
        self.installed
            .covering(prefix)
            .next()
            .map(|(_, what)| *what)
    }

    /// Returns the reason why a prefix's route is left out, or followed in part only.
    #[must_use]
    pub fn not_followed(&self, model: &Model, prefix: Prefix, what: Installed) -> Option<String> {
        let way = |id| model.ways().get(id).map(|taken| &taken.way);
        match what {
            Installed::LeftOut => {
                let way = model.routes().best(prefix).and_then(|best| way(best.way));
                Some(reason_of(model, way).name().to_owned())
            }
            Installed::By(id) => match self.group(id)?.key {
                GroupKey::Object(id, _) => in_part(model, &self.ports, &Way::Object(id)),
                GroupKey::Way(id, _) => in_part(model, &self.ports, way(id)?),
                _ => None,
            },
            Installed::Refused => None,
        }
    }

    /// Returns a group in use.
    #[must_use]
    pub fn group(&self, id: NextHopGroupId) -> Option<&Group> {
        self.groups.get(id)
    }

    /// Schedules what was refused, and neighbours requested without an answer, to be tried again at the next [`Differ::sync`].
    pub fn retry(&mut self, changes: &mut Changes) {
        self.resolving.all_again();
        changes.neighbors.extend(self.groups.neighbors());
        changes.everything |= self.figures.refused > 0;
    }

    /// Passes the changes to the switch, in one commit.
    pub fn sync(&mut self, model: &Model, mut changes: Changes, fib: &mut dyn Fib) -> Done {
        let mut done = Done::default();
        if changes.is_empty() && self.unset.is_empty() {
            return done;
        }
        if !changes.links.is_empty() || changes.everything {
            changes.everything |= self.ports.refresh(model.links());
            changes.neighbors.extend(self.groups.neighbors());
        }
        done.refused_neighbors = self.count_refused(model, &changes.neighbors);
        if changes.objects.iter().any(|id| self.attaches(model, *id)) {
            let all = model.neighbors().iter();
            changes
                .neighbors
                .extend(all.map(|one| (one.link, one.address)));
        }
        let mut hung: BTreeSet<(u32, IpAddr)> = changes.neighbors.clone();
        for id in self.touched(&changes) {
            self.refresh(model, fib, id, &mut done, &mut hung);
        }
        for prefix in self.dirty(model, &mut changes) {
            self.prefix(model, fib, prefix, &mut done, &mut hung);
        }
        for id in std::mem::take(&mut self.idle) {
            if self.groups.get(id).is_some_and(|group| group.routes == 0) {
                self.groups.remove(id);
                fib.remove_group(id);
            }
        }
        fib.commit();
        for (link, address) in &changes.neighbors {
            if model.neighbors().get(*link, *address).is_none() {
                self.resolving.again((*link, *address));
            }
        }
        let views = (model, &self.ports, &self.groups);
        done.asks = self.resolving.asks(hung.into_iter(), views);
        done
    }

    /// Returns how many of these neighbours have a MAC address that is refused, and had none when they were last looked at.
    fn count_refused(&mut self, model: &Model, neighbors: &BTreeSet<(u32, IpAddr)>) -> usize {
        let mut count = 0;
        for key @ (link, address) in neighbors {
            let known = model.neighbors().get(*link, *address);
            let ours = known.filter(|_| self.ports.place(*link).is_some());
            if ours.and_then(|one| self.ports.refused_mac(one)).is_none() {
                self.refused.remove(key);
            } else {
                count += usize::from(self.refused.insert(*key));
            }
        }
        count
    }

    /// Returns the prefixes whose installed state is not the desired one, computed anew from all the state; refused ones are included.
    #[must_use]
    pub fn wrong(&self, model: &Model) -> Vec<Prefix> {
        let stands = |prefix: Prefix| {
            let desired = decide(model, &self.ports, prefix);
            match (desired, self.installed.get(prefix)) {
                (DesiredRoute::None, None) | (DesiredRoute::LeftOut, Some(Installed::LeftOut)) => {
                    true
                }
                (DesiredRoute::By(key), Some(Installed::By(id))) => {
                    let group = self.groups.get(*id);
                    group.is_some_and(|group| group.key == key)
                }
                _ => false,
            }
        };
        let mut all = self.everything(model);
        all.retain(|prefix| !stands(*prefix));
        let stale = |group: &Group| members(model, &self.ports, group.key) != group.members;
        let stale = self.groups.iter().filter(|(_, group)| stale(group));
        let stale: BTreeSet<NextHopGroupId> = stale.map(|(id, _)| id).collect();
        if !stale.is_empty() {
            let by = self
                .installed
                .iter()
                .filter(|(_, what)| matches!(what, Installed::By(id) if stale.contains(id)));
            all.extend(by.map(|(prefix, _)| prefix));
        }
        all
    }

    /// Returns every prefix with a route, a neighbour or an installed state; may contain duplicates.
    fn everything(&self, model: &Model) -> Vec<Prefix> {
        let all = model.routes().iter().map(|(prefix, _)| prefix);
        let had = self.installed.iter().map(|(prefix, _)| prefix);
        let hosts = model.neighbors().iter().filter_map(|one| host(one.address));
        all.chain(had).chain(hosts).collect()
    }

    /// Returns true if an object has, or had, a next hop without gateway (attached hosts), so that it decides on each host of a link.
    fn attaches(&self, model: &Model, id: u32) -> bool {
        let now = hops(model, &Way::Object(id));
        if now.iter().any(|hop| hop.gateway.is_none()) {
            return true;
        }
        let group = self.groups.of_object(id).next();
        match group.and_then(|group| self.groups.get(group)) {
            Some(group) => group.members.attaches,
            // A host route led to the host itself, so there is no group that could show it.
            None => {
                let mut ways = model.ways().iter();
                ways.any(|(_, taken)| taken.way == Way::Object(id))
            }
        }
    }

    /// Returns the groups that may have changed.
    fn touched(&mut self, changes: &Changes) -> BTreeSet<NextHopGroupId> {
        let mut touched = std::mem::take(&mut self.unset);
        if changes.everything || !changes.links.is_empty() {
            touched.extend(self.groups.iter().map(|(id, _)| id));
            return touched;
        }
        for neighbor in &changes.neighbors {
            touched.extend(self.groups.hanging_on(*neighbor));
        }
        let objects = changes.objects.iter();
        touched.extend(objects.flat_map(|id| self.groups.of_object(*id)));
        let ways = changes.ways.iter().flat_map(|way| {
            use npcc_pipeline::route::prefix::Family::{V4, V6};
            [GroupKey::Way(*way, V4), GroupKey::Way(*way, V6)]
        });
        touched.extend(ways.filter_map(|key| self.groups.find(key)));
        touched
    }

    /// Returns the prefixes whose desired state may have changed.
    fn dirty(&self, model: &Model, changes: &mut Changes) -> Vec<Prefix> {
        if changes.everything {
            return self.everything(model);
        }
        let mut dirty = std::mem::take(&mut changes.prefixes);
        // An object that came late, or lost its last port: its routes appeared or disappeared with it.
        let turned = |id: &&u32| {
            let usable = usable(model, &self.ports, &Way::Object(**id));
            usable != self.groups.of_object(**id).next().is_some()
        };
        let turned: BTreeSet<u32> = changes.objects.iter().filter(turned).copied().collect();
        let by = |way: &Way| matches!(way, Way::Object(id) if turned.contains(id));
        let ways = model.ways().iter().filter(|(_, taken)| by(&taken.way));
        let ways: BTreeSet<WayId> = ways.map(|(id, _)| id).collect();
        if !ways.is_empty() {
            let all = model.routes().iter();
            let by = all.filter(|(_, entry)| ways.contains(&entry.way));
            dirty.extend(by.map(|(prefix, _)| prefix));
        }
        let hosts = dirty
            .iter()
            .flat_map(|prefix| model.neighbors().within(*prefix));
        let hosts: Vec<Prefix> = hosts.filter_map(|one| host(one.address)).collect();
        dirty.extend(hosts);
        dirty.extend(
            changes
                .neighbors
                .iter()
                .filter_map(|(_, address)| host(*address)),
        );
        dirty
    }

    /// Brings a group in the switch up to date.
    fn refresh(
        &mut self,
        model: &Model,
        fib: &mut dyn Fib,
        id: NextHopGroupId,
        done: &mut Done,
        hung: &mut BTreeSet<(u32, IpAddr)>,
    ) {
        let Some(group) = self.groups.get(id) else {
            return;
        };
        let now = members(model, &self.ports, group.key);
        if now == group.members {
            return;
        }
        if now.all != group.members.all
            && let Err(refused) = fib.change_group(id, &now.all)
        {
            self.unset.insert(id);
            done.refused = Some(refused);
            return;
        }
        done.groups += 1;
        hung.extend(&now.hangs_on);
        self.groups.set(id, now);
    }

    /// Brings a prefix in the switch to its desired state.
    fn prefix(
        &mut self,
        model: &Model,
        fib: &mut dyn Fib,
        prefix: Prefix,
        done: &mut Done,
        hung: &mut BTreeSet<(u32, IpAddr)>,
    ) {
        let before = self.installed.get(prefix).copied();
        let desired = match decide(model, &self.ports, prefix) {
            DesiredRoute::None => None,
            DesiredRoute::LeftOut => Some(Installed::LeftOut),
            DesiredRoute::By(key) => match self.group_of(model, fib, key, hung, done) {
                Ok(id) => Some(Installed::By(id)),
                Err(refused) => {
                    done.refused = Some(refused);
                    Some(Installed::Refused)
                }
            },
        };
        if before == desired {
            return;
        }
        let now = match desired {
            Some(Installed::By(id)) => Some(self.set_route(fib, prefix, id, done)),
            other => other,
        };
        if let Some(Installed::By(id)) = before {
            if !matches!(now, Some(Installed::By(_))) {
                fib.remove_route(prefix);
            }
            if self.groups.release(id) {
                self.idle.insert(id);
            }
        }
        done.routes += 1;
        self.count(before, -1);
        self.count(now, 1);
        match now {
            Some(what) => self.installed.insert(prefix, what),
            None => self.installed.remove(prefix),
        };
    }

    /// Sets a prefix's route to a group; returns whether the switch took it.
    fn set_route(
        &mut self,
        fib: &mut dyn Fib,
        prefix: Prefix,
        id: NextHopGroupId,
        done: &mut Done,
    ) -> Installed {
        match fib.set_route(prefix, id) {
            Ok(()) => {
                self.groups.hold(id);
                Installed::By(id)
            }
            Err(refused) => {
                done.refused = Some(refused);
                self.idle.insert(id);
                Installed::Refused
            }
        }
    }

    /// Returns the group of a key in the switch; it is made if there is none.
    fn group_of(
        &mut self,
        model: &Model,
        fib: &mut dyn Fib,
        key: GroupKey,
        hung: &mut BTreeSet<(u32, IpAddr)>,
        done: &mut Done,
    ) -> Result<NextHopGroupId, Refused> {
        if let Some(id) = self.groups.find(key) {
            return Ok(id);
        }
        let new = members(model, &self.ports, key);
        let id = fib.make_group(&new.all)?;
        done.groups += 1;
        hung.extend(&new.hangs_on);
        self.groups.add(id, key, new);
        self.idle.insert(id);
        Ok(id)
    }

    const fn count(&mut self, what: Option<Installed>, change: isize) {
        let figure = match what {
            Some(Installed::By(_)) => &mut self.figures.routes,
            Some(Installed::LeftOut) => &mut self.figures.left_out,
            Some(Installed::Refused) => &mut self.figures.refused,
            None => return,
        };
        *figure = figure.saturating_add_signed(change);
    }
}

/// Returns the reason why no route over these next hops is followed.
fn reason_of(model: &Model, way: Option<&Way>) -> Reason {
    match way {
        Some(Way::Hops(hops)) if !hops.is_empty() && hops.iter().all(|hop| hop.link == 0) => {
            Reason::Tunnel
        }
        Some(Way::Object(id)) if model.next_hops().get(*id) == Some(&NextHopKind::Unusable) => {
            Reason::Tunnel
        }
        _ => Reason::Elsewhere,
    }
}

/// Returns the reason why some next hops of a route take no packets, whatever their state.
fn in_part(model: &Model, ports: &Ports, way: &Way) -> Option<String> {
    let hops = hops(model, way);
    let usable = hops
        .iter()
        .filter(|hop| ports.place(hop.link).is_some())
        .count();
    let (all, elsewhere) = (hops.len(), hops.len() - usable);
    if elsewhere > 0 && usable > 0 {
        let reason = Reason::PartlyElsewhere.name();
        return Some(format!("{reason}: {elsewhere} of {all}"));
    }
    let beyond = usable.checked_sub(BUCKETS).filter(|beyond| *beyond > 0)?;
    let reason = Reason::Members.name();
    Some(format!("{reason}: {beyond} of {all} take none"))
}
