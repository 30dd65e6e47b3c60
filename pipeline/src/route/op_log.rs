//! Log of the changes that one pair of images and next hops has and the other has not yet.
//!
//! A batch is replayed change by change, unless it is so large that copying the images takes less time: then the changes are
//! not even logged.

use super::edit::Full;
use super::fib::{Images, ImagesState};
use super::image::Origin;
use super::nexthop::{AdjacencyId, NextHopGroupId};
use super::prefix::{Family, Prefix};

/// Number of changes above which the images are copied: a copy is 256 MiB read at most, a change one or two lines out of cache.
#[cfg(not(test))]
const MOST: usize = 1 << 16;
#[cfg(test)]
const MOST: usize = 8;

/// A change of the images.
#[derive(Debug, Clone, Copy)]
pub(super) enum Op {
    Insert {
        prefix: Prefix,
        value: u16,
        new: bool,
    },
    Remove {
        prefix: Prefix,
        cover: Origin,
    },
}

impl Op {
    /// Applies the change to a pair that no worker reads.
    pub(super) fn apply(self, pair: &Images, state: &mut ImagesState) -> Result<(), Full> {
        let (Op::Insert { prefix, .. } | Op::Remove { prefix, .. }) = self;
        let (image, state) = match prefix.family() {
            Family::V4 => (&pair.v4, &mut state.v4),
            Family::V6 => (&pair.v6, &mut state.v6),
        };
        match self {
            Op::Insert { value, new, .. } => image.insert(state, prefix, value, new),
            Op::Remove { cover, .. } => {
                image.remove(state, prefix, cover);
                Ok(())
            }
        }
    }
}

/// Changes of a batch, or a flag that there were too many.
#[derive(Debug, Default)]
pub(super) struct OpLog {
    ops: Vec<Op>,
    /// Adjacencies written since the last replay; their values are read from the pair that has them.
    adjacencies: Vec<AdjacencyId>,
    groups: Vec<NextHopGroupId>,
    too_many: bool,
}

impl OpLog {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0 && !self.too_many
    }

    fn len(&self) -> usize {
        self.ops.len() + self.adjacencies.len() + self.groups.len()
    }

    pub(super) fn add(&mut self, op: Op) {
        self.remember(|log| log.ops.push(op));
    }

    pub(super) fn wrote_adjacency(&mut self, id: AdjacencyId) {
        self.remember(|log| log.adjacencies.push(id));
    }

    pub(super) fn wrote_group(&mut self, id: NextHopGroupId) {
        self.remember(|log| log.groups.push(id));
    }

    fn remember(&mut self, push: impl FnOnce(&mut OpLog)) {
        if self.too_many {
            return;
        }
        push(self);
        if self.len() > MOST {
            self.ops.clear();
            self.adjacencies.clear();
            self.groups.clear();
            self.too_many = true;
        }
    }

    /// Applies to `spare` the changes that `live` has already; the log is empty afterwards.
    pub(super) fn catch_up(
        &mut self,
        live: (&Images, &ImagesState),
        spare: (&Images, &mut ImagesState),
    ) {
        let ((from, theirs), (to, mine)) = (live, spare);
        if std::mem::take(&mut self.too_many) {
            to.v4.copy_of(&mut mine.v4, &from.v4, &theirs.v4);
            to.v6.copy_of(&mut mine.v6, &from.v6, &theirs.v6);
            to.hops.copy_of(&from.hops);
        }
        for id in self.adjacencies.drain(..) {
            to.hops.copy_adjacency(&from.hops, id);
        }
        for id in self.groups.drain(..) {
            to.hops.copy_group(&from.hops, id);
        }
        for op in self.ops.drain(..) {
            // The same operations succeeded on a twin of this pair.
            let replayed = op.apply(to, mine);
            debug_assert_eq!(replayed, Ok(()));
        }
    }
}
