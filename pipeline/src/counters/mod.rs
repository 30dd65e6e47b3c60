//! Counters and gauges of a worker: each has one writer and any number of readers.
//!
//! A counter is declared once, in [`counters!`](crate::counters!). The declaration makes the cells that a worker writes (plain
//! atomics, in whatever memory their owner puts them), the type they are read into, the sum over workers, the difference to an
//! earlier reading, the field of the JSON report, the metric and the column of a table. There is no other list of counters, so
//! none can be left out of a sum or of `clear counters`, and one without a metric is declared as such.
//!
//! A worker adds with a plain load and store, never a locked instruction; a reader sees a value that was true a moment ago.
//! The packets and the bytes of one event may be read one update apart.

#[macro_use]
mod cell;
mod by_name;
mod json;
mod path;
mod pfc;
mod punt;
mod show;
mod threads;

use crossbeam_utils::CachePadded;

pub use self::by_name::ByName;
pub use self::cell::{Cell, Counter, Gauge, Highest, Mask, sum};
pub use self::path::Path;
pub use self::pfc::{FlowCount, FlowCounters, PauseCount, PauseCounters, PfcCount, PfcCounters};
pub use self::punt::{PuntClassCount, PuntClassCounters, PuntCount, PuntCounters};
pub use self::show::{Columns, Kind, Label, Metric, Show, Visit};
pub use self::threads::{
    ControlCount, ControlStats, DeliveredCount, DeliveredCounters, DeviceCounters, DeviceDrops,
    LinuxCount, LinuxStats, Stage, StageCount, StageCounters, WorkerCount, WorkerStats,
};
use crate::bits::low8;
use crate::drop::DropReason;
use crate::per::PerPort;
use crate::units::{PRIORITIES, PortId, WIRE_OVERHEAD};

counters! {
    /// Packets and bytes (of the frame, without FCS).
    pub struct Traffic => TrafficCount {
        /// Frames.
        packets: Counter => of_owner(0),
        /// Bytes.
        bytes: Counter => of_owner(1),
    }
}

impl QueueCounters {
    /// Returns the wire bytes that ever entered the queue; subtract its depth for those that left it.
    #[must_use]
    pub fn entered(&self) -> u64 {
        let entered = &self.enqueued;
        entered.bytes.get() + entered.packets.get() * u64::from(WIRE_OVERHEAD)
    }
}

impl Copy for TrafficCount {}

impl Traffic {
    /// Counts `packets` frames of `bytes` bytes together.
    #[inline]
    pub fn add(&self, packets: u64, bytes: u64) {
        self.packets.add(packets);
        self.bytes.add(bytes);
    }
}

/// Label of counts that are kept for each priority.
const BY_PRIORITY: &[Label] = &[("priority", &[])];

counters! {
    /// Counters of one egress queue.
    pub struct QueueCounters => QueueCount {
        /// Frames that the egress queue took.
        #[serde(skip)] enqueued: Traffic => metric("npcc_queue_enqueued_frames").bytes("npcc_queue_enqueued_bytes", "Bytes that the egress queue took."),
        /// Frames that the egress queue refused or dropped early.
        dropped: Counter => metric("npcc_queue_drops").column("DROPPED"),
        /// Frames that WRED dropped early, among those an egress queue dropped.
        wred_dropped: Counter => metric("npcc_queue_wred_drops").column("WRED"),
        /// Frames whose ECN codepoint was changed to CE here.
        ecn_marked: Counter => metric("npcc_queue_ecn_marked_frames").column("ECN MARKED"),
        /// Frames that the ECN curve struck, whatever became of the strike.
        ecn_struck: Counter => metric("npcc_queue_ecn_struck_frames"),
        /// Strikes that were not written as CE but owed to the sender as a near CNP, marks of an earlier switch included.
        ecn_diverted: Counter => metric("npcc_queue_ecn_diverted_frames").column("DIVERTED"),
        /// CE marks of an earlier switch that were taken off the frame, among the strikes diverted.
        ce_diverted: Counter => metric("npcc_queue_ce_diverted_frames"),
        /// Frames that carry an earlier strike, diverted and returned, among those marked here.
        ecn_redeemed: Counter => metric("npcc_queue_ecn_redeemed_frames"),
        /// Most wire bytes that waited in the egress queue since watermarks were cleared.
        peak: Gauge => metric("npcc_queue_peak_bytes"),
        /// Highest depth in wire bytes before the last `clear watermarks`; the highest ever is the greater of this and `peak`.
        #[serde(skip)] peak_before: Gauge => no_metric(),
        /// Gauges that the control core polls in every tick, on a cache line of their own. The worker writes the line only
        /// when a value changes, so both cores keep the line of a quiet queue.
        #[serde(flatten)] level: CachePadded<Level> => nested(),
    }
}

counters! {
    /// Occupancy of an egress queue.
    pub struct Level => LevelCount {
        /// Wire bytes that wait in the egress queue.
        depth: Gauge => metric("npcc_queue_depth_bytes"),
        /// Times at which the depth last rose to each of the watched depths ([`crate::egress::port::EgressQueueConfig::watched_depths`]), in
        /// ns.
        #[serde(skip)] crossed: [Highest; 2] => no_metric(),
    }
}

counters! {
    /// Occupancy and drops of one ingress group: frames that arrived on a port with one priority.
    pub struct GroupCounters => GroupCount {
        /// Wire bytes that came in by the port with the priority and are still held.
        held: Gauge => metric("npcc_group_held_bytes"),
        /// Wire bytes of the ingress group that lie in headroom: its sender did not stop yet.
        headroom: Gauge => metric("npcc_group_headroom_used_bytes"),
        /// Most wire bytes of the ingress group held since watermarks were cleared.
        held_peak: Gauge => metric("npcc_group_held_peak_bytes"),
        /// Most wire bytes held before the last `clear watermarks`.
        #[serde(skip)] held_peak_before: Gauge => no_metric(),
        /// Most wire bytes in headroom since the last `clear watermarks`.
        headroom_peak: Gauge => no_metric(),
        /// Most wire bytes in headroom before the last `clear watermarks`.
        #[serde(skip)] headroom_peak_before: Gauge => no_metric(),
        /// Frames of the ingress group that the buffer had no room for.
        dropped: Counter => metric("npcc_group_drops").column("DROPPED"),
    }
}

counters! {
    /// Congestion and loss signals in RoCEv2 packets received, and CNPs sent by this switch.
    pub struct RoceCounters => RoceCount {
        /// CNPs that came in.
        cnp: Counter => metric("npcc_port_roce_receive_packets").tag("kind", "cnp").column("CNP IN").kept("cnp_in")
            .help("RoCEv2 packets received that say something of congestion or loss: ce, cnp, nak, rnr; and unsupported ones that NPCC does not read."),
        /// CNPs of this switch that were queued on the port.
        cnp_out: Counter => metric("npcc_port_cnps_sent").column("CNP OUT"),
        /// NAKs that came in (AETH syndrome 011).
        nak: Counter => metric("npcc_port_roce_receive_packets").tag("kind", "nak").column("NAK IN").kept("nak_in"),
        /// RNR NAKs that came in (AETH syndrome 001).
        rnr: Counter => metric("npcc_port_roce_receive_packets").tag("kind", "rnr").column("RNR IN").kept("rnr_in"),
        /// RoCEv2 frames that came in marked CE.
        ce: Counter => metric("npcc_port_roce_receive_packets").tag("kind", "ce").column("CE IN").kept("ce_in"),
        /// RoCEv2 packets NPCC does not read: XRC, RD, opcodes that IBTA does not define.
        unsupported: Counter => metric("npcc_port_roce_receive_packets").tag("kind", "unsupported").kept("roce_unsupported"),
    }
}

counters! {
    /// Counters of one port, as one worker sees it.
    pub struct PortCounters => PortCount {
        /// Frames given to the device to send.
        tx: Traffic => metric("npcc_port_transmit_frames").bytes("npcc_port_transmit_bytes", "Bytes given to the device to send, without FCS."),
        /// Frames the switch made itself and queued on the port.
        originated: Traffic => metric("npcc_port_originated_frames"),
        /// MAC control frames received, pause among them.
        consumed: Traffic => metric("npcc_port_mac_control_frames"),
        /// Frames received, MAC control included, unlike [`PortCount::rx_ok`], which is shown. A snapshot reads `consumed` first, so `rx` is not below it.
        rx: Traffic => metric("npcc_port_receive_frames").help("Frames received, without MAC control.")
            .bytes("npcc_port_receive_bytes", "Bytes received, without FCS and without MAC control."),
        /// PFC frames, by priority.
        pfc: PfcCounters => nested().kept(""),
        /// Flow control, both ways.
        #[serde(skip)] flow: FlowCounters => nested(),
        /// Ingress groups of the port, by priority.
        #[serde(skip)] groups: [GroupCounters; PRIORITIES] => nested().by(BY_PRIORITY),
        /// Frames of lossless priorities lost for want of room, in the switch or in the device: must stay 0.
        lossless_lost: Counter => metric("npcc_port_lossless_lost_frames"),
        /// Frames received and given to Linux.
        punted: Traffic => metric("npcc_port_punted_frames"),
        /// TCP and UDP checksums completed that a kernel had left to the NIC ([`crate::partial`]).
        checksums_completed: Counter => no_metric(),
        /// Bytes of VLAN tags added to frames that arrived here.
        #[serde(skip)] tag_bytes_added: Counter => no_metric(),
        /// Bytes of VLAN tags removed from frames that arrived here, except where padding replaced them.
        #[serde(skip)] tag_bytes_removed: Counter => no_metric(),
        /// Bytes cut off behind the IP packets of frames that arrived here.
        #[serde(skip)] trimmed_bytes: Counter => no_metric(),
        /// Frames dropped by reason; on the port they came in by until a queue is chosen, on the egress port after that.
        drops: ByName<DropReason, Counter, { DropReason::COUNT }> => metric("npcc_port_drops").by(&[("reason", &[])]),
        /// Bytes of the frames dropped, for whatever reason.
        #[serde(skip)] drop_bytes: Counter => metric("npcc_port_dropped_bytes"),
        /// RoCEv2 packets of the port.
        roce: RoceCounters => nested().kept(""),
        /// Time at which a queue's depth last rose to the second of its watched depths, in ns; published after that depth. On
        /// a cache line of its own: the control core polls it between its ticks, and the worker writes it only then.
        #[serde(skip)] alarm: CachePadded<Highest> => no_metric(),
        /// Egress queues of the port, by priority.
        #[serde(skip)] queues: [QueueCounters; PRIORITIES] => nested().by(BY_PRIORITY),
    }
}

impl PortCount {
    /// Returns the frames and bytes received, without MAC control: `rx_ok` of the interface counters.
    #[must_use]
    pub const fn rx_ok(&self) -> TrafficCount {
        TrafficCount {
            packets: self.rx.packets.saturating_sub(self.consumed.packets),
            bytes: self.rx.bytes.saturating_sub(self.consumed.bytes),
        }
    }
}

impl PortCounters {
    /// Restarts the user watermarks from the current values; the persistent ones keep the old peaks. Called by the owner only.
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

    /// Counts a drop of one frame of `bytes` bytes.
    #[inline]
    pub fn drop(&self, reason: DropReason, bytes: u64) {
        self.drop_all(reason, 1, bytes);
    }

    /// Counts a drop of `frames` frames of `bytes` bytes together.
    #[inline]
    pub fn drop_all(&self, reason: DropReason, frames: u64, bytes: u64) {
        if let Some(counter) = self.drops.get(reason.index()) {
            counter.add(frames);
        }
        self.drop_bytes.add(bytes);
    }
}

/// Counters of one worker, those of all ports included.
#[derive(Debug)]
pub struct Counters {
    ports: PerPort<CachePadded<PortCounters>>,
    /// Bursts, and the runs they consist of.
    pub bursts: CachePadded<BurstCounters>,
    /// Frames the worker holds: queued, and in transit between queue and device.
    pub held: CachePadded<Held>,
    /// Shared-buffer gauges.
    pub buffer: CachePadded<BufferGauges>,
    /// Frames to and from other workers.
    pub handoff: CachePadded<HandoffCounters>,
    /// Frames to and from Linux.
    pub punt: CachePadded<PuntCounters>,
}

counters! {
    /// Bursts of a worker and their composition.
    pub struct BurstCounters => BurstCount {
        /// Bursts received.
        received: Counter => metric("npcc_worker_bursts"),
        /// Runs that bursts were made of: frames with one egress port, priority and ingress group.
        runs: Counter => metric("npcc_worker_runs"),
        /// Times a port sent past its queues.
        bypassed: Counter => metric("npcc_worker_bypasses").column("BYPASSED"),
    }
}

counters! {
    /// Frames that cross between workers, as one of them sees it.
    pub struct HandoffCounters => HandoffCount {
        /// Frames handed over to the workers that own their egress ports.
        handed_over: Counter => metric("npcc_worker_handed_over_frames").column("HANDED OVER"),
        /// Frames taken over from other workers.
        taken_over: Counter => metric("npcc_worker_taken_over_frames").column("TAKEN OVER"),
        /// Turns in which a receive queue was not polled, as a full ring to another worker held frames back.
        stalls: Counter => metric("npcc_worker_stalls").column("STALLS"),
        /// Frames received that had waited in a receive queue behind lossless frames held for a full ring to another worker.
        held_back: Counter => metric("npcc_worker_held_back_frames").column("HELD BACK"),
    }
}

/// Shared-buffer gauges in wire bytes: this worker's part, and the peaks of the whole.
#[derive(Debug, Default)]
pub struct BufferGauges {
    /// Amount charged less amount released, modulo 2^64: the sum over all workers is the amount held.
    pub used: Gauge,
    /// Packet buffers charged less those released, modulo 2^64.
    pub frames: Gauge,
    /// Bytes of this worker's frames in headroom.
    pub headroom: Gauge,
    /// Most bytes held by all workers together.
    pub used_peak: Gauge,
    /// Most bytes in headroom of all workers together.
    pub headroom_peak: Gauge,
}

/// Frames and bytes held, as gauges modulo 2^64: the sum over all workers is the amount held.
#[derive(Debug, Default)]
pub struct Held {
    /// Frames held.
    pub packets: Gauge,
    /// Bytes held.
    pub bytes: Gauge,
}

impl Counters {
    /// Returns zeroed counters for `ports` ports.
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
            handoff: CachePadded::default(),
            punt: CachePadded::default(),
        }
    }

    /// Returns one port's counters by index.
    #[inline]
    #[must_use]
    pub fn port(&self, index: usize) -> Option<&PortCounters> {
        let port = PortId(low8(index));
        (index < self.ports.len()).then(|| &*self.ports[port])
    }

    /// Returns one port's counters; for a port that is not configured, spare ones.
    #[inline]
    #[must_use]
    pub fn of(&self, port: PortId) -> &PortCounters {
        &self.ports[port]
    }

    /// Iterates over all ports, in the order of the configuration.
    pub fn ports(&self) -> impl Iterator<Item = &PortCounters> {
        self.ports.iter().map(|(_, padded)| &**padded)
    }
}
