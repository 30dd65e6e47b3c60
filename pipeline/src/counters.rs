//! Counters and gauges: each has one writer, anyone may read.
//!
//! A worker adds with a plain load and store, never a locked instruction; a reader sees a value that was true a moment
//! ago. Packets and bytes of one event may be read one update apart.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use crate::bits::low8;
use crate::drop::{Drop, REASONS};
use crate::per::PerPort;
use crate::units::{PRIORITIES, PortId};

/// A monotonic count with a single writer.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. Only the owner may call this: two writers lose counts.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_add(n),
            Ordering::Relaxed,
        );
    }

    /// The value a moment ago.
    #[inline]
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A value that goes up and down, with a single writer.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// Publishes a value.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Publishes a value when it is higher.
    #[inline]
    pub fn raise(&self, value: u64) {
        if value > self.get() {
            self.set(value);
        }
    }

    /// The value a moment ago.
    #[inline]
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// The sum of parts modulo 2^64, which may each be below zero; nothing where parts that were read one after the other
    /// do not make a whole.
    pub fn total<'a>(parts: impl Iterator<Item = &'a Gauge>) -> u64 {
        let sum = parts.fold(0u64, |sum, part| sum.wrapping_add(part.get()));
        if sum.cast_signed() < 0 { 0 } else { sum }
    }
}

/// Packets and bytes (of the frame, without FCS).
#[derive(Debug, Default)]
pub struct Traffic {
    /// Frames.
    pub packets: Counter,
    /// Bytes.
    pub bytes: Counter,
}

impl Traffic {
    /// Counts `packets` frames of `bytes` together.
    #[inline]
    pub fn add(&self, packets: u64, bytes: u64) {
        self.packets.add(packets);
        self.bytes.add(bytes);
    }
}

/// One egress queue.
#[derive(Debug, Default)]
pub struct QueueCounters {
    /// Accepted.
    pub enqueued: Traffic,
    /// Refused or dropped early.
    pub dropped: Counter,
    /// Of those, dropped early by WRED.
    pub wred_dropped: Counter,
    /// ECT changed to CE here.
    pub ecn_marked: Counter,
    /// Highest depth since the last `clear watermarks`.
    pub peak: Gauge,
    /// Highest depth before the last `clear watermarks`; the highest ever is the greater of both.
    pub peak_before: Gauge,
    /// What the control core looks at in every tick, on a line of its own, which the worker writes only when it is another: of a quiet
    /// queue both cores keep it.
    pub level: CachePadded<Level>,
}

/// How much waits in an egress queue.
#[derive(Debug, Default)]
pub struct Level {
    /// Wire bytes waiting, published with the burst that changes it.
    pub depth: Gauge,
    /// When the depth last rose to each of the watched depths ([`crate::egress::port::QueueConfig::watch`]), in ns.
    pub crossed: [Gauge; 2],
}

/// One ingress group: what came in by a port with one priority and is still held.
#[derive(Debug, Default)]
pub struct GroupCounters {
    /// Wire bytes held, published once a burst.
    pub held: Gauge,
    /// Of those, in headroom.
    pub headroom: Gauge,
    /// Most held since the last `clear watermarks`.
    pub held_peak: Gauge,
    /// Most held before the last `clear watermarks`.
    pub held_peak_before: Gauge,
    /// Most in headroom since the last `clear watermarks`.
    pub headroom_peak: Gauge,
    /// Most in headroom before the last `clear watermarks`.
    pub headroom_peak_before: Gauge,
    /// Frames of this group that the buffer had no room for.
    pub dropped: Counter,
}

/// Pause of one priority of one port.
#[derive(Debug, Default)]
pub struct PauseCounters {
    /// Pauses the peer began.
    pub rx_pauses: Counter,
    /// Time the peer had us paused, in ns; a pause counts when it ends.
    pub rx_paused_ns: Counter,
    /// Length of the last pause that ended, in ns.
    pub rx_last_ns: Gauge,
    /// Length of the longest pause that ended, in ns.
    pub rx_longest_ns: Gauge,
    /// When the peer's last pause began, in ns of the worker's clock.
    pub rx_began: Gauge,
    /// Pauses we began.
    pub tx_pauses: Counter,
    /// Time we had the peer paused, in ns; a pause counts when it ends.
    pub tx_paused_ns: Counter,
    /// Length of our last pause that ended, in ns.
    pub tx_last_ns: Gauge,
    /// Length of our longest pause that ended, in ns.
    pub tx_longest_ns: Gauge,
    /// When our last pause began, in ns of the worker's clock.
    pub tx_began: Gauge,
    /// Storms the watchdog found.
    pub storms: Counter,
    /// Storms that ended.
    pub storms_ended: Counter,
    /// When the last storm was found, in ns of the worker's clock.
    pub storm_at: Gauge,
    /// When the last storm was found over, in ns of the worker's clock.
    pub storm_ended_at: Gauge,
    /// Frames dropped because of a storm on their way out.
    pub storm_tx_dropped: Counter,
    /// Frames dropped because of a storm on the port they came in by.
    pub storm_rx_dropped: Counter,
}

/// Flow control of one port.
#[derive(Debug, Default)]
pub struct FlowCounters {
    /// Lowest priority first.
    pub priorities: [PauseCounters; PRIORITIES],
    /// Priorities the peer has paused now, as a mask.
    pub paused: Gauge,
    /// Priorities we have paused now, as a mask.
    pub asserted: Gauge,
    /// Priorities under a storm now, as a mask.
    pub storm: Gauge,
    /// Pauses begun because the buffer filled.
    pub xoff_buffer: Counter,
    /// Pauses begun because the worker fell behind the receive ring.
    pub xoff_cpu: Counter,
    /// Refreshes that went out after the peer's pause had run out.
    pub late: Counter,
    /// Longest time from a wanted XOFF to the frame the device took, in ns.
    pub response_ns: Gauge,
    /// 802.3x pause frames, which are ignored.
    pub global_pause: Counter,
    /// MAC control frames that are neither pause nor PFC, or are malformed.
    pub invalid: Counter,
}

/// One port, as one worker sees it.
#[derive(Debug, Default)]
pub struct PortCounters {
    /// Handed over by `rx_burst`, MAC control included; [`PortCounters::rx_ok`] is without it.
    pub rx: Traffic,
    /// Taken by `tx_burst`.
    pub tx: Traffic,
    /// Made by this switch and queued on this port.
    pub originated: Traffic,
    /// Of these, CNPs.
    pub cnp_out: Counter,
    /// MAC control taken in.
    pub consumed: Traffic,
    /// PFC frames that named a priority, XON included.
    pub pfc_rx: [Counter; PRIORITIES],
    /// PFC frames we sent that named a priority, XON included.
    pub pfc_tx: [Counter; PRIORITIES],
    /// Pause, both ways.
    pub flow: FlowCounters,
    /// Ingress groups.
    pub groups: [GroupCounters; PRIORITIES],
    /// Frames of a lossless priority that were dropped for want of room: must stay 0.
    pub lossless_lost: Counter,
    /// Given to Linux.
    pub punted: Traffic,
    /// Bytes of VLAN tags put on frames that came in here.
    pub tag_bytes_added: Counter,
    /// Bytes of VLAN tags taken off frames that came in here.
    pub tag_bytes_removed: Counter,
    /// Dropped, by reason. Before a queue is chosen the port is the ingress port, after it the egress port.
    pub drops: [Counter; REASONS],
    /// Bytes of the dropped frames.
    pub drop_bytes: Counter,
    /// RoCEv2 frames that came in marked CE.
    pub ce_in: Counter,
    /// CNPs that came in.
    pub cnp_in: Counter,
    /// NAKs that came in (AETH syndrome 011).
    pub nak_in: Counter,
    /// RNR NAKs that came in (AETH syndrome 001).
    pub rnr_in: Counter,
    /// RoCEv2 packets NPCC does not read (XRC, RD, vendor opcodes).
    pub roce_unsupported: Counter,
    /// When a queue's depth last rose to the second of its watched depths, in ns; published after that depth. On a line of its
    /// own, which the control core looks at between its ticks and the worker writes only then.
    pub alarm: CachePadded<Gauge>,
    /// Egress queues.
    pub queues: [QueueCounters; PRIORITIES],
}

impl PortCounters {
    /// Frames and bytes received, without MAC control: what interface counters call `rx_ok`.
    #[must_use]
    pub fn rx_ok(&self) -> (u64, u64) {
        // The part is read first: it is never more than the whole.
        let (packets, bytes) = (self.consumed.packets.get(), self.consumed.bytes.get());
        (
            self.rx.packets.get().saturating_sub(packets),
            self.rx.bytes.get().saturating_sub(bytes),
        )
    }

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
    pub fn drop(&self, reason: Drop, bytes: u64) {
        self.drop_all(reason, 1, bytes);
    }

    /// Counts a drop of `frames` frames of `bytes` together.
    #[inline]
    pub fn drop_all(&self, reason: Drop, frames: u64, bytes: u64) {
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
    /// Bursts and the runs they are of.
    pub bursts: CachePadded<BurstCounters>,
    /// Frames the worker holds: queued, and in hand between queue and device.
    pub held: CachePadded<Held>,
    /// The shared buffer.
    pub buffer: CachePadded<BufferGauges>,
    /// To and from other workers.
    pub crossing: CachePadded<CrossingCounters>,
}

/// What crosses between workers, as one of them sees it.
#[derive(Debug, Default)]
pub struct CrossingCounters {
    /// Frames handed over to the owners of their egress ports.
    pub handed_over: Counter,
    /// Frames taken over.
    pub taken_over: Counter,
    /// Turns in which a receive queue was not polled, as a full ring held frames of its last burst back.
    pub stalls: Counter,
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

/// What bursts are made of.
#[derive(Debug, Default)]
pub struct BurstCounters {
    /// Bursts received.
    pub received: Counter,
    /// Runs they were made of.
    pub runs: Counter,
    /// Times a port sent past its queues.
    pub bypassed: Counter,
}
