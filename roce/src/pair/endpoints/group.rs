//! Group: the endpoints of one direction with one UDP source port.

use npcc_pipeline::units::Nanos;

use crate::links::{List, NONE};

/// Endpoints of one direction with one UDP source port.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group {
    pub(crate) endpoints: List,
    pub(crate) changed: Nanos,
    /// Number of its endpoints whose replies fit no request seen.
    pub(in crate::pair) orphans: u32,
    /// Group with this port in the other direction; [`NONE`] for none. That group has this one here.
    pub(super) opposite: u32,
}

impl Group {
    pub(super) const EMPTY: Group = Group {
        endpoints: List::EMPTY,
        changed: Nanos::ZERO,
        orphans: 0,
        opposite: NONE,
    };
}
