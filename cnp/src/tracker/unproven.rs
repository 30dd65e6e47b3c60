//! How much of the flow table those may take whom nobody has answered: anybody can make them up.
//!
//! A quarter of the table is kept for flows with evidence, and no source at a port has more than half of it with flows that
//! have none.

use npcc_pipeline::units::PortId;

use crate::key::{FlowKey, KeyHasher};
use crate::source_limit::bucket;

/// Sources told apart; those that hash to one place share.
const SOURCES: usize = 4_096;

/// Flows without evidence, in all and by source.
#[derive(Debug)]
pub(crate) struct Unproven {
    by_source: Box<[u32]>,
    all: usize,
    /// Most in all, and of one source.
    most: (usize, usize),
    hasher: KeyHasher,
}

impl Unproven {
    /// Of a table of `capacity` flows.
    pub(crate) fn new(capacity: usize, seed: u64) -> Unproven {
        Unproven {
            by_source: vec![0; SOURCES].into_boxed_slice(),
            all: 0,
            most: (capacity - capacity / 4, capacity.div_ceil(2)),
            hasher: KeyHasher::new(seed),
        }
    }

    /// The place of a flow's source.
    pub(crate) fn source(&self, key: &FlowKey, ingress: PortId) -> u16 {
        u16::try_from(bucket(&self.hasher, key, ingress, SOURCES)).unwrap_or(0)
    }

    /// Whether they have their share of the table.
    pub(crate) const fn is_full(&self) -> bool {
        self.all >= self.most.0
    }

    /// Whether this source has its share.
    pub(crate) fn has_share(&self, source: u16) -> bool {
        let mine = self.by_source.get(usize::from(source)).copied();
        mine.is_some_and(|mine| mine as usize >= self.most.1)
    }

    /// One of this source more, or less.
    pub(crate) fn count(&mut self, source: u16, more: bool) {
        let step = if more { 1 } else { -1 };
        self.all = self.all.saturating_add_signed(step);
        if let Some(mine) = self.by_source.get_mut(usize::from(source)) {
            *mine = mine.saturating_add_signed(if more { 1 } else { -1 });
        }
    }
}
