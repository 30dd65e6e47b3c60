//! Flow control and buffer in the snapshot.

use npcc_pipeline::counters::{FlowCount, GroupCount, PauseCount};
use serde::{Deserialize, Serialize};

use super::counted::counted;

counted! { FlowControl: FlowCount, Pause: PauseCount, Group: GroupCount }

/// A port's flow control.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowControl {
    /// Who obeys pause frames: `hardware`, `software` or `none`.
    pub backend: String,
    /// Why.
    pub why: String,
    /// What became of a pause frame sent at start: `sent`, `not counted`, `refused`, `link down`, `not run`.
    pub self_test: String,
    /// 802.3x pause of the whole link, which would stop every priority: `off`, `obeyed`, `sent`, `both`, or `unknown` where the driver
    /// does not tell.
    pub link_pause: String,
    /// Wire bytes the transmit ring may hold; absent where the driver does not tell what it holds.
    pub tx_outstanding: Option<u64>,
    /// How the fill of the receive ring is known: `driver`, or `bursts` where it does not tell.
    pub rx_fill: String,
    /// Bits per second by which quanta are reckoned.
    pub rate: u64,
    /// Priorities the peer is asked to pause.
    pub send: Vec<u8>,
    /// Priorities whose pauses are obeyed.
    pub honour: Vec<u8>,
    /// Longest time we may go on sending after a pause arrived, in us: for the peer's `peer_response`.
    pub response_us: f64,
    /// Wire bytes that may arrive beyond headroom, because a worker's turn was longer than headroom covers.
    pub headroom_short: u64,
    /// What was counted.
    #[serde(flatten)]
    pub counts: FlowCount,
    /// Each priority.
    pub priorities: Vec<Pause>,
}

/// Pause of one priority.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Pause {
    /// The priority.
    pub priority: u8,
    /// Seconds since its last pause began; absent when there was none.
    pub rx_began_s_ago: Option<f64>,
    /// Seconds since our last pause began; absent when there was none.
    pub tx_began_s_ago: Option<f64>,
    /// Seconds since the last storm was found; absent when there was none.
    pub storm_s_ago: Option<f64>,
    /// What was counted.
    #[serde(flatten)]
    pub counts: PauseCount,
}

/// One ingress group, in wire bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Group {
    /// Its priority.
    pub priority: u8,
    /// Its sender is paused, not its frames dropped.
    pub lossless: bool,
    /// Most held ever.
    pub held_peak_ever: u64,
    /// What it may hold at this moment before its sender is paused; absent where nobody is.
    pub xoff: Option<u64>,
    /// What it holds at most when its paused sender goes on; absent where nobody is paused.
    pub xon: Option<u64>,
    /// Size of its headroom.
    pub headroom_size: u64,
    /// Most in headroom ever.
    pub headroom_peak_ever: u64,
    /// What was counted.
    #[serde(flatten)]
    pub counts: GroupCount,
}

/// The shared buffer, in wire bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Buffer {
    /// Size.
    pub pool: u64,
    /// Of that, shared by all.
    pub shared: u64,
    /// Of that, headroom.
    pub headroom_size: u64,
    /// Held.
    pub used: u64,
    /// Most held since the last `clear watermarks`.
    pub used_peak: u64,
    /// Held in headroom.
    pub headroom: u64,
    /// Most held in headroom since the last `clear watermarks`.
    pub headroom_peak: u64,
    /// Buffers held.
    pub frames: u64,
    /// Longest turn of a worker's loop since the last `clear watermarks`, in ns.
    pub turn_ns: u64,
    /// The longest that headroom covers, in ns.
    pub turn_covered_ns: u64,
}
