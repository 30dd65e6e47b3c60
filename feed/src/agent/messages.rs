//! Messages of leases: `npcc.SITE.host.NAME.leases`.

use npcc_api::ends::Lease;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::Name;
use crate::sync::LONGEST;

/// Version of the messages.
const VERSION: u8 = 1;
/// Most leases of a message.
pub(super) const MOST: usize = 200;

/// Leases of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaseMessage {
    /// Version of the message.
    #[schemars(extend("const" = VERSION))]
    v: u8,
    /// Name of the host.
    pub host: Name,
    /// Time at which the leases end, in microseconds since the Unix epoch.
    pub expires: u64,
    /// The leases, at most 200.
    #[schemars(length(max = MOST))]
    pub leases: Vec<Lease>,
}

impl LeaseMessage {
    /// Makes a message.
    #[must_use]
    pub fn new(host: Name, expires: u64, leases: Vec<Lease>) -> Self {
        Self {
            v: VERSION,
            host,
            expires,
            leases,
        }
    }

    /// Returns the message as published.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // Maps with text keys and numbers always encode.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Decodes a message published by the host `from`; `None` if it is longer than 64 KiB, which is not even read, or malformed, or names
    /// another host.
    #[must_use]
    pub fn decode(bytes: &[u8], from: &Name) -> Option<Self> {
        if bytes.len() > LONGEST {
            return None;
        }
        let message: Self = serde_json::from_slice(bytes).ok()?;
        let valid = message.v == VERSION && message.host == *from && message.leases.len() <= MOST;
        valid.then_some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_message_of_a_host_is_read_and_no_longer_one() {
        let host: Name = "h".repeat(32).parse().unwrap();
        let longest = [0xfd00; 8].into();
        let lease = Lease {
            to: longest,
            from: Some(longest),
            queue_pair: u32::MAX,
            remote_queue_pair: u32::MAX,
            udp_port: u16::MAX.try_into().ok(),
        };
        let message = LeaseMessage::new(host.clone(), u64::MAX, vec![lease; MOST]);
        let mut bytes = message.encode();
        assert_eq!(LeaseMessage::decode(&bytes, &host), Some(message.clone()));
        // White space is no part of a value: only the length refuses it.
        bytes.resize(LONGEST, b' ');
        assert_eq!(LeaseMessage::decode(&bytes, &host), Some(message));
        bytes.push(b' ');
        assert_eq!(LeaseMessage::decode(&bytes, &host), None);
    }
}
