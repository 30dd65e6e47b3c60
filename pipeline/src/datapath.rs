//! One worker's packet path: what comes in is walked through the stages into queues; what may go out is scheduled.
//!
//! ```text
//! ingress: parse, classify, route, rewrite -> wred -> admit -> enqueue     egress: pause -> schedule -> mark
//! ```
//!
//! A frame is charged to the group it came in by as it is admitted, and given back when its device has taken it. One that
//! leaves by another worker's port crosses after it was charged: [`crate::cross`].
//!
//! Law: `rx + originated + tags added = tx + drops + consumed + punted + held + tags removed`, in frames (without tags) and bytes.

mod crossing;
mod lossless;
mod short_cut;

pub use lossless::LosslessConfig;

use std::sync::Arc;

use arrayvec::ArrayVec;

use crate::buffer::{Buffer, BufferConfig, GroupId, Owed, PoolConfig, Receipt};
use crate::classify::Classifier;
use crate::counters::{Counters, PortCounters};
use crate::cross::Roads;
use crate::drop::Drop;
use crate::egress::express::Express;
use crate::egress::fifo::FifoStore;
use crate::egress::port::{EcnMode, EgressConfig, EgressPort, Marking, QueueConfig};
use crate::egress::scheduler::Discipline;
use crate::egress::serve::Outlet;
use crate::frame::{FlowSlot, FrameBuf, Meta, MetaFlags, Queued, wire_len};
use crate::pause::{PauseConfig, PortPause};
use crate::route::fib::FibReader;
use crate::stage::admit::{Room, Runs};
use crate::stage::enqueue::Egress;
use crate::stage::packet::{Packet, Packets, Trash, packets, sweep};
use crate::stage::parse::{Entrance, Intake};
use crate::stage::receive::{self, Mtus};
use crate::tap::FlowTap;
use crate::units::{BURST, Nanos, PRIORITIES, PortId, Priority, WorkerId};

/// One port's part of the path.
#[derive(Debug, Clone)]
pub struct PortConfig {
    /// What it takes in.
    pub intake: Intake,
    /// How it sends.
    pub egress: EgressConfig,
    /// When it marks.
    pub ecn: EcnMode,
}

/// A worker's path.
#[derive(Debug)]
pub struct Datapath<B, T> {
    entrances: Box<[Entrance]>,
    /// By port: when it marks.
    ecn: Box<[EcnMode]>,
    egress: Box<[EgressPort]>,
    store: FifoStore<B, Meta>,
    /// A burst that may not have to queue.
    express: Express<B>,
    buffer: Buffer,
    /// By port: frames handed out and not yet sent.
    owed: Box<[Owed]>,
    pause: Box<[PortPause]>,
    fib: FibReader,
    tap: T,
    counters: Arc<Counters>,
    held: Held,
    /// What is known of the frames of the burst in hand.
    packets: Packets,
    /// Largest IP packet of each port.
    mtus: Mtus,
    trash: Trash<B>,
    me: WorkerId,
    /// Ports whose egress side is this worker's.
    owned: u32,
    /// The ways to and from the other workers, if there are any.
    roads: Option<Box<Roads<B>>>,
    /// The board was read in this turn and no burst came since.
    looked: bool,
    config: BufferConfig,
}

/// Frames accepted and not yet taken by a device or dropped, modulo 2^64: another worker may take what this one gives.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    packets: u64,
    bytes: u64,
}

impl Held {
    #[inline]
    const fn take(&mut self, packets: u64, bytes: u64) {
        self.packets = self.packets.wrapping_add(packets);
        self.bytes = self.bytes.wrapping_add(bytes);
    }

    #[inline]
    const fn give(&mut self, packets: u64, bytes: u64) {
        self.packets = self.packets.wrapping_sub(packets);
        self.bytes = self.bytes.wrapping_sub(bytes);
    }
}

/// A burst a port may send now.
pub type Outgoing<B> = ArrayVec<Queued<B>, BURST>;

impl<B: FrameBuf, T: FlowTap> Datapath<B, T> {
    /// An empty path; every buffer it will ever need is allocated here. `seed` makes marking repeatable.
    #[must_use]
    pub fn new(
        ports: Vec<PortConfig>,
        pool: PoolConfig,
        fib: FibReader,
        tap: T,
        seed: u64,
    ) -> Datapath<B, T> {
        let frames = usize::try_from(pool.frames).unwrap_or(usize::MAX >> 8);
        let egress = ports
            .iter()
            .zip(seed..)
            .map(|(port, seed)| EgressPort::new(&port.egress, seed))
            .collect();
        let config = BufferConfig::plain(pool, ports.len());
        Datapath {
            egress,
            store: FifoStore::new(frames, ports.len() * PRIORITIES, Meta::NOTHING),
            express: Express::default(),
            buffer: Buffer::new(&config),
            owed: ports.iter().map(|_| Owed::default()).collect(),
            pause: ports
                .iter()
                .map(|port| PortPause::new(&PauseConfig::off(), port.intake.mac))
                .collect(),
            fib,
            tap,
            counters: Arc::new(Counters::new(ports.len())),
            held: Held::default(),
            packets: packets(),
            mtus: std::array::from_fn(|port| ports.get(port).map_or(0, |port| port.intake.mtu)),
            trash: Trash::new(),
            me: WorkerId::FIRST,
            owned: u32::MAX,
            roads: None,
            looked: false,
            config,
            ecn: ports.iter().map(|port| port.ecn).collect(),
            entrances: ports
                .into_iter()
                .zip(0..)
                .map(|(port, id)| Entrance::new(port.intake, WorkerId::FIRST, PortId(id)))
                .collect(),
        }
    }

    /// The path's counters, for any reader.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// The shared buffer.
    #[must_use]
    pub const fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Serves a queue otherwise from now on.
    pub fn set_discipline(&mut self, port: PortId, priority: Priority, discipline: Discipline) {
        if let Some(egress) = self.egress.get_mut(port.index()) {
            egress.set_discipline(priority, discipline);
        }
    }

    /// Gives a queue other settings from now on; whether it is lossless stays.
    pub fn reconfigure_queue(&mut self, port: PortId, priority: Priority, config: &QueueConfig) {
        if let Some(egress) = self.egress.get_mut(port.index()) {
            egress.reconfigure(priority, config);
        }
    }

    /// Classifies frames of a port otherwise from now on; those queued stay where they are.
    pub fn reclassify(&mut self, port: PortId, classifier: Classifier) {
        if let Some(entrance) = self.entrances.get_mut(port.index()) {
            entrance.reclassify(classifier);
        }
    }

    /// Marks otherwise from now on.
    pub fn set_ecn(&mut self, port: PortId, mode: EcnMode) {
        if let Some(ecn) = self.ecn.get_mut(port.index()) {
            *ecn = mode;
        }
    }

    /// NPCC's eye.
    pub fn tap(&mut self) -> &mut T {
        &mut self.tap
    }

    /// Frames waiting in a port's queues.
    #[must_use]
    pub fn waiting(&self, port: PortId) -> usize {
        let queued = self.egress.get(port.index()).map_or(0, EgressPort::frames);
        queued + self.express.waiting(port)
    }

    /// Whether a port has anything to send, now or later.
    #[inline]
    #[must_use]
    pub fn has_more(&self, port: PortId) -> bool {
        let port = self.egress.get(port.index());
        port.is_some_and(EgressPort::has_backlog)
    }

    /// Wire bytes waiting in a queue.
    #[must_use]
    pub fn depth(&self, port: PortId, priority: Priority) -> u64 {
        self.egress
            .get(port.index())
            .map_or(0, |egress| egress.depth(priority))
    }

    /// The top of the worker's loop: takes the newest routes, and reads what the other workers tell.
    #[inline]
    pub fn refresh(&mut self) {
        self.fib.refresh();
        if self.roads.is_some() {
            self.look_around();
        }
    }

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
            self.entrances.get(port.index()),
            self.counters.port(port.index()),
            self.pause.get_mut(port.index()),
        ) else {
            frames.clear();
            return;
        };
        let (packets, trash) = (&mut self.packets, &mut self.trash);
        pause.burst(frames.len(), BURST);
        let owned = self.owned & port.bit() != 0;
        let came = receive::run(entrance, &self.fib, &self.mtus, frames, packets, counters);
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
            let gone = lossless::storm(storm, frames.len(), packets);
            sweep(gone, frames, packets, trash, |buf, packet| {
                lossless::count_storm(counters, packet);
                count_drop(counters, buf, packet);
            });
        }
        rewritten();
        self.buffer.settle();
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
                count_drop(to.unwrap_or(counters), buf, packet);
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
        if !trash.is_empty() {
            B::free_all(trash);
        }
        self.buffer.publish(port, counters);
        self.depart(port);
    }

    /// Queues a frame made by this switch, ahead of the data in a strict queue.
    ///
    /// # Errors
    /// The frame, when the pool or the store is full; it was not counted.
    pub fn originate(
        &mut self,
        port: PortId,
        priority: Priority,
        buf: B,
        now: Nanos,
    ) -> Result<(), B> {
        let len = buf.data().len();
        let wire = wire_len(len);
        self.queue_express();
        let Some(egress) = self.egress.get_mut(port.index()) else {
            return Err(buf);
        };
        if self.buffer.charge_own(wire).is_err() {
            return Err(buf);
        }
        let meta = Meta {
            slot: FlowSlot::NONE,
            wire_len: wire,
            group: GroupId::NONE,
            egress: port,
            priority,
            l3_off: 0,
            flags: MetaFlags(0),
        };
        if let Err(buf) = egress.push(&mut self.store, Queued { buf, meta }, now) {
            self.buffer.release(Receipt::of(&meta));
            return Err(buf);
        }
        self.held.take(1, len as u64);
        if let Some(counters) = self.counters.port(port.index()) {
            counters.originated.add(1, len as u64);
            if let Some(queue) = counters.queues.get(priority.index()) {
                queue.enqueued.add(1, len as u64);
            }
        }
        Ok(())
    }

    /// Fills `out` with what `port` may send now, and publishes its depths.
    #[inline]
    pub fn egress(&mut self, port: PortId, out: &mut impl Outlet<B>, now: Nanos) {
        if self.express.waiting(port) > 0 && self.hasten(port, out, now) {
            return;
        }
        let (Some(egress), Some(ecn), Some(counters), Some(pause), Some(owed)) = (
            self.egress.get_mut(port.index()),
            self.ecn.get(port.index()),
            self.counters.port(port.index()),
            self.pause.get_mut(port.index()),
            self.owed.get_mut(port.index()),
        ) else {
            return;
        };
        egress.set_paused(pause.held_back(now, &counters.flow));
        let marking = Marking {
            mode: *ecn,
            tap: &self.tap,
            now,
        };
        owed.reserve(|gone| self.buffer.release_run(&gone));
        egress.schedule(&mut self.store, out, owed, &marking, counters);
        egress.publish(counters);
    }

    /// `packets` frames of `bytes`, handed out by [`Datapath::egress`], were taken by `port`'s device.
    #[inline]
    pub fn sent(&mut self, port: PortId, packets: u64, bytes: u64) {
        self.held.give(packets, bytes);
        self.give_back(port, packets);
        if let Some(counters) = self.counters.port(port.index()) {
            counters.tx.add(packets, bytes);
        }
    }

    /// The room of the `frames` oldest frames that `port` handed out.
    #[inline]
    fn give_back(&mut self, port: PortId, frames: u64) {
        let Some(owed) = self.owed.get_mut(port.index()) else {
            return;
        };
        let mut left = frames;
        while left > 0 {
            let Some(run) = owed.pop_run(&mut left) else {
                break;
            };
            self.buffer.release_run(&run);
        }
    }

    /// Publishes how much is held: queued, or handed out and not yet [`Datapath::sent`].
    #[inline]
    pub fn publish_held(&self) {
        self.counters.held.packets.set(self.held.packets);
        self.counters.held.bytes.set(self.held.bytes);
        let (buffer, used) = (&self.counters.buffer, self.buffer.used_here());
        buffer.used.set(used.bytes);
        buffer.frames.set(used.frames);
        buffer.used_peak.raise(self.buffer.used().bytes);
        buffer.headroom.set(self.buffer.in_headroom_here().bytes);
        buffer.headroom_peak.raise(self.buffer.in_headroom().bytes);
    }

    /// A frame handed out by [`Datapath::egress`] that the device will not take any more: the switch stops.
    pub fn abandon(&mut self, port: PortId, bytes: u64) {
        self.held.give(1, bytes);
        self.give_back(port, 1);
        if let Some(counters) = self.counters.port(port.index()) {
            counters.drop(Drop::Shutdown, bytes);
        }
    }

    /// Drops everything still queued as `shutdown`.
    pub fn shut_down(&mut self) {
        self.queue_express();
        for (egress, counters) in self.egress.iter_mut().zip(self.counters.ports()) {
            egress.drain(&mut self.store, |frame| {
                let bytes = frame.buf.data().len() as u64;
                self.buffer.release(Receipt::of(&frame.meta));
                self.held.give(1, bytes);
                counters.drop(Drop::Shutdown, bytes);
            });
            egress.publish(counters);
        }
        self.abandon_crossings();
        self.publish_held();
        self.buffer.tell();
    }
}

/// Counts a frame that goes no further on `counters`.
#[cold]
fn count_drop<B: FrameBuf>(counters: &PortCounters, buf: &B, packet: &Packet) {
    if let Some(reason) = packet.reason {
        counters.drop(reason, buf.data().len() as u64);
    }
}

#[cfg(test)]
#[path = "datapath_tests.rs"]
mod tests;
