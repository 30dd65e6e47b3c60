//! A worker's ring of odd frames: the beginning of each, and why it was dropped.

use npcc_heap::records::{Record, Ring, octets_of, words_of};
use npcc_pipeline::drop::{DropReason, REASONS};
use npcc_pipeline::odd::OddFrames;
use npcc_pipeline::units::{Nanos, PortId};

use super::layout::Kind;

/// Bytes of a frame that are kept.
pub const KEPT: usize = (Kind::Frames.longest() - 2) * 8;
/// A reason is shown once in this time: a flood of one kind neither costs much nor drives the others out at once.
const PAUSE: Nanos = Nanos::from_millis(10);

/// The writer's end.
#[derive(Debug)]
pub struct Keeper {
    ring: Ring,
    /// When each reason was last kept.
    kept: Box<[Option<Nanos>; REASONS]>,
}

impl Keeper {
    /// Keeps them in this ring.
    #[must_use]
    pub fn new(ring: Ring) -> Keeper {
        Keeper {
            ring,
            kept: Box::new([None; REASONS]),
        }
    }
}

impl OddFrames for Keeper {
    fn saw(&mut self, port: PortId, reason: DropReason, frame: &[u8], now: Nanos) {
        let Some(last) = self.kept.get_mut(reason.index()) else {
            return;
        };
        if last.is_some_and(|last| now.since(last) < PAUSE) {
            return;
        }
        *last = Some(now);
        let head = reason.index() as u64 | u64::from(port.0) << 8 | (frame.len() as u64) << 32;
        self.ring
            .push([now.0, head].into_iter().chain(words_of(frame)));
    }
}

/// An odd frame as it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OddFrame {
    /// The port it came in by.
    pub port: PortId,
    /// Why it was dropped.
    pub reason: Option<DropReason>,
    /// Its length.
    pub length: usize,
    /// Its first bytes.
    pub bytes: Vec<u8>,
}

impl OddFrame {
    /// Out of a record.
    #[must_use]
    pub fn of(record: &Record) -> OddFrame {
        let (head, words) = match record.words.as_slice() {
            [_, head, words @ ..] => (*head, words),
            _ => (0, [].as_slice()),
        };
        let [reason, port, ..] = head.to_le_bytes();
        let length = usize::try_from(head >> 32).unwrap_or(0);
        OddFrame {
            port: PortId(port),
            reason: DropReason::from_index(reason.into()),
            length,
            bytes: octets_of(words).into_iter().take(length).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_is_kept_and_a_flood_of_one_reason_leaves_room_for_another() {
        let ring = Ring::on_heap(Kind::Frames.slots(), Kind::Frames.longest());
        let mut keeper = Keeper::new(ring);
        let long: Vec<u8> = (0..=255).collect();
        keeper.saw(PortId(3), DropReason::IpChecksum, &long, Nanos::ZERO);
        for n in 0..10_000 {
            keeper.saw(PortId(0), DropReason::Runt, &[1, 2, 3], Nanos(n * 1_000));
        }
        let records = keeper.ring.read();
        let frames: Vec<OddFrame> = records.whole.iter().map(OddFrame::of).collect();
        assert_eq!(frames.len(), 2, "10 ms of runts are one");
        let first = &frames[0];
        assert_eq!((first.port, first.length), (PortId(3), 256));
        assert_eq!(first.reason, Some(DropReason::IpChecksum));
        assert_eq!(first.bytes, long[..128]);
        assert_eq!(frames[1].bytes, [1, 2, 3]);
    }
}
