//! What a port has handed to its device's burst and not yet seen taken: still held.

use super::amount::Amount;
use crate::frame::{Meta, MetaFlags};
use crate::units::{BURST, PRIORITIES, PortId, Priority};

/// A group's index: port times eight plus priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupId(u16);

impl GroupId {
    /// The switch's own frames belong to no group.
    pub const NONE: GroupId = GroupId(u16::MAX);

    /// The group of what came in by `port` with `priority`.
    #[inline]
    #[must_use]
    pub const fn new(port: PortId, priority: Priority) -> GroupId {
        GroupId((port.0 as u16) << 3 | priority.get() as u16)
    }

    /// As an index.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The ingress port's index.
    #[inline]
    #[must_use]
    pub const fn port(self) -> usize {
        self.0 as usize / PRIORITIES
    }

    /// The priority's bit.
    #[inline]
    #[must_use]
    pub const fn bit(self) -> u8 {
        1 << (self.0 & 7)
    }
}

/// What must be given back once a frame is gone.
#[derive(Debug, Clone, Copy)]
pub struct Receipt {
    /// Bytes on the wire.
    pub wire_len: u16,
    /// Whose they were.
    pub group: GroupId,
}

impl Receipt {
    /// Of a queued frame.
    #[inline]
    #[must_use]
    pub const fn of(meta: &Meta) -> Receipt {
        Receipt {
            wire_len: meta.wire_len,
            group: if meta.flags.has(MetaFlags::ORIGINATED) {
                GroupId::NONE
            } else {
                GroupId::new(meta.ingress, meta.priority)
            },
        }
    }
}

/// Receipts kept, a power of two: two bursts, one handed out and one that a caller may have in hand.
const ROOM: usize = 2 * BURST;

/// Receipts in the order the frames were handed out.
#[derive(Debug)]
pub struct Owed {
    ring: [Receipt; ROOM],
    head: usize,
    len: usize,
}

/// Frames of one group that left one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// Whose they were.
    pub group: GroupId,
    /// What they held.
    pub amount: Amount,
}

impl Default for Owed {
    fn default() -> Owed {
        let none = Receipt {
            wire_len: 0,
            group: GroupId::NONE,
        };
        Owed {
            ring: [none; ROOM],
            head: 0,
            len: 0,
        }
    }
}

impl Owed {
    /// Keeps a receipt. With no room left the oldest comes back: its frame counts as gone.
    #[inline]
    pub fn push(&mut self, receipt: Receipt) -> Option<Receipt> {
        let oldest = if self.len == ROOM { self.pop() } else { None };
        if let Some(cell) = self.ring.get_mut((self.head + self.len) & (ROOM - 1)) {
            *cell = receipt;
        }
        self.len += 1;
        oldest
    }

    /// The receipt of the oldest frame.
    #[inline]
    pub fn pop(&mut self) -> Option<Receipt> {
        if self.len == 0 {
            return None;
        }
        let receipt = self.ring.get(self.head & (ROOM - 1)).copied();
        self.head = (self.head + 1) & (ROOM - 1);
        self.len -= 1;
        receipt
    }

    /// The receipts of up to `frames` of the oldest frames, as far as they are of one group.
    #[inline]
    pub fn pop_run(&mut self, frames: &mut u64) -> Option<Run> {
        let first = self.pop()?;
        let mut run = Run {
            group: first.group,
            amount: Amount::frame(first.wire_len),
        };
        *frames -= 1;
        while *frames > 0
            && self.len > 0
            && let Some(next) = self.ring.get(self.head & (ROOM - 1))
            && next.group == run.group
        {
            run.amount.bytes += u64::from(next.wire_len);
            run.amount.frames += 1;
            self.head = (self.head + 1) & (ROOM - 1);
            self.len -= 1;
            *frames -= 1;
        }
        Some(run)
    }
}
