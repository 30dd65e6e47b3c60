//! Channel between two workers: a ring of frames, and a ring of the heads of their runs.
//!
//! Law: a head is written after the frames it announces, so announced frames are there, in the order in which they were handed
//! over.

use super::Relay;
use super::ring::{Consumer, Producer, RingBuffer};
use super::shares::Shares;
use crate::burst::{QueueKey, Record, Run, RunHead};
use crate::frame::{FlowSlot, MetaFlags};
use crate::units::BURST;
use crate::wire::bth::Traits;

/// Capacity of the ring of relayed pauses; further ones wait and are merged.
const RELAYS: usize = 64;

/// A frame in a channel with its metadata, in half a cache line.
#[derive(Debug)]
struct HandoffEntry<B> {
    buf: B,
    addresses: u64,
    ack_psn: u32,
    qp: u32,
    len: u16,
    src_port: u16,
    traits: Traits,
    tos: u8,
    flags: MetaFlags,
}

const _: () = assert!(size_of::<HandoffEntry<Box<u8>>>() == 32);

impl<B> HandoffEntry<B> {
    #[inline]
    const fn pack(buf: B, record: &Record) -> HandoffEntry<B> {
        HandoffEntry {
            buf,
            addresses: record.addresses,
            ack_psn: record.ack_psn,
            qp: record.qp,
            len: record.len,
            src_port: record.src_port,
            traits: record.traits,
            tos: record.tos,
            flags: record.flags,
        }
    }

    #[inline]
    fn unpack(self, record: &mut Record) -> B {
        *record = Record {
            addresses: self.addresses,
            ack_psn: self.ack_psn,
            qp: self.qp,
            slot: FlowSlot::NONE,
            len: self.len,
            src_port: self.src_port,
            traits: self.traits,
            tos: self.tos,
            flags: self.flags,
            queue: QueueKey::default(),
        };
        self.buf
    }
}

/// Sending end, of the worker that received the frames.
#[derive(Debug)]
pub(crate) struct Outward<B> {
    heads: Producer<RunHead>,
    frames: Producer<HandoffEntry<B>>,
    /// Number of frames that the channel holds at most.
    room: usize,
    shares: Shares,
    pub(super) relays: Producer<Relay>,
}

/// Receiving end, of the worker that owns their egress port.
#[derive(Debug)]
pub(crate) struct Inward<B> {
    heads: Consumer<RunHead>,
    frames: Consumer<HandoffEntry<B>>,
    pub(super) relays: Consumer<Relay>,
}

/// Creates a channel for up to `room` frames.
pub(super) fn channel<B>(room: usize) -> (Outward<B>, Inward<B>) {
    let room = room.max(1);
    let (frames_to, frames) = RingBuffer::new(room);
    // Each head announces at least one frame and is taken out before it, so this ring has at least as much room as that of
    // the frames.
    let (heads_to, heads) = RingBuffer::new(room);
    let (relays_to, relays) = RingBuffer::new(RELAYS);
    let outward = Outward {
        heads: heads_to,
        frames: frames_to,
        room,
        shares: Shares::new(room),
        relays: relays_to,
    };
    let inward = Inward {
        heads,
        frames,
        relays,
    };
    (outward, inward)
}

impl<B> Outward<B> {
    /// Hands over as much of a run as fits and its [share](Shares) allows, oldest first; the rest stays in it. Returns the number of frames
    /// sent.
    #[inline]
    pub(super) fn send(&mut self, run: &mut Run<B>) -> usize {
        let count = run.frames.len();
        let (group, room) = (run.head.group, self.room);
        let share = |shares: &mut Shares, free: usize| shares.room(group, free, room - free);
        // The reader's position, which the other core writes, is only loaded where it matters.
        let mut most = share(&mut self.shares, self.frames.cached_slots());
        if most < count {
            most = share(&mut self.shares, self.frames.slots());
        }
        let (count, head) = if most < count {
            (most, run.head_of(most))
        } else {
            (count, run.head)
        };
        if count == 0 {
            return 0;
        }
        let Ok(chunk) = self.frames.write_chunk_uninit(count) else {
            return 0;
        };
        let records = run.records.iter();
        let cells = run.frames.drain(..count).zip(records);
        chunk.fill_from_iter(cells.map(|(buf, record)| HandoffEntry::pack(buf, record)));
        // This cannot fail: there is a slot for as many heads as there can be.
        let _ = self.heads.push(head);
        self.shares.add(group, count);
        run.forget_front(count, &head);
        count
    }
}

impl<B> Inward<B> {
    /// Returns the number of frames in the next run, if there is one.
    #[inline]
    pub(crate) fn next(&self) -> Option<usize> {
        let head = self.heads.peek().ok()?;
        usize::try_from(head.amount.frames).ok()
    }

    /// Receives the next run into `run`, which is empty.
    #[inline]
    pub(crate) fn take(&mut self, run: &mut Run<B>) {
        let Ok(head) = self.heads.pop() else {
            return;
        };
        run.head = head;
        let frames = usize::try_from(head.amount.frames).unwrap_or(BURST);
        let Ok(chunk) = self.frames.read_chunk(frames.min(BURST)) else {
            return;
        };
        for (cell, record) in chunk.into_iter().zip(run.records.iter_mut()) {
            let buf = cell.unpack(record);
            run.frames.push(buf);
        }
    }
}

#[cfg(test)]
#[path = "channel_tests.rs"]
mod tests;
