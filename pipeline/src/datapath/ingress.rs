//! The ingress walk: a received burst through the stages into the queues.

use arrayvec::ArrayVec;

use super::{Datapath, count_drop, lossless};
use crate::drop::Drop;
use crate::frame::FrameBuf;
use crate::stage::admit::{Room, Runs};
use crate::stage::enqueue::Egress;
use crate::stage::packet::sweep;
use crate::stage::receive;
use crate::stage::train::dress;
use crate::tap::FlowTap;
use crate::units::{BURST, Nanos, PortId};

impl<B: FrameBuf, T: FlowTap> Datapath<B, T> {
    /// Walks a received burst into the queues. `frames` is empty afterwards.
    #[inline]
    pub fn ingress(&mut self, port: PortId, frames: &mut ArrayVec<B, BURST>, now: Nanos) {
        self.ingress_by(port, frames, now, || ());
    }

    /// The same; `rewritten` is called when the frames are rewritten and not queued yet, for whoever takes times.
    #[inline]
    pub fn ingress_by(
        &mut self,
        port: PortId,
        frames: &mut ArrayVec<B, BURST>,
        now: Nanos,
        rewritten: impl FnOnce(),
    ) {
        self.look_again();
        self.queue_express();
        let (Some(entrance), Some(counters), Some(pause)) = (
            self.entrances.get_mut(port.index()),
            self.counters.port(port.index()),
            self.pause.get_mut(port.index()),
        ) else {
            frames.clear();
            return;
        };
        let (packets, cars, trash) = (&mut self.packets, &mut self.cars, &mut self.trash);
        pause.burst(frames.len(), BURST);
        let owned = self.owned & port.bit() != 0;
        let came = receive::run(
            entrance,
            &self.fib,
            &self.mtus,
            frames,
            (packets, cars),
            counters,
        );
        counters.rx.add(frames.len() as u64, came.bytes);
        if !came.gone.is_empty() {
            sweep(came.gone, frames, packets, trash, |buf, packet| {
                if packet.reason.is_none() {
                    counters.consumed.add(1, buf.data().len() as u64);
                    match self.roads.as_deref_mut() {
                        Some(roads) if !owned => {
                            roads.relay(port, pause.listen(buf.data(), counters));
                        }
                        _ => pause.receive(buf.data(), now, counters),
                    }
                } else {
                    count_drop(counters, buf, packet);
                }
            });
        }
        let storm = if owned {
            pause.dropping()
        } else {
            self.buffer.dropping_elsewhere(port)
        };
        if storm != 0 {
            if let Some(kin) = came.train {
                dress(packets, cars, &kin);
            }
            let gone = lossless::storm(storm, frames.len(), packets);
            sweep(gone, frames, packets, trash, |buf, packet| {
                lossless::count_storm(counters, packet);
                count_drop(counters, buf, packet);
            });
        }
        rewritten();
        self.buffer.settle();
        let train = if storm == 0 { came.train } else { None };
        if !train.is_some_and(|kin| self.walk_train(kin, came.bytes, frames, now)) {
            self.walk(port, frames, now);
        }
        if let Some(counters) = self.counters.port(port.index()) {
            self.buffer.publish(port, counters);
        }
        if !self.trash.is_empty() {
            B::free_all(&mut self.trash);
        }
        self.depart(port);
    }

    /// Walks a burst of which `packets` say all there is to know into the queues.
    fn walk(&mut self, port: PortId, frames: &mut ArrayVec<B, BURST>, now: Nanos) {
        let (packets, trash) = (&mut self.packets, &mut self.trash);
        let mut room = Room {
            ports: &mut self.egress,
            buffer: &mut self.buffer,
            now,
            owned: self.owned,
            charged: false,
        };
        let mut runs = Runs::new();
        let gone = room.take(
            packets.get_mut(..frames.len()).unwrap_or_default(),
            &mut runs,
        );
        if !gone.is_empty() {
            sweep(gone, frames, packets, trash, |buf, packet| {
                let reason = packet.reason.unwrap_or(Drop::QueueFull);
                lossless::count_refused(&self.counters, &self.egress, &packet.meta, reason);
                let to = self.counters.port(packet.meta.egress.index());
                if let Some(counters) = to.or_else(|| self.counters.port(port.index())) {
                    count_drop(counters, buf, packet);
                }
            });
        }
        if let Some(roads) = self.roads.as_deref_mut() {
            let away = roads.part(self.owned, frames, packets, &mut runs);
            self.held.take(away.frames, away.bytes);
        }
        let packets = packets.get_mut(..frames.len()).unwrap_or_default();
        let mut egress = Egress {
            ports: &mut self.egress,
            store: &mut self.store,
            buffer: &mut self.buffer,
            tap: &mut self.tap,
            counters: &self.counters,
            now,
        };
        egress.show(frames, packets, &runs);
        let taken = egress.take(Some(&mut self.express), frames, packets, &runs, trash);
        self.held.take(taken.frames, taken.bytes);
    }
}
