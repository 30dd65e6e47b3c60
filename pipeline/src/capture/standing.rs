//! Standing capture: malformed frames are kept at all times, independent of what a client captures.
//!
//! The first [`SNAPLEN`] bytes of a frame go into a ring of records behind its event, at most one for each reason in
//! [`PAUSE`]: a flood of one reason neither costs much nor displaces the frames of others at once. Only a frame dropped for a
//! reason of class [`DropClass::Malformed`](crate::drop::DropClass) comes here, so a frame that is forwarded costs nothing.

use npcc_heap::records::{Ring, words_of};

use super::event::HEAD;
use super::point::CapturePoint;
use crate::drop::DropReason;
use crate::units::{Nanos, WorkerId};

/// Most bytes of a frame that are kept.
pub const SNAPLEN: usize = 128;
/// Length of a record in 64-bit words.
pub const WORDS: usize = (HEAD + SNAPLEN).div_ceil(8);
/// Least time between two kept frames of the same reason.
const PAUSE: Nanos = Nanos::from_millis(10);

/// A worker's end of the standing capture, the only writer of its ring.
#[derive(Debug)]
pub struct Standing {
    ring: Ring,
    worker: WorkerId,
    /// Time at which a frame of each reason was last kept.
    kept: [Option<Nanos>; DropReason::COUNT],
}

impl Standing {
    /// Returns an end that writes into this ring, whose records have [`WORDS`] words.
    #[must_use]
    pub const fn new(ring: Ring, worker: WorkerId) -> Standing {
        Standing {
            ring,
            worker,
            kept: [None; DropReason::COUNT],
        }
    }

    /// Keeps the beginning of a frame, unless one of the same reason was kept within [`PAUSE`].
    #[cold]
    pub(super) fn keep(
        &mut self,
        point: &CapturePoint,
        reason: DropReason,
        frame: &[u8],
        now: Nanos,
    ) {
        let Some(kept) = self.kept.get_mut(reason.index()) else {
            return;
        };
        if kept.is_some_and(|last| now.since(last) < PAUSE) {
            return;
        }
        *kept = Some(now);
        let event = point.event((0, 0), (self.worker, now), frame.len());
        let mut octets = [0; HEAD + SNAPLEN];
        let parts = event.encode().into_iter().chain(frame.iter().copied());
        let used = octets
            .iter_mut()
            .zip(parts)
            .map(|(to, from)| *to = from)
            .count();
        self.ring
            .push(words_of(octets.get(..used).unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::Event;
    use npcc_heap::records::octets_of;

    #[test]
    fn the_beginning_is_kept_and_a_flood_of_one_reason_leaves_room_for_another() {
        let mut standing = Standing::new(Ring::on_heap(64, WORDS), WorkerId(3));
        let mut keep = |reason, frame: &[u8], now| {
            standing.keep(&CapturePoint::dropped(reason), reason, frame, now);
        };
        let long: Vec<u8> = (0..=255).collect();
        keep(DropReason::IpChecksum, &long, Nanos::ZERO);
        for n in 0..10_000 {
            keep(DropReason::Runt, &[1, 2, 3], Nanos(n * 1_000));
        }
        keep(DropReason::Runt, &[4], PAUSE);
        let records = standing.ring.read();
        let frames = records.whole.iter().map(|record| octets_of(&record.words));
        let frames: Vec<_> = frames.collect();
        let read = |n: usize| Event::decode(&frames[n]).unwrap();
        assert_eq!(frames.len(), 3, "10 ms of runts are one");
        let (event, bytes) = read(0);
        assert_eq!(
            (event.reason, event.len),
            (Some(DropReason::IpChecksum), 256)
        );
        assert_eq!(
            (event.worker, &bytes[..SNAPLEN]),
            (WorkerId(3), &long[..SNAPLEN])
        );
        assert!(bytes[SNAPLEN..].iter().all(|octet| *octet == 0));
        let (event, bytes) = read(1);
        assert_eq!((event.time, &bytes[..3]), (Nanos::ZERO, &[1, 2, 3][..]));
        assert_eq!(read(2).0.time, PAUSE);
    }
}
