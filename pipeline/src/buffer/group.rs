//! One group: what it holds, where that lies, and whether its sender must pause.

use super::amount::Amount;

/// An (ingress port, priority) group.
#[derive(Debug, Clone, Default)]
pub struct Group {
    pub(super) lossless: bool,
    pub(super) reserved: Amount,
    pub(super) limit: Amount,
    pub(super) xon: Amount,
    pub(super) xon_offset: Amount,
    /// Everything ever given back, as far as the owner has looked.
    pub(super) released: Amount,
    /// Held in the reserve and in the shared pool.
    pub(super) ordinary: Amount,
    /// Held in headroom.
    pub(super) headroom: Amount,
}

impl Group {
    /// What is held.
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

    /// The point beyond which frames go to headroom, when the group's share of what is free is `share`.
    #[inline]
    #[must_use]
    pub(super) const fn threshold(&self, share: Amount) -> Amount {
        self.reserved.plus(share)
    }

    /// Whether the sender is to pause: hysteresis between the threshold and `xon_offset` below it.
    ///
    /// An empty group always lets its sender go on, so every pause ends once the queue has drained.
    #[inline]
    #[must_use]
    pub(super) const fn wants_pause(&self, paused: bool, share: Amount) -> bool {
        let (held, threshold) = (self.held(), self.threshold(share));
        if !paused {
            return !self.headroom.is_zero() || !held.within(threshold);
        }
        let low = held.within(self.xon) || held.plus(self.xon_offset).within(threshold);
        !(self.headroom.is_zero() && low)
    }
}
