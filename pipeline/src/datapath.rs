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
mod egress;
mod ingress;
mod lossless;
mod short_cut;
mod side;

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
use crate::egress::port::{EcnMode, EgressConfig, EgressPort, QueueConfig};
use crate::egress::scheduler::Discipline;
use crate::frame::{FlowSlot, FrameBuf, Meta, MetaFlags, Queued, wire_len};
use crate::pause::{PauseConfig, PortPause};
use crate::route::fib::FibReader;
use crate::stage::packet::{Packet, Packets, Trash, packets};
use crate::stage::parse::{Entrance, Intake};
use crate::stage::receive::Mtus;
use crate::stage::train::{Cars, cars};
use crate::tap::FlowTap;
use crate::units::{BURST, Nanos, PRIORITIES, PortId, Priority, WorkerId};
use side::EgressSide;

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
    side: EgressSide<B>,
    /// By port: frames handed out and not yet sent.
    owed: Box<[Owed]>,
    pause: Box<[PortPause]>,
    fib: FibReader,
    tap: T,
    counters: Arc<Counters>,
    held: Held,
    /// What is known of the frames of the burst in hand.
    packets: Packets,
    /// The same where it is one train.
    cars: Cars,
    /// Largest IP packet of each port.
    mtus: Mtus,
    trash: Trash<B>,
    me: WorkerId,
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
            side: EgressSide {
                ports: egress,
                owned: u32::MAX,
                store: FifoStore::new(frames, ports.len() * PRIORITIES, Meta::NOTHING),
                express: Express::default(),
                buffer: Buffer::new(&config),
            },
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
            cars: cars(),
            mtus: std::array::from_fn(|port| ports.get(port).map_or(0, |port| port.intake.mtu)),
            trash: Trash::new(),
            me: WorkerId::FIRST,
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
        &self.side.buffer
    }

    /// Serves a queue otherwise from now on.
    pub fn set_discipline(&mut self, port: PortId, priority: Priority, discipline: Discipline) {
        if let Some(egress) = self.side.ports.get_mut(port.index()) {
            egress.set_discipline(priority, discipline);
        }
    }

    /// Gives a queue other settings from now on; whether it is lossless stays.
    pub fn reconfigure_queue(&mut self, port: PortId, priority: Priority, config: &QueueConfig) {
        if let Some(egress) = self.side.ports.get_mut(port.index()) {
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
        let queued = self
            .side
            .ports
            .get(port.index())
            .map_or(0, EgressPort::frames);
        queued + self.side.express.waiting(port)
    }

    /// Whether a port has anything to send, now or later.
    #[inline]
    #[must_use]
    pub fn has_more(&self, port: PortId) -> bool {
        let port = self.side.ports.get(port.index());
        port.is_some_and(EgressPort::has_backlog)
    }

    /// Wire bytes waiting in a queue.
    #[must_use]
    pub fn depth(&self, port: PortId, priority: Priority) -> u64 {
        self.side
            .ports
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
        let Some(egress) = self.side.ports.get_mut(port.index()) else {
            return Err(buf);
        };
        if self.side.buffer.charge_own(wire).is_err() {
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
        if let Err(buf) = egress.push(&mut self.side.store, Queued { buf, meta }, now) {
            self.side.buffer.release(Receipt::of(&meta));
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

    /// Publishes how much is held: queued, or handed out and not yet [`Datapath::sent`].
    #[inline]
    pub fn publish_held(&self) {
        self.counters.held.packets.set(self.held.packets);
        self.counters.held.bytes.set(self.held.bytes);
        let (buffer, used) = (&self.counters.buffer, self.side.buffer.used_here());
        buffer.used.set(used.bytes);
        buffer.frames.set(used.frames);
        buffer.used_peak.raise(self.side.buffer.used().bytes);
        buffer
            .headroom
            .set(self.side.buffer.in_headroom_here().bytes);
        buffer
            .headroom_peak
            .raise(self.side.buffer.in_headroom().bytes);
    }

    /// A frame handed out by [`Datapath::egress`] that the device will not take any more: the switch stops.
    pub fn abandon(&mut self, port: PortId, bytes: u64) {
        self.held.give(1, bytes);
        self.give_back(port, 1, bytes);
        if let Some(counters) = self.counters.port(port.index()) {
            counters.drop(Drop::Shutdown, bytes);
        }
    }

    /// Drops everything still queued as `shutdown`.
    pub fn shut_down(&mut self) {
        self.queue_express();
        for (egress, counters) in self.side.ports.iter_mut().zip(self.counters.ports()) {
            egress.drain(&mut self.side.store, |frame| {
                let bytes = frame.buf.data().len() as u64;
                self.side.buffer.release(Receipt::of(&frame.meta));
                self.held.give(1, bytes);
                counters.drop(Drop::Shutdown, bytes);
            });
            egress.publish(counters);
        }
        self.abandon_crossings();
        self.publish_held();
        self.side.buffer.tell();
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
