//! Stage 5: into the egress queues; room was taken before, and here NPCC sees the frames.

use arrayvec::ArrayVec;

use super::admit::{Run, Runs};
use super::packet::{Packet, Trash};
use crate::buffer::{Amount, Buffer, Receipt};
use crate::counters::{Counters, PortCounters};
use crate::drop::Drop;
use crate::egress::express::Express;
use crate::egress::fifo::FifoStore;
use crate::egress::port::EgressPort;
use crate::frame::{FrameBuf, Meta};
use crate::tap::{FlowTap, watched};
use crate::units::{BURST, Nanos, Priority};

/// The egress side frames are handed to.
#[derive(Debug)]
pub struct Egress<'a, B, T> {
    /// All ports of the worker.
    pub ports: &'a mut [EgressPort],
    /// Their cells.
    pub store: &'a mut FifoStore<B, Meta>,
    /// The shared buffer.
    pub buffer: &'a mut Buffer,
    /// NPCC's eye.
    pub tap: &'a mut T,
    /// What is counted.
    pub counters: &'a Counters,
    /// When.
    pub now: Nanos,
}

impl<B: FrameBuf, T: FlowTap> Egress<'_, B, T> {
    /// Shows the frames of each run to NPCC.
    #[inline]
    pub fn show(&mut self, frames: &[B], packets: &mut [Packet], runs: &Runs) {
        let (mut frames, mut packets) = (frames, packets);
        for run in runs {
            let (seen, later_frames) = frames.split_at(run.frames.min(frames.len()));
            let (known, later_packets) = packets.split_at_mut(seen.len());
            if let Some(first) = known.first()
                && watched(self.tap.ports(), first.meta.group.ingress(), run.egress)
            {
                self.tap.enqueued_run(seen, known, self.now);
            }
            (frames, packets) = (later_frames, later_packets);
        }
    }

    /// Puts the burst on the short cut, where there is one for it, or every frame into its queue; returns what was taken.
    #[inline]
    pub fn take(
        &mut self,
        express: Option<&mut Express<B>>,
        frames: &mut ArrayVec<B, BURST>,
        packets: &[Packet],
        runs: &Runs,
        trash: &mut Trash<B>,
    ) -> Taken {
        if let ([run], Some(express)) = (&runs[..], express)
            && let Some(bytes) = express.board(self.ports, *run, frames, packets)
        {
            return self.count(*run, bytes);
        }
        self.push(frames, packets, runs, trash)
    }

    #[inline]
    fn push(
        &mut self,
        frames: &mut ArrayVec<B, BURST>,
        packets: &[Packet],
        runs: &Runs,
        trash: &mut Trash<B>,
    ) -> Taken {
        let (mut packets, mut total) = (packets, Taken::default());
        for run in runs {
            let (mine, later) = packets.split_at(run.frames.min(packets.len()));
            let mut bytes: u64 = mine.iter().map(|packet| u64::from(packet.brief.len)).sum();
            let mut buffers = frames.drain(..run.frames.min(frames.len()));
            let mut metas = mine.iter().map(|packet| packet.meta);
            let taken = self.ports.get_mut(run.egress.index()).map_or(0, |port| {
                port.fill(self.store, run.priority, &mut buffers, &mut metas)
            });
            for (buf, meta) in buffers.zip(metas) {
                bytes -= self.no_cell(&buf, &meta);
                trash.push(buf);
            }
            let counters = self.counters.port(run.egress.index());
            if let Some(queue) = counters.and_then(|port| port.queues.get(run.priority.index())) {
                queue.enqueued.add(taken as u64, bytes);
            }
            total.frames += taken as u64;
            total.bytes += bytes;
            packets = later;
        }
        total
    }

    /// The burst that might not have had to queue does, before anything else comes into a queue or `packets`, what is known of
    /// it, is written over. Returns what there was no cell for.
    #[inline]
    pub fn alight(&mut self, express: &mut Express<B>, packets: &[Packet]) -> Taken {
        if express.is_empty() {
            return Taken::default();
        }
        self.put_back(express, packets)
    }

    #[cold]
    fn put_back(&mut self, express: &mut Express<B>, packets: &[Packet]) -> Taken {
        let mut lost = Taken::default();
        for (buf, meta) in express.alight(self.ports, self.store, packets) {
            lost.bytes += self.no_cell(&buf, &meta);
            lost.frames += 1;
        }
        lost
    }

    /// Counts a run that is taken whole.
    #[inline]
    fn count(&self, run: Run, bytes: u64) -> Taken {
        let taken = Taken {
            frames: run.frames as u64,
            bytes,
        };
        let counters = self.counters.port(run.egress.index());
        if let Some(queue) = counters.and_then(|port| port.queues.get(run.priority.index())) {
            queue.enqueued.add(taken.frames, taken.bytes);
        }
        taken
    }

    /// Gives up an admitted frame, and returns its bytes. There is a cell for every frame of the pool the path was made with.
    #[cold]
    fn no_cell(&mut self, buf: &B, meta: &Meta) -> u64 {
        let bytes = buf.data().len() as u64;
        self.buffer.release(Receipt::of(meta));
        if let Some(port) = self.ports.get_mut(meta.egress.index()) {
            port.leave(meta.priority, Amount::frame(meta.wire_len));
        }
        if let Some(counters) = self.counters.port(meta.egress.index()) {
            count_refused(counters, meta.priority, Drop::BufferFull);
            counters.drop(Drop::BufferFull, bytes);
        }
        bytes
    }
}

/// What went into the queues.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taken {
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Counts a refused frame on its queue.
#[cold]
pub fn count_refused(egress: &PortCounters, priority: Priority, reason: Drop) {
    if let Some(queue) = egress.queues.get(priority.index()) {
        queue.dropped.add(1);
        if reason == Drop::Wred {
            queue.wred_dropped.add(1);
        }
    }
}
