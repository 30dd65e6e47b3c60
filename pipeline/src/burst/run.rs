//! A run: frames that share a queue and an ingress group.

use crate::buffer::{Amount, GroupId};
use crate::frame::{FrameBuf, FrameVec, Meta, wire_len};
use crate::units::{BURST, PortId, Priority};

use super::Record;

/// Properties that the frames of a run share, and their totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunHead {
    /// Egress port of the frames.
    pub egress: PortId,
    /// Priority: their queue at the egress port.
    pub priority: Priority,
    /// Ingress group they are charged to.
    pub group: GroupId,
    /// Amount charged for them in the buffer: frames, and bytes on the wire.
    pub amount: Amount,
    /// Bytes of the frames themselves, without FCS.
    pub bytes: u64,
}

impl RunHead {
    /// Returns the head of a run without frames, from `group` to this queue.
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

    /// Counts one more frame of `len` bytes.
    #[inline]
    pub fn add(&mut self, len: u16) {
        self.amount = self.amount.plus(Amount::frame(wire_len(len.into())));
        self.bytes += u64::from(len);
    }

    /// Returns the metadata that travels with a frame of the run once it is queued.
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

/// Frames that share a queue and an ingress group, each with its record.
#[derive(Debug)]
pub struct Run<B> {
    /// Shared properties and totals.
    pub head: RunHead,
    /// Frames, oldest first.
    pub frames: FrameVec<B>,
    /// Records in the order of the frames; those past the last frame mean nothing.
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
    /// Returns the records of its frames.
    #[inline]
    #[must_use]
    pub fn known(&self) -> &[Record] {
        self.records.get(..self.frames.len()).unwrap_or_default()
    }

    /// Returns the frames and their records, both mutable.
    #[inline]
    pub fn parts_mut(&mut self) -> (&mut [B], &mut [Record]) {
        let records = self
            .records
            .get_mut(..self.frames.len())
            .unwrap_or_default();
        (&mut self.frames, records)
    }

    /// Appends a frame; the run has room for a burst.
    #[inline]
    pub fn push(&mut self, buf: B, record: &Record) {
        if let Some(place) = self.records.get_mut(self.frames.len()) {
            *place = *record;
            self.head.add(record.len);
            self.frames.push(buf);
        }
    }

    /// Appends a frame without counting it in the head; the run has room for a burst.
    #[inline]
    pub(super) fn put(&mut self, buf: B, record: &Record) {
        if let Some(place) = self.records.get_mut(self.frames.len()) {
            *place = *record;
            let _ = self.frames.try_push(buf);
        }
    }

    /// Recomputes the head from all frames; `unpadded`: none is shorter than Ethernet pads to.
    #[inline]
    pub(super) fn measure(&mut self, unpadded: bool) {
        if !unpadded {
            self.head = self.head_of(self.frames.len());
            return;
        }
        self.head.bytes = self
            .known()
            .iter()
            .map(|record| u64::from(record.len))
            .sum();
        self.head.amount = Amount::of_unpadded(self.head.bytes, self.frames.len() as u64);
    }

    /// Returns the head that a run of the first `frames` frames would have.
    #[must_use]
    pub fn head_of(&self, frames: usize) -> RunHead {
        let mut head = RunHead::new(self.head.egress, self.head.priority, self.head.group);
        for record in self.known().iter().take(frames) {
            head.add(record.len);
        }
        head
    }

    /// Drops the records of the first `frames` frames, which were taken out; `head` is [their head](Run::head_of).
    #[inline]
    pub fn forget_front(&mut self, frames: usize, head: &RunHead) {
        self.head.amount = self.head.amount.minus(head.amount);
        self.head.bytes -= head.bytes.min(self.head.bytes);
        if !self.frames.is_empty() {
            self.records.copy_within(frames.min(BURST).., 0);
        }
    }

    /// Takes its frames out, each with its metadata.
    #[inline]
    pub fn drain(&mut self) -> impl ExactSizeIterator<Item = (B, Meta)> + '_ {
        let head = self.head;
        let metas = self.records.iter().map(move |record| head.meta(record));
        self.frames.drain(..).zip(metas)
    }
}

impl<B: FrameBuf> Run<B> {
    /// Keeps the frames for whose record `keeps` returns true, in order; passes the others to `gone`.
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

/// Pool of unused runs, allocated at the start so that the packet path need not allocate.
#[derive(Debug)]
pub struct RunPool<B> {
    #[expect(
        clippy::vec_box,
        reason = "a run changes hands by its pointer, and is too large to be moved"
    )]
    spare: Vec<Box<Run<B>>>,
}

impl<B> RunPool<B> {
    /// Returns a pool of `runs` runs.
    #[must_use]
    pub fn new(runs: usize) -> RunPool<B> {
        RunPool {
            spare: (0..runs).map(|_| Box::default()).collect(),
        }
    }

    /// Takes an empty run: the one used last, whose cache lines are warm.
    #[inline]
    pub fn take(&mut self) -> Box<Run<B>> {
        self.spare.pop().unwrap_or_else(more)
    }

    /// Returns a run to the pool. Frames still in it are freed.
    #[inline]
    pub fn give(&mut self, mut run: Box<Run<B>>) {
        run.frames.clear();
        if self.spare.len() < self.spare.capacity() {
            self.spare.push(run);
        }
    }
}

/// Allocates a run. Not reached in practice: the pool holds as many runs as can be in use.
#[cold]
fn more<B>() -> Box<Run<B>> {
    Box::default()
}
