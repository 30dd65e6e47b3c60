//! Set of ports whose link is down: written by the link monitor, read by every reader of the routes.
//!
//! It waits for no writer and no grace period: a loss of link must take effect at once, however long a reload of the routes
//! takes.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::units::{MAX_PORTS, PortId};

const _: () = assert!(MAX_PORTS <= u32::BITS as usize);

/// Set of ports that any thread may change and any may read.
#[derive(Debug, Default)]
pub struct DownPorts(AtomicU32);

impl DownPorts {
    /// Records that a port's link is down, or up again; readers see it at their next refresh. A port beyond the maximum is
    /// ignored.
    pub fn set(&self, port: PortId, down: bool) {
        let bit = 1u32.checked_shl(port.0.into()).unwrap_or(0);
        if down {
            self.0.fetch_or(bit, Ordering::Relaxed);
        } else {
            self.0.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    /// Returns the ports that are down, one bit each.
    #[inline]
    #[must_use]
    pub fn mask(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_is_told_by_itself() {
        let down = DownPorts::default();
        for port in [0, 31, 32, 255] {
            down.set(PortId(port), true);
        }
        assert_eq!(down.mask(), 1 << 31 | 1);
        down.set(PortId(31), false);
        down.set(PortId(7), false);
        assert_eq!(down.mask(), 1);
    }
}
