//! Tests of the distances at which a standing queue prefetches.

use std::cell::Cell;
use std::rc::Rc;

use super::*;
use crate::egress::fifo::{Fifo, FifoStore};
use crate::units::PortId;
use proptest::prelude::*;

/// Frame that counts what is prefetched of it: descriptor, headers.
#[derive(Debug)]
struct Probe(Rc<[Cell<u8>; 2]>);

impl Probe {
    fn count(&self, which: usize) {
        self.0[which].set(self.0[which].get() + 1);
    }
}

impl FrameBuf for Probe {
    fn data(&self) -> &[u8] {
        &[]
    }
    fn data_mut(&mut self) -> &mut [u8] {
        &mut []
    }
    fn prepend(&mut self, _: usize) -> bool {
        false
    }
    fn trim_front(&mut self, _: usize) -> bool {
        false
    }
    fn truncate(&mut self, _: usize) -> bool {
        false
    }
    fn handle(&self) -> usize {
        1
    }
    fn prefetch_handle(&self) {
        self.count(0);
    }
    fn prefetch(&self) {
        self.count(1);
    }
}

proptest! {
    /// Descriptor and headers of each frame that came while the queue was long are prefetched once before it leaves, however many
    /// leave together.
    #[test]
    fn each_frame_of_a_standing_queue_is_prefetched_once(rows in prop::collection::vec(1usize..=32, 1..60)) {
        let meta = Meta::of(1_082, PortId(0), PortId(1), Priority::new(3));
        let (mut store, mut fifo) = (FifoStore::new(4_096, 1, meta), Fifo::default());
        let frames: Vec<_> = (0..2_100).map(|_| Rc::new([Cell::new(0), Cell::new(0)])).collect();
        for frame in &frames {
            fifo.push(&mut store, Probe(Rc::clone(frame)), meta).unwrap();
        }
        let mut gone = 0;
        for row in rows {
            let (slots, _) = fifo.oldest(&mut store);
            let row = row.min(slots.len());
            for slot in &mut slots[..row] {
                drop(slot.take());
            }
            for frame in &frames[gone..gone + row] {
                let came_first = frames[..DESCRIPTORS].iter().any(|first| Rc::ptr_eq(first, frame));
                prop_assert!(came_first || frame.each_ref().map(Cell::get) == [1, 1]);
            }
            fifo.advance(&mut store, row);
            prefetch(&fifo, &store, row, true);
            gone += row;
        }
        for (place, frame) in frames.iter().enumerate().skip(gone.max(DESCRIPTORS)) {
            let ahead = place - gone;
            let expected = [u8::from(ahead < DESCRIPTORS), u8::from(ahead < HEADERS)];
            prop_assert_eq!(frame.each_ref().map(Cell::get), expected, "{} ahead", ahead);
        }
    }
}
