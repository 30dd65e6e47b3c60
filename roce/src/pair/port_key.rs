//! Key of a group of endpoints: a direction and a UDP source port.

use crate::fixed_map::MapKey;
use crate::key::FlowKey;

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
