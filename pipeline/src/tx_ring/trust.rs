//! Trust in a driver's answers: lost when the device takes frames for which they leave no room, and tried again later.

use crate::units::Nanos;

/// Number of frames taken by a ring whose driver called it full, in different milliseconds and with no frame confirmed in between, after
/// which the driver's answers are ignored. One alone may be a link that resumed between the answer and the frame.
const DISPROOFS: u8 = 3;

/// Shortest time between two disproofs, and between two attempts to learn what answers mean.
const SPACING: Nanos = Nanos::from_millis(1);

/// Time from the last disproof to the next attempt.
const DISTRUST: Nanos = Nanos::from_millis(1_000);

/// Trust in the answers of one ring's driver.
#[derive(Debug)]
pub(super) struct Trust {
    /// Time of the latest answer by which the whole ring is full.
    full: Option<Nanos>,
    /// Number of frames that disproved such an answer, with no frame confirmed since; and the time of the last.
    disproofs: u8,
    disproved: Nanos,
    /// Time from which the meaning of answers may be learned.
    learn_at: Nanos,
}

impl Trust {
    pub(super) const fn new() -> Trust {
        Trust {
            full: None,
            disproofs: 0,
            disproved: Nanos::ZERO,
            learn_at: Nanos::ZERO,
        }
    }

    /// Records an answer by which the whole ring is full.
    #[inline]
    pub(super) const fn says_full(&mut self, now: Nanos) {
        self.full = Some(now);
    }

    /// Records an answer by which frames have left.
    #[inline]
    pub(super) const fn confirms(&mut self) {
        self.disproofs = 0;
    }

    /// Records that the device took a frame; returns true if the answers are not to be believed any more.
    #[inline]
    pub(super) fn takes(&mut self, now: Nanos) -> bool {
        self.full.take_if(|full| *full == now).is_some() && self.disprove(now)
    }

    /// Counts a frame that the device took while its driver called every descriptor full, at most one a millisecond.
    #[cold]
    fn disprove(&mut self, now: Nanos) -> bool {
        if self.disproofs > 0 && now.since(self.disproved) < SPACING {
            return false;
        }
        self.disproved = now;
        self.disproofs += 1;
        let lost = self.disproofs >= DISPROOFS;
        if lost {
            self.full = None;
            self.disproofs = 0;
            self.learn_at = now + DISTRUST;
        }
        lost
    }

    /// Returns true if it is time for an attempt to learn what the answers mean.
    pub(super) fn may_learn(&mut self, now: Nanos) -> bool {
        let may = now >= self.learn_at;
        if may {
            self.learn_at = now + SPACING;
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if frames taken at these times, in us, by a ring that is called full each time lose the driver its trust; one confirmed
    /// frame comes before the frame of this place.
    fn is_lost(times: &[u64], confirmed: usize) -> bool {
        let mut trust = Trust::new();
        let taken = times.iter().enumerate().map(|(place, time)| {
            let now = Nanos::from_micros(*time);
            if place == confirmed {
                trust.confirms();
            }
            trust.says_full(now);
            trust.takes(now)
        });
        taken.fold(false, |lost, now| lost | now)
    }

    #[test]
    fn three_disproofs_in_different_milliseconds_lose_trust() {
        const NEVER: usize = usize::MAX;
        assert!(is_lost(&[5_000, 6_000, 7_000], NEVER));
        assert!(
            !is_lost(&[5_000, 5_400, 5_800, 6_000], NEVER),
            "two of them"
        );
        assert!(
            !is_lost(&[5_000, 6_000, 7_000, 8_000], 2),
            "it ended the doubt"
        );
        assert!(is_lost(&[5_000, 6_000, 7_000, 8_000, 9_000], 2));
    }
}
