//! One ingress group: its holdings, where they lie (reserve, shared pool, headroom), and whether its sender must pause.

use super::amount::Amount;
use super::config::{BufferConfig, GroupConfig};
use crate::units::Priority;

/// An (ingress port, priority) group, as one worker that receives from the port sees it.
#[derive(Debug, Clone, Default)]
pub struct Group {
    pub(super) lossless: bool,
    /// Number of workers that receive from its port.
    pub(super) receivers: u8,
    /// Reserve of the whole group.
    pub(super) reserve: Amount,
    /// This worker's part of the group's reserve.
    pub(super) reserve_here: Amount,
    /// Headroom of the whole group.
    pub(super) headroom_total: Amount,
    /// Headroom that the other workers leave to this one.
    pub(super) headroom_limit: Amount,
    /// Holdings of the other workers, as of the last refresh.
    pub(super) beside: RemoteShare,
    pub(super) xon: Amount,
    pub(super) xon_offset: Amount,
    /// Total ever released, as far as the owner has read it.
    pub(super) released: Amount,
    /// Amount held in the reserve and in the shared pool.
    pub(super) ordinary: Amount,
    /// Amount held in headroom.
    pub(super) headroom: Amount,
}

/// The other workers' holdings in a group.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RemoteShare {
    pub(super) ordinary: Amount,
    pub(super) headroom: Amount,
}

impl Group {
    /// Returns an empty group of a port that `receivers` workers receive from.
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
            reserve_here: reserve.part(receivers),
            headroom_total: amount(group.headroom),
            headroom_limit: amount(group.headroom),
            xon: amount(group.xon),
            xon_offset: amount(group.xon_offset),
            ..Group::default()
        }
    }

    /// Takes over the sizes of `sizes`, and keeps the holdings.
    pub(super) fn divide(&mut self, sizes: &Group) {
        self.reserve = sizes.reserve;
        self.reserve_here = sizes.reserve_here;
        self.headroom_total = sizes.headroom_total;
        self.headroom_limit = sizes.headroom_total.minus(self.beside.headroom);
        self.xon = sizes.xon;
        self.xon_offset = sizes.xon_offset;
    }

    /// Returns the amount this worker holds.
    #[inline]
    #[must_use]
    pub const fn held(&self) -> Amount {
        self.ordinary.plus(self.headroom)
    }

    /// Returns the total ever charged.
    #[must_use]
    pub const fn charged(&self) -> Amount {
        self.released.plus(self.held())
    }

    /// Returns the amount held in headroom.
    #[inline]
    #[must_use]
    pub const fn headroom(&self) -> Amount {
        self.headroom
    }

    /// Returns the amount held in the shared pool.
    #[inline]
    pub(super) const fn in_shared(&self) -> Amount {
        self.ordinary.minus(self.reserve_here)
    }

    /// Returns the amount beyond which this worker's frames go to headroom, when the group's share of the free pool is `share`.
    #[inline]
    #[must_use]
    pub(super) const fn threshold(&self, share: Amount) -> Amount {
        self.reserve.plus(share).minus(self.beside.ordinary)
    }

    /// Records the other workers' holdings, and derives the headroom left to this worker.
    pub(super) fn set_remote_share(&mut self, beside: RemoteShare) {
        self.beside = beside;
        self.headroom_limit = self.headroom_total.minus(beside.headroom);
    }

    /// Returns true if the sender must pause: hysteresis between the threshold and `xon_offset` below it.
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
