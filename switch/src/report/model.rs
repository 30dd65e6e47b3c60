//! The snapshot: what `--stats-json` writes and `show --json` prints.

use std::collections::BTreeMap;

use npcc_pipeline::capture::CaptureCount;
use npcc_pipeline::counters;
pub use npcc_pipeline::counters::TrafficCount as Traffic;
use npcc_pipeline::counters::{BurstCount, Counter, CrossingCount, PortCount, QueueCount};
use serde::{Deserialize, Serialize};

use super::counted::counted;
use super::events::Event;
use super::lossless::{Buffer, FlowControl, Group};
use super::punt::Punt;
use super::qos::Qos;
use crate::worker::stats::WorkerCount;

mod npcc;

pub use npcc::*;

counted! { Port: PortCount, Queue: QueueCount, Worker: WorkerCount }

/// Everything, at one moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// Version of the program.
    pub version: String,
    /// Seconds since the switch started forwarding.
    pub seconds: f64,
    /// Ports, in the order of the configuration.
    pub ports: Vec<Port>,
    /// NPCC.
    pub npcc: Npcc,
    /// Workers.
    pub workers: Vec<Worker>,
    /// The account of all frames.
    pub conservation: Conservation,
    /// The shared buffer.
    #[serde(default)]
    pub buffer: Buffer,
    /// To and from Linux.
    #[serde(default)]
    pub punt: Punt,
    /// Effective queues and maps.
    #[serde(default)]
    pub qos: Qos,
    /// What happened to lossless queues, oldest first.
    #[serde(default)]
    pub events: Vec<Event>,
    /// How late `bench`'s frames left; nothing but there.
    #[serde(default)]
    pub latency_us: Percentiles,
}

/// One port.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its device.
    pub device: String,
    /// The device's driver.
    pub driver: String,
    /// Its MAC address.
    pub mac: String,
    /// Whether frames pass: the link is up, and the operator lets it be (SONiC's oper status).
    pub up: bool,
    /// Whether the operator lets it be up: `up` or `down`.
    pub admin: String,
    /// Why it is down: `admin`, `link` or `device`; empty when it is up.
    pub down_reason: String,
    /// Speed of the link in bits per second; of the time it was last up.
    pub link_speed: u64,
    /// Where that speed comes from: `device`, `link_speed`, `speed` or `assumed`.
    pub link_speed_from: String,
    /// When it last went up or down, RFC 3339; the start if it never did.
    pub last_change: String,
    /// How often it went down.
    pub flaps: u64,
    /// Bits per second its egress side is shaped to; absent when unlimited.
    pub rate: Option<u64>,
    /// Cores of the workers that receive from it; the first owns its queues and its pause.
    pub workers: Vec<usize>,
    /// What was counted, `rx` without MAC control; `lossless_lost` with what the device had no room for: it must stay 0.
    #[serde(flatten)]
    pub counts: PortCount,
    /// Frames the device itself lost.
    pub device_drops: DeviceDrops,
    /// Flow control.
    pub flow: FlowControl,
    /// Ingress groups, lowest priority first.
    pub groups: Vec<Group>,
    /// Egress queues, lowest priority first.
    pub queues: Vec<Queue>,
}

counters! {
    /// What a device counts itself: only what it reads as is used.
    pub struct DeviceCounters => DeviceDrops {
        /// The receive ring was full.
        rx_missed: Counter => metric("npcc_port_device_drops").tag("kind", "rx_missed").column("rx_missed")
            .help("Frames the device itself lost: rx_missed (ring full), rx_nombuf (no buffer), rx_errors, tx_errors."),
        /// No buffer was free.
        rx_nombuf: Counter => metric("npcc_port_device_drops").tag("kind", "rx_nombuf").column("rx_nombuf"),
        /// Received damaged.
        rx_errors: Counter => metric("npcc_port_device_drops").tag("kind", "rx_errors").column("rx_errors"),
        /// Not sent.
        tx_errors: Counter => metric("npcc_port_device_drops").tag("kind", "tx_errors").column("tx_errors"),
    }
}

/// One egress queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Queue {
    /// Its priority.
    pub priority: u8,
    /// Most that ever waited.
    #[serde(default)]
    pub peak_ever: u64,
    /// Frames accepted.
    pub enqueued: u64,
    /// Bytes accepted.
    pub enqueued_bytes: u64,
    /// What was counted beside.
    #[serde(flatten)]
    pub counts: QueueCount,
}

/// A worker.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Worker {
    /// Its core.
    pub core: usize,
    /// Ports whose queues, transmit queue and pause are its own.
    pub owns: Vec<String>,
    /// Ports it receives from.
    pub receives: Vec<String>,
    /// What crossed to and from other workers.
    #[serde(flatten)]
    pub crossing: CrossingCount,
    /// Bursts received, the runs they were made of, and how often a port sent past its queues.
    pub bursts: BurstCount,
    /// What it counted.
    #[serde(flatten)]
    pub counts: WorkerCount,
    /// The capture that is on, frames captured and lost since the start.
    pub capture: CaptureCount,
    /// Longest turn in ns ever.
    pub longest_ever_ns: u64,
    /// TSC cycles a received frame, by stage, of the busy turns that were timed; empty where none was.
    pub cycles: BTreeMap<String, f64>,
    /// Frames received in them.
    pub timed_frames: u64,
    /// Time it slept, in us of the switch's clock.
    pub slept_us: u64,
}

/// `rx + originated + tags_added = tx + drops + consumed + punted + held + tags_removed + trimmed` (tags and what was trimmed in
/// bytes only).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Conservation {
    /// Received.
    pub rx: Traffic,
    /// Made by the switch.
    pub originated: Traffic,
    /// Bytes of VLAN tags put on.
    pub tags_added: u64,
    /// Taken by devices.
    pub tx: Traffic,
    /// Dropped.
    pub drops: Traffic,
    /// Consumed.
    pub consumed: Traffic,
    /// Punted.
    pub punted: Traffic,
    /// Queued or in hand.
    pub held: Traffic,
    /// Bytes of VLAN tags taken off.
    pub tags_removed: u64,
    /// Bytes behind IP packets, cut off.
    #[serde(default)]
    pub trimmed: u64,
}

impl Conservation {
    /// Whether the account closes, in frames and in bytes. Exact once the workers stand still.
    #[must_use]
    pub const fn holds(&self) -> bool {
        let frames_in = self.rx.packets + self.originated.packets;
        let frames_out = self.tx.packets
            + self.drops.packets
            + self.consumed.packets
            + self.punted.packets
            + self.held.packets;
        let bytes_in = self.rx.bytes + self.originated.bytes + self.tags_added;
        let bytes_out = self.tx.bytes
            + self.drops.bytes
            + self.consumed.bytes
            + self.punted.bytes
            + self.held.bytes
            + self.tags_removed
            + self.trimmed;
        frames_in == frames_out && bytes_in == bytes_out
    }
}
