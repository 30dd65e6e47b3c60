//! Effective queues and maps, as `show qos` prints them: the result of the profile and the explicit keys.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of all queues.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Qos {
    /// Profile that the settings started from.
    pub profile: String,
    /// Field of a packet that gives its priority.
    pub trust: String,
    /// Priority of packets that no map names.
    pub default_priority: u8,
    /// DSCPs that do not go to the default priority.
    pub dscp_to_priority: BTreeMap<u8, u8>,
    /// VLAN priorities that do not go to the default priority.
    pub pcp_to_priority: BTreeMap<u8, u8>,
    /// Settings of each queue.
    pub priorities: Vec<QosPriority>,
}

/// Settings of one queue, the same on every port.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct QosPriority {
    /// Priority of the queue.
    pub priority: u8,
    /// True if the queue's senders are paused rather than its frames dropped.
    pub lossless: bool,
    /// Scheduler of the queue: `strict` or `dwrr`.
    pub scheduler: String,
    /// Weight among the DWRR queues; absent for a strict queue.
    pub weight: Option<u8>,
    /// Minimum rate in bits per second.
    pub min_rate: Option<u64>,
    /// Highest rate in bits per second.
    pub max_rate: Option<u64>,
    /// ECN thresholds by port name: marking from `kmin` on, all above `kmax`, in bytes.
    pub ecn: BTreeMap<String, [u64; 2]>,
    /// WRED thresholds by port name: early drop from `min` on, all above `max`, in bytes.
    pub wred: BTreeMap<String, [u64; 2]>,
}

impl Qos {
    /// Returns profile, trust and both maps as text, a line each.
    #[must_use]
    pub fn maps(&self) -> String {
        let map = |map: &BTreeMap<u8, u8>| {
            let entries: Vec<String> = map
                .iter()
                .map(|(from, to)| format!("{from} to {to}"))
                .collect();
            entries.join(", ")
        };
        format!(
            "profile {}, trust {}\nDSCP {}, the rest to {default}\nPCP {}, the rest to {default}\n",
            self.profile,
            self.trust,
            map(&self.dscp_to_priority),
            map(&self.pcp_to_priority),
            default = self.default_priority
        )
    }
}
