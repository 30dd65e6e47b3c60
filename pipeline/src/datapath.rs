//! One worker's packet path: what comes in is walked through the stages into queues; what may go out is scheduled.
//!
//! ```text
//! ingress: parse -> classify -> route -> rewrite -> wred -> admit -> enqueue     egress: pause -> schedule -> mark
//! ```
//!
//! A frame is charged to the group it came in by as it is admitted, and given back when its device has taken it.
//!
//! Law: `rx + originated + tags added = tx + drops + consumed + punted + held + tags removed`, in frames (without tags) and bytes.

mod lossless;

pub use lossless::LosslessConfig;

use std::sync::Arc;

use arrayvec::ArrayVec;

use crate::bits::low32;
use crate::buffer::{Buffer, BufferConfig, Owed, PoolConfig, Receipt};
use crate::classify::Classifier;
use crate::counters::Counters;
use crate::drop::Drop;
use crate::egress::fifo::FifoStore;
use crate::egress::port::{EcnMode, EgressConfig, EgressPort, Marking, QueueConfig};
use crate::egress::scheduler::Discipline;
use crate::frame::{FlowSlot, FrameBuf, Meta, MetaFlags, Queued, wire_len};
use crate::pause::{PauseConfig, PortPause};
use crate::route::fib::FibReader;
use crate::stage::enqueue::{Egress, count_queue, count_roce};
use crate::stage::lane::{Lanes, Trash, discard};
use crate::stage::parse::Intake;
use crate::stage::{parse, rewrite, route};
use crate::tap::FlowTap;
use crate::units::{BURST, Nanos, PRIORITIES, PortId, Priority};

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
    ports: Box<[PortConfig]>,
    egress: Box<[EgressPort]>,
    store: FifoStore<Queued<B>>,
    buffer: Buffer,
    /// By port: frames handed out and not yet sent.
    owed: Box<[Owed]>,
    pause: Box<[PortPause]>,
    fib: FibReader,
    tap: T,
    counters: Arc<Counters>,
    held: Held,
    lanes: Lanes<B>,
    trash: Trash<B>,
}

/// Frames accepted and not yet taken by a device or dropped.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    packets: u64,
    bytes: u64,
}

impl Held {
    #[inline]
    const fn take(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }

    #[inline]
    const fn give(&mut self, packets: u64, bytes: u64) {
        self.packets -= packets;
        self.bytes -= bytes;
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
        Datapath {
            egress,
            store: FifoStore::new(frames, ports.len() * PRIORITIES),
            buffer: Buffer::new(&BufferConfig::plain(pool, ports.len())),
            owed: ports.iter().map(|_| Owed::default()).collect(),
            pause: ports
                .iter()
                .map(|port| PortPause::new(&PauseConfig::off(), port.intake.mac))
                .collect(),
            fib,
            tap,
            counters: Arc::new(Counters::new(ports.len())),
            held: Held::default(),
            lanes: Lanes::new(),
            trash: Trash::new(),
            ports: ports.into_boxed_slice(),
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
        let (Some(egress), Some(settings)) = (
            self.egress.get_mut(port.index()),
            self.ports.get_mut(port.index()),
        ) else {
            return;
        };
        egress.reconfigure(priority, config, settings.egress.max_frame);
    }

    /// Classifies frames of a port otherwise from now on; those queued stay where they are.
    pub fn reclassify(&mut self, port: PortId, classifier: Classifier) {
        if let Some(settings) = self.ports.get_mut(port.index()) {
            settings.intake.classifier = classifier;
        }
    }

    /// Marks otherwise from now on.
    pub fn set_ecn(&mut self, port: PortId, mode: EcnMode) {
        if let Some(settings) = self.ports.get_mut(port.index()) {
            settings.ecn = mode;
        }
    }

    /// NPCC's eye.
    pub fn tap(&mut self) -> &mut T {
        &mut self.tap
    }

    /// Frames waiting in a port's queues.
    #[must_use]
    pub fn waiting(&self, port: PortId) -> usize {
        self.egress.get(port.index()).map_or(0, EgressPort::frames)
    }

    /// Wire bytes waiting in a queue.
    #[must_use]
    pub fn depth(&self, port: PortId, priority: Priority) -> u64 {
        self.egress
            .get(port.index())
            .map_or(0, |egress| egress.depth(priority))
    }

    /// The top of the worker's loop: takes the newest routes.
    #[inline]
    pub fn refresh(&mut self) {
        self.fib.refresh();
    }

    /// Walks a received burst into the queues. `frames` is empty afterwards.
    #[inline]
    pub fn ingress(&mut self, port: PortId, frames: &mut ArrayVec<B, BURST>, now: Nanos) {
        let (Some(config), Some(counters), Some(pause)) = (
            self.ports.get(port.index()),
            self.counters.port(port.index()),
            self.pause.get_mut(port.index()),
        ) else {
            frames.clear();
            return;
        };
        counters.rx.packets.add(frames.len() as u64);
        pause.burst(frames.len(), BURST);
        parse::run(
            &config.intake,
            frames,
            &mut self.lanes,
            pause,
            now,
            counters,
            &mut self.trash,
        );
        let storm = pause.dropping();
        self.buffer.settle();
        route::run(&self.fib, &mut self.lanes, counters, &mut self.trash);
        let mut egress = Egress {
            ports: &mut self.egress,
            store: &mut self.store,
            buffer: &mut self.buffer,
            tap: &mut self.tap,
            now,
        };
        for mut lane in self.lanes.drain(..) {
            let Some(mut buf) = lane.buf.take() else {
                continue;
            };
            if storm & lane.priority.bit() != 0 {
                if let Some(pause) = counters.flow.priorities.get(lane.priority.index()) {
                    pause.storm_rx_dropped.add(1);
                }
                discard(buf, Drop::PfcStorm, counters, &mut self.trash);
                continue;
            }
            count_roce(buf.data(), &lane.parsed, counters);
            let before = buf.data().len();
            let mtu = self
                .ports
                .get(lane.path.port().index())
                .map_or(0, |egress| egress.intake.mtu);
            if let Err(reason) =
                rewrite::rewrite(&mut buf, &mut lane.parsed, lane.path, mtu, lane.priority)
            {
                discard(buf, reason, counters, &mut self.trash);
                continue;
            }
            let after = buf.data().len();
            if after != before {
                counters
                    .tag_bytes_added
                    .add(after.saturating_sub(before) as u64);
                counters
                    .tag_bytes_removed
                    .add(before.saturating_sub(after) as u64);
            }
            let to = lane.path.port();
            match egress.accept(buf, &lane.parsed, lane.priority, port, to) {
                Ok(()) => {
                    self.held.take(after);
                    count_queue(&self.counters, to, lane.priority, Ok(after as u64));
                }
                Err((buf, reason)) => {
                    count_queue(&self.counters, to, lane.priority, Err(reason));
                    let out = self.counters.port(to.index()).unwrap_or(counters);
                    let lossless = egress
                        .ports
                        .get(to.index())
                        .and_then(|port| port.queue_config(lane.priority))
                        .is_some_and(|queue| queue.lossless);
                    lossless::count_refused(counters, out, lane.priority, reason, lossless);
                    discard(buf, reason, out, &mut self.trash);
                }
            }
        }
        B::free_all(&mut self.trash);
        self.buffer.publish(port, counters);
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
        let Some(egress) = self.egress.get_mut(port.index()) else {
            return Err(buf);
        };
        if self.buffer.charge_own(wire).is_err() {
            return Err(buf);
        }
        let meta = Meta {
            arrived: low32(now.0),
            slot: FlowSlot::NONE,
            wire_len: wire,
            ingress: port,
            egress: port,
            priority,
            l3_off: 0,
            flags: MetaFlags(MetaFlags::ORIGINATED),
        };
        if let Err(queued) = egress.push(&mut self.store, Queued { buf, meta }, now) {
            self.buffer.release(Receipt::of(&queued.meta));
            return Err(queued.buf);
        }
        self.held.take(len);
        if let Some(counters) = self.counters.port(port.index()) {
            counters.originated.add(1, len as u64);
        }
        count_queue(&self.counters, port, priority, Ok(len as u64));
        Ok(())
    }

    /// Fills `out` with what `port` may send now, and publishes its depths.
    #[inline]
    pub fn egress(&mut self, port: PortId, out: &mut Outgoing<B>, now: Nanos) {
        let (Some(egress), Some(config), Some(counters), Some(pause), Some(owed)) = (
            self.egress.get_mut(port.index()),
            self.ports.get(port.index()),
            self.counters.port(port.index()),
            self.pause.get_mut(port.index()),
            self.owed.get_mut(port.index()),
        ) else {
            return;
        };
        egress.set_paused(pause.held_back(now, &counters.flow));
        let first = out.len();
        let marking = Marking {
            mode: config.ecn,
            tap: &self.tap,
            now,
        };
        egress.schedule(&mut self.store, out, &marking, counters);
        for frame in out.get(first..).unwrap_or_default() {
            if let Some(oldest) = owed.push(Receipt::of(&frame.meta)) {
                self.buffer.release(oldest);
            }
        }
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
        let (buffer, used) = (&self.counters.buffer, self.buffer.used());
        buffer.used.set(used.bytes);
        buffer.frames.set(used.frames);
        buffer.used_peak.raise(used.bytes);
        let headroom = self.buffer.in_headroom().bytes;
        buffer.headroom.set(headroom);
        buffer.headroom_peak.raise(headroom);
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
        for (egress, counters) in self.egress.iter_mut().zip(self.counters.ports()) {
            egress.drain(&mut self.store, |frame| {
                let bytes = frame.buf.data().len() as u64;
                self.buffer.release(Receipt::of(&frame.meta));
                self.held.give(1, bytes);
                counters.drop(Drop::Shutdown, bytes);
            });
            egress.publish(counters);
        }
        self.publish_held();
    }
}

#[cfg(test)]
#[path = "datapath_tests.rs"]
mod tests;
