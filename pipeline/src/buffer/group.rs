//! One group: what it holds, where that lies, and whether its sender must pause.

use super::amount::Amount;
use super::config::{BufferConfig, GroupConfig};
use crate::units::Priority;

/// An (ingress port, priority) group, as one worker that receives from the port sees it.
#[derive(Debug, Clone, Default)]
pub struct Group {
    pub(super) lossless: bool,
    /// Workers that receive from its port.
    pub(super) receivers: u8,
    /// The reserve of the whole group.
    pub(super) reserve: Amount,
    /// This worker's part of it.
    pub(super) reserved: Amount,
    /// Headroom of the whole group.
    pub(super) bound: Amount,
    /// Of that, what the other workers have left.
    pub(super) limit: Amount,
    /// What the other workers hold in reserve and shared pool, and in headroom; as of the last look.
    pub(super) beside: Beside,
    pub(super) xon: Amount,
    pub(super) xon_offset: Amount,
    /// Everything ever given back, as far as the owner has looked.
    pub(super) released: Amount,
    /// Held in the reserve and in the shared pool.
    pub(super) ordinary: Amount,
    /// Held in headroom.
    pub(super) headroom: Amount,
}

/// The other workers' holdings in a group.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Beside {
    pub(super) ordinary: Amount,
    pub(super) headroom: Amount,
}

impl Group {
    /// An empty group of a port that `receivers` workers receive from.
    pub(super) fn of(
        config: &BufferConfig,
        (priority, group): (Priority, &GroupConfig),
        receivers: u8,
    ) -> Group {
        let amount = |bytes| {
            if group.lossless {
                config.amount(bytes)
            } else {
                Amount::ZERO
            }
        };
        let reserve = config.reserve(priority, group);
        Group {
            lossless: group.lossless,
            receivers,
            reserve,
            reserved: reserve.part(receivers),
            bound: amount(group.headroom),
            limit: amount(group.headroom),
            xon: amount(group.xon),
            xon_offset: amount(group.xon_offset),
            ..Group::default()
        }
    }

    /// Takes over the sizes of another, and keeps what it holds.
    pub(super) fn divide(&mut self, sizes: &Group) {
        self.reserve = sizes.reserve;
        self.reserved = sizes.reserved;
        self.bound = sizes.bound;
        self.limit = sizes.bound.minus(self.beside.headroom);
        self.xon = sizes.xon;
        self.xon_offset = sizes.xon_offset;
    }

    /// What this worker holds.
    #[inline]
    #[must_use]
    pub const fn held(&self) -> Amount {
        self.ordinary.plus(self.headroom)
    }

    /// Everything ever taken in.
    #[must_use]
    pub const fn charged(&self) -> Amount {
        self.released.plus(self.held())
    }

    /// Of that, in headroom.
    #[inline]
    #[must_use]
    pub const fn headroom(&self) -> Amount {
        self.headroom
    }

    /// Of that, in the shared pool.
    #[inline]
    pub(super) const fn in_shared(&self) -> Amount {
        self.ordinary.minus(self.reserved)
    }

    /// The point beyond which this worker's frames go to headroom, when the group's share of what is free is `share`.
    #[inline]
    #[must_use]
    pub(super) const fn threshold(&self, share: Amount) -> Amount {
        self.reserve.plus(share).minus(self.beside.ordinary)
    }

    /// Takes note of what the other workers hold.
    pub(super) fn look(&mut self, beside: Beside) {
        self.beside = beside;
        self.limit = self.bound.minus(beside.headroom);
    }

    /// Whether the sender is to pause: hysteresis between the threshold and `xon_offset` below it.
    ///
    /// An empty group always lets its sender go on, so every pause ends once the queue has drained.
    #[inline]
    #[must_use]
    pub(super) const fn wants_pause(&self, paused: bool, share: Amount) -> bool {
        let headroom = self.headroom.plus(self.beside.headroom);
        let held = self.ordinary.plus(self.beside.ordinary).plus(headroom);
        let threshold = self.reserve.plus(share);
        if !paused {
            return !headroom.is_zero() || !held.within(threshold);
        }
        let low = held.within(self.xon) || held.plus(self.xon_offset).within(threshold);
        !(headroom.is_zero() && low)
    }
}
