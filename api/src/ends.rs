//! Rows of ends: what `show ends` writes, what boxes exchange, and what `pair suggest` reads.
//!
//! Each is a line of JSON. Times are microseconds since the Unix epoch; unknown keys are ignored.

use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

npcc_pipeline::named! {
    /// Transport of a queue pair.
    #[derive(PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Transport {
        /// Reliable connection.
        Rc = "rc",
        /// Unreliable connection.
        Uc = "uc",
        /// Unreliable datagram.
        Ud = "ud",
        /// Extended reliable connection.
        Xrc = "xrc",
    }
}

/// Identity of an end: the frames from one host to a queue pair of another, on one UDP source port.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Key {
    /// Source address of the frames.
    pub from: IpAddr,
    /// Destination address: the sender that may be signalled.
    pub to: IpAddr,
    /// Destination queue pair, 24 bits: the sender's own.
    pub queue_pair: u32,
    /// UDP source port.
    pub udp_port: u16,
}

impl Key {
    /// Identity that is before or equal to any other.
    pub const FIRST: Self = Self {
        from: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        to: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        queue_pair: 0,
        udp_port: 0,
    };
}

/// Advance of a time of an end, in microseconds, from which the end is published again: 10 s. A switch believes a report for 60 s.
const REFRESH: u64 = 10_000_000;

/// End of a queue pair, as one box saw it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct End {
    /// Source address of the frames.
    pub from: IpAddr,
    /// Destination address: the sender that may be signalled.
    pub to: IpAddr,
    /// Destination queue pair, 24 bits: the sender's own.
    pub queue_pair: u32,
    /// UDP source port.
    pub udp_port: u16,
    /// Transport of the frames.
    pub transport: Transport,
    /// Time of the first frame, in microseconds since the Unix epoch.
    pub first_seen: u64,
    /// Time of the last frame that the box noted, in microseconds since the Unix epoch.
    pub last_seen: u64,
    /// Number of frames noted.
    pub packets: u64,
    /// Sequence number that the last frame acknowledged, if it did; 24 bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked_psn: Option<u32>,
    /// Time of that acknowledgement, in microseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked_at: Option<u64>,
}

impl End {
    /// Returns the identity of the end.
    #[must_use]
    pub const fn key(&self) -> Key {
        Key {
            from: self.from,
            to: self.to,
            queue_pair: self.queue_pair,
            udp_port: self.udp_port,
        }
    }

    /// Returns true if this row differs from `before` only in counters and acknowledgements, from which nothing is concluded, and in
    /// times by less than 10 s. A switch computes both times anew for each row, so `first_seen` differs by a few microseconds too.
    #[must_use]
    pub fn is_refresh_of(&self, before: &End) -> bool {
        let same = (self.key(), self.transport) == (before.key(), before.transport);
        same && self.first_seen.abs_diff(before.first_seen) < REFRESH
            && self.last_seen.abs_diff(before.last_seen) < REFRESH
    }
}

/// Kind of a connection manager's message.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum CmKind {
    /// Request of a connection.
    Req,
    /// Reply to a request.
    Rep,
    /// Request to disconnect.
    Dreq,
}

/// Message of the connection manager.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Cm {
    /// Kind of the message.
    pub message: CmKind,
    /// Source address.
    pub from: IpAddr,
    /// Destination address.
    pub to: IpAddr,
    /// Communication ID of the sender of the message.
    pub local_comm_id: u32,
    /// Communication ID of its receiver; 0 in a request.
    pub remote_comm_id: u32,
    /// Queue pair that the message names, 24 bits.
    pub queue_pair: u32,
    /// Time of the message, in microseconds since the Unix epoch.
    pub at: u64,
}

/// Queue pair that a host's agent knows, with its partner.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Lease {
    /// Address of the host.
    pub to: IpAddr,
    /// Address of its partner, if the host knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
    /// Queue pair of the host.
    pub queue_pair: u32,
    /// Queue pair of the partner.
    pub remote_queue_pair: u32,
    /// UDP source port of their packets, 1 to 65,535, if the host knows it; without it, the hash of both queue pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_port: Option<NonZeroU16>,
}

/// Lease as it is reported, with its end.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct ReportedLease {
    /// The queue pair and its partner.
    #[serde(flatten)]
    pub lease: Lease,
    /// Time at which the lease ends, in microseconds since the Unix epoch.
    pub expires: u64,
}

/// Row: a line of `show ends`, or of a report of a peer.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum EndRow {
    /// New or changed end.
    End(End),
    /// Message of the connection manager.
    Cm(Cm),
    /// End that the box's table dropped, or whose connection ended.
    Gone(Key),
    /// Number of rows, since the connection began, that were overwritten before they were read: a snapshot follows.
    Lost {
        /// Total of rows lost.
        count: u64,
    },
    /// Begin of a snapshot of the table.
    Begin,
    /// End of a snapshot.
    Complete {
        /// Number of ends of the snapshot.
        count: u64,
    },
    /// Queue pair that a host's agent knows, with its partner.
    Lease(ReportedLease),
}

/// Largest queue pair and sequence number: 24 bits.
const TWENTY_FOUR_BITS: u32 = 0xff_ffff;

impl EndRow {
    /// Returns true if the row may be passed to a peer and all its values are in range.
    #[must_use]
    pub fn is_shareable(&self) -> bool {
        match self {
            EndRow::End(end) => {
                end.queue_pair <= TWENTY_FOUR_BITS
                    && end.acked_psn.is_none_or(|psn| psn <= TWENTY_FOUR_BITS)
            }
            EndRow::Cm(cm) => cm.queue_pair <= TWENTY_FOUR_BITS,
            EndRow::Gone(key) => key.queue_pair <= TWENTY_FOUR_BITS,
            EndRow::Lost { .. } | EndRow::Begin | EndRow::Complete { .. } | EndRow::Lease(_) => {
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_lines_of_json_that_later_versions_may_extend() {
        let lines: Vec<&str> = include_str!("../../tests/protocol/rows.jsonl")
            .lines()
            .collect();
        for line in &lines {
            let row: EndRow = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_string(&row).unwrap(), *line);
        }
        let extended = lines[1].replace("\"udp_port\"", "\"later\":1,\"udp_port\"");
        assert!(serde_json::from_str::<EndRow>(&extended).is_ok());
    }

    #[test]
    fn a_queue_pair_of_more_than_24_bits_is_not_shared() {
        let key = Key {
            from: [10, 0, 2, 2].into(),
            to: [10, 0, 1, 2].into(),
            queue_pair: 0xff_ffff,
            udp_port: 1,
        };
        assert!(EndRow::Gone(key).is_shareable());
        let wide = Key {
            queue_pair: 0x100_0000,
            ..key
        };
        assert!(!EndRow::Gone(wide).is_shareable());
        assert!(!EndRow::Begin.is_shareable());
    }
}
