//! Configuration of the shared buffer.

use super::amount::Amount;
use crate::units::{PRIORITIES, Priority};

/// Size of the pool, and the share of its free part that a queue or group may take.
#[derive(Debug, Clone, Copy)]
pub struct PoolConfig {
    /// Size in wire bytes.
    pub bytes: u64,
    /// Size in frames (packet buffers).
    pub frames: u64,
    /// Dynamic threshold (alpha) of a lossy queue and of a lossless group, in 1/256.
    pub alpha_256: u32,
}

/// Limits of one (ingress port, priority) group, all in wire bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupConfig {
    /// True if its sender is paused instead of its frames being dropped.
    pub lossless: bool,
    /// Reserve: bytes the group may hold regardless of the others.
    pub reserved: u64,
    /// Headroom: bytes that may still arrive after the pause was requested (`xoff`).
    pub headroom: u64,
    /// Occupancy at or below which the sender always resumes.
    pub xon: u64,
    /// Distance below the pause threshold at which the sender resumes.
    pub xon_offset: u64,
}

/// Reserves of control frames, so that no congestion silences them: CNPs of hosts and of the switch, BFD and BGP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ControlReserve {
    /// Set of priorities that carry control frames; bit n is priority n.
    pub priorities: u8,
    /// Reserve of each port's group of such a priority that is not lossless, in wire bytes, converted to frames of minimum
    /// size.
    pub group: u64,
    /// Reserve of the frames the switch makes itself, in wire bytes, of all workers together.
    pub own: u64,
    /// Reserve of the BFD, routing-protocol and supporting frames Linux sends, in wire bytes, of all workers together.
    pub linux: u64,
}

impl ControlReserve {
    /// Converts wire bytes to an amount in frames of minimum size.
    #[must_use]
    pub const fn amount(bytes: u64) -> Amount {
        Amount::of_bytes(bytes, SHORTEST)
    }
}

/// Wire length of a minimum-size frame: 64 bytes plus 20 of preamble, SFD and gap.
const SHORTEST: u16 = 84;

/// Configuration of the whole buffer.
#[derive(Debug, Clone)]
pub struct BufferConfig {
    /// Size and alpha of the pool.
    pub pool: PoolConfig,
    /// Smallest mean wire length expected of lossless frames: turns reserves and headroom from bytes into frames.
    pub min_frame: u16,
    /// Headroom that all groups share, in wire bytes; `None` if each group has its own.
    pub shared_headroom: Option<u64>,
    /// Reserves of control frames.
    pub control: ControlReserve,
    /// Groups of each port, priority 0 first.
    pub groups: Vec<[GroupConfig; PRIORITIES]>,
}

impl BufferConfig {
    /// Returns a configuration without reserves, headroom or lossless groups: a lossless queue may use the whole pool, and no
    /// sender is paused.
    #[must_use]
    pub fn plain(pool: PoolConfig, ports: usize) -> BufferConfig {
        BufferConfig {
            pool,
            min_frame: SHORTEST,
            shared_headroom: None,
            control: ControlReserve::default(),
            groups: vec![[GroupConfig::default(); PRIORITIES]; ports],
        }
    }

    /// Converts `bytes` to an amount, with frames of [`BufferConfig::min_frame`] bytes.
    #[must_use]
    pub const fn amount(&self, bytes: u64) -> Amount {
        Amount::of_bytes(bytes, self.min_frame)
    }

    /// Returns the sum of all reserves.
    #[must_use]
    pub fn reserved(&self) -> Amount {
        let own = ControlReserve::amount(self.control.own)
            .plus(ControlReserve::amount(self.control.linux));
        let groups = self
            .groups
            .iter()
            .flat_map(|groups| Priority::all().zip(groups));
        groups.fold(own, |sum, (priority, group)| {
            sum.plus(self.reserve(priority, group))
        })
    }

    /// Returns the reserve of one group.
    pub(super) fn reserve(&self, priority: Priority, group: &GroupConfig) -> Amount {
        if group.lossless {
            self.amount(group.reserved)
        } else if self.control.priorities & priority.bit() != 0 {
            ControlReserve::amount(self.control.group)
        } else {
            Amount::ZERO
        }
    }

    /// Returns the shared headroom, or the sum of the groups' headroom if there is none.
    #[must_use]
    pub fn headroom(&self) -> Amount {
        self.shared_headroom.map_or_else(
            || self.total(|group| group.headroom),
            |bytes| self.amount(bytes),
        )
    }

    fn total(&self, of: impl Fn(&GroupConfig) -> u64) -> Amount {
        let lossless = self.groups.iter().flatten().filter(|group| group.lossless);
        lossless.fold(Amount::ZERO, |sum, group| sum.plus(self.amount(of(group))))
    }

    /// Returns the size of the shared pool; zero if reserves and headroom do not fit into the pool.
    #[must_use]
    pub fn shared(&self) -> Amount {
        let pool = Amount {
            bytes: self.pool.bytes,
            frames: self.pool.frames,
        };
        pool.minus(self.reserved()).minus(self.headroom())
    }
}
