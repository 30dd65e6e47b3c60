//! Limits of a queue pair, and the time that a control core takes.

use std::fmt;
use std::str::FromStr;

use npcc_config::units::{Bytes, Nanos};
use serde::{Deserialize, Deserializer};

/// Limit on the bytes that a queue pair has sent and its receiver has not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Window {
    /// So many bytes of payload; at least one packet is sent.
    Bytes(Bytes),
    /// Any number.
    Unlimited,
}

impl Window {
    /// Returns the number of packets of `mtu` bytes that fit; `None` if there is no limit.
    #[must_use]
    pub const fn packets(self, mtu: u16) -> Option<u64> {
        match self {
            Window::Bytes(bytes) if mtu > 0 => Some(bytes.0 / mtu as u64),
            Window::Bytes(_) | Window::Unlimited => None,
        }
    }
}

impl Default for Window {
    /// 4 MB, the order of what a channel of NCCL keeps in flight.
    fn default() -> Window {
        Window::Bytes(Bytes(4_000_000))
    }
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Window, String> {
        if text == "unlimited" {
            return Ok(Window::Unlimited);
        }
        text.parse().map(Window::Bytes).map_err(|_| {
            format!("`{text}` is no window; write a number of bytes such as 4MB, or unlimited")
        })
    }
}

impl fmt::Display for Window {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Window::Bytes(bytes) => bytes.fmt(out),
            Window::Unlimited => out.write_str("unlimited"),
        }
    }
}

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Window, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Time that a control core takes for a call, by what it does in it. Its CNPs leave as they are made, and the next call begins when it is
/// over, if that is later than its period. The default is a bench's (`cargo run --release -p npcc-cnp --example call`); zero for all is a
/// control core that takes no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ControlCost {
    /// Time of a call, with the decision of its policy.
    pub call: Nanos,
    /// Time of a record from the packet path.
    pub record: Nanos,
    /// Time of a flow that is read.
    pub flow: Nanos,
    /// Time of a CNP: choice, admission, building.
    pub cnp: Nanos,
}

impl ControlCost {
    /// Returns the time of a call that takes in `records`, reads `flows`, and has made `cnps` until now.
    #[must_use]
    pub const fn of(&self, records: u64, flows: u64, cnps: u64) -> Nanos {
        Nanos(self.call.0 + self.record.0 * records + self.flow.0 * flows + self.cnp.0 * cnps)
    }

    /// Returns true if calls take no time.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.of(1, 1, 1).0 == 0
    }
}

impl Default for ControlCost {
    fn default() -> ControlCost {
        ControlCost {
            call: Nanos(1_000),
            record: Nanos(300),
            flow: Nanos(50),
            cnp: Nanos(400),
        }
    }
}
