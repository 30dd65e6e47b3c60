//! A worker's egress side: what frames are admitted to, wait in and leave from.

use crate::buffer::Buffer;
use crate::counters::Counters;
use crate::egress::express::Express;
use crate::egress::fifo::FifoStore;
use crate::egress::port::EgressPort;
use crate::frame::{FrameBuf, Meta};
use crate::stage::admit::Room;
use crate::stage::enqueue::{Egress, Taken, no_cell};
use crate::stage::packet::Packets;
use crate::stage::train::Cars;
use crate::units::{Nanos, PortId};

/// See the module's text.
#[derive(Debug)]
pub(super) struct EgressSide<B> {
    /// All ports.
    pub(super) ports: Box<[EgressPort]>,
    /// Those whose egress side is this worker's, as a set.
    pub(super) owned: u32,
    /// The cells of all queues.
    pub(super) store: FifoStore<B, Meta>,
    /// A burst that may not have to queue.
    pub(super) express: Express<B>,
    /// The shared buffer.
    pub(super) buffer: Buffer,
}

impl<B> EgressSide<B> {
    /// Whether `port`'s is this worker's.
    #[inline]
    pub(super) const fn owns(&self, port: PortId) -> bool {
        self.owned & port.bit() != 0
    }
}

impl<B: FrameBuf> EgressSide<B> {
    /// Where frames ask for room. `charged`: they came over from other workers, who have charged them.
    #[inline]
    pub(super) fn room(&mut self, now: Nanos, charged: bool) -> Room<'_> {
        Room {
            ports: &mut self.ports,
            buffer: &mut self.buffer,
            now,
            owned: self.owned,
            charged,
        }
    }

    /// Where they go then.
    #[inline]
    pub(super) fn queues<'a, T>(
        &'a mut self,
        tap: &'a mut T,
        counters: &'a Counters,
        now: Nanos,
    ) -> (Egress<'a, B, T>, &'a mut Express<B>) {
        let queues = Egress {
            ports: &mut self.ports,
            store: &mut self.store,
            buffer: &mut self.buffer,
            tap,
            counters,
            now,
        };
        (queues, &mut self.express)
    }

    /// Puts the burst that waits for `port` into its queue, before anything else comes into a queue or what is `known` of it
    /// is written over. Returns what there was no cell for.
    #[cold]
    pub(super) fn alight(
        &mut self,
        port: PortId,
        known: (&mut Packets, &Cars),
        counters: &Counters,
    ) -> Taken {
        let mut lost = Taken::default();
        let Some(port) = self.ports.get_mut(port.index()) else {
            return lost;
        };
        for (buf, meta) in self.express.alight(port, &mut self.store, known) {
            lost.bytes += no_cell(port, &mut self.buffer, counters, &buf, &meta);
            lost.frames += 1;
        }
        lost
    }
}
