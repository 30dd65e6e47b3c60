//! Counters and gauges: each has one writer, anyone may read.
//!
//! A worker adds with a plain load and store, never a locked instruction; a reader sees a value that was true a moment
//! ago. Packets and bytes of one event may be read one update apart.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use crate::drop::{Drop, REASONS};
use crate::units::PRIORITIES;

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
    /// ECT changed to CE here.
    pub ecn_marked: Counter,
    /// Wire bytes waiting, published once a burst.
    pub depth: Gauge,
    /// Highest depth since the last `clear watermarks`.
    pub peak: Gauge,
    /// When the depth last rose to each of the watched depths ([`crate::egress::port::QueueConfig::watch`]), in ns.
    pub crossed: [Gauge; 2],
}

/// One port, as one worker sees it.
#[derive(Debug, Default)]
pub struct PortCounters {
    /// Handed over by `rx_burst`.
    pub rx: Traffic,
    /// Taken by `tx_burst`.
    pub tx: Traffic,
    /// Made by this switch and queued on this port.
    pub originated: Traffic,
    /// MAC control taken in.
    pub consumed: Traffic,
    /// PFC frames that named a priority, XON included.
    pub pfc_rx: [Counter; PRIORITIES],
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
    /// Egress queues.
    pub queues: [QueueCounters; PRIORITIES],
}

impl PortCounters {
    /// Counts a drop of `bytes`.
    #[inline]
    pub fn drop(&self, reason: Drop, bytes: u64) {
        if let Some(counter) = self.drops.get(reason.index()) {
            counter.add(1);
        }
        self.drop_bytes.add(bytes);
    }
}

/// All ports of one worker.
#[derive(Debug)]
pub struct Counters {
    ports: Box<[CachePadded<PortCounters>]>,
    /// Frames the worker holds: queued, and in hand between queue and device.
    pub held: CachePadded<Held>,
}

/// Frames and bytes held, as gauges.
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
            ports: (0..ports).map(|_| CachePadded::default()).collect(),
            held: CachePadded::default(),
        }
    }

    /// One port's, by index.
    #[inline]
    #[must_use]
    pub fn port(&self, index: usize) -> Option<&PortCounters> {
        self.ports.get(index).map(|padded| &**padded)
    }

    /// All ports, in the order of the configuration.
    pub fn ports(&self) -> impl Iterator<Item = &PortCounters> {
        self.ports.iter().map(|padded| &**padded)
    }
}
