//! A worker's ring of odd frames: the beginning of each, and why it was dropped.

use npcc_pipeline::drop::{DropReason, REASONS};
use npcc_pipeline::odd::OddFrames;
use npcc_pipeline::units::{Nanos, PortId};

use super::layout::{Kind, word_of};
use super::ring::{Record, Writer};

/// Bytes of a frame that are kept.
pub const KEPT: usize = Kind::Frames.payload() * 8;
/// A reason is shown once in this time: a flood of one kind neither costs much nor drives the others out at once.
const PAUSE: Nanos = Nanos::from_millis(10);

/// The writer's end.
#[derive(Debug)]
pub struct Keeper {
    ring: Writer,
    /// When each reason was last kept.
    kept: Box<[Option<Nanos>; REASONS]>,
}

impl Keeper {
    /// Keeps them in this ring.
    #[must_use]
    pub fn new(ring: Writer) -> Keeper {
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
        self.ring.write(now.0, head, frame.chunks(8).map(word_of));
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
        let [reason, port, ..] = record.head.to_le_bytes();
        let length = usize::try_from(record.head >> 32).unwrap_or(0);
        let bytes = record.words.iter().flat_map(|word| word.to_le_bytes());
        OddFrame {
            port: PortId(port),
            reason: DropReason::from_index(reason.into()),
            length,
            bytes: bytes.take(length.min(KEPT)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::ring::{self, HEAD, Place};
    use npcc_heap::shared::SharedWords;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    #[test]
    fn the_beginning_is_kept_and_a_flood_of_one_reason_leaves_room_for_another() {
        let place = Place {
            first: 0,
            slots: Kind::Frames.slots(),
            width: Kind::Frames.payload() + HEAD,
        };
        let memory = Arc::new(SharedWords::new("frames", place.words()).unwrap());
        let mut keeper = Keeper::new(Writer::new(Arc::clone(&memory), place));
        let long: Vec<u8> = (0..=255).collect();
        keeper.saw(PortId(3), DropReason::IpChecksum, &long, Nanos::ZERO);
        for n in 0..10_000 {
            keeper.saw(PortId(0), DropReason::Runt, &[1, 2, 3], Nanos(n * 1_000));
        }
        let words: Vec<u64> = memory
            .words()
            .iter()
            .map(|word| word.load(Ordering::Relaxed))
            .collect();
        let (records, torn) = ring::read(&words, place);
        let frames: Vec<OddFrame> = records.iter().map(OddFrame::of).collect();
        assert_eq!((frames.len(), torn), (2, 0), "10 ms of runts are one");
        let first = &frames[0];
        assert_eq!((first.port, first.length), (PortId(3), 256));
        assert_eq!(first.reason, Some(DropReason::IpChecksum));
        assert_eq!(first.bytes, long[..128]);
        assert_eq!(frames[1].bytes, [1, 2, 3]);
    }
}
