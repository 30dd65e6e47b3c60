//! Messages between feeds: JSON, versioned, at most 64 KiB.

use npcc_api::ends::{End, EndRow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ends::MOST_OF_PART;
use super::parts::PARTS;
use crate::name::Name;

/// Longest message, in bytes.
pub const LONGEST: usize = 64 << 10;
/// Version of the messages.
const VERSION: u8 = 1;
/// Most rows of a message. A row has at most 300 bytes.
pub(super) const MOST_ROWS: usize = MOST_OF_PART as usize;
/// Largest sequence number: JSON's numbers are exact up to here.
const MOST_SEQUENCE: u64 = 1 << 53;

npcc_pipeline::named! {
    /// Subject of a message, after `npcc.SITE.BOX.ends.`.
    pub enum Topic {
        /// Changes, for all peers.
        Delta = "delta",
        /// Heartbeats and digests, for all peers.
        Digest = "digest",
        /// Requests; the name of the peer follows.
        Request = "request",
        /// Parts and digests by request; the name of the peer follows.
        Snapshot = "snapshot",
    }
}

npcc_pipeline::named! {
    /// Reason why a message of a peer, or a row of it, was refused.
    #[derive(PartialOrd, Ord, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum RejectReason {
        /// Message that cannot be read, or has values out of range.
        Malformed = "malformed",
        /// Another version of the protocol.
        Version = "version",
        /// More than 64 KiB.
        TooLong = "too-long",
        /// More rows a second than the limit.
        Rate = "rate",
        /// More ends than the limit.
        Full = "full",
        /// Published under another box's subject.
        Imposter = "imposter",
    }
}

/// Message: who sends it, since which start, and what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Message {
    v: u8,
    #[serde(rename = "box")]
    pub(super) sender: Name,
    /// Random number of this start of the sender's feed.
    pub(super) epoch: u64,
    pub(super) body: Body,
}

/// Content of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Body {
    /// Rows with the numbers `first`, `first + 1` and so on.
    Delta { first: u64, rows: Vec<EndRow> },
    /// Last number, and a hash of all ends.
    Heartbeat { sequence: u64, hash: u64 },
    /// Last number, and the hash of each part.
    Digest { sequence: u64, hashes: Vec<u64> },
    /// Request to a peer: these parts, or its digest if none is named.
    Request { parts: Vec<u16> },
    /// Whole parts, as of this number.
    Parts { sequence: u64, parts: Vec<Part> },
}

/// All ends of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) part: u16,
    pub(super) rows: Vec<End>,
}

impl Message {
    pub(super) fn new(sender: Name, epoch: u64, body: Body) -> Self {
        Self {
            v: VERSION,
            sender,
            epoch,
            body,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        // Maps with text keys and numbers always encode.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a message that `sender` published.
    pub(super) fn decode(bytes: &[u8], sender: &Name) -> Result<Self, RejectReason> {
        if bytes.len() > LONGEST {
            return Err(RejectReason::TooLong);
        }
        let message: Self = serde_json::from_slice(bytes).map_err(|_| reject_reason(bytes))?;
        if message.v != VERSION {
            return Err(RejectReason::Version);
        }
        if message.sender != *sender {
            return Err(RejectReason::Imposter);
        }
        if message.body.is_valid() {
            Ok(message)
        } else {
            Err(RejectReason::Malformed)
        }
    }
}

/// Returns the reason for a message that cannot be read: a later version may have another form.
fn reject_reason(bytes: &[u8]) -> RejectReason {
    #[derive(Deserialize)]
    struct Versioned {
        v: u64,
    }
    match serde_json::from_slice::<Versioned>(bytes) {
        Ok(Versioned { v }) if v != u64::from(VERSION) => RejectReason::Version,
        _ => RejectReason::Malformed,
    }
}

impl Body {
    /// Returns the number of rows.
    pub(super) fn rows(&self) -> usize {
        match self {
            Body::Delta { rows, .. } => rows.len(),
            Body::Parts { parts, .. } => parts.iter().map(|part| part.rows.len().max(1)).sum(),
            Body::Heartbeat { .. } | Body::Digest { .. } | Body::Request { .. } => 1,
        }
    }

    fn is_valid(&self) -> bool {
        let is_part = |part: u16| usize::from(part) < PARTS;
        match self {
            Body::Delta { first, rows } => {
                *first <= MOST_SEQUENCE && rows.iter().all(EndRow::is_shareable)
            }
            Body::Heartbeat { sequence, .. } => *sequence <= MOST_SEQUENCE,
            Body::Digest { sequence, hashes } => {
                *sequence <= MOST_SEQUENCE && hashes.len() == PARTS
            }
            Body::Request { parts } => parts.iter().all(|part| is_part(*part)),
            Body::Parts { sequence, parts } => {
                let shareable = |end: &End| EndRow::End(*end).is_shareable();
                *sequence <= MOST_SEQUENCE
                    && parts.len() <= PARTS
                    && parts
                        .iter()
                        .all(|part| is_part(part.part) && part.rows.iter().all(shareable))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn a_digest_of_all_parts_fits_into_a_message() {
        let hashes = vec![u64::MAX; PARTS];
        let body = Body::Digest {
            sequence: MOST_SEQUENCE,
            hashes,
        };
        let bytes = Message::new(name("a"), u64::MAX, body).encode();
        assert!(bytes.len() < LONGEST, "{}", bytes.len());
        assert!(Message::decode(&bytes, &name("a")).is_ok());
    }

    #[test]
    fn a_full_message_of_the_longest_rows_fits() {
        let long = std::net::Ipv6Addr::from([0xab; 16]).into();
        let end = End {
            from: long,
            to: long,
            queue_pair: 0xff_ffff,
            udp_port: u16::MAX,
            transport: npcc_api::ends::Transport::Xrc,
            first_seen: u64::MAX,
            last_seen: u64::MAX,
            packets: u64::MAX,
            acked_psn: Some(0xff_ffff),
            acked_at: Some(u64::MAX),
        };
        let delta = Body::Delta {
            first: MOST_SEQUENCE,
            rows: vec![EndRow::End(end); MOST_ROWS],
        };
        let bytes = Message::new(name(&"x".repeat(32)), u64::MAX, delta).encode();
        assert!(bytes.len() < LONGEST, "{}", bytes.len());
    }

    #[test]
    fn what_is_refused_has_its_reason() {
        let good = Message::new(name("a"), 1, Body::Request { parts: vec![1] }).encode();
        let text = String::from_utf8(good.clone()).unwrap();
        let refused = |text: &str, by| Message::decode(text.as_bytes(), &name(by)).err();
        assert_eq!(refused(&text, "a"), None);
        assert_eq!(refused(&text, "b"), Some(RejectReason::Imposter));
        assert_eq!(refused(&text[1..], "a"), Some(RejectReason::Malformed));
        assert_eq!(
            refused(&text.replace("[1]", "[1024]"), "a"),
            Some(RejectReason::Malformed)
        );
        assert_eq!(
            refused(&text.replace("\"v\":1", "\"v\":2"), "a"),
            Some(RejectReason::Version)
        );
        assert_eq!(
            refused(r#"{"v":7,"else":1}"#, "a"),
            Some(RejectReason::Version)
        );
        assert_eq!(
            refused(&" ".repeat(LONGEST + 1), "a"),
            Some(RejectReason::TooLong)
        );
    }
}
