//! What a client asks of a capture, and what it is told beside the frames.

use serde::{Deserialize, Serialize};

/// What is to be captured.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CaptureRequest {
    /// Only frames that come in by this port or leave by it.
    pub port: Option<String>,
    /// Only frames of this priority.
    pub priority: Option<u8>,
    /// Which frames: see [`Filter::parse`](npcc_pipeline::capture::Filter::parse).
    pub filter: String,
    /// Bytes of each at most.
    pub snaplen: u16,
    /// So many frames at most.
    pub count: Option<u64>,
    /// For so many milliseconds at most.
    pub for_ms: Option<u64>,
    /// Follow so many frames on their way, instead of seeing all.
    pub trace: Option<u32>,
}

impl CaptureRequest {
    /// What it is called where changes are logged.
    #[must_use]
    pub fn name(&self) -> String {
        let what = if self.trace.is_some() {
            "trace packet"
        } else {
            "capture"
        };
        let port = self.port.as_ref().map(|port| format!(" --port {port}"));
        let queue = self.priority.map(|queue| format!(" --queue {queue}"));
        let more = [port, queue].into_iter().flatten().collect::<String>();
        format!("{what}{more} --filter {:?}", self.filter)
    }
}

/// What a client must know to read the frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaptureStart {
    /// Version of the program.
    pub version: String,
    /// Names and addresses of all ports, in the order of their numbers.
    pub ports: Vec<(String, String)>,
    /// A moment, in ns since 1970 ...
    pub epoch_ns: u64,
    /// ... and by the workers' clock, in ns.
    pub clock_ns: u64,
    /// Ns of the world in one ns of the workers' clock.
    pub scale: f64,
}

/// How a capture ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureEnd {
    /// Frames that were written.
    pub captured: u64,
    /// Frames that were to be captured and found no room.
    pub lost: u64,
    /// Why: `count`, `time`, `client` or `stop`.
    pub why: String,
}
