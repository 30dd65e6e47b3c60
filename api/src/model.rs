//! Snapshot of the switch: what `--stats-json` writes and `show --json` prints.

use std::collections::BTreeMap;

use npcc_pipeline::capture::CaptureCount;
pub use npcc_pipeline::counters::TrafficCount as Traffic;
use npcc_pipeline::counters::{
    BurstCount, DeviceDrops, HandoffCount, PortCount, QueueCount, WorkerCount,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counted::counted;
use super::events::Event;
use super::lossless::{Buffer, FlowControl, Group};
use super::punt::Punt;
use super::qos::Qos;

mod npcc;

pub use npcc::*;

counted! { Port: PortCount, Queue: QueueCount, Worker: WorkerCount }

/// State of the whole switch at one moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// Version of the program.
    pub version: String,
    /// Seconds since the switch started forwarding.
    pub seconds: f64,
    /// Time since which the user watermarks count: of the start, or of the last `clear watermarks` (RFC 3339); empty except in `show`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub watermarks_since: String,
    /// Ports, in the order of the configuration.
    pub ports: Vec<Port>,
    /// NPCC: counts, reaction times, watched queues.
    pub npcc: Npcc,
    /// Workers, each with its counts.
    pub workers: Vec<Worker>,
    /// Account of all frames.
    pub conservation: Conservation,
    /// The shared buffer.
    #[serde(default)]
    pub buffer: Buffer,
    /// Frames to and from Linux.
    #[serde(default)]
    pub punt: Punt,
    /// Effective queues and maps.
    #[serde(default)]
    pub qos: Qos,
    /// Events of ports and lossless queues, oldest first.
    #[serde(default)]
    pub events: Vec<Event>,
    /// Latency of frames in `bench`, from the moment a frame was due, in us; empty except there.
    #[serde(default)]
    pub latency_us: Percentiles,
}

/// JSON object with the program's version first, as in `--stats-json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Versioned<T> {
    /// Version of the program.
    pub version: String,
    /// Contents.
    #[serde(flatten)]
    pub data: T,
}

/// One port.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Port {
    /// Name in the configuration.
    pub name: String,
    /// Name of the device.
    pub device: String,
    /// Driver of the device.
    pub driver: String,
    /// MAC address of the port.
    pub mac: String,
    /// True if frames pass: the link is up, and the operator has not taken the port down (SONiC's oper status).
    pub up: bool,
    /// Admin status set by the operator: `up` or `down`.
    pub admin: String,
    /// Reason for a port that is down: `admin`, `link` or `device`; empty when it is up.
    pub down_reason: String,
    /// Speed of the link in bits per second; while it is down, the speed it last had.
    pub link_speed: u64,
    /// Source of the link speed: `device`, `link_speed`, `speed` or `assumed`.
    pub link_speed_from: String,
    /// Time at which the port last went up or down, RFC 3339; the start of the switch if it never did.
    pub last_change: String,
    /// Number of times the port went down.
    pub flaps: u64,
    /// Rate in bits per second that the egress side is shaped to; absent when unlimited.
    pub rate: Option<u64>,
    /// Cores of the workers that receive from this port; the first owns its queues and its pause.
    pub workers: Vec<usize>,
    /// Counts of the port, `rx` without MAC control; `lossless_lost` with what the device had no room for: it must stay 0.
    #[serde(flatten)]
    pub counts: PortCount,
    /// Frames the device itself lost.
    pub device_drops: DeviceDrops,
    /// Flow control of the port: pause, by priority and for the whole link.
    pub flow: FlowControl,
    /// Ingress groups, lowest priority first.
    pub groups: Vec<Group>,
    /// Egress queues, lowest priority first.
    pub queues: Vec<Queue>,
}

/// One egress queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    /// Priority of the queue.
    pub priority: u8,
    /// Most bytes that ever waited in the queue.
    #[serde(default)]
    pub peak_ever: u64,
    /// Time that the peak took to leave, in ns, at the rate that the port had then.
    #[serde(default)]
    pub peak_delay_ns: u64,
    /// Frames accepted.
    pub enqueued: u64,
    /// Bytes accepted.
    pub enqueued_bytes: u64,
    /// Further counts of the queue.
    #[serde(flatten)]
    pub counts: QueueCount,
}

/// A worker.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Worker {
    /// Core that the worker is pinned to.
    pub core: usize,
    /// Ports whose queues, transmit queue and pause this worker owns.
    pub owns: Vec<String>,
    /// Ports this worker receives from.
    pub receives: Vec<String>,
    /// Frames that crossed to and from other workers.
    #[serde(flatten)]
    pub handoff: HandoffCount,
    /// Bursts received, the runs they were made of, and the number of times a port sent past its queues.
    pub bursts: BurstCount,
    /// Counts of the worker's loop.
    #[serde(flatten)]
    pub counts: WorkerCount,
    /// Capture in progress, and the frames captured and lost since the start.
    pub capture: CaptureCount,
    /// Longest turn of the worker's loop ever, in ns.
    pub longest_ever_ns: u64,
    /// TSC cycles per received frame, by stage, over the busy turns that were timed; empty where none was.
    pub cycles: BTreeMap<String, f64>,
    /// Frames received in the turns that were timed.
    pub timed_frames: u64,
    /// Time the worker slept, in us of the switch's clock.
    pub slept_us: u64,
}

/// Account of all frames: `rx + originated + tags_added = tx + drops + consumed + punted + held + tags_removed + trimmed` (tags and
/// trimmed octets in bytes only).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Conservation {
    /// Frames received.
    pub rx: Traffic,
    /// Frames made by the switch.
    pub originated: Traffic,
    /// Bytes of VLAN tags added.
    pub tags_added: u64,
    /// Frames accepted by devices for transmission.
    pub tx: Traffic,
    /// Frames dropped.
    pub drops: Traffic,
    /// Frames consumed by the switch itself.
    pub consumed: Traffic,
    /// Frames punted to Linux.
    pub punted: Traffic,
    /// Frames queued or in a worker's hands.
    pub held: Traffic,
    /// Bytes of VLAN tags removed.
    pub tags_removed: u64,
    /// Bytes after the end of IP packets, cut off.
    #[serde(default)]
    pub trimmed: u64,
}

impl Conservation {
    /// Returns true if the account closes, in frames and in bytes. Exact once the workers stand still.
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
