//! The egress side: what a port may send, and what comes back when its device has taken it.

use super::Datapath;
use super::short_cut::hand_over;
use crate::buffer::Run as Held;
use crate::egress::port::Marking;
use crate::egress::serve::Outlet;
use crate::frame::FrameBuf;
use crate::tap::FlowTap;
use crate::units::{Nanos, PortId};

impl<B: FrameBuf, T: FlowTap> Datapath<B, T> {
    /// Fills `out` with what `port` may send now, and publishes its depths.
    #[inline]
    pub fn egress(&mut self, port: PortId, out: &mut impl Outlet<B>, now: Nanos) {
        let (Some(egress), Some(ecn), Some(counters), Some(pause), Some(owed)) = (
            self.side.ports.get_mut(port.index()),
            self.ecn.get(port.index()),
            self.counters.port(port.index()),
            self.pause.get_mut(port.index()),
            self.owed.get_mut(port.index()),
        ) else {
            return;
        };
        if egress.is_idle() && pause.is_quiet() {
            return;
        }
        egress.set_paused(pause.held_back(now, &counters.flow));
        let marking = Marking {
            mode: *ecn,
            tap: &self.tap,
            now,
        };
        owed.reserve(|gone| self.side.buffer.release_run(&gone));
        let known = (&mut self.packets, &self.cars);
        if self.side.express.waiting(port) > 0 {
            if let Some(gone) = self.side.express.depart(egress, out.room(), &marking) {
                hand_over(gone, known, owed, out);
                egress.publish(counters);
                return;
            }
            let lost = self.side.alight(port, known, &self.counters);
            self.held.give(lost.frames, lost.bytes);
        }
        if let Some(egress) = self.side.ports.get_mut(port.index()) {
            egress.schedule(&mut self.side.store, out, owed, &marking, counters);
            egress.publish(counters);
        }
    }

    /// `packets` frames of `bytes`, handed out by [`Datapath::egress`], were taken by `port`'s device.
    #[inline]
    pub fn sent(&mut self, port: PortId, packets: u64, bytes: u64) {
        self.held.give(packets, bytes);
        self.give_back(port, packets, bytes);
        if let Some(counters) = self.counters.port(port.index()) {
            counters.tx.add(packets, bytes);
        }
    }

    /// The room of the `frames` oldest frames that `port` handed out, which have `bytes`.
    #[inline]
    pub(super) fn give_back(&mut self, port: PortId, frames: u64, bytes: u64) {
        let Some(owed) = self.owed.get_mut(port.index()) else {
            return;
        };
        let mut left = frames;
        // A whole train, by its parts (see there); what is popped below is less than one, or receipts.
        if let Some(Held { group, amount }) = owed.pop_train(frames) {
            left -= amount.frames;
            self.side.buffer.release_run(&Held { group, amount });
        }
        while left > 0 {
            let Some(run) = owed.pop_run(&mut left, bytes) else {
                break;
            };
            self.side.buffer.release_run(&run);
        }
    }
}
