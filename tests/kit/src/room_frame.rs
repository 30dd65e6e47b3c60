//! Frame that costs the packet path as many instructions as an mbuf: an address, an offset and a length, of types that need no
//! bounds check.

use npcc_pipeline::frame::{FrameBuf, HeapFrame};

/// Bytes of a buffer: the longest frame fits behind the largest offset.
const ROOM: usize = u8::MAX as usize + u16::MAX as usize;

/// Frame in a buffer of its own, with headroom. It is one pointer large, as an mbuf is.
#[derive(Debug)]
pub struct RoomFrame(Box<Room>);

#[derive(Debug)]
struct Room {
    bytes: Box<[u8; ROOM]>,
    start: u8,
    len: u16,
}

impl RoomFrame {
    /// Returns a frame with these bytes, of which there are at most 65,535.
    #[must_use]
    pub fn new(frame: &[u8]) -> RoomFrame {
        let start = u8::try_from(HeapFrame::HEADROOM).unwrap_or(u8::MAX);
        let mut bytes = vec![0; ROOM].into_boxed_slice();
        let frame = frame.get(..usize::from(u16::MAX)).unwrap_or(frame);
        if let Some(place) = bytes.get_mut(usize::from(start)..usize::from(start) + frame.len()) {
            place.copy_from_slice(frame);
        }
        RoomFrame(Box::new(Room {
            bytes: bytes
                .try_into()
                .unwrap_or_else(|_| unreachable!("it is that long")),
            start,
            len: u16::try_from(frame.len()).unwrap_or(u16::MAX),
        }))
    }
}

impl FrameBuf for RoomFrame {
    #[inline]
    fn data(&self) -> &[u8] {
        let start = usize::from(self.0.start);
        &self.0.bytes[start..start + usize::from(self.0.len)]
    }

    #[inline]
    fn data_mut(&mut self) -> &mut [u8] {
        let start = usize::from(self.0.start);
        &mut self.0.bytes[start..start + usize::from(self.0.len)]
    }

    fn prepend(&mut self, n: usize) -> bool {
        let start = u8::try_from(n)
            .ok()
            .and_then(|n| self.0.start.checked_sub(n));
        let len = u16::try_from(n)
            .ok()
            .and_then(|n| self.0.len.checked_add(n));
        let (Some(start), Some(len)) = (start, len) else {
            return false;
        };
        (self.0.start, self.0.len) = (start, len);
        true
    }

    fn trim_front(&mut self, n: usize) -> bool {
        let start = u8::try_from(n)
            .ok()
            .and_then(|n| self.0.start.checked_add(n));
        let len = u16::try_from(n)
            .ok()
            .and_then(|n| self.0.len.checked_sub(n));
        let (Some(start), Some(len)) = (start, len) else {
            return false;
        };
        (self.0.start, self.0.len) = (start, len);
        true
    }

    fn truncate(&mut self, n: usize) -> bool {
        let Some(len) = u16::try_from(n).ok().filter(|len| *len <= self.0.len) else {
            return false;
        };
        self.0.len = len;
        true
    }

    fn handle(&self) -> usize {
        std::ptr::from_ref(&*self.0).addr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_and_shrinks_as_a_heap_frame_does() {
        let bytes: Vec<u8> = (0..90).collect();
        let (mut room, mut heap) = (RoomFrame::new(&bytes), HeapFrame::new(&bytes));
        for (what, n) in [
            (0, 4),
            (1, 14),
            (2, 60),
            (0, 200),
            (1, 61),
            (2, 61),
            (1, 60),
            (0, 10),
        ] {
            let (a, b) = match what {
                0 => (room.prepend(n), heap.prepend(n)),
                1 => (room.trim_front(n), heap.trim_front(n)),
                _ => (room.truncate(n), heap.truncate(n)),
            };
            assert_eq!(a, b, "{what} {n}");
            assert_eq!(room.data(), heap.data());
            assert_eq!(room.data_mut(), heap.data_mut());
        }
    }
}
