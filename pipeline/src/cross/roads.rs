//! One worker's ends of all ways, and the frames that wait before them.

use std::sync::Arc;

use arrayvec::ArrayVec;

use super::road::{Convoy, Inward, Outward};
use super::stuck::Stuck;
use super::{Crossing, Relay, Seat, Seating};
use crate::frame::{FrameBuf, Queued, Row};
use crate::pause::Asked;
use crate::stage::admit::Runs;
use crate::stage::enqueue::Taken;
use crate::stage::packet::Packets;
use crate::stage::train::Car;
use crate::units::{BURST, PortId, WorkerId};

/// All ways from and to this worker.
#[derive(Debug)]
pub(crate) struct Roads<B> {
    seating: Arc<Seating>,
    /// By worker; none to itself.
    out: Box<[Option<Outward<B>>]>,
    inward: Box<[Inward<B>]>,
    row: Row<B>,
    /// By ingress port: what of its last burst a full ring did not take.
    stuck: Box<[Stuck<B>]>,
    /// By port: what its peer asked and its owner was not yet told.
    asked: Box<[Option<Asked>]>,
}

impl<B: FrameBuf> Roads<B> {
    pub(crate) fn new(seat: Seat<B>) -> Roads<B> {
        Roads {
            out: seat.out.into_boxed_slice(),
            inward: seat.inward.into_boxed_slice(),
            row: Row::default(),
            stuck: seat
                .seating
                .owners
                .iter()
                .map(|_| Stuck::default())
                .collect(),
            asked: seat.seating.owners.iter().map(|_| None).collect(),
            seating: seat.seating,
        }
    }

    /// The way to the worker that owns a port.
    #[inline]
    fn toward<'a>(
        seating: &Seating,
        out: &'a mut [Option<Outward<B>>],
        port: PortId,
    ) -> Option<&'a mut Outward<B>> {
        let owner = seating.owners.get(port.index());
        let owner = owner.copied().unwrap_or(WorkerId::FIRST);
        out.get_mut(owner.index())?.as_mut()
    }

    /// Moves the runs for other workers' ports out of the burst; the others close up. Returns what left it.
    #[inline]
    pub(crate) fn part(
        &mut self,
        owned: u32,
        frames: &mut ArrayVec<B, BURST>,
        packets: &mut Packets,
        runs: &mut Runs,
    ) -> Taken {
        let mut away = Taken::default();
        if runs.iter().all(|run| owned & run.egress.bit() != 0) {
            return away;
        }
        let mut stay: ArrayVec<B, BURST> = ArrayVec::new();
        let mut place = 0;
        let mut all = frames.drain(..);
        for run in runs.iter() {
            let mut way = (owned & run.egress.bit() == 0)
                .then(|| Roads::toward(&self.seating, &mut self.out, run.egress))
                .flatten();
            for buf in all.by_ref().take(run.frames) {
                let Some(packet) = packets.get(place).copied() else {
                    break;
                };
                place += 1;
                if let Some(way) = &mut way {
                    away.frames += 1;
                    away.bytes += u64::from(packet.brief.len);
                    // At most a burst is in hand, so there is room.
                    way.party.push(Crossing {
                        frame: Queued {
                            buf,
                            meta: packet.meta,
                        },
                        brief: packet.brief,
                    });
                } else {
                    if let Some(cell) = packets.get_mut(stay.len()) {
                        *cell = packet;
                    }
                    stay.push(buf);
                }
            }
        }
        drop(all);
        *frames = stay;
        runs.retain(|run| owned & run.egress.bit() != 0);
        away
    }

    /// Whether a train of so many frames for another worker's port can be handed over as one: now, or, if it `waits`, some day.
    #[inline]
    pub(crate) fn has_room(&mut self, egress: PortId, frames: usize, waits: bool) -> bool {
        let way = Roads::toward(&self.seating, &mut self.out, egress);
        way.is_some_and(|way| way.has_room(frames) || waits && way.is_long_enough(frames))
    }

    /// Hands over a train that came in by `port`, or keeps it until there is room; `frames` is empty afterwards. Returns how
    /// many frames were handed over.
    #[inline]
    pub(crate) fn send_train(
        &mut self,
        port: PortId,
        convoy: Convoy,
        frames: &mut ArrayVec<B, BURST>,
        cars: &[Car],
    ) -> usize {
        let way = Roads::toward(&self.seating, &mut self.out, convoy.kin.meta.egress);
        if way.is_some_and(|way| way.send_train(convoy, frames, cars)) {
            return convoy.frames;
        }
        if let Some(stuck) = self.stuck.get_mut(port.index()) {
            stuck.keep_train(convoy, frames, cars);
        }
        0
    }

    /// Hands the bursts over. What a ring has no room for stays behind: lossless frames as `port`'s stuck ones, the others
    /// go to `refused`. Returns how many frames were handed over.
    #[inline]
    pub(crate) fn depart(
        &mut self,
        port: PortId,
        lossless: impl Fn(&Crossing<B>) -> bool,
        mut refused: impl FnMut(Crossing<B>),
    ) -> usize {
        let mut gone = 0;
        for way in self.out.iter_mut().flatten() {
            if way.party.is_empty() {
                continue;
            }
            gone += way.send_party();
            for crossing in way.party.drain(..) {
                match self.stuck.get_mut(port.index()) {
                    // They are of one burst.
                    Some(stuck) if lossless(&crossing) => stuck.party.push(crossing),
                    _ => refused(crossing),
                }
            }
        }
        gone
    }

    /// Tries again with what is stuck of `port`. Returns how many frames went.
    pub(crate) fn retry(&mut self, port: PortId) -> usize {
        let Some(stuck) = self.stuck.get_mut(port.index()) else {
            return 0;
        };
        if let Some(egress) = stuck.train_to() {
            let way = Roads::toward(&self.seating, &mut self.out, egress);
            return way.map_or(0, |way| stuck.send_train(way));
        }
        for crossing in stuck.party.drain(..) {
            let way = Roads::toward(&self.seating, &mut self.out, crossing.frame.meta.egress);
            if let Some(way) = way {
                way.party.push(crossing);
            }
        }
        let mut gone = 0;
        for way in self.out.iter_mut().flatten() {
            gone += way.send_party();
            stuck.party.extend(way.party.drain(..));
        }
        gone
    }

    /// Whether frames of `port` are stuck.
    #[inline]
    pub(crate) fn is_stuck(&self, port: PortId) -> bool {
        let stuck = self.stuck.get(port.index());
        stuck.is_some_and(|stuck| !stuck.is_empty())
    }

    /// The ways by which frames come, and an empty row to take them over with.
    #[inline]
    pub(crate) fn arrivals(&mut self) -> (&mut [Inward<B>], &mut Row<B>) {
        (&mut self.inward, &mut self.row)
    }

    /// What is stuck, by port: for a stop.
    pub(crate) fn stuck(&mut self) -> &mut [Stuck<B>] {
        &mut self.stuck
    }

    /// Keeps what the peer of another worker's port asks until its owner can be told.
    #[cold]
    pub(crate) fn relay(&mut self, port: PortId, asked: Option<Asked>) {
        if let (Some(asked), Some(kept)) = (asked, self.asked.get_mut(port.index())) {
            *kept = Some(kept.map_or(asked, |before| before.then(&asked)));
        }
        self.tell(port);
    }

    fn tell(&mut self, port: PortId) {
        let way = Roads::toward(&self.seating, &mut self.out, port);
        if let (Some(way), Some(kept)) = (way, self.asked.get_mut(port.index()))
            && let Some(asked) = *kept
            && way.relays.push(Relay { port, asked }).is_ok()
        {
            *kept = None;
        }
    }

    /// Tells owners what they were not yet told, and calls `each` with what this worker is told.
    #[inline]
    pub(crate) fn relays(&mut self, mut each: impl FnMut(Relay)) {
        for way in &mut self.inward {
            while let Ok(relay) = way.relays.pop() {
                each(relay);
            }
        }
        for port in (0u8..).map(PortId).take(self.asked.len()) {
            if self.asked.get(port.index()).is_some_and(Option::is_some) {
                self.tell(port);
            }
        }
    }
}
