//! Capture request of a client, and the replies beside the frames.

use serde::{Deserialize, Serialize};

/// Selection of the frames to capture.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CaptureRequest {
    /// Port by which frames must come in or leave.
    pub port: Option<String>,
    /// Priority that frames must have.
    pub priority: Option<u8>,
    /// Filter expression: see [`Filter::parse`](npcc_pipeline::capture::Filter::parse).
    pub filter: String,
    /// Most bytes of each frame.
    pub snaplen: u16,
    /// Most frames.
    pub count: Option<u64>,
    /// Longest duration, in milliseconds.
    pub for_ms: Option<u64>,
    /// Number of frames to follow on their way, instead of capturing all.
    pub trace: Option<u32>,
}

impl CaptureRequest {
    /// Returns its name for the log of changes.
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

/// Data a client needs to interpret the frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaptureStart {
    /// Version of the program.
    pub version: String,
    /// Names and MAC addresses of all ports, in the order of their numbers.
    pub ports: Vec<(String, String)>,
    /// Reference time, in ns since 1970.
    pub epoch_ns: u64,
    /// Workers' clock at `epoch_ns`, in ns.
    pub clock_ns: u64,
    /// Ns of real time per ns of the workers' clock.
    pub scale: f64,
}

/// Result of a capture.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureEnd {
    /// Frames that were written.
    pub captured: u64,
    /// Frames that matched and found no room in a ring.
    pub lost: u64,
    /// Reason for the end: `count`, `time`, `client` or `stop`.
    pub why: String,
}
