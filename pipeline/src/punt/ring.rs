//! Ring of frames as bytes, with one writer and one reader, between a worker and the housekeeping thread.
//!
//! Law: a frame is in the ring as a whole or not at all, and in the order in which it was put in. Neither end waits or
//! allocates.

use rtrb::chunks::ChunkError;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::bits::low16;
use crate::units::PortId;

/// Length of the header before each frame in octets.
const HEAD: usize = 5;

/// Port and VLAN (0 is untagged) where a frame arrived or is to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Port where the frame arrived or is to leave.
    pub port: PortId,
    /// VLAN id; 0 for frames without a tag.
    pub vlan: u16,
}

/// Writing end of the ring.
#[derive(Debug)]
pub struct FrameSender(Producer<u8>);

/// Reading end of the ring.
#[derive(Debug)]
pub struct FrameReceiver(Consumer<u8>);

/// Returns the ends of a ring of `bytes` bytes, five of which precede each frame.
#[must_use]
pub fn ring(bytes: usize) -> (FrameSender, FrameReceiver) {
    let (sender, receiver) = RingBuffer::new(bytes);
    (FrameSender(sender), FrameReceiver(receiver))
}

impl FrameSender {
    /// Puts in a frame that consists of these parts in order; returns false, and does nothing, if there is no room for all of
    /// it.
    pub fn push(&mut self, at: Place, parts: &[&[u8]]) -> bool {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        if len > usize::from(u16::MAX) {
            return false;
        }
        let Ok(mut chunk) = self.0.write_chunk(HEAD + len) else {
            return false;
        };
        let ([a, b], [c, d]) = (low16(len).to_le_bytes(), at.vlan.to_le_bytes());
        let head = [a, b, c, d, at.port.0];
        let (first, second) = chunk.as_mut_slices();
        let mut to = Halves { first, second };
        to.put(&head);
        for part in parts {
            to.put(part);
        }
        chunk.commit_all();
        true
    }

    /// Returns the number of bytes that may be put in now; each frame takes five more than its length.
    #[must_use]
    pub fn room(&self) -> usize {
        self.0.slots()
    }
}

/// Free part of a chunk that is yet to be written, in two pieces.
struct Halves<'a> {
    first: &'a mut [u8],
    second: &'a mut [u8],
}

impl Halves<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let (here, beyond) = bytes.split_at(bytes.len().min(self.first.len()));
        copy(&mut self.first, here);
        copy(&mut self.second, beyond);
    }
}

/// Copies to the front of `to`, and shortens `to` to the part after it.
fn copy(to: &mut &mut [u8], bytes: &[u8]) {
    if let Some((place, rest)) = std::mem::take(to).split_at_mut_checked(bytes.len()) {
        place.copy_from_slice(bytes);
        *to = rest;
    }
}

impl FrameReceiver {
    /// Takes the oldest frame out into `frame`; returns the place where it arrived or is to leave, and its bytes. A frame
    /// longer than `frame` is truncated.
    pub fn pop<'a>(&mut self, frame: &'a mut [u8]) -> Option<(Place, &'a mut [u8])> {
        let mut head = [0; HEAD];
        self.take(HEAD, &mut head).ok()?;
        let [a, b, c, d, port] = head;
        let len = usize::from(u16::from_le_bytes([a, b]));
        // A frame is put in as a whole, so all of it is there.
        let taken = self.take(len, frame).ok()?;
        let place = Place {
            port: PortId(port),
            vlan: u16::from_le_bytes([c, d]),
        };
        Some((place, frame.get_mut(..taken)?))
    }

    /// Takes `count` bytes out, the first of them into `to`; returns the number of bytes copied.
    fn take(&mut self, count: usize, to: &mut [u8]) -> Result<usize, ChunkError> {
        let chunk = self.0.read_chunk(count)?;
        let (first, second) = chunk.as_slices();
        let from = first.iter().chain(second);
        let taken = to
            .iter_mut()
            .zip(from)
            .map(|(to, from)| *to = *from)
            .count();
        chunk.commit_all();
        Ok(taken)
    }

    /// Returns the number of bytes that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.slots()
    }

    /// Returns true if the writer is gone.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.0.is_abandoned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// The ring equals a queue of bounded bytes under any interleaving of frames in and out.
        #[test]
        fn equals_a_queue(ops in prop::collection::vec((any::<bool>(), 0usize..300, 0u16..4095, 0u8..32), 0..400)) {
            let (mut sender, mut receiver) = ring(1_000);
            let mut model: VecDeque<(Place, Vec<u8>)> = VecDeque::new();
            let mut frame = [0; 512];
            for (step, (push, len, vlan, port)) in ops.into_iter().enumerate() {
                let waiting: usize = model.iter().map(|(_, bytes)| HEAD + bytes.len()).sum();
                prop_assert_eq!(receiver.waiting(), waiting);
                if push {
                    let bytes: Vec<u8> = (0..len).map(|at| (at + step) as u8).collect();
                    let place = Place { port: PortId(port), vlan };
                    let (head, tail) = bytes.split_at(len / 3);
                    let fits = waiting + HEAD + len <= 1_000;
                    prop_assert_eq!(sender.push(place, &[head, tail]), fits);
                    if fits {
                        model.push_back((place, bytes));
                    }
                } else {
                    let came = receiver.pop(&mut frame).map(|(place, bytes)| (place, bytes.to_vec()));
                    prop_assert_eq!(came, model.pop_front());
                }
            }
        }
    }

    #[test]
    fn a_frame_longer_than_the_readers_room_is_cut_and_the_next_is_whole() {
        let (mut sender, mut receiver) = ring(100);
        assert!(sender.push(Place::default(), &[&[1; 40]]));
        assert!(sender.push(Place::default(), &[&[2; 8]]));
        let mut short = [0; 16];
        assert_eq!(receiver.pop(&mut short).unwrap().1, [1; 16]);
        assert_eq!(receiver.pop(&mut short).unwrap().1, [2; 8]);
        assert!(receiver.pop(&mut short).is_none());
        assert!(!sender.push(Place::default(), &[&vec![0; 70_000]]));
    }
}
