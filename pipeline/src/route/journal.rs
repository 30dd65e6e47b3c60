//! What one pair of images has and the other has not yet.
//!
//! A batch is repeated change by change, unless it is so large that copying the images takes less time: then the changes are
//! not even remembered.

use super::edit::Full;
use super::fib::{Images, ImagesState};
use super::image::Origin;
use super::prefix::{Family, Prefix};

/// Changes above which the images are copied: a copy is 256 MiB read at most, a change one or two lines out of cache.
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
    /// Makes the change on a pair nobody reads.
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

/// The changes of a batch, or that there were too many.
#[derive(Debug, Default)]
pub(super) struct Journal {
    ops: Vec<Op>,
    too_many: bool,
}

impl Journal {
    pub(super) fn is_empty(&self) -> bool {
        self.ops.is_empty() && !self.too_many
    }

    pub(super) fn add(&mut self, op: Op) {
        if self.too_many {
            return;
        }
        self.ops.push(op);
        if self.ops.len() > MOST {
            self.ops.clear();
            self.too_many = true;
        }
    }

    /// Makes on `spare` what `live` has already; empty afterwards.
    pub(super) fn catch_up(
        &mut self,
        live: (&Images, &ImagesState),
        spare: (&Images, &mut ImagesState),
    ) {
        let ((from, theirs), (to, mine)) = (live, spare);
        if std::mem::take(&mut self.too_many) {
            to.v4.copy_of(&mut mine.v4, &from.v4, &theirs.v4);
            to.v6.copy_of(&mut mine.v6, &from.v6, &theirs.v6);
        }
        for op in self.ops.drain(..) {
            // The same operations succeeded on a twin of this pair.
            let replayed = op.apply(to, mine);
            debug_assert_eq!(replayed, Ok(()));
        }
    }
}
