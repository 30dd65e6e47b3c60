//! The path's part among several workers: handing frames over to the owner of their egress port, and taking them over.
//!
//! With one worker there are no roads, and none of this runs.

use super::short_cut::alight;
use super::{Datapath, count_drop, lossless};
use crate::buffer::{Buffer, Receipt};
use crate::cross::{Roads, Seat};
use crate::drop::Drop;
use crate::egress::fifo::FifoStore;
use crate::frame::{FrameBuf, Meta, Queued};
use crate::stage::admit::{Room, Runs};
use crate::stage::enqueue::{Egress, Taken};
use crate::stage::packet::{Packet, sweep};
use crate::tap::FlowTap;
use crate::units::{BURST, Nanos, PRIORITIES, PortId};

impl<B: FrameBuf, T: FlowTap> Datapath<B, T> {
    /// As one of several workers, before the first frame and after [`Datapath::with_lossless`].
    #[must_use]
    pub fn with_seat(mut self, seat: Seat<B>) -> Datapath<B, T> {
        let workers = usize::from(seat.seating.workers);
        self.me = seat.me;
        for entrance in &mut self.entrances {
            entrance.set_worker(seat.me);
        }
        self.owned = if workers == 1 { u32::MAX } else { seat.owned() };
        // Each worker may fill a burst into room that another has just taken, twice over with frames of its own.
        let frames = usize::try_from(self.config.pool.frames).unwrap_or(usize::MAX >> 8);
        let late = 2 * BURST * (workers - 1);
        let queues = self.egress.len() * PRIORITIES;
        self.store = FifoStore::new(frames.saturating_add(late), queues, Meta::NOTHING);
        self.buffer = Buffer::of_worker(
            &self.config,
            std::sync::Arc::clone(&seat.board),
            seat.me,
            &seat.seating.receivers,
        );
        self.roads = (workers > 1).then(|| Box::new(Roads::new(seat)));
        self
    }

    /// Whether this worker owns the egress side of `port`.
    #[inline]
    #[must_use]
    pub const fn owns(&self, port: PortId) -> bool {
        self.owned & port.bit() != 0
    }

    /// Whether `port`'s receive queue may be polled: not while frames of its last burst wait for room in a ring.
    #[inline]
    #[must_use]
    pub fn may_receive(&mut self, port: PortId) -> bool {
        match &self.roads {
            None => true,
            Some(roads) if !roads.is_stuck(port) => true,
            Some(_) => self.retry(port),
        }
    }

    #[cold]
    fn retry(&mut self, port: PortId) -> bool {
        let Some(roads) = self.roads.as_deref_mut() else {
            return true;
        };
        let gone = roads.retry(port) as u64;
        self.counters.crossing.handed_over.add(gone);
        if !roads.is_stuck(port) {
            return true;
        }
        // Nobody empties the device's ring meanwhile: its peer is to pause.
        if let Some(pause) = self.pause.get_mut(port.index()) {
            pause.stall();
        }
        self.counters.crossing.stalls.add(1);
        false
    }

    /// The top of a turn among several workers: what the others hold, gave back and tell.
    pub(super) fn look_around(&mut self) {
        self.buffer.look();
        self.buffer.publish_all(self.counters.ports());
        for (port, pause) in (0u8..).map(PortId).zip(&mut self.pause) {
            if !self.buffer.is_spread(port) {
                continue;
            }
            if self.owned & port.bit() == 0 {
                self.buffer.tell_pressure(port, pause.pressed());
            } else {
                self.buffer.tell_dropping(port, pause.dropping());
                if self.buffer.pressed_elsewhere(port) {
                    pause.stall();
                }
            }
        }
        self.buffer.tell();
        self.looked = true;
    }

    /// Before a burst: the board is read once for each.
    #[inline]
    pub(super) fn look_again(&mut self) {
        if self.roads.is_some() && !std::mem::take(&mut self.looked) {
            self.buffer.look();
        }
    }

    /// Hands over what of the burst from `port` leaves by other workers' ports.
    #[inline]
    pub(super) fn depart(&mut self, port: PortId) {
        let Some(roads) = self.roads.as_deref_mut() else {
            return;
        };
        let (buffer, held, counters, egress) = (
            &mut self.buffer,
            &mut self.held,
            &self.counters,
            &self.egress,
        );
        let lossless = |crossing: &crate::cross::Crossing<B>| {
            let meta = &crossing.frame.meta;
            let port = egress.get(meta.egress.index());
            port.is_some_and(|port| port.queue_abroad(meta.priority).lossless)
        };
        let gone = roads.depart(port, lossless, |crossing| {
            let Queued { buf, meta } = crossing.frame;
            let bytes = buf.data().len() as u64;
            buffer.release(Receipt::of(&meta));
            held.give(1, bytes);
            lossless::count_refused(counters, egress, &meta, Drop::XringFull);
            if let Some(to) = counters.port(meta.egress.index()) {
                to.drop(Drop::XringFull, bytes);
            }
        });
        self.counters.crossing.handed_over.add(gone as u64);
        self.buffer.tell();
    }

    /// Takes over the frames that other workers received for this one's ports, and the pauses they heard. Returns how many
    /// frames there were.
    #[inline]
    pub fn take_over(&mut self, now: Nanos) -> usize {
        let Some(roads) = self.roads.as_deref_mut() else {
            return 0;
        };
        let (pauses, counters, trash) = (&mut self.pause, &self.counters, &mut self.trash);
        roads.relays(|relay| {
            let port = relay.port.index();
            if let (Some(pause), Some(counters)) = (pauses.get_mut(port), counters.port(port)) {
                pause.hear(&relay.asked, now, counters);
            }
        });
        let held = &mut self.held;
        let express = &mut self.express;
        let came = roads.arrive(&mut self.packets, |frames, packets| {
            let Some(frames) = frames else {
                if let Some(port) = express.port()
                    && let Some(port) = self.egress.get_mut(port.index())
                {
                    let (store, buffer) = (&mut self.store, &mut self.buffer);
                    let known = (packets, &self.cars);
                    let lost = alight(express, port, store, known, buffer, counters);
                    held.give(lost.frames, lost.bytes);
                }
                return;
            };
            let all = total(packets.iter().take(frames.len()));
            let mut room = Room {
                ports: &mut self.egress,
                buffer: &mut self.buffer,
                now,
                owned: self.owned,
                charged: true,
            };
            let mut runs = Runs::new();
            let asking = packets.get_mut(..frames.len()).unwrap_or_default();
            let gone = room.take(asking, &mut runs);
            if !gone.is_empty() {
                sweep(gone, frames, packets, trash, |buf, packet| {
                    self.buffer.release(Receipt::of(&packet.meta));
                    let reason = packet.reason.unwrap_or(Drop::QueueFull);
                    lossless::count_refused(counters, &self.egress, &packet.meta, reason);
                    if let Some(to) = counters.port(packet.meta.egress.index()) {
                        count_drop(to, buf, packet);
                    }
                });
            }
            let packets = packets.get_mut(..frames.len()).unwrap_or_default();
            let mut egress = Egress {
                ports: &mut self.egress,
                store: &mut self.store,
                buffer: &mut self.buffer,
                tap: &mut self.tap,
                counters,
                now,
            };
            egress.show(frames, packets, &runs);
            let express = alike(packets).then_some(&mut *express);
            let taken = egress.take(express, frames, packets, &runs, trash);
            held.give(all.frames - taken.frames, all.bytes - taken.bytes);
            if !trash.is_empty() {
                B::free_all(trash);
            }
        });
        if came > 0 {
            counters.crossing.taken_over.add(came as u64);
        }
        came
    }

    /// Nothing of what this worker received waits for room in a ring.
    #[must_use]
    pub fn handed_over(&self) -> bool {
        let stuck = |roads: &Roads<B>| {
            (0u8..)
                .zip(&self.egress)
                .any(|(port, _)| roads.is_stuck(PortId(port)))
        };
        !self.roads.as_deref().is_some_and(stuck)
    }

    /// Drops as `shutdown` what waits for room in rings and what still comes over them: the switch stops.
    pub(super) fn abandon_crossings(&mut self) {
        let Some(roads) = self.roads.as_deref_mut() else {
            return;
        };
        let (buffer, held, counters) = (&mut self.buffer, &mut self.held, &self.counters);
        let mut drop = |meta: &crate::frame::Meta, buf: B| {
            let len = buf.data().len() as u64;
            buffer.release(Receipt::of(meta));
            held.give(1, len);
            if let Some(counters) = counters.port(meta.egress.index()) {
                counters.drop(Drop::Shutdown, len);
            }
        };
        roads.abandon(|crossing| drop(&crossing.frame.meta, crossing.frame.buf));
        let mut each = |frames: Option<&mut arrayvec::ArrayVec<B, BURST>>,
                        packets: &mut [Packet; BURST]| {
            let frames = frames.into_iter().flat_map(|frames| frames.drain(..));
            for (buf, packet) in frames.zip(packets) {
                drop(&packet.meta, buf);
            }
        };
        while roads.arrive(&mut self.packets, &mut each) > 0 {}
    }
}

/// Whether frames of one queue are of one group too.
fn alike(packets: &[Packet]) -> bool {
    let group = |packet: &Packet| packet.meta.group;
    packets
        .windows(2)
        .all(|two| two.first().map(group) == two.last().map(group))
}

/// All of a burst.
fn total<'a>(packets: impl Iterator<Item = &'a Packet>) -> Taken {
    packets.fold(Taken::default(), |all, packet| Taken {
        frames: all.frames + 1,
        bytes: all.bytes + u64::from(packet.brief.len),
    })
}
