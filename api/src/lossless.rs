//! Flow control and buffer in the snapshot.

use npcc_pipeline::counters::{FlowCount, GroupCount, PauseCount};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counted::counted;

counted! { FlowControl: FlowCount, Pause: PauseCount, Group: GroupCount }

/// A port's flow control.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FlowControl {
    /// Backend that obeys pause frames: `hardware`, `software` or `none`.
    pub backend: String,
    /// Reason for the choice of this backend.
    pub why: String,
    /// Result of a pause frame sent at start: `sent`, `not counted`, `refused`, `link down`, `not run`.
    pub self_test: String,
    /// 802.3x pause of the whole link, which would stop every priority: `off`, `obeyed`, `sent`, `both`, or `unknown` where the driver
    /// does not report it.
    pub link_pause: String,
    /// The driver's reason for which 802.3x pause could not be disabled; absent where it was, or where the driver cannot.
    pub link_pause_error: Option<String>,
    /// True if pause is suspected rather than known to work: neither the driver's source nor a test shows that the card passes pause frames
    /// in both directions.
    pub suspected: bool,
    /// Wire bytes the transmit ring may hold while the link sends; absent for virtual devices.
    pub tx_outstanding: Option<u64>,
    /// Source of the fill level of the receive ring: `driver`, or `bursts` where the driver does not report it.
    pub rx_fill: String,
    /// Rate in bits per second by which pause quanta are converted to time.
    pub rate: u64,
    /// Priorities the peer is asked to pause (PFC frames are sent for them).
    pub send: Vec<u8>,
    /// Priorities whose pauses are obeyed.
    pub honour: Vec<u8>,
    /// Longest time the switch may go on sending after a pause arrived, in us: for the peer's `peer_response`.
    pub response_us: f64,
    /// Wire bytes that may arrive beyond headroom, because a worker's turn was longer than headroom covers.
    pub headroom_short: u64,
    /// Counts of the port's flow control.
    #[serde(flatten)]
    pub counts: FlowCount,
    /// Pause state of each priority.
    pub priorities: Vec<Pause>,
}

/// Pause of one priority.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pause {
    /// Priority that is paused.
    pub priority: u8,
    /// Seconds since the last pause by the peer began; absent when there was none.
    pub rx_began_s_ago: Option<f64>,
    /// Seconds since the last pause by the switch began; absent when there was none.
    pub tx_began_s_ago: Option<f64>,
    /// Seconds since the last storm was found; absent when there was none.
    pub storm_s_ago: Option<f64>,
    /// Counts of the priority's pauses.
    #[serde(flatten)]
    pub counts: PauseCount,
}

/// One ingress group, in wire bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Group {
    /// Priority of the group.
    pub priority: u8,
    /// True if the group's sender is paused rather than its frames dropped.
    pub lossless: bool,
    /// Most wire bytes ever held by the group.
    pub held_peak_ever: u64,
    /// Fill level above which the sender is paused, at this moment; absent where senders are not paused.
    pub xoff: Option<u64>,
    /// Fill level at or below which a paused sender may go on; absent where senders are not paused.
    pub xon: Option<u64>,
    /// Size of its headroom.
    pub headroom_size: u64,
    /// Most wire bytes ever held in headroom.
    pub headroom_peak_ever: u64,
    /// Counts of the group.
    #[serde(flatten)]
    pub counts: GroupCount,
}

/// The shared buffer, in wire bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Buffer {
    /// Size of the whole pool.
    pub pool: u64,
    /// Part of the pool that all groups share.
    pub shared: u64,
    /// Part of the pool that is headroom.
    pub headroom_size: u64,
    /// Wire bytes held.
    pub used: u64,
    /// Most wire bytes held since the last `clear watermarks`.
    pub used_peak: u64,
    /// Wire bytes held in headroom.
    pub headroom: u64,
    /// Most wire bytes held in headroom since the last `clear watermarks`.
    pub headroom_peak: u64,
    /// Packet buffers held.
    pub frames: u64,
    /// Longest turn of a worker's loop since the last `clear watermarks`, in ns.
    pub turn_ns: u64,
    /// Longest turn that headroom covers, in ns.
    pub turn_covered_ns: u64,
}

/// Contents of `show buffer --json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BufferTable {
    /// The shared buffer.
    pub buffer: Buffer,
    /// Ports, in the order of the configuration.
    pub ports: Vec<PortBuffer>,
}

/// Part of a port in the shared buffer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PortBuffer {
    /// Name of the port.
    pub name: String,
    /// Frames of lossless priorities lost for want of room.
    pub lossless_lost: u64,
    /// Ingress groups, lowest priority first.
    pub groups: Vec<Group>,
}
