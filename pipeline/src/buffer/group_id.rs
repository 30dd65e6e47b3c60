//! Names of ingress groups.

use crate::bits::low8;
use crate::units::{PRIORITIES, PortId, Priority, WorkerId};

/// A group of one worker: what it took in by a port with a priority. Worker, port, priority, from the highest bits down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupId(u16);

impl GroupId {
    /// The switch's own frames belong to no group.
    pub const NONE: GroupId = GroupId(u16::MAX);
    /// What Linux sends belongs to none either, and has a reserve of its own.
    pub const LINUX: GroupId = GroupId(u16::MAX - 1);

    /// Whether it stands for what Linux sends.
    #[inline]
    #[must_use]
    pub const fn is_linux(self) -> bool {
        self.0 == GroupId::LINUX.0
    }

    /// Whether it is no group: its frames came in by no port.
    #[inline]
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 >= GroupId::LINUX.0
    }

    /// The group of what `worker` took in by `port` with `priority`.
    #[inline]
    #[must_use]
    pub const fn new(worker: WorkerId, port: PortId, priority: Priority) -> GroupId {
        GroupId((worker.0 as u16) << 8 | (port.0 as u16) << 3 | priority.get() as u16)
    }

    /// The worker that took its frames in.
    #[inline]
    #[must_use]
    pub const fn worker(self) -> WorkerId {
        WorkerId((self.0 >> 8) as u8)
    }

    /// Among the groups of its worker.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize & 0xff
    }

    /// The ingress port among those of all workers: worker times [`MAX_PORTS`](crate::units::MAX_PORTS) plus port.
    #[inline]
    #[must_use]
    pub const fn line(self) -> usize {
        self.0 as usize / PRIORITIES
    }

    /// The ingress port's index.
    #[inline]
    #[must_use]
    pub const fn port(self) -> usize {
        self.index() / PRIORITIES
    }

    /// The ingress port.
    #[inline]
    #[must_use]
    pub const fn ingress(self) -> PortId {
        PortId(low8(self.port()))
    }

    /// The priority's index.
    #[inline]
    #[must_use]
    pub const fn priority(self) -> usize {
        self.0 as usize & (PRIORITIES - 1)
    }

    /// The priority's bit.
    #[inline]
    #[must_use]
    pub const fn bit(self) -> u8 {
        1 << (self.0 & 7)
    }
}
