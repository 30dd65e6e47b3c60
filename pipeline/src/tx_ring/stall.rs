//! Devices that take none of the frames that wait.

use crate::units::Nanos;

/// Time without a frame taken after which a device has stalled.
const STALL: Nanos = Nanos::from_millis(10);

/// Time in which a link that went down is noticed, so that it is not taken for a device that stalled.
const LINK_NOTICED: Nanos = Nanos::from_millis(10);

/// Stalls of one ring.
#[derive(Debug)]
pub(super) struct Stall {
    /// Time at which the device has stalled, if it takes none until then; zero while it takes frames.
    at: Nanos,
    /// Number of times of [`STALL`] in which it took none.
    count: u64,
}

impl Stall {
    pub(super) const fn new() -> Stall {
        Stall {
            at: Nanos::ZERO,
            count: 0,
        }
    }

    /// Records that the device took frames, or that none wait any more.
    #[inline]
    pub(super) const fn ends(&mut self) {
        self.at = Nanos::ZERO;
    }

    /// Records that the device took none of what it was offered.
    #[cold]
    pub(super) fn goes_on(&mut self, now: Nanos) {
        if self.at == Nanos::ZERO {
            self.at = now + LINK_NOTICED + STALL;
        } else if now >= self.at {
            self.count += 1;
            self.at = now + STALL;
        }
    }

    #[inline]
    pub(super) const fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_stalled_once_its_link_would_have_been_noticed_down() {
        let mut stall = Stall::new();
        let begun = Nanos::from_millis(1);
        stall.goes_on(begun);
        let due = begun + LINK_NOTICED + STALL;
        for (now, count) in [(Nanos(due.0 - 1), 0), (due, 1), (due + STALL, 2)] {
            stall.goes_on(now);
            assert_eq!(stall.count(), count);
        }
    }
}
