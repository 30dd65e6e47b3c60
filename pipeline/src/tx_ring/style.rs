//! Styles in which drivers answer about a transmit descriptor, and how one is learned.
//!
//! DPDK documents the offset as counted from the next descriptor to be filled. Drivers understand it in several ways, and no name or flag
//! says which. A burst into an empty ring shows it: the driver is then queried about a frame that was given, about one that was not, and about
//! the oldest.

use super::Device;

/// Style of a driver's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// The driver has no such call.
    Absent,
    /// Nothing shows yet what the answers mean, or they were disproved.
    Unknown,
    /// Frames that were never given are in the ring: the query is rounded to a descriptor that no card reports as done.
    Rounded,
    /// The offset counts from the next descriptor to be filled, and each frame is confirmed.
    Exact,
    /// The offset counts from the oldest frame that is not confirmed; frames are confirmed in batches.
    FromOldest,
}

impl Style {
    /// Returns the style that a driver's answers may have before any frame was given.
    pub fn of<B>(device: &impl Device<B>) -> Style {
        device.is_full(0).map_or(Style::Absent, |_| Style::Unknown)
    }

    /// Returns true if answers say what the ring holds.
    #[inline]
    pub const fn tells(self) -> bool {
        matches!(self, Style::Exact | Style::FromOldest)
    }

    /// Returns the number of frames by which the answers may exceed what the ring holds: a driver that confirms in batches requests a report
    /// at the end of a burst, once 32 frames have none.
    #[inline]
    pub const fn batch(self) -> usize {
        match self {
            Style::FromOldest => BATCH,
            _ => 0,
        }
    }

    /// Returns what the answers show after `given` frames into a ring that was empty; `None` if they show nothing.
    #[cold]
    pub fn learn<B>(device: &impl Device<B>, given: u16) -> Option<Style> {
        let latest = device.descriptors().checked_sub(1)?;
        let beyond = latest.checked_sub(given)?;
        // In a ring that is half full the one meaning looks like the other.
        if usize::from(beyond) <= usize::from(given) + BATCH {
            return None;
        }
        if device.is_full(beyond)? {
            return Some(Style::Rounded);
        }
        match (device.is_full(0)?, device.is_full(latest)?) {
            (true, _) => Some(Style::FromOldest),
            (false, true) => Some(Style::Exact),
            (false, false) => None,
        }
    }

    /// Returns how many frames, of at most `most`, are in the ring by the driver's answers; `None` if they do not say.
    #[inline]
    pub fn count<B>(self, device: &impl Device<B>, most: usize) -> Option<usize> {
        let last = usize::from(device.descriptors());
        // True if at least so many frames are in the ring: true up to some number, and false beyond.
        let holds = |frames: usize| {
            let offset = match self {
                Style::Exact => last.wrapping_sub(frames),
                _ => frames.wrapping_sub(1),
            };
            u16::try_from(offset).is_ok_and(|offset| device.is_full(offset) == Some(true))
        };
        // DPDK's bnxt counts from the oldest frame that its last burst left: once that one has gone, the answers say no more until the next.
        if self == Style::FromOldest && !holds(1) {
            return None;
        }
        if holds(most) {
            return Some(most);
        }
        let (mut low, mut high) = (0, most.saturating_sub(1));
        while low < high {
            let middle = high - (high - low) / 2;
            if holds(middle) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        Some(low)
    }
}

/// Most frames that a driver of [`Style::FromOldest`] has sent and not confirmed, as far as a bound counts them.
pub const BATCH: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameVec;

    /// Ring of 256 descriptors whose driver calls all of them full.
    struct Full;

    impl Device<u16> for Full {
        fn descriptors(&self) -> u16 {
            256
        }

        fn is_full(&self, _: u16) -> Option<bool> {
            Some(true)
        }

        fn send(&mut self, _: &mut FrameVec<u16>, _: usize) -> usize {
            0
        }

        fn length(&self, _: &u16) -> usize {
            0
        }
    }

    #[test]
    fn a_ring_that_is_half_full_teaches_nothing() {
        for (given, learned) in [
            (95, Some(Style::Rounded)),
            (96, None),
            (255, None),
            (256, None),
        ] {
            assert_eq!(Style::learn(&Full, given), learned, "{given}");
        }
    }
}
