//! The path's part of [`Express`](crate::egress::express::Express): the burst that does not queue, and the train, which is
//! walked as one.

use super::Datapath;
use crate::buffer::{Amount, Owed, Run as Held};
use crate::cross::Convoy;
use crate::egress::express::Departure;
use crate::egress::serve::Outlet;
use crate::frame::{FrameBuf, Row};
use crate::stage::admit::Run;
use crate::stage::enqueue::Taken;
use crate::stage::packet::Packets;
use crate::stage::train::{Cars, Kin, dress, dress_counted};
use crate::tap::FlowTap;
use crate::units::Nanos;

impl<B: FrameBuf, T: FlowTap> Datapath<B, T> {
    /// Walks a burst into the queues, or past one; `train`: it is one, and of so many bytes. `charged`: another worker has done
    /// that, and took room for it. Returns what was taken.
    #[inline]
    pub(super) fn walk_burst(
        &mut self,
        train: Option<(Kin, u64)>,
        frames: &mut Row<B>,
        now: Nanos,
        charged: bool,
    ) -> Taken {
        // Asked and walked apart: an `Option<Taken>` would come back in memory, and be read when the burst's stores have drained.
        if let Some((kin, bytes)) = train
            && self.admit_train(&kin, bytes, frames.len(), now, charged)
        {
            self.walk_train(kin, bytes, frames, now)
        } else {
            self.walk(frames, now, charged)
        }
    }

    /// Takes room for a burst of `bytes` that is one train. `charged`: another worker has done that. `false` where there is no
    /// room for all of it: then its packets are dressed, and it is to be walked as any other.
    #[inline]
    fn admit_train(
        &mut self,
        kin: &Kin,
        bytes: u64,
        frames: usize,
        now: Nanos,
        charged: bool,
    ) -> bool {
        let run = run_of(kin, frames);
        let mine = self.side.owns(run.egress);
        let mut room = self.side.room(now, charged);
        let open = match self.roads.as_deref_mut() {
            Some(roads) if !mine => {
                let waits = room.lossless_abroad(run);
                roads.has_room(run.egress, frames, waits)
            }
            _ => mine,
        };
        let all = Amount::of_unpadded(bytes, frames as u64);
        let admitted = open && room.admit_run(kin.meta.group, run, all);
        if !admitted {
            let cars = self.cars.get(..frames).unwrap_or_default();
            dress(&mut self.packets, cars, kin);
        }
        admitted
    }

    /// Walks a train that was [admitted](Datapath::admit_train) into its queue or past it, or to the worker that owns it. Returns
    /// what was taken.
    #[inline]
    fn walk_train(&mut self, kin: Kin, bytes: u64, frames: &mut Row<B>, now: Nanos) -> Taken {
        let cars = self.cars.get_mut(..frames.len()).unwrap_or_default();
        let run = run_of(&kin, frames.len());
        if !self.side.owns(run.egress)
            && let Some(roads) = self.roads.as_deref_mut()
        {
            let convoy = Convoy {
                kin,
                frames: run.frames,
                bytes,
            };
            let gone = roads.send_train(kin.meta.group.ingress(), convoy, frames, cars);
            self.counters.crossing.handed_over.add(gone as u64);
            return Taken {
                frames: run.frames as u64,
                bytes,
            };
        }
        let (mut queues, express) = self.side.queues(&mut self.tap, &self.counters, now);
        queues.show_train(frames, cars, &kin);
        let known = (&mut self.packets, &self.cars);
        queues.take_train(express, frames, (run, kin, bytes), known, &mut self.trash)
    }

    /// The burst that might not have had to queue does.
    #[inline]
    pub(super) fn queue_express(&mut self) {
        if let Some(port) = self.side.express.port() {
            let known = (&mut self.packets, &self.cars);
            let lost = self.side.alight(port, known, &self.counters);
            self.held.give(lost.frames, lost.bytes);
        }
    }
}

/// A train as a run of its queue.
const fn run_of(kin: &Kin, frames: usize) -> Run {
    Run {
        egress: kin.meta.egress,
        priority: kin.meta.priority,
        frames,
    }
}

/// Hands over a burst that goes past its queue; `owed` has room for it.
#[inline]
pub(super) fn hand_over<B, O: Outlet<B>>(
    gone: Departure<'_, B>,
    (packets, cars): (&mut Packets, &Cars),
    owed: &mut Owed,
    out: &mut O,
) {
    let packets = packets.get_mut(..gone.frames.len()).unwrap_or_default();
    match gone.train {
        Some(kin) if !O::ASKS && owed.is_empty() => owed.add_train(Held {
            group: kin.meta.group,
            amount: gone.amount,
        }),
        Some(kin) => {
            dress_counted(packets, cars, &kin);
            owed.add_alike(packets, gone.amount);
        }
        None => owed.add_alike(packets, gone.amount),
    }
    out.put_all(gone.frames, packets, gone.bytes);
}
