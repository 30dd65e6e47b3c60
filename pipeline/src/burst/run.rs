//! A run: frames that share a queue and an ingress group.

use crate::buffer::{Amount, GroupId};
use crate::frame::{FrameBuf, FrameVec, Meta, wire_len};
use crate::units::{BURST, PortId, Priority};

use super::Record;

/// What the frames of a run have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunHead {
    /// Port they leave by.
    pub egress: PortId,
    /// Their queue there.
    pub priority: Priority,
    /// The ingress group they are charged to.
    pub group: GroupId,
    /// What they hold of the buffer: frames, and bytes on the wire.
    pub amount: Amount,
    /// Bytes of the frames themselves.
    pub bytes: u64,
}

impl RunHead {
    /// A run without frames, from `group` to this queue.
    #[inline]
    #[must_use]
    pub const fn new(egress: PortId, priority: Priority, group: GroupId) -> RunHead {
        RunHead {
            egress,
            priority,
            group,
            amount: Amount::ZERO,
            bytes: 0,
        }
    }

    /// One more frame of `len` bytes.
    #[inline]
    pub fn add(&mut self, len: u16) {
        self.amount = self.amount.plus(Amount::frame(wire_len(len.into())));
        self.bytes += u64::from(len);
    }

    /// What travels with a frame of the run once it is queued.
    #[inline]
    #[must_use]
    pub const fn meta(&self, record: &Record) -> Meta {
        Meta {
            slot: record.slot,
            len: record.len,
            group: self.group,
            egress: self.egress,
            priority: self.priority,
            flags: record.flags,
        }
    }
}

/// Frames that share a queue and an ingress group, and what is known of each.
#[derive(Debug)]
pub struct Run<B> {
    /// What they have in common.
    pub head: RunHead,
    /// The frames, oldest first.
    pub frames: FrameVec<B>,
    /// What is known of each, in the order of the frames; those behind mean nothing.
    pub records: [Record; BURST],
}

impl<B> Default for Run<B> {
    fn default() -> Run<B> {
        Run {
            head: RunHead::new(PortId(0), Priority::new(0), GroupId::NONE),
            frames: FrameVec::default(),
            records: [Record::EMPTY; BURST],
        }
    }
}

impl<B> Run<B> {
    /// The records of its frames.
    #[inline]
    #[must_use]
    pub fn known(&self) -> &[Record] {
        self.records.get(..self.frames.len()).unwrap_or_default()
    }

    /// The frames, and the record of each, which may be changed.
    #[inline]
    pub fn parts_mut(&mut self) -> (&mut [B], &mut [Record]) {
        let records = self
            .records
            .get_mut(..self.frames.len())
            .unwrap_or_default();
        (&mut self.frames, records)
    }

    /// Appends a frame; there is room for a burst.
    #[inline]
    pub fn push(&mut self, buf: B, record: &Record) {
        if let Some(place) = self.records.get_mut(self.frames.len()) {
            *place = *record;
            self.head.add(record.len);
            self.frames.push(buf);
        }
    }

    /// Appends a frame that its head does not count yet; there is room for a burst.
    #[inline]
    pub(super) fn put(&mut self, buf: B, record: &Record) {
        if let Some(place) = self.records.get_mut(self.frames.len()) {
            *place = *record;
            let _ = self.frames.try_push(buf);
        }
    }

    /// Counts all its frames in its head.
    #[inline]
    pub(super) fn measure(&mut self) {
        self.head = self.head_of(self.frames.len());
    }

    /// The head of the run that its first `frames` frames would be.
    #[must_use]
    pub fn head_of(&self, frames: usize) -> RunHead {
        let mut head = RunHead::new(self.head.egress, self.head.priority, self.head.group);
        for record in self.known().iter().take(frames) {
            head.add(record.len);
        }
        head
    }

    /// The first `frames` frames were taken out; `head` is [what they held](Run::head_of).
    #[inline]
    pub fn forget_front(&mut self, frames: usize, head: &RunHead) {
        self.head.amount = self.head.amount.minus(head.amount);
        self.head.bytes -= head.bytes.min(self.head.bytes);
        if !self.frames.is_empty() {
            self.records.copy_within(frames.min(BURST).., 0);
        }
    }

    /// Takes its frames out, each with what travels with it.
    #[inline]
    pub fn drain(&mut self) -> impl ExactSizeIterator<Item = (B, Meta)> + '_ {
        let head = self.head;
        let metas = self.records.iter().map(move |record| head.meta(record));
        self.frames.drain(..).zip(metas)
    }
}

impl<B: FrameBuf> Run<B> {
    /// Keeps the frames whose record `keeps` says so of; the others go to `gone`. Keeps the order.
    pub fn retain(
        &mut self,
        mut keeps: impl FnMut(&Record) -> bool,
        mut gone: impl FnMut(B, &Record),
    ) {
        let all = std::mem::take(&mut *self.frames);
        self.head = RunHead::new(self.head.egress, self.head.priority, self.head.group);
        for (place, buf) in all.into_iter().enumerate() {
            let record = self.records.get(place).copied().unwrap_or(Record::EMPTY);
            if keeps(&record) {
                self.push(buf, &record);
            } else {
                gone(buf, &record);
            }
        }
    }
}

/// Runs that are not in use. They are made at the start, so that the path need not allocate.
#[derive(Debug)]
pub struct RunPool<B> {
    #[expect(
        clippy::vec_box,
        reason = "a run changes hands by its pointer, and is too large to be moved"
    )]
    spare: Vec<Box<Run<B>>>,
}

impl<B> RunPool<B> {
    /// `runs` runs.
    #[must_use]
    pub fn new(runs: usize) -> RunPool<B> {
        RunPool {
            spare: (0..runs).map(|_| Box::default()).collect(),
        }
    }

    /// An empty run; the one used last, whose lines are in the cache.
    #[inline]
    pub fn take(&mut self) -> Box<Run<B>> {
        self.spare.pop().unwrap_or_else(more)
    }

    /// Gives a run back. Frames that are still in it are freed.
    #[inline]
    pub fn give(&mut self, mut run: Box<Run<B>>) {
        run.frames.clear();
        if self.spare.len() < self.spare.capacity() {
            self.spare.push(run);
        }
    }
}

/// There are as many runs as can be in use, so this is not reached.
#[cold]
fn more<B>() -> Box<Run<B>> {
    Box::default()
}
