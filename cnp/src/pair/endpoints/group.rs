//! Group: the endpoints of one direction with one UDP source port.

use npcc_pipeline::units::Nanos;

use crate::fixed_map::MapKey;
use crate::key::FlowKey;
use crate::links::{List, NONE};

/// Key of a group: a direction and a UDP source port; RC and UC are separate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PortKey {
    src: [u64; 2],
    dst: [u64; 2],
    port: u16,
    v6: bool,
    pub(super) uc: bool,
}

impl MapKey for PortKey {}

impl PortKey {
    pub(super) fn of(key: &FlowKey, port: u16, uc: bool) -> PortKey {
        PortKey {
            src: key.src,
            dst: key.dst,
            port,
            v6: key.is_ipv6(),
            uc,
        }
    }

    pub(super) fn reversed(self) -> PortKey {
        PortKey {
            src: self.dst,
            dst: self.src,
            ..self
        }
    }
}

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
