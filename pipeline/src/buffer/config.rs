//! The buffer's settings.

use super::amount::Amount;
use crate::units::{PRIORITIES, Priority};

/// The pool's size and the share of what is free.
#[derive(Debug, Clone, Copy)]
pub struct PoolConfig {
    /// Wire bytes.
    pub bytes: u64,
    /// Frames (buffers).
    pub frames: u64,
    /// Dynamic threshold of a lossy queue and of a lossless group, in 1/256.
    pub alpha_256: u32,
}

/// What one (ingress port, priority) group may hold. All in wire bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupConfig {
    /// Its sender is paused instead of its frames dropped.
    pub lossless: bool,
    /// Its own, whatever others hold.
    pub reserved: u64,
    /// What may still arrive after pause was asked for (`xoff`).
    pub headroom: u64,
    /// At or below this occupancy the sender always goes on.
    pub xon: u64,
    /// The sender goes on this far below the threshold at which it was paused.
    pub xon_offset: u64,
}

/// What control frames have of their own, so that no congestion silences them: CNPs of hosts and of the switch, BFD and BGP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ControlReserve {
    /// Bit n: priority n carries control frames.
    pub priorities: u8,
    /// Reserve of each port's group of such a priority that is not lossless, in wire bytes of shortest frames.
    pub group: u64,
    /// Reserve of the frames the switch makes itself, of all workers together.
    pub own: u64,
    /// Reserve of what Linux sends of BFD, routing protocols and what they need, of all workers together.
    pub linux: u64,
}

impl ControlReserve {
    /// Bytes as shortest frames.
    #[must_use]
    pub const fn amount(bytes: u64) -> Amount {
        Amount::of_bytes(bytes, SHORTEST)
    }
}

/// A shortest frame on the wire.
const SHORTEST: u16 = 84;

/// The whole buffer.
#[derive(Debug, Clone)]
pub struct BufferConfig {
    /// Size and share.
    pub pool: PoolConfig,
    /// Mean wire length of lossless frames at the worst: turns reserves and headroom into frames.
    pub min_frame: u16,
    /// Headroom all groups share, in wire bytes; `None`: each has its own.
    pub shared_headroom: Option<u64>,
    /// What control frames have of their own.
    pub control: ControlReserve,
    /// Groups of each port, lowest priority first.
    pub groups: Vec<[GroupConfig; PRIORITIES]>,
}

impl BufferConfig {
    /// No group with anything of its own: a lossless queue may use the whole pool, and nobody is paused.
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

    /// `bytes` as bytes and frames.
    #[must_use]
    pub const fn amount(&self, bytes: u64) -> Amount {
        Amount::of_bytes(bytes, self.min_frame)
    }

    /// All reserves together.
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

    /// The reserve of one group.
    pub(super) fn reserve(&self, priority: Priority, group: &GroupConfig) -> Amount {
        if group.lossless {
            self.amount(group.reserved)
        } else if self.control.priorities & priority.bit() != 0 {
            ControlReserve::amount(self.control.group)
        } else {
            Amount::ZERO
        }
    }

    /// All headroom together, or the shared one.
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

    /// What is left to share; nothing when reserves and headroom do not fit into the pool.
    #[must_use]
    pub fn shared(&self) -> Amount {
        let pool = Amount {
            bytes: self.pool.bytes,
            frames: self.pool.frames,
        };
        pool.minus(self.reserved()).minus(self.headroom())
    }
}
