//! One way between two workers: a ring of frames, a ring of trains' frames, and a ring that says which comes next.
//!
//! Law: what is announced is there, as a notice is written after what it tells of; and it is taken in the order in which it
//! was handed over.

use arrayvec::ArrayVec;
use rtrb::chunks::ChunkError;
use rtrb::{Consumer, Producer, RingBuffer};

use super::{Crossing, Relay};
use crate::frame::{FlowSlot, FrameBuf, Queued};
use crate::stage::packet::Packets;
use crate::stage::train::{Car, Cars, Kin};
use crate::units::BURST;
use crate::wire::bth::Traits;

/// A burst that crosses.
pub(super) type Party<B> = ArrayVec<Crossing<B>, BURST>;

/// Pauses on the way at a time; what is too much waits and is put together.
const RELAYS: usize = 64;

/// A train that crosses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Convoy {
    pub(crate) kin: Kin,
    pub(crate) frames: usize,
    pub(crate) bytes: u64,
}

/// What comes next.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Arrival {
    /// So many frames.
    Frames(usize),
    /// A train.
    Train(Convoy),
}

impl Arrival {
    /// Its frames.
    pub(crate) const fn frames(&self) -> usize {
        match self {
            Arrival::Frames(frames) => *frames,
            Arrival::Train(convoy) => convoy.frames,
        }
    }
}

/// A frame of a train, in half a line of the cache.
#[derive(Debug)]
struct Wagon<B> {
    buf: B,
    addresses: u64,
    transport: u64,
    len: u16,
    src_port: u16,
    traits: Traits,
}

const _: () = assert!(size_of::<Wagon<Box<u8>>>() == 32);

impl<B> Wagon<B> {
    #[inline]
    const fn load(buf: B, car: &Car) -> Wagon<B> {
        Wagon {
            buf,
            addresses: car.addresses,
            transport: car.transport,
            len: car.len,
            src_port: car.src_port,
            traits: car.traits,
        }
    }

    #[inline]
    fn unload(self, car: &mut Car) -> B {
        *car = Car {
            addresses: self.addresses,
            transport: self.transport,
            len: self.len,
            src_port: self.src_port,
            traits: self.traits,
            slot: FlowSlot::NONE,
        };
        self.buf
    }
}

/// The end of the worker that took the frames in.
#[derive(Debug)]
pub(crate) struct Outward<B> {
    notices: Producer<Arrival>,
    frames: Producer<Crossing<B>>,
    wagons: Producer<Wagon<B>>,
    pub(super) relays: Producer<Relay>,
    /// What of the burst in hand goes there.
    pub(super) party: Party<B>,
}

/// The end of the worker that owns their egress port.
#[derive(Debug)]
pub(crate) struct Inward<B> {
    notices: Consumer<Arrival>,
    frames: Consumer<Crossing<B>>,
    wagons: Consumer<Wagon<B>>,
    pub(super) relays: Consumer<Relay>,
    /// Frames that were announced and not yet taken.
    announced: usize,
}

/// A way with room for `room` frames, and as many of trains.
pub(super) fn road<B>(room: usize) -> (Outward<B>, Inward<B>) {
    let room = room.max(1);
    let (to, frames) = RingBuffer::new(room);
    let (wagons_to, wagons) = RingBuffer::new(room);
    // None tells of less than one frame, so they never want for room.
    let (notices_to, notices) = RingBuffer::new(2 * room);
    let (relays_to, relays) = RingBuffer::new(RELAYS);
    let outward = Outward {
        notices: notices_to,
        frames: to,
        wagons: wagons_to,
        relays: relays_to,
        party: Party::new(),
    };
    let inward = Inward {
        notices,
        frames,
        wagons,
        relays,
        announced: 0,
    };
    (outward, inward)
}

impl<B> Outward<B> {
    /// Hands over as much of the party as there is room for; the rest stays. Returns how many frames went.
    #[inline]
    pub(super) fn send_party(&mut self) -> usize {
        let (ring, party) = (&mut self.frames, &mut self.party);
        let sent = match ring.write_chunk_uninit(party.len()) {
            Ok(chunk) => chunk.fill_from_iter(party.drain(..)),
            Err(ChunkError::TooFewSlots(room)) => match ring.write_chunk_uninit(room) {
                Ok(chunk) => chunk.fill_from_iter(party.drain(..room)),
                Err(_) => 0,
            },
        };
        if sent > 0 {
            self.announce(Arrival::Frames(sent));
        }
        sent
    }

    /// Whether a train of so many frames can ever be handed over as one.
    #[inline]
    pub(super) fn is_long_enough(&self, frames: usize) -> bool {
        frames <= self.wagons.buffer().capacity()
    }

    /// Whether it can now.
    #[inline]
    pub(super) fn has_room(&mut self, frames: usize) -> bool {
        self.wagons.write_chunk_uninit(frames).is_ok()
    }

    /// Hands over a train, which leaves `frames` empty; `false`, and nothing done, where there is no room for it.
    #[inline]
    pub(super) fn send_train(
        &mut self,
        convoy: Convoy,
        frames: &mut ArrayVec<B, BURST>,
        cars: &[Car],
    ) -> bool {
        let Ok(chunk) = self.wagons.write_chunk_uninit(convoy.frames) else {
            return false;
        };
        let wagons = frames.drain(..).zip(cars);
        chunk.fill_from_iter(wagons.map(|(buf, car)| Wagon::load(buf, car)));
        self.announce(Arrival::Train(convoy));
        true
    }

    #[inline]
    fn announce(&mut self, notice: Arrival) {
        // There is room for as many as there can be.
        let _ = self.notices.push(notice);
    }
}

impl<B: FrameBuf> Inward<B> {
    /// What is to be taken next: frames of several parties together, at most a burst, a train by itself.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Arrival> {
        while self.announced < BURST {
            match self.notices.peek() {
                Ok(Arrival::Frames(more)) => {
                    self.announced += more;
                    let _ = self.notices.pop();
                }
                Ok(Arrival::Train(convoy)) if self.announced == 0 => {
                    let convoy = *convoy;
                    let _ = self.notices.pop();
                    return Some(Arrival::Train(convoy));
                }
                _ => break,
            }
        }
        (self.announced > 0).then(|| Arrival::Frames(self.announced.min(BURST)))
    }

    /// Takes so many frames, as [`Inward::next`] told.
    #[inline]
    pub(crate) fn take(
        &mut self,
        frames: usize,
        into: &mut ArrayVec<B, BURST>,
        packets: &mut Packets,
    ) {
        self.announced = self.announced.saturating_sub(frames);
        let Ok(chunk) = self.frames.read_chunk(frames) else {
            return;
        };
        for (crossing, packet) in chunk.into_iter().zip(packets) {
            crossing.frame.buf.prefetch();
            let Queued { buf, meta } = crossing.frame;
            packet.arrived(meta, crossing.brief, buf.data());
            into.push(buf);
        }
    }

    /// Takes a train of so many frames, as [`Inward::next`] told.
    #[inline]
    pub(crate) fn take_train(
        &mut self,
        frames: usize,
        into: &mut ArrayVec<B, BURST>,
        cars: &mut Cars,
    ) {
        let Ok(chunk) = self.wagons.read_chunk(frames) else {
            return;
        };
        for (wagon, car) in chunk.into_iter().zip(cars) {
            into.push(wagon.unload(car));
        }
    }
}
