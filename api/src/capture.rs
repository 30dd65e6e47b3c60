//! Capture request of a client, and the lines of the answer.

use npcc_pipeline::capture::{Event, Kind, Notes};
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::units::{Nanos, PortId, Priority, WorkerId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Selection of the frames to capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CaptureRequest {
    /// Port by which frames must come in or leave.
    pub port: Option<String>,
    /// Priority that frames must have.
    pub priority: Option<u8>,
    /// Filter expression: see [`Filter::parse`](npcc_pipeline::capture::Filter::parse).
    pub filter: String,
    /// Most bytes of each frame, at least 1.
    pub snaplen: u16,
    /// Most frames.
    pub count: Option<u64>,
    /// Longest duration, in milliseconds.
    pub for_ms: Option<u64>,
    /// Number of frames to follow on their way, instead of capturing all.
    pub trace: Option<u32>,
}

impl Default for CaptureRequest {
    fn default() -> CaptureRequest {
        CaptureRequest {
            port: None,
            priority: None,
            filter: String::new(),
            snaplen: u16::MAX,
            count: None,
            for_ms: None,
            trace: None,
        }
    }
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

/// Line of the answer: the start, then a line a frame, then the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureLine {
    /// The capture is on.
    Start(CaptureStart),
    /// A frame.
    Frame(CapturedFrame),
    /// The capture is over.
    End(CaptureEnd),
}

/// Captured frame. Ports are numbers: see [`CaptureStart::ports`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CapturedFrame {
    /// Stage at which the frame was captured, such as `received`, `sent` or `dropped`.
    pub kind: String,
    /// Drop reason of a dropped frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Ingress port; absent if the switch made the frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress: Option<u8>,
    /// Egress port, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress: Option<u8>,
    /// Priority of its egress queue; for a received frame, the frame's priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Worker that captured the frame.
    pub worker: u8,
    /// Sum of 1 for a frame that the switch or Linux made, 2 for one with the next hop's headers, 4 for one whose flow NPCC observes.
    pub flags: u8,
    /// Length of the whole frame in bytes; fewer may have been captured.
    pub len: u16,
    /// Time of the workers' clock, in ns, at which the frame's burst was received, admitted or sent.
    pub time_ns: u64,
    /// Wire bytes that wait in its queue without it.
    pub depth: u64,
    /// Number of the frame among those that are followed; absent if it is not followed, and so is what follows here.
    #[serde(skip_serializing_if = "is_zero")]
    pub trace: u32,
    /// Wire bytes of the shared buffer in use.
    #[serde(skip_serializing_if = "is_zero")]
    pub pool: u64,
    /// Wire bytes that the frame's ingress group holds.
    #[serde(skip_serializing_if = "is_zero")]
    pub group: u64,
    /// Wire bytes that the frame's ingress group holds in headroom.
    #[serde(skip_serializing_if = "is_zero")]
    pub headroom: u64,
    /// Next-hop group that the destination leads to.
    #[serde(skip_serializing_if = "is_zero")]
    pub next_hops: u32,
    /// Hash of the flow.
    #[serde(skip_serializing_if = "is_zero")]
    pub flow_hash: u32,
    /// Octets of the frame, as hexadecimal digits.
    pub octets: String,
}

fn is_zero<N: Copy + Into<u64>>(number: &N) -> bool {
    (*number).into() == 0
}

/// Digits of hexadecimal numbers.
const DIGITS: &[u8; 16] = b"0123456789abcdef";

impl CapturedFrame {
    /// Returns the line of a frame.
    #[must_use]
    pub fn of(event: &Event, octets: &[u8]) -> CapturedFrame {
        let digit = |number: u8| char::from(*DIGITS.get(usize::from(number)).unwrap_or(&b'0'));
        let notes = &event.notes;
        CapturedFrame {
            kind: event.kind.name().to_owned(),
            reason: event.reason.map(|reason| reason.name().to_owned()),
            ingress: event.ingress.map(|port| port.0),
            egress: event.egress.map(|port| port.0),
            priority: event.priority.map(Priority::get),
            worker: event.worker.0,
            flags: event.flags,
            len: event.len,
            time_ns: event.time.0,
            depth: event.depth,
            trace: event.trace,
            pool: notes.pool,
            group: notes.group,
            headroom: notes.headroom,
            next_hops: notes.next_hops,
            flow_hash: notes.flow_hash,
            octets: octets
                .iter()
                .flat_map(|octet| [digit(octet >> 4), digit(octet & 0xf)])
                .collect(),
        }
    }

    /// Returns the event of capture number `capture` and the octets; `None` if a word or a digit is unknown.
    #[must_use]
    pub fn event(&self, capture: u32) -> Option<(Event, Vec<u8>)> {
        let event = Event {
            capture,
            trace: self.trace,
            kind: Kind::named(&self.kind)?,
            reason: match &self.reason {
                Some(name) => Some(DropReason::named(name)?),
                None => None,
            },
            ingress: self.ingress.map(PortId),
            egress: self.egress.map(PortId),
            priority: self.priority.map(Priority::new),
            worker: WorkerId(self.worker),
            flags: self.flags,
            len: self.len,
            time: Nanos(self.time_ns),
            depth: self.depth,
            notes: Notes {
                pool: self.pool,
                group: self.group,
                headroom: self.headroom,
                next_hops: self.next_hops,
                flow_hash: self.flow_hash,
            },
        };
        let (pairs, rest) = self.octets.as_bytes().as_chunks::<2>();
        let digit = |one: u8| char::from(one).to_digit(16);
        let octet = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok();
        let octets: Option<Vec<u8>> = pairs.iter().map(octet).collect();
        rest.is_empty().then_some((event, octets?))
    }
}

/// Data a client needs to interpret the frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureStart {
    /// Number of the capture, by which it is ended.
    pub id: u32,
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureEnd {
    /// Frames that were written.
    pub captured: u64,
    /// Frames that matched and found no room in a ring.
    pub lost: u64,
    /// Reason for the end: `count`, `time`, `client` or `stop`.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: a frame comes back from its line with all that was known of it.
    #[test]
    fn a_frame_comes_back_from_its_line() {
        let event = Event {
            capture: 7,
            trace: 1,
            kind: Kind::Dropped,
            reason: Some(DropReason::ALL[0]),
            ingress: Some(PortId(1)),
            egress: None,
            priority: Some(Priority::new(3)),
            worker: WorkerId(2),
            flags: 5,
            len: 1_500,
            time: Nanos(12),
            depth: 9,
            notes: Notes {
                pool: 1,
                ..Notes::default()
            },
        };
        let octets = [0x00, 0x0f, 0xf0, 0xff];
        let line = serde_json::to_string(&CapturedFrame::of(&event, &octets)).unwrap();
        let read: CapturedFrame = serde_json::from_str(&line).unwrap();
        assert_eq!(read.event(7), Some((event, octets.to_vec())));
        for (key, value) in [
            ("octets", "\"000\""),
            ("octets", "\"0g\""),
            ("kind", "\"seen\""),
        ] {
            let odd: CapturedFrame =
                serde_json::from_str(&format!("{{\"kind\":\"sent\",\"{key}\":{value}}}"))
                    .unwrap_or_default();
            assert_eq!(odd.event(7), None, "{key} {value}");
        }
    }
}
