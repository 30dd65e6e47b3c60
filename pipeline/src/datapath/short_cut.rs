//! The path's part of [`Express`](crate::egress::express::Express): the burst that does not queue.

use super::Datapath;
use crate::egress::port::Marking;
use crate::egress::serve::Outlet;
use crate::frame::FrameBuf;
use crate::stage::enqueue::Egress;
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
        let Some(gone) = self.express.depart(egress, out.room(), &marking) else {
            self.queue_express();
            return false;
        };
        let packets = self.packets.get(..gone.frames.len()).unwrap_or_default();
        owed.reserve(|gone| self.buffer.release_run(&gone));
        owed.add_alike(packets, gone.amount);
        out.put_all(gone.frames, packets, gone.bytes);
        egress.publish(counters);
        true
    }

    /// The burst that might not have had to queue does.
    #[inline]
    pub(super) fn queue_express(&mut self) {
        let mut egress = Egress {
            ports: &mut self.egress,
            store: &mut self.store,
            buffer: &mut self.buffer,
            tap: &mut self.tap,
            counters: &self.counters,
            now: Nanos::ZERO,
        };
        let lost = egress.alight(&mut self.express, &self.packets);
        self.held.give(lost.frames, lost.bytes);
    }
}
