//! The path's part of [`Express`](crate::egress::express::Express): the burst that does not queue.

use super::Datapath;
use crate::buffer::{Amount, Receipt};
use crate::drop::Drop;
use crate::egress::port::Marking;
use crate::egress::serve::Outlet;
use crate::frame::FrameBuf;
use crate::tap::FlowTap;
use crate::units::{Nanos, PortId};

impl<B: FrameBuf, T: FlowTap> Datapath<B, T> {
    /// Sends the burst that waits for `port` if nothing came between; else it queues, and `false`.
    #[inline]
    pub(super) fn hasten(&mut self, port: PortId, out: &mut impl Outlet<B>, now: Nanos) -> bool {
        let (Some(egress), Some(ecn), Some(counters), Some(pause), Some(owed)) = (
            self.egress.get_mut(port.index()),
            self.ecn.get(port.index()),
            self.counters.port(port.index()),
            self.pause.get_mut(port.index()),
            self.owed.get_mut(port.index()),
        ) else {
            return false;
        };
        egress.set_paused(pause.held_back(now, &counters.flow));
        let marking = Marking {
            mode: *ecn,
            tap: &self.tap,
            now,
        };
        let Some((amount, frames)) = self.express.depart(egress, out.room(), &marking) else {
            self.queue_express();
            return false;
        };
        let packets = self.packets.get(..frames.len()).unwrap_or_default();
        owed.reserve(|gone| self.buffer.release_run(&gone));
        owed.add_alike(packets, amount);
        out.put_all(frames, packets);
        egress.publish(counters);
        true
    }

    /// The burst that might not have had to queue does. Before anything else comes into the path's hand, or into a queue.
    #[inline]
    pub(super) fn queue_express(&mut self) {
        if !self.express.is_empty() {
            self.alight();
        }
    }

    #[cold]
    fn alight(&mut self) {
        let lost = self
            .express
            .alight(&mut self.egress, &mut self.store, &self.packets);
        // There is a cell for every frame of the pool the path was made with.
        for (buf, meta) in lost {
            let bytes = buf.data().len() as u64;
            self.buffer.release(Receipt::of(&meta));
            self.held.give(1, bytes);
            if let Some(port) = self.egress.get_mut(meta.egress.index()) {
                port.leave(meta.priority, Amount::frame(meta.wire_len));
            }
            if let Some(counters) = self.counters.port(meta.egress.index()) {
                counters.drop(Drop::BufferFull, bytes);
            }
        }
    }
}
