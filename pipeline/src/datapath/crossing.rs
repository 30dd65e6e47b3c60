//! The path's part among several workers: handing frames over to the owner of their egress port, and taking them over.
//!
//! With one worker there are no roads, and none of this runs.

use arrayvec::ArrayVec;

use super::{Datapath, lossless};
use crate::buffer::{Buffer, Receipt};
use crate::cross::{Arrival, Convoy, Inward, Roads, Seat};
use crate::drop::Drop;
use crate::egress::fifo::FifoStore;
use crate::frame::{FrameBuf, Meta, Queued, Row};
use crate::stage::enqueue::Taken;
use crate::stage::packet::Packet;
use crate::stage::train::dress;
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
        self.side.owned = if workers == 1 { u32::MAX } else { seat.owned() };
        // Each worker may fill a burst into room that another has just taken, twice over with frames of its own.
        let frames = usize::try_from(self.config.pool.frames).unwrap_or(usize::MAX >> 8);
        let late = 2 * BURST * (workers - 1);
        let queues = self.side.ports.len() * PRIORITIES;
        self.side.store = FifoStore::new(frames.saturating_add(late), queues, Meta::NOTHING);
        self.side.buffer = Buffer::of_worker(
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
        self.side.owns(port)
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
        self.side.buffer.look();
        self.side.buffer.publish_all(self.counters.ports());
        for (port, pause) in (0u8..).map(PortId).zip(&mut self.pause) {
            if !self.side.buffer.is_spread(port) {
                continue;
            }
            if self.side.owns(port) {
                self.side.buffer.tell_dropping(port, pause.dropping());
                if self.side.buffer.pressed_elsewhere(port) {
                    pause.stall();
                }
            } else {
                self.side.buffer.tell_pressure(port, pause.pressed());
            }
        }
        self.side.buffer.tell();
        self.looked = true;
    }

    /// Before a burst: the board is read once for each.
    #[inline]
    pub(super) fn look_again(&mut self) {
        if self.roads.is_some() && !std::mem::take(&mut self.looked) {
            self.side.buffer.look();
        }
    }

    /// Hands over what of the burst from `port` leaves by other workers' ports.
    #[inline]
    pub(super) fn depart(&mut self, port: PortId) {
        let Some(roads) = self.roads.as_deref_mut() else {
            return;
        };
        let (buffer, held, counters, egress) = (
            &mut self.side.buffer,
            &mut self.held,
            &self.counters,
            &self.side.ports,
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
        self.side.buffer.tell();
    }

    /// Takes over the pauses that other workers heard, and of each what comes next for this one's ports: a train, or frames up to
    /// a burst. Returns how many frames there were: when there are any there may be more, best asked for when these are sent.
    #[inline]
    pub fn take_over(&mut self, now: Nanos) -> usize {
        // What comes over goes no further: meanwhile the path has no roads.
        let Some(mut roads) = self.roads.take() else {
            return 0;
        };
        let (pauses, counters) = (&mut self.pause, &self.counters);
        roads.relays(|relay| {
            let port = relay.port.index();
            if let (Some(pause), Some(counters)) = (pauses.get_mut(port), counters.port(port)) {
                pause.hear(&relay.asked, now, counters);
            }
        });
        let mut came = 0;
        let (inward, frames) = roads.arrivals();
        for way in inward {
            if let Some(next) = way.next() {
                came += self.arrive(way, next, frames, now);
            }
        }
        self.roads = Some(roads);
        if came > 0 {
            self.counters.crossing.taken_over.add(came as u64);
        }
        came
    }

    /// Takes over what comes next, by way of an empty row; returns its frames.
    fn arrive(
        &mut self,
        way: &mut Inward<B>,
        next: Arrival,
        frames: &mut Row<B>,
        now: Nanos,
    ) -> usize {
        debug_assert!(frames.is_empty(), "the last ones went on");
        self.queue_express();
        let (all, taken) = match next {
            Arrival::Train(convoy) => {
                way.take_train(convoy.frames, frames, &mut self.cars);
                let all = Taken {
                    frames: convoy.frames as u64,
                    bytes: convoy.bytes,
                };
                let train = Some((convoy.kin, convoy.bytes));
                (all, self.walk_burst(train, frames, now, true))
            }
            Arrival::Frames(count) => {
                way.take(count, frames, &mut self.packets);
                let all = total(self.packets.iter().take(frames.len()));
                (all, self.walk(frames, now, true))
            }
        };
        self.held
            .give(all.frames - taken.frames, all.bytes - taken.bytes);
        if !self.trash.is_empty() {
            B::free_all(&mut self.trash);
        }
        next.frames()
    }

    /// Nothing of what this worker received waits for room in a ring.
    #[must_use]
    pub fn handed_over(&self) -> bool {
        let stuck = |roads: &Roads<B>| {
            (0u8..)
                .zip(&self.side.ports)
                .any(|(port, _)| roads.is_stuck(PortId(port)))
        };
        !self.roads.as_deref().is_some_and(stuck)
    }

    /// Drops as `shutdown` what waits for room in rings and what still comes over them: the switch stops.
    pub(super) fn abandon_crossings(&mut self) {
        let Some(mut roads) = self.roads.take() else {
            return;
        };
        let (buffer, held, counters) = (&mut self.side.buffer, &mut self.held, &self.counters);
        let mut drop = |meta: &Meta, buf: B| {
            let len = buf.data().len() as u64;
            buffer.release(Receipt::of(meta));
            held.give(1, len);
            if let Some(counters) = counters.port(meta.egress.index()) {
                counters.drop(Drop::Shutdown, len);
            }
        };
        for stuck in roads.stuck() {
            for crossing in stuck.take_party() {
                drop(&crossing.frame.meta, crossing.frame.buf);
            }
            if let Some((convoy, frames, cars)) = stuck.take_train() {
                dress(&mut self.packets, cars, &convoy.kin);
                for (buf, packet) in frames.into_iter().zip(&self.packets) {
                    drop(&packet.meta, buf);
                }
            }
        }
        for way in roads.arrivals().0 {
            while let Some(next) = way.next() {
                let mut frames = ArrayVec::<B, BURST>::new();
                match next {
                    Arrival::Train(Convoy { kin, frames: n, .. }) => {
                        way.take_train(n, &mut frames, &mut self.cars);
                        dress(&mut self.packets, &self.cars, &kin);
                    }
                    Arrival::Frames(n) => way.take(n, &mut frames, &mut self.packets),
                }
                for (buf, packet) in frames.into_iter().zip(&self.packets) {
                    drop(&packet.meta, buf);
                }
            }
        }
        self.roads = Some(roads);
    }
}

/// All of a burst.
fn total<'a>(packets: impl Iterator<Item = &'a Packet>) -> Taken {
    packets.fold(Taken::default(), |all, packet| Taken {
        frames: all.frames + 1,
        bytes: all.bytes + u64::from(packet.brief.len),
    })
}
