//! Charges of the frames that a port has handed to a transmit queue and that its device has not yet taken.
//!
//! Law: every charge added is returned once, oldest first, however the device splits the frames it takes.

use super::amount::Amount;
use super::group_id::GroupId;
use crate::bits::low16;
use crate::frame::{Meta, wire_len};
use crate::units::{BURST, Priority};

/// Buffer charge of frames of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    /// The group charged.
    pub group: GroupId,
    /// Wire bytes and frames charged.
    pub amount: Amount,
}

impl Charge {
    /// A charge of nothing, to no group.
    pub const NONE: Charge = Charge {
        group: GroupId::NONE,
        amount: Amount::ZERO,
    };

    /// Returns the charge of a queued frame.
    #[inline]
    #[must_use]
    pub fn of(meta: &Meta) -> Charge {
        Charge {
            group: meta.group,
            amount: Amount::frame(meta.wire_len()),
        }
    }
}

/// Frames that a device took from one transmit queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Transmit queue the frames left by, where each priority has one; otherwise 0.
    pub tx_queue: Priority,
    /// Amount charged for them in the buffer.
    pub amount: Amount,
    /// Bytes of the frames, without FCS.
    pub bytes: u64,
}

impl Sent {
    /// Returns the sum of frames of these lengths, sent by the only transmit queue.
    #[must_use]
    pub fn of(lengths: impl IntoIterator<Item = usize>) -> Sent {
        let mut sent = Sent::default();
        for length in lengths {
            sent.add(low16(length));
        }
        sent
    }

    /// Adds a frame of `len` bytes.
    #[inline]
    pub fn add(&mut self, len: u16) {
        self.amount = self.amount.plus(Amount::frame(wire_len(len.into())));
        self.bytes += u64::from(len);
    }
}

/// Capacity of the ring in charges: those of two bursts in which no two adjacent frames are of one group, one handed out
/// now and one that the caller still holds.
const RING: usize = 2 * BURST;

/// Ring of charges in the order in which their frames were handed out; adjacent charges of one group are merged.
#[derive(Debug)]
pub struct InFlight {
    ring: Box<[Charge]>,
    /// Sequence number of the oldest charge in flight.
    head: usize,
    /// Sequence number of the next charge to be added.
    tail: usize,
}

impl InFlight {
    /// Returns an empty ring with capacity for the charges of one transmit queue.
    #[must_use]
    pub fn new() -> InFlight {
        InFlight {
            ring: vec![Charge::NONE; RING].into_boxed_slice(),
            head: 0,
            tail: 0,
        }
    }

    /// Returns a ring without capacity, for a transmit queue that is not used.
    #[must_use]
    pub fn unused() -> InFlight {
        InFlight {
            ring: Box::default(),
            head: 0,
            tail: 0,
        }
    }

    #[inline]
    fn at(&mut self, place: usize) -> Option<&mut Charge> {
        self.ring.get_mut(place % RING)
    }

    /// Adds a charge. Returns the oldest charge if the ring is full: its frames count as sent.
    #[inline]
    pub fn add(&mut self, charge: Charge) -> Option<Charge> {
        let (head, tail) = (self.head, self.tail);
        if head != tail
            && let Some(last) = self.at(tail.wrapping_sub(1))
            && last.group == charge.group
        {
            last.amount = last.amount.plus(charge.amount);
            return None;
        }
        let Some(place) = self.at(tail) else {
            return Some(charge);
        };
        let oldest = std::mem::replace(place, charge);
        self.tail = tail.wrapping_add(1);
        if tail.wrapping_sub(head) < RING {
            return None;
        }
        self.head = head.wrapping_add(1);
        Some(oldest)
    }

    /// Returns the next charge to release, of the oldest group, when the device took `taken`, and reduces `taken` by it;
    /// `None` when nothing is in flight or `taken` is used up.
    #[inline]
    pub fn pop(&mut self, taken: &mut Amount) -> Option<Charge> {
        let head = self.head;
        if head == self.tail || taken.frames == 0 {
            return None;
        }
        let oldest = self.at(head)?;
        if oldest.amount.frames <= taken.frames {
            let whole = *oldest;
            *taken = taken.minus(whole.amount);
            self.head = head.wrapping_add(1);
            return Some(whole);
        }
        let part = Charge {
            group: oldest.group,
            // The part never exceeds the charge, whatever the caller counted.
            amount: oldest.amount.min(*taken),
        };
        oldest.amount = oldest.amount.minus(part.amount);
        *taken = Amount::ZERO;
        Some(part)
    }

    /// Returns true if nothing is in flight.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.head == self.tail
    }
}

impl Default for InFlight {
    fn default() -> InFlight {
        InFlight::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{PortId, WorkerId};
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// Law: a part of a charge never exceeds it, in bytes either, though a device counted more of them than were charged.
    #[test]
    fn a_device_that_counts_too_much_takes_no_more_than_was_charged() {
        let charge = Charge {
            group: GroupId::new(WorkerId::FIRST, PortId(0), Priority::new(3)),
            amount: Amount {
                bytes: 200,
                frames: 2,
            },
        };
        let mut in_flight = InFlight::new();
        assert_eq!(in_flight.add(charge), None);
        for (bytes, charged) in [(500, 200), (500, 0)] {
            let mut taken = Amount { bytes, frames: 1 };
            let part = in_flight.pop(&mut taken).unwrap().amount;
            assert_eq!((part.bytes, part.frames), (charged, 1));
        }
        assert!(in_flight.is_empty());
    }

    proptest! {
        /// Each frame's charge comes back once, in order, to its own group, whatever is added and taken in whatever parts.
        #[test]
        fn equals_a_queue_of_frames(ops in prop::collection::vec((0usize..=BURST, 0u64..70, 0u8..3), 0..60)) {
            let (mut in_flight, mut model) = (InFlight::new(), VecDeque::new());
            let mut len = 0;
            for (push, pop, port) in ops {
                let mut back: Vec<Charge> = Vec::new();
                for n in 0..push {
                    len += 1;
                    let group = GroupId::new(WorkerId::FIRST, PortId(port), Priority::new(n as u8 / 20));
                    let charge = Charge { group, amount: Amount::frame(wire_len(len)) };
                    model.push_back(charge);
                    back.extend(in_flight.add(charge));
                }
                let over: usize = back.iter().map(|charge| charge.amount.frames as usize).sum();
                let popped = model.iter().skip(over).take(pop as usize);
                let mut taken = popped.map(|charge| charge.amount).fold(Amount::ZERO, Amount::plus);
                while let Some(charge) = in_flight.pop(&mut taken) {
                    back.push(charge);
                }
                prop_assert!(taken.is_zero());
                for charge in back {
                    let mut amount = Amount::ZERO;
                    for one in model.drain(..charge.amount.frames as usize) {
                        prop_assert_eq!(one.group, charge.group);
                        amount = amount.plus(one.amount);
                    }
                    prop_assert_eq!(amount, charge.amount);
                }
                prop_assert_eq!(in_flight.is_empty(), model.is_empty());
            }
        }
    }
}
