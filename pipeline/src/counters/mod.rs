//! Counters and gauges: each has one writer, anyone may read.
//!
//! A counter is declared once, in [`counters!`](crate::counters!): the declaration makes the cells that a worker writes (plain atomics,
//! in whatever memory their owner puts them), what they read as, the sum over workers, the difference to an earlier reading, and
//! the field of the JSON report. Nothing else lists counters, so none can be left out of a sum or of `clear counters`.
//!
//! A worker adds with a plain load and store, never a locked instruction; a reader sees a value that was true a moment
//! ago. Packets and bytes of one event may be read one update apart.

#[macro_use]
mod cell;
mod by_reason;
mod path;

use crossbeam_utils::CachePadded;

pub use self::by_reason::ByReason;
pub use self::cell::{Cell, Counter, Gauge, Highest, Mask, sum};
pub use self::path::Path;
use crate::bits::low8;
use crate::drop::DropReason;
use crate::per::PerPort;
use crate::punt::PuntClass;
use crate::units::{Nanos, PRIORITIES, PortId, Priority, WIRE_OVERHEAD};

counters! {
    /// Packets and bytes (of the frame, without FCS).
    pub struct Traffic => TrafficCount {
        /// Frames.
        packets: Counter,
        /// Bytes.
        bytes: Counter,
    }
}

impl QueueCounters {
    /// Wire bytes that ever entered the queue; less its depth, those that left it.
    #[must_use]
    pub fn entered(&self) -> u64 {
        let entered = &self.enqueued;
        entered.bytes.get() + entered.packets.get() * u64::from(WIRE_OVERHEAD)
    }
}

impl FlowCounters {
    /// Time until now that the peer had a priority paused, all together; a pause that lasts counts, unless it is a storm: then the
    /// watchdog empties the queue.
    #[must_use]
    pub fn paused_time(&self, priority: Priority, now: Nanos) -> Nanos {
        let lasts = (self.paused.get() & !self.storm.get()) & u64::from(priority.bit()) != 0;
        let of = self.priorities.get(priority.index());
        of.map_or(Nanos::ZERO, |of| {
            let begun = if lasts { of.rx_began.get() } else { now.0 };
            Nanos(of.rx_paused_ns.get()) + now.since(Nanos(begun))
        })
    }
}

impl Copy for TrafficCount {}

impl Traffic {
    /// Counts `packets` frames of `bytes` together.
    #[inline]
    pub fn add(&self, packets: u64, bytes: u64) {
        self.packets.add(packets);
        self.bytes.add(bytes);
    }
}

counters! {
    /// One egress queue.
    pub struct QueueCounters => QueueCount {
        /// Accepted.
        enqueued: Traffic => (skip),
        /// Refused or dropped early.
        dropped: Counter,
        /// Of those, dropped early by WRED.
        wred_dropped: Counter,
        /// ECT changed to CE here.
        ecn_marked: Counter,
        /// Highest depth since the last `clear watermarks`.
        peak: Gauge,
        /// Highest depth before the last `clear watermarks`; the highest ever is the greater of both.
        peak_before: Gauge => (skip),
        /// What the control core looks at in every tick, on a line of its own, which the worker writes only when it is another: of a quiet
        /// queue both cores keep it.
        level: CachePadded<Level> => (skip),
    }
}

counters! {
    /// How much waits in an egress queue.
    pub struct Level => LevelCount {
        /// Wire bytes waiting, published with the burst that changes it.
        depth: Gauge,
        /// When the depth last rose to each of the watched depths ([`crate::egress::port::QueueConfig::watch`]), in ns.
        crossed: [Highest; 2],
    }
}

counters! {
    /// One ingress group: what came in by a port with one priority and is still held.
    pub struct GroupCounters => GroupCount {
        /// Wire bytes held, published once a burst.
        held: Gauge,
        /// Of those, in headroom.
        headroom: Gauge,
        /// Most held since the last `clear watermarks`.
        held_peak: Gauge,
        /// Most held before the last `clear watermarks`.
        held_peak_before: Gauge => (skip),
        /// Most in headroom since the last `clear watermarks`.
        headroom_peak: Gauge,
        /// Most in headroom before the last `clear watermarks`.
        headroom_peak_before: Gauge => (skip),
        /// Frames of this group that the buffer had no room for.
        dropped: Counter,
    }
}

counters! {
    /// Pause of one priority of one port.
    pub struct PauseCounters => PauseCount {
        /// Pauses the peer began.
        rx_pauses: Counter,
        /// Time the peer had us paused, in ns; a pause counts when it ends.
        rx_paused_ns: Counter => (skip),
        /// Length of the last pause that ended, in ns.
        rx_last_ns: Gauge => (skip),
        /// Length of the longest pause that ended, in ns.
        rx_longest_ns: Highest => (skip),
        /// When the peer's last pause began, in ns of the worker's clock.
        rx_began: Highest => (skip),
        /// Pauses we began.
        tx_pauses: Counter,
        /// Time we had the peer paused, in ns; a pause counts when it ends.
        tx_paused_ns: Counter => (skip),
        /// Length of our last pause that ended, in ns.
        tx_last_ns: Gauge => (skip),
        /// Length of our longest pause that ended, in ns.
        tx_longest_ns: Highest => (skip),
        /// When our last pause began, in ns of the worker's clock.
        tx_began: Highest => (skip),
        /// Storms the watchdog found.
        storms: Counter,
        /// Storms that ended.
        storms_ended: Counter,
        /// When the last storm was found, in ns of the worker's clock.
        storm_at: Highest => (skip),
        /// When the last storm was found over, in ns of the worker's clock.
        storm_ended_at: Highest => (skip),
        /// Frames dropped because of a storm on their way out.
        storm_tx_dropped: Counter,
        /// Frames dropped because of a storm on the port they came in by.
        storm_rx_dropped: Counter,
    }
}

counters! {
    /// Flow control of one port.
    pub struct FlowCounters => FlowCount {
        /// Lowest priority first.
        priorities: [PauseCounters; PRIORITIES] => (skip),
        /// Priorities the peer has paused now, as a mask.
        paused: Mask => (skip),
        /// Priorities we have paused now, as a mask.
        asserted: Mask => (skip),
        /// Priorities under a storm now, as a mask.
        storm: Mask => (skip),
        /// Pauses begun because the buffer filled.
        xoff_buffer: Counter,
        /// Pauses begun because the worker fell behind the receive ring.
        xoff_cpu: Counter,
        /// Refreshes that went out after the peer's pause had run out.
        late: Counter => (rename = "late_refreshes"),
        /// Pause frames that were due and found no buffer, or no room in the device; each is due again in the next turn.
        failed: Counter => (rename = "failed_pauses"),
        /// Longest time from a wanted XOFF to the frame the device took, in ns.
        response_ns: Highest => (skip),
        /// 802.3x pause frames, which are ignored.
        global_pause: Counter,
        /// MAC control frames that are neither pause nor PFC, or are malformed.
        invalid: Counter,
    }
}

counters! {
    /// One class of frames for Linux.
    pub struct PuntClassCounters => PuntClassCount {
        /// Given to Linux.
        punted: Traffic,
        /// Dropped, as the class was past its rate.
        over_rate: Counter,
        /// Dropped, as the class's queue was full.
        full: Counter,
    }
}

counters! {
    /// Punt and inject, as one worker sees them.
    pub struct PuntCounters => PuntCount {
        /// In the order of [`PuntClass::ALL`].
        classes: [PuntClassCounters; PuntClass::COUNT] => (skip),
        /// Questions for the MAC addresses of next hops.
        asked: Counter,
        /// Not asked, as the same was asked a moment ago.
        asked_lately: Counter,
        /// Not asked, as too much was.
        ask_over_rate: Counter,
        /// Not asked, as too many questions waited.
        ask_full: Counter,
        /// ICMP errors made: time exceeded.
        time_exceeded: Counter,
        /// ICMP errors made: unreachable, of any kind.
        unreachable: Counter,
        /// ICMP errors made: fragmentation needed, packet too big.
        too_big: Counter,
        /// ICMP errors not made, as too many were.
        icmp_over_rate: Counter,
        /// ICMP errors not made, as nothing may be sent about the packet, or there is no way to its sender.
        icmp_unfit: Counter,
        /// Frames of Linux that were queued, of BFD and routing protocols.
        injected_control: Traffic,
        /// Other frames of Linux that were queued.
        injected: Traffic,
        /// Frames of Linux for which there was no buffer, no room or no link.
        inject_lost: Counter,
    }
}

counters! {
    /// One port, as one worker sees it.
    pub struct PortCounters => PortCount {
        /// Taken by `tx_burst`.
        tx: Traffic,
        /// Made by this switch and queued on this port.
        originated: Traffic,
        /// Of these, CNPs.
        cnp_out: Counter => (skip),
        /// MAC control taken in.
        consumed: Traffic,
        /// Handed over by `rx_burst`, MAC control included; [`PortCount::rx_ok`] is without it. Read after `consumed`, of which it is the whole.
        rx: Traffic,
        /// PFC frames that named a priority, XON included.
        pfc_rx: [Counter; PRIORITIES] => (skip),
        /// PFC frames we sent that named a priority, XON included.
        pfc_tx: [Counter; PRIORITIES] => (skip),
        /// Pause, both ways.
        flow: FlowCounters => (skip),
        /// Ingress groups.
        groups: [GroupCounters; PRIORITIES] => (skip),
        /// Frames of a lossless priority that were dropped for want of room: must stay 0.
        lossless_lost: Counter,
        /// Given to Linux.
        punted: Traffic,
        /// TCP and UDP checksums completed that a kernel had left to a card ([`crate::partial`]).
        checksums_completed: Counter,
        /// Bytes of VLAN tags put on frames that came in here.
        tag_bytes_added: Counter => (skip),
        /// Bytes of VLAN tags taken off frames that came in here, but where padding took their place.
        tag_bytes_removed: Counter => (skip),
        /// Bytes behind the IP packets of frames that came in here, cut off.
        trimmed_bytes: Counter => (skip),
        /// Dropped, by reason. Before a queue is chosen the port is the ingress port, after it the egress port.
        drops: ByReason<Counter> => (skip),
        /// Bytes of the dropped frames.
        drop_bytes: Counter => (skip),
        /// RoCEv2 frames that came in marked CE.
        ce_in: Counter => (skip),
        /// CNPs that came in.
        cnp_in: Counter => (skip),
        /// NAKs that came in (AETH syndrome 011).
        nak_in: Counter => (skip),
        /// RNR NAKs that came in (AETH syndrome 001).
        rnr_in: Counter => (skip),
        /// RoCEv2 packets NPCC does not read (XRC, RD, vendor opcodes).
        roce_unsupported: Counter => (skip),
        /// When a queue's depth last rose to the second of its watched depths, in ns; published after that depth. On a line of its
        /// own, which the control core looks at between its ticks and the worker writes only then.
        alarm: CachePadded<Highest> => (skip),
        /// Egress queues.
        queues: [QueueCounters; PRIORITIES] => (skip),
    }
}

impl PortCount {
    /// Frames and bytes received, without MAC control: what interface counters call `rx_ok`.
    #[must_use]
    pub const fn rx_ok(&self) -> TrafficCount {
        TrafficCount {
            packets: self.rx.packets.saturating_sub(self.consumed.packets),
            bytes: self.rx.bytes.saturating_sub(self.consumed.bytes),
        }
    }
}

impl PortCounters {
    /// Starts the user watermarks anew; the persistent ones keep what was. By the owner only.
    pub fn clear_watermarks(&self) {
        let keep = |peak: &Gauge, before: &Gauge, now: u64| {
            before.raise(peak.get());
            peak.set(now);
        };
        for queue in &self.queues {
            keep(&queue.peak, &queue.peak_before, queue.level.depth.get());
        }
        for group in &self.groups {
            keep(&group.held_peak, &group.held_peak_before, group.held.get());
            let now = group.headroom.get();
            keep(&group.headroom_peak, &group.headroom_peak_before, now);
        }
    }

    /// Counts a drop of `bytes`.
    #[inline]
    pub fn drop(&self, reason: DropReason, bytes: u64) {
        self.drop_all(reason, 1, bytes);
    }

    /// Counts a drop of `frames` frames of `bytes` together.
    #[inline]
    pub fn drop_all(&self, reason: DropReason, frames: u64, bytes: u64) {
        if let Some(counter) = self.drops.get(reason.index()) {
            counter.add(frames);
        }
        self.drop_bytes.add(bytes);
    }
}

/// All ports of one worker.
#[derive(Debug)]
pub struct Counters {
    ports: PerPort<CachePadded<PortCounters>>,
    /// Bursts, and the runs they are made of.
    pub bursts: CachePadded<BurstCounters>,
    /// Frames the worker holds: queued, and in hand between queue and device.
    pub held: CachePadded<Held>,
    /// The shared buffer.
    pub buffer: CachePadded<BufferGauges>,
    /// To and from other workers.
    pub crossing: CachePadded<CrossingCounters>,
    /// To and from Linux.
    pub punt: CachePadded<PuntCounters>,
}

counters! {
    /// What a worker's bursts are made of.
    pub struct BurstCounters => BurstCount {
        /// Bursts received.
        received: Counter,
        /// Runs they were made of.
        runs: Counter,
        /// Times a port sent past its queues.
        bypassed: Counter,
    }
}

counters! {
    /// What crosses between workers, as one of them sees it.
    pub struct CrossingCounters => CrossingCount {
        /// Frames handed over to the owners of their egress ports.
        handed_over: Counter,
        /// Frames taken over.
        taken_over: Counter,
        /// Turns in which a receive queue was not polled, as a full ring held frames of its last burst back.
        stalls: Counter,
    }
}

/// The shared buffer, in wire bytes: this worker's part, and peaks of the whole.
#[derive(Debug, Default)]
pub struct BufferGauges {
    /// Taken less given back, modulo 2^64: the sum over all workers is what is held.
    pub used: Gauge,
    /// The same in buffers.
    pub frames: Gauge,
    /// Held in headroom.
    pub headroom: Gauge,
    /// Most held by all workers.
    pub used_peak: Gauge,
    /// Most held in headroom by all workers.
    pub headroom_peak: Gauge,
}

/// Frames and bytes held, as gauges, modulo 2^64: the sum over all workers is what is held.
#[derive(Debug, Default)]
pub struct Held {
    /// Frames.
    pub packets: Gauge,
    /// Bytes.
    pub bytes: Gauge,
}

impl Counters {
    /// Counters for `ports` ports.
    #[must_use]
    pub fn new(ports: usize) -> Counters {
        Counters {
            ports: PerPort::new(
                (0..ports).map(|_| CachePadded::default()),
                CachePadded::default,
            ),
            bursts: CachePadded::default(),
            held: CachePadded::default(),
            buffer: CachePadded::default(),
            crossing: CachePadded::default(),
            punt: CachePadded::default(),
        }
    }

    /// One port's, by index.
    #[inline]
    #[must_use]
    pub fn port(&self, index: usize) -> Option<&PortCounters> {
        let port = PortId(low8(index));
        (index < self.ports.len()).then(|| &*self.ports[port])
    }

    /// One port's; for a port that is not configured those of a spare one.
    #[inline]
    #[must_use]
    pub fn of(&self, port: PortId) -> &PortCounters {
        &self.ports[port]
    }

    /// All ports, in the order of the configuration.
    pub fn ports(&self) -> impl Iterator<Item = &PortCounters> {
        self.ports.iter().map(|(_, padded)| &**padded)
    }
}
