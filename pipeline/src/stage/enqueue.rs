//! Stage 5: into the egress queues; room was taken before, and here NPCC sees the frames.

use arrayvec::ArrayVec;

use super::admit::{Run, Runs};
use super::packet::{Packet, Packets, Trash};
use super::train::{Car, Cars, Kin, dress_counted};
use crate::buffer::{Amount, Buffer, Receipt};
use crate::counters::{Counters, PortCounters};
use crate::drop::Drop;
use crate::egress::express::Express;
use crate::egress::fifo::FifoStore;
use crate::egress::port::EgressPort;
use crate::frame::{FlowSlot, FrameBuf, Meta, Row};
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

    /// Shows a train to NPCC.
    #[inline]
    pub fn show_train(&mut self, frames: &[B], cars: &mut [Car], kin: &Kin) {
        if watched(self.tap.ports(), kin.meta.group.ingress(), kin.meta.egress) {
            self.tap.enqueued_train(frames, cars, kin, self.now);
        } else {
            for car in cars {
                car.slot = FlowSlot::NONE;
            }
        }
    }

    /// Puts the burst on the short cut, where there is one for it, or every frame into its queue; returns what was taken.
    #[inline]
    pub fn take(
        &mut self,
        express: Option<&mut Express<B>>,
        frames: &mut Row<B>,
        packets: &[Packet],
        runs: &Runs,
        trash: &mut Trash<B>,
    ) -> Taken {
        if let ([run], Some(express)) = (&runs[..], express)
            && let Some(amount) = express.open(self.ports, *run, frames.len())
        {
            let bytes = bytes_of(packets);
            express.board((*run, amount), frames, bytes, None);
            return self.count(*run, bytes);
        }
        self.push(frames, packets, runs, trash)
    }

    /// The same with a train of `bytes` that was shown; `packets` are written when it has to queue.
    #[inline]
    pub fn take_train(
        &mut self,
        express: &mut Express<B>,
        frames: &mut Row<B>,
        (run, kin, bytes): (Run, Kin, u64),
        (packets, cars): (&mut Packets, &Cars),
        trash: &mut Trash<B>,
    ) -> Taken {
        if let Some(amount) = express.open(self.ports, run, frames.len()) {
            express.board((run, amount), frames, bytes, Some(kin));
            return self.count(run, bytes);
        }
        let packets = packets.get_mut(..frames.len()).unwrap_or_default();
        dress_counted(packets, cars, &kin);
        self.push(frames, packets, &Runs::from_iter([run]), trash)
    }

    #[inline(never)]
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
            let mut bytes = bytes_of(mine);
            let mut buffers = frames.drain(..run.frames.min(frames.len()));
            let mut metas = mine.iter().map(|packet| packet.meta);
            let taken = self.ports.get_mut(run.egress.index()).map_or(0, |port| {
                port.fill(self.store, run.priority, &mut buffers, &mut metas)
            });
            for (buf, meta) in buffers.zip(metas) {
                if let Some(port) = self.ports.get_mut(run.egress.index()) {
                    bytes -= no_cell(port, self.buffer, self.counters, &buf, &meta);
                }
                trash.push(buf);
            }
            let run = Run {
                frames: taken,
                ..*run
            };
            total = total.plus(self.count(run, bytes));
            packets = later;
        }
        total
    }

    /// Counts frames of a run that are taken.
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
}

/// Bytes of frames.
#[inline]
fn bytes_of(packets: &[Packet]) -> u64 {
    packets
        .iter()
        .map(|packet| u64::from(packet.brief.len))
        .sum()
}

/// Gives up a frame that was admitted to a queue of `port`, and returns its bytes. There is a cell for every frame of the pool
/// the path was made with.
#[cold]
pub fn no_cell<B: FrameBuf>(
    port: &mut EgressPort,
    buffer: &mut Buffer,
    counters: &Counters,
    buf: &B,
    meta: &Meta,
) -> u64 {
    let bytes = buf.data().len() as u64;
    buffer.release(Receipt::of(meta));
    port.leave(meta.priority, Amount::frame(meta.wire_len));
    if let Some(counters) = counters.port(meta.egress.index()) {
        count_refused(counters, meta.priority, Drop::BufferFull);
        counters.drop(Drop::BufferFull, bytes);
    }
    bytes
}

/// What went into the queues.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taken {
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Taken {
    /// Both.
    #[inline]
    #[must_use]
    pub const fn plus(self, other: Taken) -> Taken {
        Taken {
            frames: self.frames + other.frames,
            bytes: self.bytes + other.bytes,
        }
    }
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
