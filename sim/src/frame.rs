//! Frame buffers of the simulator, recycled through a free list of the thread that runs the simulation.
//!
//! A buffer has the frame's whole length, as the packet path counts bytes by it, but the payload is never touched.

use std::cell::RefCell;

use npcc_pipeline::frame::FrameBuf;

/// Capacity of a small buffer: the longest header stack or control frame.
const SMALL: usize = 192;
/// Headroom for adding a VLAN tag.
const HEADROOM: usize = 16;
/// Buffers kept in a free list; beyond it memory is freed.
const KEEP: usize = 1 << 16;

thread_local! {
    static SMALLS: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
    static LARGES: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// A frame of the simulator.
#[derive(Debug)]
pub struct SimFrame {
    buf: Box<[u8]>,
    start: usize,
    len: usize,
}

impl SimFrame {
    /// Returns a frame of `len` bytes with arbitrary contents.
    #[must_use]
    pub fn of_len(len: usize) -> SimFrame {
        let room = len + HEADROOM;
        let list = if room <= SMALL { &SMALLS } else { &LARGES };
        let used = list.with_borrow_mut(Vec::pop);
        let buf = used.filter(|buf| buf.len() >= room);
        let buf = buf.unwrap_or_else(|| vec![0; room.max(SMALL)].into_boxed_slice());
        SimFrame {
            buf,
            start: HEADROOM,
            len,
        }
    }

    /// Returns a frame that is a copy of these bytes.
    #[must_use]
    pub fn with(bytes: &[u8]) -> SimFrame {
        let mut frame = SimFrame::of_len(bytes.len());
        frame.data_mut().copy_from_slice(bytes);
        frame
    }
}

impl Drop for SimFrame {
    fn drop(&mut self) {
        let buf = std::mem::take(&mut self.buf);
        let list = if buf.len() <= SMALL { &SMALLS } else { &LARGES };
        // The list is gone when the thread ends; the memory is freed then.
        let _ = list.try_with(|list| {
            let mut list = list.borrow_mut();
            if list.len() < KEEP {
                list.push(buf);
            }
        });
    }
}

impl FrameBuf for SimFrame {
    #[inline]
    fn data(&self) -> &[u8] {
        &self.buf[self.start..self.start + self.len]
    }

    #[inline]
    fn data_mut(&mut self) -> &mut [u8] {
        &mut self.buf[self.start..self.start + self.len]
    }

    fn prepend(&mut self, n: usize) -> bool {
        let fits = n <= self.start;
        if fits {
            self.start -= n;
            self.len += n;
        }
        fits
    }

    fn trim_front(&mut self, n: usize) -> bool {
        let fits = n <= self.len;
        if fits {
            self.start += n;
            self.len -= n;
        }
        fits
    }

    fn truncate(&mut self, n: usize) -> bool {
        let fits = n <= self.len;
        if fits {
            self.len = n;
        }
        fits
    }

    fn handle(&self) -> usize {
        self.buf.as_ptr().addr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_and_has_the_length_asked_for() {
        drop(SimFrame::of_len(4_000));
        let frame = SimFrame::of_len(3_000);
        assert_eq!(frame.data().len(), 3_000);
        assert_eq!(frame.buf.len(), 4_000 + HEADROOM, "the first one's buffer");
        let longer = SimFrame::of_len(9_000);
        assert_eq!(longer.data().len(), 9_000);
    }

    #[test]
    fn it_grows_and_shrinks_at_the_front() {
        let mut frame = SimFrame::with(&[1, 2, 3]);
        assert!(frame.trim_front(1) && frame.data() == [2, 3]);
        assert!(frame.prepend(4) && frame.data().len() == 6);
        assert!(!frame.prepend(100) && !frame.trim_front(7));
    }
}
