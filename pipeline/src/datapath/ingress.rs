//! The ingress walk: a received burst through the stages into the queues.

use super::{Datapath, count_drop, lossless};
use crate::buffer::Receipt;
use crate::drop::Drop;
use crate::frame::{FrameBuf, Row};
use crate::stage::admit::Runs;
use crate::stage::enqueue::Taken;
use crate::stage::packet::{Packet, sweep};
use crate::stage::receive;
use crate::stage::train::dress;
use crate::tap::FlowTap;
use crate::units::{BURST, Nanos, PortId};

impl<B: FrameBuf, T: FlowTap> Datapath<B, T> {
    /// Walks a received burst into the queues. `frames` is empty afterwards.
    #[inline]
    pub fn ingress(&mut self, port: PortId, frames: &mut Row<B>, now: Nanos) {
        self.ingress_by(port, frames, now, || ());
    }

    /// The same; `rewritten` is called when the frames are rewritten and not queued yet, for whoever takes times.
    #[inline]
    pub fn ingress_by(
        &mut self,
        port: PortId,
        frames: &mut Row<B>,
        now: Nanos,
        rewritten: impl FnOnce(),
    ) {
        // First of all: these loads need not wait for the stores of a driver that has copied frames.
        for frame in frames.iter() {
            frame.prefetch();
        }
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
        let owned = self.side.owns(port);
        let mut came = receive::run(
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
            self.side.buffer.dropping_elsewhere(port)
        };
        if storm != 0 {
            if let Some(kin) = came.train.take() {
                dress(packets, cars, &kin);
            }
            let gone = lossless::storm(storm, frames.len(), packets);
            sweep(gone, frames, packets, trash, |buf, packet| {
                lossless::count_storm(counters, packet);
                count_drop(counters, buf, packet);
            });
        }
        rewritten();
        self.side.buffer.settle();
        let train = came.train.map(|kin| (kin, came.bytes));
        let taken = self.walk_burst(train, frames, now, false);
        self.held.take(taken.frames, taken.bytes);
        if let Some(counters) = self.counters.port(port.index()) {
            self.side.buffer.publish(port, counters);
        }
        if !self.trash.is_empty() {
            B::free_all(&mut self.trash);
        }
        self.depart(port);
    }

    /// Walks a burst of which `packets` say all there is to know into the queues, or to the workers that own them. `charged`:
    /// another worker has done that, and took room for it. Returns what was taken.
    pub(super) fn walk(&mut self, frames: &mut Row<B>, now: Nanos, charged: bool) -> Taken {
        let (packets, trash) = (&mut self.packets, &mut self.trash);
        let mut room = self.side.room(now, charged);
        let mut runs = Runs::new();
        let gone = room.take(
            packets.get_mut(..frames.len()).unwrap_or_default(),
            &mut runs,
        );
        if !gone.is_empty() {
            sweep(gone, frames, packets, trash, |buf, packet| {
                if charged {
                    self.side.buffer.release(Receipt::of(&packet.meta));
                }
                let reason = packet.reason.unwrap_or(Drop::QueueFull);
                lossless::count_refused(&self.counters, &self.side.ports, &packet.meta, reason);
                let to = self.counters.port(packet.meta.egress.index());
                if let Some(counters) = to.or_else(|| self.counters.port(packet.meta.group.port()))
                {
                    count_drop(counters, buf, packet);
                }
            });
        }
        let away = self.roads.as_deref_mut().map(|roads| {
            let owned = self.side.owned;
            roads.part(owned, frames, packets, &mut runs)
        });
        let packets = packets.get_mut(..frames.len()).unwrap_or_default();
        let (mut queues, express) = self.side.queues(&mut self.tap, &self.counters, now);
        queues.show(frames, packets, &runs);
        // Of one port's burst a run is of one group, of several together it need not be.
        let express = (!charged || alike(packets)).then_some(express);
        let taken = queues.take(express, frames, packets, &runs, trash);
        taken.plus(away.unwrap_or_default())
    }
}

/// Whether frames of one queue are of one group too.
fn alike(packets: &[Packet]) -> bool {
    let group = |packet: &Packet| packet.meta.group;
    packets
        .windows(2)
        .all(|two| two.first().map(group) == two.last().map(group))
}
