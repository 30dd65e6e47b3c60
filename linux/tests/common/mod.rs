//! Shared test code: a Fib that records its state.
#![allow(unreachable_pub, reason = "shared by test files as a module")]

pub mod kernel;
pub mod live;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use npcc_linux::fib::{Fib, Member, Refused};
use npcc_linux::wire::event::Event;
use npcc_linux::wire::route::{Action, Hop, Place, Preference, Route, Table, Way};
use npcc_pipeline::route::nexthop::NextHopGroupId;
use npcc_pipeline::route::prefix::Prefix;

/// State of a switch as recorded.
#[derive(Debug, Default)]
pub struct Book {
    pub groups: BTreeMap<NextHopGroupId, Vec<Member>>,
    pub routes: BTreeMap<Prefix, NextHopGroupId>,
    pub group_sets: usize,
    pub route_sets: usize,
    pub route_removals: usize,
    /// Prefixes that were ever removed.
    pub removed: BTreeSet<Prefix>,
    pub commits: usize,
    pub room: Option<usize>,
    /// Number at which to look for a free one.
    next: u16,
}

impl Book {
    /// Returns every prefix with the members of its group.
    pub fn table(&self) -> BTreeMap<Prefix, Vec<Member>> {
        let each = self.routes.iter();
        each.map(|(prefix, group)| (*prefix, self.groups[group].clone()))
            .collect()
    }

    /// Returns true if there is a route of this prefix.
    pub fn has(&self, prefix: &str) -> bool {
        self.routes.contains_key(&self::prefix(prefix))
    }

    /// Returns the members of a prefix's group.
    pub fn members(&self, prefix: &str) -> Option<Vec<Member>> {
        let group = self.routes.get(&self::prefix(prefix))?;
        Some(self.groups[group].clone())
    }
}

impl Fib for Book {
    fn make_group(&mut self, members: &[Member]) -> Result<NextHopGroupId, Refused> {
        let mut numbers = (self.next..=u16::MAX).chain(0..self.next);
        let free = numbers.find(|number| !self.groups.contains_key(&NextHopGroupId(*number)));
        let group = NextHopGroupId(free.ok_or_else(|| Refused("no number".to_owned()))?);
        self.next = group.0.wrapping_add(1);
        self.group_sets += 1;
        self.groups.insert(group, members.to_vec());
        Ok(group)
    }

    fn change_group(&mut self, group: NextHopGroupId, members: &[Member]) -> Result<(), Refused> {
        self.group_sets += 1;
        let before = self.groups.insert(group, members.to_vec());
        assert!(before.is_some(), "{group:?} is none");
        Ok(())
    }

    fn remove_group(&mut self, group: NextHopGroupId) {
        assert!(
            self.routes.values().all(|by| *by != group),
            "a route leads by {group:?}"
        );
        assert!(self.groups.remove(&group).is_some(), "{group:?} is none");
    }

    fn set_route(&mut self, prefix: Prefix, group: NextHopGroupId) -> Result<(), Refused> {
        assert!(self.groups.contains_key(&group), "{group:?} is none");
        if let Some(room) = self.room
            && self.routes.len() >= room
            && !self.routes.contains_key(&prefix)
        {
            return Err(Refused(format!("{room} routes")));
        }
        self.route_sets += 1;
        self.routes.insert(prefix, group);
        Ok(())
    }

    fn remove_route(&mut self, prefix: Prefix) {
        self.route_removals += 1;
        self.removed.insert(prefix);
        assert!(self.routes.remove(&prefix).is_some(), "{prefix} is none");
    }

    fn commit(&mut self) {
        self.commits += 1;
    }
}

/// Book that a thread writes and a test reads. Expensive checks are left to [`Book`].
#[derive(Debug, Clone, Default)]
pub struct Shared(pub Arc<Mutex<Book>>);

impl Fib for Shared {
    fn make_group(&mut self, members: &[Member]) -> Result<NextHopGroupId, Refused> {
        self.0.lock().unwrap().make_group(members)
    }

    fn change_group(&mut self, group: NextHopGroupId, members: &[Member]) -> Result<(), Refused> {
        self.0.lock().unwrap().change_group(group, members)
    }

    fn remove_group(&mut self, group: NextHopGroupId) {
        assert!(self.0.lock().unwrap().groups.remove(&group).is_some());
    }

    fn set_route(&mut self, prefix: Prefix, group: NextHopGroupId) -> Result<(), Refused> {
        self.0.lock().unwrap().set_route(prefix, group)
    }

    fn remove_route(&mut self, prefix: Prefix) {
        self.0.lock().unwrap().remove_route(prefix);
    }

    fn commit(&mut self) {
        self.0.lock().unwrap().commit();
    }
}

/// Parses a prefix.
pub fn prefix(text: &str) -> Prefix {
    let (address, len) = text.split_once('/').unwrap();
    Prefix::new(address.parse().unwrap(), len.parse().unwrap()).unwrap()
}

/// Returns the news of a route of the main table that forwards by these hops.
pub fn route(prefix: &str, hops: Vec<Hop>) -> Event {
    Event::Route(Route {
        table: Table::Main,
        prefix: self::prefix(prefix),
        metric: 0,
        action: Action::Forward,
        way: Way::Hops(hops),
        source: None,
        protocol: 4,
        place: Place::Last,
        dead: vec![],
        mtu: 0,
        preference: Preference::Medium,
        expires: None,
    })
}
