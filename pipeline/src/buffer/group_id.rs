//! Identifiers of ingress groups.

use crate::bits::low8;
use crate::units::{PRIORITIES, PortId, Priority, WorkerId};

/// Identifier of one worker's ingress group: worker, port and priority, from the highest bits down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupId(u16);

impl GroupId {
    /// Pseudo-group of the frames the switch makes itself, and of those of Linux that are not control frames.
    pub const NONE: GroupId = GroupId(u16::MAX);
    /// Pseudo-group of Linux's control frames (BFD, and protocols that routes and neighbours depend on), which have a reserve of
    /// their own.
    pub const LINUX: GroupId = GroupId(u16::MAX - 1);

    /// Returns true for [`GroupId::LINUX`].
    #[inline]
    #[must_use]
    pub const fn is_linux(self) -> bool {
        self.0 == GroupId::LINUX.0
    }

    /// Returns true if this is no group: its frames did not arrive on a port.
    #[inline]
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 >= GroupId::LINUX.0
    }

    /// Returns the group of the frames that `worker` receives on `port` with `priority`.
    #[inline]
    #[must_use]
    pub const fn new(worker: WorkerId, port: PortId, priority: Priority) -> GroupId {
        GroupId((worker.0 as u16) << 8 | (port.0 as u16) << 3 | priority.get() as u16)
    }

    /// Returns the worker that received its frames.
    #[inline]
    #[must_use]
    pub const fn worker(self) -> WorkerId {
        WorkerId((self.0 >> 8) as u8)
    }

    /// Returns the index among the groups of its worker.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize & 0xff
    }

    /// Returns the index among the ingress ports of all workers: worker times [`MAX_PORTS`](crate::units::MAX_PORTS) plus port.
    #[inline]
    #[must_use]
    pub const fn line(self) -> usize {
        self.0 as usize / PRIORITIES
    }

    /// Returns the index of the ingress port.
    #[inline]
    #[must_use]
    pub const fn port(self) -> usize {
        self.index() / PRIORITIES
    }

    /// Returns the ingress port.
    #[inline]
    #[must_use]
    pub const fn ingress(self) -> PortId {
        PortId(low8(self.port()))
    }

    /// Returns the index of the priority, 0 to 7.
    #[inline]
    #[must_use]
    pub const fn priority(self) -> usize {
        self.0 as usize & (PRIORITIES - 1)
    }

    /// Returns the bit of the priority in a set of priorities.
    #[inline]
    #[must_use]
    pub const fn bit(self) -> u8 {
        1 << (self.0 & 7)
    }
}
