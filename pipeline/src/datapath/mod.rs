//! One worker's packet path: received frames pass through the stages into queues, and queued frames are scheduled out of them.
//!
//! ```text
//! ingress: parse, classify, route, rewrite -> sort into runs -> admit: WRED, queue limit, charge -> NPCC tap -> enqueue or bypass
//! egress:  pause -> a run that bypasses its queue, as it is; else schedule -> mark
//! ```
//!
//! A frame is charged, as it is admitted, to the ingress group it arrived in, and released when its device has taken it. One
//! that leaves by another worker's port crosses after it was charged; WRED, queue limit and tap follow there:
//! [`crate::handoff`].
//!
//! Law: `rx + originated + tags added = tx + drops + consumed + punted + held + tags removed + trimmed` in bytes, and the same
//! in frames without tags and trimmed bytes.

mod capture_points;
mod captured;
mod egress;
mod egress_side;
mod handoff;
mod ingress;
mod link;
mod lossless;
mod punted;

pub use lossless::LosslessConfig;

use std::sync::Arc;

use arrayvec::ArrayVec;

pub use crate::buffer::Sent;
use crate::buffer::{Buffer, BufferConfig, Charge, GroupId, PoolConfig};
use crate::burst::{Runs, Sorter, Trash};
use crate::capture::Capture;
use crate::classify::Classifier;
use crate::counters::{Counters, PortCounters};
use crate::drop::DropReason;
use crate::egress::port::{EcnConfig, EgressConfig, EgressQueueConfig};
use crate::frame::{FlowSlot, FrameBuf, Meta, MetaFlags, Queued};
use crate::handoff::Channels;
use crate::moved_hosts::{MovedHosts, MovedView};
use crate::parse::digest::AddressDigest;
use crate::pause::{PauseConfig, PortPause};
use crate::per::PerPort;
use crate::punt::Punt;
use crate::route::fib::FibReader;
use crate::stage::heads::VectorReader;
use crate::stage::parse::{IngressConfig, IngressPort};
use crate::stage::receive::{Mtus, Reasons};
use crate::tap::FlowTap;
use crate::units::{BURST, Mac, Nanos, PortId, Priority, WorkerId};
use egress_side::EgressSide;

/// Configuration of one port in the packet path.
#[derive(Debug, Clone)]
pub struct PortConfig {
    /// Ingress configuration: frames that the port accepts.
    pub intake: IngressConfig,
    /// Egress configuration: queues, scheduler and shapers.
    pub egress: EgressConfig,
    /// ECN configuration.
    pub ecn: EcnConfig,
}

/// Packet path of one worker.
#[derive(Debug)]
pub struct Datapath<B, T> {
    ingress: PerPort<IngressPort>,
    egress_side: EgressSide<B>,
    pause: PerPort<PortPause>,
    fib: FibReader,
    tap: T,
    counters: Arc<Counters>,
    held: Held,
    /// Runs of the current burst.
    runs: Runs<B>,
    /// Drop reason of each frame in the burst, by index.
    reasons: Box<Reasons>,
    sorter: Sorter,
    /// Largest IP packet of each port in bytes.
    mtus: Mtus,
    trash: Trash<B>,
    me: WorkerId,
    /// Channels to and from the other workers, if there are any.
    channels: Option<Box<Channels<B>>>,
    /// Punt and inject, if frames can be punted to Linux.
    punt: Option<Box<Punt<B>>>,
    /// Reader of headers by vectors, if the processor has any.
    vectors: Option<Box<dyn VectorReader<B>>>,
    /// Copy of the table of moved hosts, if there is one.
    moved: Option<Box<MovedView>>,
    /// Captures of an operator, and the standing capture.
    capture: Capture,
    /// True if the other workers' use of the pool (`UsageLedger`) was read in this iteration, and no burst was received since.
    is_pool_view_fresh: bool,
    config: BufferConfig,
}

/// Frames and bytes accepted and not yet taken by a device or dropped, modulo 2^64: another worker may release what this one
/// accepts.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    packets: u64,
    bytes: u64,
}

impl Held {
    #[inline]
    const fn add(&mut self, packets: u64, bytes: u64) {
        self.packets = self.packets.wrapping_add(packets);
        self.bytes = self.bytes.wrapping_add(bytes);
    }

    #[inline]
    const fn subtract(&mut self, packets: u64, bytes: u64) {
        self.packets = self.packets.wrapping_sub(packets);
        self.bytes = self.bytes.wrapping_sub(bytes);
    }
}

/// A burst that a port may send now.
pub type Outgoing<B> = ArrayVec<Queued<B>, BURST>;

impl<B: FrameBuf, T: FlowTap> Datapath<B, T> {
    /// Returns an empty path; every buffer it will ever need is allocated here. `seed` makes marking repeatable, and is
    /// unknown to those who send: the digest of IPv6 addresses has its keys from it.
    #[must_use]
    pub fn new(
        ports: Vec<PortConfig>,
        pool: PoolConfig,
        fib: FibReader,
        tap: T,
        seed: u64,
    ) -> Datapath<B, T> {
        let config = BufferConfig::plain(pool, ports.len());
        let digest = AddressDigest::new(seed);
        let first = WorkerId::FIRST;
        let no_port = || IngressPort::new(IngressConfig::nothing(), first, PortId(0), digest);
        let no_pause = || PortPause::new(&PauseConfig::off(), Mac::default());
        let pause = ports
            .iter()
            .map(|port| PortPause::new(&PauseConfig::off(), port.intake.mac));
        Datapath {
            egress_side: EgressSide::new(&ports, &config, seed),
            pause: PerPort::new(pause, no_pause),
            fib,
            tap,
            counters: Arc::new(Counters::new(ports.len())),
            held: Held::default(),
            runs: Runs::new(),
            reasons: Box::new([None; BURST]),
            sorter: Sorter::default(),
            mtus: std::array::from_fn(|port| ports.get(port).map_or(0, |port| port.intake.mtu)),
            trash: Trash::new(),
            me: WorkerId::FIRST,
            channels: None,
            punt: None,
            vectors: None,
            moved: None,
            capture: Capture::default(),
            is_pool_view_fresh: false,
            config,
            ingress: PerPort::new(
                ports
                    .into_iter()
                    .zip(0..)
                    .map(|(port, id)| IngressPort::new(port.intake, first, PortId(id), digest)),
                no_port,
            ),
        }
    }

    /// Reads headers by vectors.
    #[must_use]
    pub fn with_vectors(mut self, vectors: Option<Box<dyn VectorReader<B>>>) -> Self {
        self.vectors = vectors;
        self
    }

    /// Takes frames of the hosts in this table to their queue. The copy is renewed by [`Datapath::refresh`].
    #[must_use]
    pub fn with_moved_hosts(mut self, table: Arc<MovedHosts>) -> Self {
        self.moved = Some(Box::new(MovedView::new(table)));
        self
    }

    /// Returns the path's counters, which any thread may read.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Returns the shared buffer.
    #[must_use]
    pub const fn buffer(&self) -> &Buffer {
        &self.egress_side.buffer
    }

    /// Changes a queue's configuration, except that `lossless` stays.
    pub fn reconfigure_queue(
        &mut self,
        port: PortId,
        priority: Priority,
        config: &EgressQueueConfig,
    ) {
        self.egress_side.ports[port].reconfigure(priority, config);
    }

    /// Changes how frames of a port are classified; queued frames stay where they are.
    pub fn reclassify(&mut self, port: PortId, classifier: Classifier) {
        self.ingress[port].reclassify(classifier);
    }

    /// Changes the ECN configuration of a port.
    pub fn set_ecn(&mut self, port: PortId, ecn: EcnConfig) {
        self.egress_side.ecn[port] = ecn;
    }

    /// Returns the tap of NPCC.
    pub fn tap(&mut self) -> &mut T {
        &mut self.tap
    }

    /// Returns the number of frames that wait in a port's queues or bypass them.
    #[must_use]
    pub fn frames_queued(&self, port: PortId) -> usize {
        self.egress_side.ports[port].frames() + self.egress_side.bypass[port].frames()
    }

    /// Returns true if a port has anything to send, now or later.
    #[inline]
    #[must_use]
    pub fn has_more(&self, port: PortId) -> bool {
        self.egress_side.ports[port].has_backlog()
    }

    /// Returns the wire bytes waiting in a queue.
    #[must_use]
    pub fn depth(&self, port: PortId, priority: Priority) -> u64 {
        self.egress_side.ports[port].depth(priority)
    }

    /// Starts an iteration of the worker's loop: takes the newest routes and moved hosts, and reads what the other workers publish.
    #[inline]
    pub fn refresh(&mut self) {
        self.fib.refresh();
        if let Some(moved) = &mut self.moved
            && moved.refresh()
        {
            let (queue, share) = (moved.priority(), moved.share());
            for (_, port) in self.egress_side.ports.iter_mut() {
                port.set_moved(queue, share);
            }
        }
        if self.capture.is_on() {
            self.capture.turn();
        }
        if self.channels.is_some() {
            self.sync_with_workers();
        }
    }

    /// Queues a frame made by this switch, ahead of the data if the queue is strict.
    ///
    /// # Errors
    /// Returns the frame if the pool or the store is full or the link is down; it was not counted.
    pub fn originate(
        &mut self,
        port: PortId,
        priority: Priority,
        buf: B,
        now: Nanos,
    ) -> Result<(), B> {
        self.originate_as(GroupId::NONE, (port, priority), buf, now)
    }

    /// Queues a frame of no ingress group: `group` is [`GroupId::LINUX`] for a control frame of Linux, and [`GroupId::NONE`] for
    /// its other frames and those of this switch.
    pub(super) fn originate_as(
        &mut self,
        group: GroupId,
        (port, priority): (PortId, Priority),
        buf: B,
        now: Nanos,
    ) -> Result<(), B> {
        let len = buf.data().len();
        let meta = Meta {
            slot: FlowSlot::NONE,
            len: crate::bits::low16(len),
            group,
            egress: port,
            priority,
            flags: MetaFlags(0),
        };
        if self.is_down(port)
            || self
                .egress_side
                .buffer
                .charge_originated(group, meta.wire_len())
                .is_err()
        {
            return Err(buf);
        }
        // A run that bypasses the queue is older.
        self.queue_bypassed_of(port, priority);
        if self.capture.is_on() {
            self.capture_made(&buf, &meta, now);
        }
        let pushed = self.egress_side.ports[port].push(
            &mut self.egress_side.store,
            Queued { buf, meta },
            now,
        );
        if let Err(buf) = pushed {
            self.egress_side.buffer.release(Charge::of(&meta));
            return Err(buf);
        }
        self.held.add(1, len as u64);
        if let Some(counters) = self.counters.port(port.index()) {
            counters.originated.add(1, len as u64);
            if let Some(queue) = counters.queues.get(priority.index()) {
                queue.enqueued.add(1, len as u64);
            }
        }
        Ok(())
    }

    /// Publishes the amount held: queued, or handed out and not yet [`Datapath::sent`].
    #[inline]
    pub fn publish_held(&self) {
        self.counters.held.packets.set(self.held.packets);
        self.counters.held.bytes.set(self.held.bytes);
        let (buffer, used) = (&self.counters.buffer, self.egress_side.buffer.used_here());
        buffer.used.set(used.bytes);
        buffer.frames.set(used.frames);
        buffer.used_peak.raise(self.egress_side.buffer.used().bytes);
        buffer
            .headroom
            .set(self.egress_side.buffer.in_headroom_here().bytes);
        buffer
            .headroom_peak
            .raise(self.egress_side.buffer.in_headroom().bytes);
    }

    /// Drops frames handed out by [`Datapath::egress`] that the device will not take any more, because the switch stops or the
    /// link is down.
    pub fn abandon(&mut self, port: PortId, lost: Sent, reason: DropReason) {
        self.held.subtract(lost.amount.frames, lost.bytes);
        self.give_back(port, lost);
        if let Some(counters) = self.counters.port(port.index()) {
            counters.drop_all(reason, lost.amount.frames, lost.bytes);
        }
    }

    /// Drops all queued frames with reason `shutdown`.
    pub fn shut_down(&mut self) {
        for port in (0u8..).map(PortId).take(self.egress_side.ports.len()) {
            self.queue_bypassed(port);
        }
        for ((_, egress), counters) in self.egress_side.ports.iter_mut().zip(self.counters.ports())
        {
            egress.drain(&mut self.egress_side.store, |frame| {
                let bytes = u64::from(frame.meta.len);
                capture_points::dropped(
                    &mut self.capture,
                    DropReason::Shutdown,
                    &frame.buf,
                    &frame.meta,
                    0,
                );
                self.egress_side.buffer.release(Charge::of(&frame.meta));
                self.held.subtract(1, bytes);
                counters.drop(DropReason::Shutdown, bytes);
            });
            egress.publish(counters);
        }
        self.abandon_handoff();
        self.publish_held();
        self.egress_side.buffer.publish_usage();
    }
}

/// Returns the drop reason of a frame that was refused for `reason`: a frame in several buffers is as short as the first of them.
#[cold]
fn of_chain<B: FrameBuf>(reason: DropReason, buf: &B) -> DropReason {
    match reason {
        DropReason::Runt | DropReason::IpTruncated | DropReason::DriverTruncated
            if buf.is_chain() =>
        {
            DropReason::MultiSegment
        }
        _ => reason,
    }
}

/// Counts on `counters` a frame that goes no further; without a reason it was consumed.
#[cold]
fn count_stopped(counters: &PortCounters, reason: Option<DropReason>, bytes: usize) {
    match reason {
        Some(reason) => counters.drop(reason, bytes as u64),
        None => counters.consumed.add(1, bytes as u64),
    }
}

#[cfg(test)]
mod tests;
