//! The RIB and the one writer of the images.
//!
//! Changes go to the spare pair as they come, [`RouteWriter::commit`] makes them live together, and once every worker has
//! passed they are made on the other pair too (`journal.rs`). Until then the writer waits for nobody: it says
//! [`RouteError::Busy`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::edit::Full;
use super::fib::{Fib, FibReader, Handshake, Images, ImagesState};
use super::image::{Image, Origin};
use super::journal::{Journal, Op};
use super::nexthop::{Adjacency, AdjacencyId, GroupId, NextHops, Path};
use super::prefix::{Family, Prefix};
use super::warm::FEW;

/// Room for routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteCapacity {
    /// IPv4 prefixes; each longer than /24 may need a group of 256 entries.
    pub ipv4_routes: usize,
    /// IPv6 prefixes; each may need up to 13 groups, most need one to three.
    pub ipv6_routes: usize,
    /// Distinct next hops.
    pub adjacencies: usize,
    /// Distinct sets of next hops.
    pub groups: usize,
}

/// Why a route was refused; nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// The image has no group left.
    #[error(transparent)]
    Full(#[from] Full),
    /// More routes than configured.
    #[error(
        "the RIB is full: {limit} routes of this family; raise routing.ipv4_routes or ipv6_routes"
    )]
    TooMany {
        /// The configured number.
        limit: usize,
    },
    /// No adjacency or group left.
    #[error("no room for another next hop (of {limit})")]
    NextHops {
        /// Slots there are.
        limit: usize,
    },
    /// A worker has not passed since the last commit.
    #[error("a worker still reads the previous table; try again")]
    Busy,
}

/// The truth about routes, and the only writer of their images.
#[derive(Debug)]
pub struct RouteWriter {
    fib: Arc<Fib>,
    states: [ImagesState; 2],
    rib: HashMap<Prefix, GroupId, RandomState>,
    /// Prefixes of each family and length, so that a cover is sought only where there is one.
    lengths: [[usize; 129]; 2],
    /// Prefixes of each family.
    held: [usize; 2],
    limits: [usize; 2],
    adjacencies: HashMap<Path, AdjacencyId, RandomState>,
    /// By adjacency: the group of it alone, if there is one.
    alone: Vec<Option<GroupId>>,
    groups: HashMap<Vec<AdjacencyId>, GroupId, RandomState>,
    /// Applied to the spare pair, not yet visible.
    batch: Journal,
    /// Visible, not yet applied to the pair that was live before.
    replay: Journal,
}

impl RouteWriter {
    /// An empty table, and one reader for each worker.
    #[must_use]
    pub fn new(capacity: RouteCapacity, workers: usize) -> (RouteWriter, Vec<FibReader>) {
        let v4_groups = capacity.ipv4_routes.min(1 << 22);
        let v6_groups = (capacity.ipv6_routes * 2).max(64);
        let pair = || {
            let (v4, v4_state) = Image::new(v4_groups);
            let (v6, v6_state) = Image::new(v6_groups);
            (
                Images { v4, v6 },
                ImagesState {
                    v4: v4_state,
                    v6: v6_state,
                },
            )
        };
        let (left, left_state) = pair();
        let (right, right_state) = pair();
        let fib = Arc::new(Fib {
            handshake: Handshake::new(workers),
            pairs: [left, right],
            large: AtomicBool::new(false),
            hops: NextHops::new(capacity.adjacencies + 1, capacity.groups + 2),
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
            adjacencies: HashMap::with_hasher(RandomState::default()),
            alone: Vec::new(),
            groups: HashMap::with_hasher(RandomState::default()),
            batch: Journal::default(),
            replay: Journal::default(),
        };
        (writer, readers)
    }

    /// The shared table: the control core resolves its own packets with it.
    #[must_use]
    pub fn fib(&self) -> &Arc<Fib> {
        &self.fib
    }

    /// Routes held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rib.len()
    }

    /// Groups of 256 entries in use: IPv4 and IPv6, in each copy.
    #[must_use]
    pub fn groups_used(&self) -> [[usize; 2]; 2] {
        let used = |state: &ImagesState| [state.v4.groups_used(), state.v6.groups_used()];
        self.states.each_ref().map(used)
    }

    /// No routes held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rib.is_empty()
    }

    /// Every route with its paths.
    pub fn routes(&self) -> impl Iterator<Item = (Prefix, Vec<Adjacency>)> {
        self.rib.iter().map(|(prefix, group)| {
            let mut paths: Vec<_> = self.fib.hops.paths(u32::from(group.0)).collect();
            paths.dedup();
            paths.sort_unstable_by_key(|path| (path.port, path.dst.to_u64()));
            paths.dedup();
            (*prefix, paths)
        })
    }

    /// The group with exactly these paths, made when there is none.
    ///
    /// # Errors
    /// [`RouteError::NextHops`] when a table is full.
    pub fn group(&mut self, paths: &[Adjacency]) -> Result<GroupId, RouteError> {
        let &[path] = paths else {
            let members = self.members(paths)?;
            return self.group_of(members);
        };
        let member = self.adjacency(path)?;
        if let Some(Some(group)) = self.alone.get(usize::from(member.0)) {
            return Ok(*group);
        }
        let group = self.group_of(vec![member])?;
        if let Some(alone) = self.alone.get_mut(usize::from(member.0)) {
            *alone = Some(group);
        }
        Ok(group)
    }

    fn group_of(&mut self, members: Vec<AdjacencyId>) -> Result<GroupId, RouteError> {
        if let Some(group) = self.groups.get(&members) {
            return Ok(*group);
        }
        let (limit, _) = self.fib.hops.capacity();
        // Groups 0 and 1 are the default routes'.
        let next = self.groups.len() + 2;
        let id = u16::try_from(next)
            .ok()
            .filter(|_| next < limit)
            .map(GroupId);
        let id = id.ok_or(RouteError::NextHops { limit })?;
        self.fib.hops.set_group(id, &members);
        self.groups.insert(members, id);
        Ok(id)
    }

    fn members(&mut self, paths: &[Adjacency]) -> Result<Vec<AdjacencyId>, RouteError> {
        paths.iter().map(|path| self.adjacency(*path)).collect()
    }

    fn adjacency(&mut self, path: Adjacency) -> Result<AdjacencyId, RouteError> {
        let key = path.packed();
        if let Some(id) = self.adjacencies.get(&key) {
            return Ok(*id);
        }
        let (_, limit) = self.fib.hops.capacity();
        // Adjacency 0 is "no route".
        let next = self.adjacencies.len() + 1;
        let id = u16::try_from(next)
            .ok()
            .filter(|_| next < limit)
            .map(AdjacencyId);
        let id = id.ok_or(RouteError::NextHops { limit })?;
        self.fib.hops.set_adjacency(id, path);
        self.adjacencies.insert(key, id);
        self.alone.resize(next + 1, None);
        Ok(id)
    }

    /// Adds or replaces a route on the spare pair; [`RouteWriter::commit`] makes it visible. A default route takes effect at
    /// once: it is one store per bucket.
    ///
    /// # Errors
    /// [`RouteError`]; nothing changed.
    pub fn insert(&mut self, prefix: Prefix, paths: &[Adjacency]) -> Result<(), RouteError> {
        if prefix.is_default() {
            let members = self.members(paths)?;
            let id = default_group(prefix.family());
            self.fib.hops.set_group(id, &members);
            self.rib.insert(prefix, id);
            return Ok(());
        }
        let group = self.group(paths)?;
        if !self.ready() {
            return Err(RouteError::Busy);
        }
        let before = self.rib.insert(prefix, group);
        if before == Some(group) {
            return Ok(());
        }
        let done = self.put(prefix, group, before.is_none());
        if done.is_err() {
            match before {
                Some(group) => self.rib.insert(prefix, group),
                None => self.rib.remove(&prefix),
            };
        }
        done
    }

    /// Puts a prefix of the RIB into the spare pair; `new` says whether the RIB did not have it before.
    fn put(&mut self, prefix: Prefix, group: GroupId, new: bool) -> Result<(), RouteError> {
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

    /// Removes a route; `Ok(false)` when there was none.
    ///
    /// # Errors
    /// [`RouteError::Busy`]; nothing changed.
    pub fn remove(&mut self, prefix: Prefix) -> Result<bool, RouteError> {
        if !self.rib.contains_key(&prefix) {
            return Ok(false);
        }
        if prefix.is_default() {
            self.fib.hops.set_group(default_group(prefix.family()), &[]);
        } else {
            if !self.ready() {
                return Err(RouteError::Busy);
            }
            self.change(Op::Remove {
                prefix,
                cover: self.cover(prefix),
            })?;
            self.count(prefix, -1);
        }
        self.rib.remove(&prefix);
        Ok(true)
    }

    /// Makes all changes since the last commit visible, in one store.
    pub fn commit(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        self.fib.handshake.swap();
        let large = self.held.iter().any(|held| *held > FEW);
        self.fib.large.store(large, Ordering::Relaxed);
        // The other one is empty: changes are taken only then.
        std::mem::swap(&mut self.batch, &mut self.replay);
    }

    /// Whether changes can be taken: every worker has passed since the last commit, and the spare pair has caught up.
    pub fn ready(&mut self) -> bool {
        if self.replay.is_empty() {
            return true;
        }
        if !self.fib.handshake.quiet() {
            return false;
        }
        let ([left, right], [a, b]) = (&self.fib.pairs, &mut self.states);
        match self.fib.handshake.spare() {
            0 => self.replay.catch_up((right, b), (left, a)),
            _ => self.replay.catch_up((left, a), (right, b)),
        }
        true
    }

    /// Makes a change on the spare pair, which has caught up.
    fn change(&mut self, op: Op) -> Result<(), Full> {
        let spare = self.fib.handshake.spare();
        if let (Some(pair), Some(state)) = (self.fib.pairs.get(spare), self.states.get_mut(spare)) {
            op.apply(pair, state)?;
            self.batch.add(op);
        }
        Ok(())
    }

    /// The longest route that holds `prefix` and is shorter.
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

/// The default route's group: its image value is 0 in both families.
#[must_use]
pub const fn default_group(family: Family) -> GroupId {
    match family {
        Family::V4 => GroupId(0),
        Family::V6 => GroupId(1),
    }
}

const fn family_index(family: Family) -> usize {
    match family {
        Family::V4 => 0,
        Family::V6 => 1,
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
