//! One worker's ends of the rings, and the bursts in hand before them.

use std::sync::Arc;

use arrayvec::ArrayVec;
use rtrb::chunks::{ChunkError, ReadChunk};
use rtrb::{Consumer, Producer};

use super::{Crossing, Relay, Seat, Seating};
use crate::frame::{FrameBuf, Queued};
use crate::pause::Asked;
use crate::stage::admit::Runs;
use crate::stage::enqueue::Taken;
use crate::stage::packet::Packets;
use crate::units::{BURST, PortId, WorkerId};

/// A burst that crosses.
type Party<B> = ArrayVec<Crossing<B>, BURST>;

/// Bursts taken over from one worker a turn: more than one, as a taking worker may have several ports for one owner.
const BURSTS: usize = 2;

/// The way to one worker.
#[derive(Debug)]
struct Outward<B> {
    ring: Producer<Crossing<B>>,
    relays: Producer<Relay>,
    /// What of the burst in hand goes there.
    party: Party<B>,
}

/// All ways from and to this worker.
#[derive(Debug)]
pub(crate) struct Roads<B> {
    seating: Arc<Seating>,
    out: Box<[Option<Outward<B>>]>,
    inward: Box<[Consumer<Crossing<B>>]>,
    relays: Box<[Consumer<Relay>]>,
    /// By ingress port: frames of its last burst that a full ring did not take, oldest first.
    stuck: Box<[Party<B>]>,
    /// By port: what its peer asked and its owner was not yet told.
    asked: Box<[Option<Asked>]>,
}

impl<B: FrameBuf> Roads<B> {
    pub(crate) fn new(seat: Seat<B>) -> Roads<B> {
        let ways = seat.out.into_iter().zip(seat.relays_out);
        let outward = ways.map(|(ring, relays)| {
            Some(Outward {
                ring: ring?,
                relays: relays?,
                party: Party::new(),
            })
        });
        Roads {
            out: outward.collect(),
            inward: seat.inward.into_boxed_slice(),
            relays: seat.relays_in.into_boxed_slice(),
            stuck: seat.seating.owners.iter().map(|_| Party::new()).collect(),
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
            gone += push(&mut way.ring, &mut way.party);
            for crossing in way.party.drain(..) {
                match self.stuck.get_mut(port.index()) {
                    // They are of one burst.
                    Some(stuck) if lossless(&crossing) => stuck.push(crossing),
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
        let before = stuck.len();
        let mut left = Party::new();
        for crossing in stuck.drain(..) {
            let way = Roads::toward(&self.seating, &mut self.out, crossing.frame.meta.egress);
            let unsent = way.and_then(|way| way.ring.push(crossing).err());
            if let Some(rtrb::PushError::Full(crossing)) = unsent {
                left.push(crossing);
            }
        }
        let gone = before - left.len();
        *stuck = left;
        gone
    }

    /// Whether frames of `port` are stuck.
    #[inline]
    pub(crate) fn is_stuck(&self, port: PortId) -> bool {
        let stuck = self.stuck.get(port.index());
        stuck.is_some_and(|stuck| !stuck.is_empty())
    }

    /// Calls `each` with what has come in, a burst at a time and up to some bursts from each worker, as buffers and what is
    /// known of them; and with no buffers before what was known is written over.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        packets: &mut Packets,
        mut each: impl FnMut(Option<&mut ArrayVec<B, BURST>>, &mut Packets),
    ) -> usize {
        let mut came = 0;
        for ring in &mut self.inward {
            for _ in 0..BURSTS {
                let Some(chunk) = burst(ring) else { break };
                each(None, packets);
                let mut frames = ArrayVec::new();
                for (crossing, packet) in chunk.into_iter().zip(packets.iter_mut()) {
                    crossing.frame.buf.prefetch();
                    let Queued { buf, meta } = crossing.frame;
                    packet.arrived(meta, crossing.brief, buf.data());
                    frames.push(buf);
                }
                came += frames.len();
                each(Some(&mut frames), packets);
            }
        }
        came
    }

    /// Everything stuck, for a stop.
    pub(crate) fn abandon(&mut self, mut each: impl FnMut(Crossing<B>)) {
        for stuck in &mut self.stuck {
            stuck.drain(..).for_each(&mut each);
        }
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
        for ring in &mut self.relays {
            while let Ok(relay) = ring.pop() {
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

/// The oldest frames of a ring, at most a burst; none when it is empty.
#[inline]
fn burst<T>(ring: &mut Consumer<T>) -> Option<ReadChunk<'_, T>> {
    let waiting = ring.slots().min(BURST);
    if waiting == 0 {
        return None;
    }
    ring.read_chunk(waiting).ok()
}

/// As much of a burst as the ring takes, made visible at once.
#[inline]
fn push<B>(ring: &mut Producer<Crossing<B>>, party: &mut Party<B>) -> usize {
    let room = match ring.write_chunk_uninit(party.len()) {
        Ok(chunk) => return chunk.fill_from_iter(party.drain(..)),
        Err(ChunkError::TooFewSlots(room)) => room,
    };
    match ring.write_chunk_uninit(room) {
        Ok(chunk) => chunk.fill_from_iter(party.drain(..room)),
        Err(_) => 0,
    }
}
