//! The RIB, and the only writer of the images.
//!
//! Changes are applied to the spare pair as they come, [`RouteWriter::commit`] makes them live together, and once every worker
//! has passed they are applied to the other pair too (`op_log.rs`). Until then the writer does not block: it returns
//! [`RouteError::Busy`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::fast::RandomState;
use hashbrown::HashMap;

pub use super::capacity::{RouteCapacity, RouteError};
use super::down_ports::DownPorts;
use super::edit::Full;
use super::fib::{Fib, FibReader, GracePeriod, Images, ImagesState};
use super::hop_table::{HopTable, Spare};
use super::hops::NextHops;
use super::ids::NoId;
use super::image::{Image, Origin};
use super::nexthop::{Adjacency, NextHopGroupId};
use super::op_log::{Op, OpLog};
use super::prefix::{Family, Prefix};
use super::seed::FlowSeed;
use super::warm::FEW;

/// Data of groups with an identity ([`super::named_groups`]) beyond their paths.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// Group that each family's default route uses, if it uses one: it has a copy of the group's paths.
    pub(super) defaults: [Option<NextHopGroupId>; 2],
    /// Groups made since the last commit, with no buckets assigned from another group yet.
    pub(super) made: Vec<NextHopGroupId>,
}

impl Named {
    /// Records that a family's default route no longer uses one of these groups.
    fn unlead(&mut self, family: Family) {
        if let Some(place) = self.defaults.get_mut(family_index(family)) {
            *place = None;
        }
    }
}

/// Authoritative routes, and the only writer of their images.
#[derive(Debug)]
pub struct RouteWriter {
    fib: Arc<Fib>,
    states: [ImagesState; 2],
    pub(super) rib: HashMap<Prefix, NextHopGroupId, RandomState>,
    /// Number of prefixes of each family and length, so that a covering route is looked up only at lengths that exist.
    lengths: [[usize; 129]; 2],
    /// Number of prefixes of each family.
    held: [usize; 2],
    limits: [usize; 2],
    pub(super) hops: HopTable,
    /// Live groups with a choice of the prefixes changed since the last commit: flows still take them.
    before: HashMap<Prefix, NextHopGroupId, RandomState>,
    /// Changes applied to the spare pair, not yet visible.
    batch: OpLog,
    pub(super) named: Named,
    /// Visible changes, not yet applied to the pair that was live before.
    replay: OpLog,
}

impl RouteWriter {
    /// Returns an empty table, and one reader for each worker, with seed number 0: its flows choose among equal paths as those
    /// of any other table made so.
    #[must_use]
    pub fn new(capacity: RouteCapacity, workers: usize) -> (RouteWriter, Vec<FibReader>) {
        RouteWriter::with_seed(capacity, workers, FlowSeed::new(0))
    }

    /// Returns an empty table, and one reader for each worker; `seed` makes the choice among equal paths this switch's own.
    #[must_use]
    pub fn with_seed(
        capacity: RouteCapacity,
        workers: usize,
        seed: FlowSeed,
    ) -> (RouteWriter, Vec<FibReader>) {
        let v4_groups = capacity.ipv4_routes.min(1 << 22);
        let v6_groups = (capacity.ipv6_routes * 2).max(64);
        let pair = || {
            let (v4, v4_state) = Image::new(v4_groups);
            let (v6, v6_state) = Image::new(v6_groups);
            (
                Images {
                    v4,
                    v6,
                    hops: NextHops::new(capacity.adjacencies + 1, capacity.groups + 2),
                },
                ImagesState {
                    v4: v4_state,
                    v6: v6_state,
                },
            )
        };
        let (left, left_state) = pair();
        let (right, right_state) = pair();
        let hops = HopTable::new(left.hops.capacity());
        let fib = Arc::new(Fib {
            grace: GracePeriod::new(workers),
            pairs: [left, right],
            large: AtomicBool::new(false),
            down: Arc::default(),
            seed,
        });
        let readers = (0..workers)
            .map(|reader| FibReader::new(Arc::clone(&fib), reader))
            .collect();
        let writer = RouteWriter {
            fib,
            states: [left_state, right_state],
            rib: HashMap::with_capacity_and_hasher(
                capacity.ipv4_routes + capacity.ipv6_routes,
                RandomState::default(),
            ),
            lengths: [[0; 129]; 2],
            held: [0; 2],
            limits: [capacity.ipv4_routes, capacity.ipv6_routes],
            hops,
            before: HashMap::default(),
            batch: OpLog::default(),
            named: Named::default(),
            replay: OpLog::default(),
        };
        (writer, readers)
    }

    /// Returns the set of ports that are down, for the link monitor to write: flows of groups with a choice avoid them,
    /// without a commit.
    #[must_use]
    pub fn down_ports(&self) -> Arc<DownPorts> {
        Arc::clone(&self.fib.down)
    }

    /// Returns the number of routes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rib.len()
    }

    /// Returns the number of groups of 256 entries in use: IPv4 and IPv6, in each copy.
    #[must_use]
    pub fn groups_used(&self) -> [[usize; 2]; 2] {
        let used = |state: &ImagesState| [state.v4.groups_used(), state.v6.groups_used()];
        self.states.each_ref().map(used)
    }

    /// Returns true if there are no routes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rib.is_empty()
    }

    /// Iterates over all routes with their paths.
    pub fn routes(&self) -> impl Iterator<Item = (Prefix, Vec<Adjacency>)> {
        let rib = self.rib.iter();
        rib.map(|(prefix, group)| (*prefix, self.hops.paths(*group)))
    }

    /// Adds or replaces a route on the spare pair; [`RouteWriter::commit`] makes it visible.
    ///
    /// # Errors
    /// Returns a [`RouteError`]; nothing has changed then.
    pub fn insert(&mut self, prefix: Prefix, paths: &[Adjacency]) -> Result<(), RouteError> {
        if !self.ready() {
            return Err(RouteError::Busy);
        }
        if prefix.is_default() {
            self.named.unlead(prefix.family());
            let group = self.set_default(prefix.family(), paths)?;
            self.rib.insert(prefix, group);
            return Ok(());
        }
        let was = self.remember(prefix);
        let (hops, mut spare) = self.hops_of_spare();
        let group = hops.hold(paths, was, &mut spare)?;
        self.lead(prefix, group)
    }

    /// Makes a prefix lead to a group, whose reference it takes over.
    pub(super) fn lead(&mut self, prefix: Prefix, group: NextHopGroupId) -> Result<(), RouteError> {
        let before = self.rib.insert(prefix, group);
        if before == Some(group) {
            self.hops.release(group);
            return Ok(());
        }
        let done = self.put(prefix, group, before.is_none());
        if done.is_ok() {
            before
                .into_iter()
                .for_each(|before| self.hops.release(before));
        } else {
            match before {
                Some(group) => self.rib.insert(prefix, group),
                None => self.rib.remove(&prefix),
            };
            self.hops.release(group);
        }
        done
    }

    pub(super) fn set_default(
        &mut self,
        family: Family,
        paths: &[Adjacency],
    ) -> Result<NextHopGroupId, NoId> {
        let (hops, mut spare) = self.hops_of_spare();
        hops.set_default(family, paths, &mut spare)
    }

    /// Returns the live group of a prefix that is about to change, if it has a choice: later changes of the same batch, even
    /// after a removal in between, assign their buckets from it. For a prefix without a choice nothing is kept, because its
    /// flows get an even share each whatever the buckets are assigned from.
    pub(super) fn remember(&mut self, prefix: Prefix) -> Option<NextHopGroupId> {
        if let Some(group) = self.before.get(&prefix) {
            return Some(*group);
        }
        let group = *self.rib.get(&prefix)?;
        self.hops.has_choice(group).then(|| {
            self.before.insert(prefix, group);
            group
        })
    }

    /// Returns the next hops in use, and those of the spare pair, which have caught up.
    pub(super) fn hops_of_spare(&mut self) -> (&mut HopTable, Spare<'_>) {
        let [left, right] = &self.fib.pairs;
        let (pair, live) = if self.fib.grace.spare() == 0 {
            (left, right)
        } else {
            (right, left)
        };
        let spare = Spare {
            hops: &pair.hops,
            live: &live.hops,
            log: &mut self.batch,
        };
        (&mut self.hops, spare)
    }

    /// Inserts a prefix of the RIB into the spare pair; `new` is true if the RIB did not have it before.
    fn put(&mut self, prefix: Prefix, group: NextHopGroupId, new: bool) -> Result<(), RouteError> {
        let index = family_index(prefix.family());
        let count = |all: &[usize; 2]| all.get(index).copied().unwrap_or(0);
        let (held, limit) = (count(&self.held), count(&self.limits));
        if new && held >= limit {
            return Err(RouteError::TooMany { limit });
        }
        let op = Op::Insert {
            prefix,
            value: group.0,
            new,
        };
        self.change(op)?;
        if new {
            self.count(prefix, 1);
        }
        Ok(())
    }

    /// Removes a route; `Ok(false)` if there was none.
    ///
    /// # Errors
    /// Returns [`RouteError::Busy`]; nothing has changed then.
    pub fn remove(&mut self, prefix: Prefix) -> Result<bool, RouteError> {
        let Some(group) = self.rib.get(&prefix).copied() else {
            return Ok(false);
        };
        if !self.ready() {
            return Err(RouteError::Busy);
        }
        if prefix.is_default() {
            self.named.unlead(prefix.family());
            self.set_default(prefix.family(), &[])?;
        } else {
            self.remember(prefix);
            self.change(Op::Remove {
                prefix,
                cover: self.cover(prefix),
            })?;
            self.count(prefix, -1);
            self.hops.release(group);
        }
        self.rib.remove(&prefix);
        Ok(true)
    }

    /// Makes all changes since the last commit visible, in one store.
    pub fn commit(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        self.fib.grace.swap();
        let large = self.held.iter().any(|held| *held > FEW);
        self.fib.large.store(large, Ordering::Relaxed);
        // The other log is empty: changes are accepted only then.
        std::mem::swap(&mut self.batch, &mut self.replay);
        self.before = HashMap::default();
        self.named.made.clear();
    }

    /// Returns true if changes can be accepted: every worker has passed since the last commit, and the spare pair has caught
    /// up.
    pub fn ready(&mut self) -> bool {
        if self.replay.is_empty() {
            return true;
        }
        if !self.fib.grace.quiet() {
            return false;
        }
        let ([left, right], [a, b]) = (&self.fib.pairs, &mut self.states);
        match self.fib.grace.spare() {
            0 => self.replay.catch_up((right, b), (left, a)),
            _ => self.replay.catch_up((left, a), (right, b)),
        }
        true
    }

    /// Makes a change on the spare pair, which has caught up.
    fn change(&mut self, op: Op) -> Result<(), Full> {
        let spare = self.fib.grace.spare();
        if let (Some(pair), Some(state)) = (self.fib.pairs.get(spare), self.states.get_mut(spare)) {
            op.apply(pair, state)?;
            self.batch.add(op);
        }
        Ok(())
    }

    /// Returns the longest route shorter than `prefix` that contains it.
    fn cover(&self, prefix: Prefix) -> Origin {
        let lengths = self.lengths.get(family_index(prefix.family()));
        (1..prefix.len())
            .rev()
            .filter(|len| {
                lengths
                    .and_then(|all| all.get(usize::from(*len)))
                    .is_some_and(|n| *n > 0)
            })
            .find_map(|len| {
                self.rib.get(&prefix.covering(len)).map(|group| Origin {
                    value: group.0,
                    len,
                })
            })
            .unwrap_or_default()
    }

    fn count(&mut self, prefix: Prefix, change: isize) {
        let index = family_index(prefix.family());
        let lengths = self.lengths.get_mut(index);
        let length = lengths.and_then(|all| all.get_mut(usize::from(prefix.len())));
        for count in length.into_iter().chain(self.held.get_mut(index)) {
            *count = count.saturating_add_signed(change);
        }
    }
}

pub(super) const fn family_index(family: Family) -> usize {
    match family {
        Family::V4 => 0,
        Family::V6 => 1,
    }
}

#[cfg(test)]
#[path = "ecmp_tests.rs"]
mod ecmp_tests;
#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
