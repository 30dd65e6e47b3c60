//! What a port has handed to its device's burst and not yet seen taken: still held.
//!
//! Law: what is added comes out again once, whatever the parts the device takes it in.

use super::amount::Amount;
use crate::bits::low8;
use crate::frame::Meta;
use crate::stage::packet::Packet;
use crate::units::{BURST, PRIORITIES, PortId, Priority, WorkerId};

/// A group of one worker: what it took in by a port with a priority. Worker, port, priority, from the highest bits down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupId(u16);

impl GroupId {
    /// The switch's own frames belong to no group.
    pub const NONE: GroupId = GroupId(u16::MAX);

    /// The group of what `worker` took in by `port` with `priority`.
    #[inline]
    #[must_use]
    pub const fn new(worker: WorkerId, port: PortId, priority: Priority) -> GroupId {
        GroupId((worker.0 as u16) << 8 | (port.0 as u16) << 3 | priority.get() as u16)
    }

    /// The worker that took its frames in.
    #[inline]
    #[must_use]
    pub const fn worker(self) -> WorkerId {
        WorkerId((self.0 >> 8) as u8)
    }

    /// Among the groups of its worker.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize & 0xff
    }

    /// The ingress port among those of all workers: worker times [`MAX_PORTS`](crate::units::MAX_PORTS) plus port.
    #[inline]
    #[must_use]
    pub const fn line(self) -> usize {
        self.0 as usize / PRIORITIES
    }

    /// The ingress port's index.
    #[inline]
    #[must_use]
    pub const fn port(self) -> usize {
        self.index() / PRIORITIES
    }

    /// The ingress port.
    #[inline]
    #[must_use]
    pub const fn ingress(self) -> PortId {
        PortId(low8(self.port()))
    }

    /// The priority's index.
    #[inline]
    #[must_use]
    pub const fn priority(self) -> usize {
        self.0 as usize & (PRIORITIES - 1)
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
            group: meta.group,
        }
    }
}

/// Receipts kept: two bursts, one handed out and one that a caller may have in hand.
const ROOM: usize = 2 * BURST;

/// What is owed, in the order the frames were handed out: a train first, and receipts behind it.
#[derive(Debug)]
pub struct Owed {
    /// Of a train nobody keeps receipts: all its frames are of one group, and cost their bytes and [`WIRE_OVERHEAD`](crate::units::WIRE_OVERHEAD) each.
    train: Run,
    /// Those from `head` to `tail` are owed.
    receipts: [Receipt; ROOM],
    head: usize,
    tail: usize,
    /// All that is owed together, in the group of the oldest.
    all: Run,
    /// Not all of it is of that group.
    mixed: bool,
}

/// Frames of one group that left one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// Whose they were.
    pub group: GroupId,
    /// What they held.
    pub amount: Amount,
}

/// Frames a queue hands out in one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HandedOut {
    /// What they hold.
    pub(crate) amount: Amount,
    /// They are of one group.
    pub(crate) alike: bool,
}

impl Default for Owed {
    fn default() -> Owed {
        let none = Receipt {
            wire_len: 0,
            group: GroupId::NONE,
        };
        let nothing = Run {
            group: GroupId::NONE,
            amount: Amount::ZERO,
        };
        Owed {
            train: nothing,
            receipts: [none; ROOM],
            head: 0,
            tail: 0,
            all: nothing,
            mixed: false,
        }
    }
}

impl Owed {
    /// Makes room for the receipts of a burst. Those there is no room left for come back, oldest first: their frames count
    /// as gone.
    #[inline]
    pub fn reserve(&mut self, mut gone: impl FnMut(Run)) {
        if self.tail + BURST > ROOM {
            self.make_room(&mut gone);
        }
    }

    /// Moves what is owed to the front.
    #[cold]
    fn make_room(&mut self, gone: &mut impl FnMut(Run)) {
        if let Some(train) = self.pop_train(u64::MAX) {
            gone(train);
        }
        let mut over = (self.tail - self.head + BURST).saturating_sub(ROOM) as u64;
        while over > 0
            && let Some(run) = self.pop_some(&mut over)
        {
            gone(run);
        }
        self.receipts.copy_within(self.head..self.tail, 0);
        self.tail -= self.head;
        self.head = 0;
    }

    /// Where the receipts of the next frames go; [`Owed::add`] tells how many went.
    #[inline]
    pub(crate) fn vacant(&mut self) -> &mut [Receipt] {
        self.receipts.get_mut(self.tail..).unwrap_or_default()
    }

    /// The first of the vacant places were filled.
    #[inline]
    pub(crate) fn add(&mut self, handed: HandedOut) {
        let Some(first) = self.receipts.get(self.tail) else {
            return;
        };
        if self.head == self.tail {
            self.all.group = first.group;
            self.mixed = false;
        }
        self.mixed |= !handed.alike || first.group != self.all.group;
        self.all.amount = self.all.amount.plus(handed.amount);
        self.tail += usize::try_from(handed.amount.frames).unwrap_or(ROOM);
    }

    /// The receipts of `packets`, which are of one group and hold `amount`; there is room.
    #[inline]
    pub(crate) fn add_alike(&mut self, packets: &[Packet], amount: Amount) {
        for (receipt, packet) in self.vacant().iter_mut().zip(packets) {
            *receipt = Receipt::of(&packet.meta);
        }
        self.add(HandedOut {
            amount,
            alike: true,
        });
    }

    /// Nothing is owed.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.train.amount.frames == 0 && self.head == self.tail
    }

    /// A train, where nothing is owed before it.
    #[inline]
    pub(crate) const fn add_train(&mut self, train: Run) {
        self.train = train;
    }

    /// What up to `frames` of the oldest frames, which have `bytes` together, hold, as far as they are of one group. The caller has popped
    /// a whole train with [`Owed::pop_train`] before.
    #[inline]
    pub fn pop_run(&mut self, frames: &mut u64, bytes: u64) -> Option<Run> {
        if self.train.amount.frames > 0 {
            return self.part_train(frames, bytes);
        }
        if self.mixed || *frames < self.all.amount.frames || self.head == self.tail {
            return self.pop_some(frames);
        }
        let all = self.all;
        *frames -= all.amount.frames;
        (self.head, self.tail) = (0, 0);
        self.all.amount = Amount::ZERO;
        Some(all)
    }

    /// A train that is owed and has at most `frames` frames; it comes before all else. Its parts come back by themselves: as an
    /// answer in memory it would be read again before its stores have drained.
    #[inline(always)]
    pub fn pop_train(&mut self, frames: u64) -> Option<Run> {
        let train = self.train;
        if train.amount.frames == 0 || train.amount.frames > frames {
            return None;
        }
        self.train.amount = Amount::ZERO;
        Some(train)
    }

    /// Of a train, the device took the first `frames`: not all of it.
    #[cold]
    fn part_train(&mut self, frames: &mut u64, bytes: u64) -> Option<Run> {
        debug_assert!(
            *frames < self.train.amount.frames,
            "a whole train is popped as one"
        );
        let part = Amount::of_unpadded(bytes, std::mem::take(frames));
        // Never more than it has, whatever the device said.
        let amount = Amount {
            bytes: part.bytes.min(self.train.amount.bytes),
            frames: part.frames,
        };
        self.train.amount = self.train.amount.minus(amount);
        Some(Run {
            group: self.train.group,
            amount,
        })
    }

    #[inline(never)]
    fn pop_some(&mut self, frames: &mut u64) -> Option<Run> {
        let owed = self.receipts.get(self.head..self.tail)?;
        let group = owed.first()?.group;
        let mut amount = Amount::ZERO;
        for receipt in owed {
            if amount.frames == *frames || receipt.group != group {
                break;
            }
            amount = amount.plus(Amount::frame(receipt.wire_len));
        }
        *frames -= amount.frames;
        self.head += usize::try_from(amount.frames).unwrap_or(ROOM);
        self.all.amount = self.all.amount.minus(amount);
        match self.receipts.get(self.head) {
            Some(oldest) if self.head < self.tail => self.all.group = oldest.group,
            _ => (self.head, self.tail) = (0, 0),
        }
        Some(Run { group, amount })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::low16;
    use crate::units::WIRE_OVERHEAD;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn amount(receipts: &[Receipt]) -> Amount {
        let one = |receipt: &Receipt| Amount::frame(receipt.wire_len);
        receipts.iter().map(one).fold(Amount::ZERO, Amount::plus)
    }

    fn held(runs: &[Run]) -> usize {
        runs.iter().map(|run| run.amount.frames as usize).sum()
    }

    proptest! {
        /// Whatever is pushed and popped, receipts come out in order, each once; of trains the same, which are owed without any.
        #[test]
        fn equals_a_queue(ops in prop::collection::vec((0usize..=BURST, 0u64..70, 0u8..2, any::<bool>()), 0..60)) {
            let (mut owed, mut model) = (Owed::default(), VecDeque::new());
            let mut wire_len = low16(WIRE_OVERHEAD as usize);
            for (push, pop, port, train) in ops {
                let mut gone = Vec::new();
                owed.reserve(|run| gone.push(run));
                let train = train && owed.is_empty();
                let burst: Vec<Receipt> = (0..push)
                    .map(|n| {
                        wire_len += 1;
                        let priority = if train { 3 } else { n as u8 / 20 };
                        let group = GroupId::new(WorkerId::FIRST, PortId(port), Priority::new(priority));
                        Receipt { wire_len, group }
                    })
                    .collect();
                if train && let Some(first) = burst.first() {
                    owed.add_train(Run { group: first.group, amount: amount(&burst) });
                } else {
                    for (place, receipt) in owed.vacant().iter_mut().zip(&burst) {
                        *place = *receipt;
                    }
                    // In turns of up to seven.
                    for turn in burst.chunks(7) {
                        let alike = turn.iter().all(|receipt| receipt.group == turn[0].group);
                        owed.add(HandedOut { amount: amount(turn), alike });
                    }
                }
                model.extend(burst);
                let popped: Vec<Receipt> = model.iter().skip(held(&gone)).take(pop as usize).copied().collect();
                let bytes = amount(&popped).bytes - popped.len() as u64 * u64::from(WIRE_OVERHEAD);
                let (before, mut left) = (held(&gone), pop);
                if let Some(whole) = owed.pop_train(left) {
                    left -= whole.amount.frames;
                    gone.push(whole);
                }
                while left > 0 && let Some(run) = owed.pop_run(&mut left, bytes) {
                    gone.push(run);
                }
                prop_assert_eq!(held(&gone) - before, popped.len());
                for run in gone {
                    let mut bytes = 0;
                    for receipt in model.drain(..run.amount.frames as usize) {
                        prop_assert_eq!(receipt.group, run.group);
                        bytes += u64::from(receipt.wire_len);
                    }
                    prop_assert_eq!(bytes, run.amount.bytes);
                }
                prop_assert_eq!(owed.is_empty(), model.is_empty());
                prop_assert!(model.len() <= ROOM + BURST, "a train has no receipts");
            }
        }
    }
}
