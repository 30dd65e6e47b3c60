//! `ports:` the ports.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cores::Core;
use super::npcc::{Action, Mode, PolicyName, UpstreamCe};
use super::{Descriptors, Mtu, PriorityId, VlanId};
use crate::units::{Auto, BitRate, Interface, Length, Mac, Nanos, Threshold, Written, word_or};

/// A port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Name by which the rest of the file and the commands know it: 1 to 15 of `a-z0-9_-`.
    #[schemars(regex(pattern = r"^[a-z0-9_-]{1,15}$"))]
    pub name: String,
    /// A PCI address such as `0000:3b:00.0`, or a virtual device such as `net_af_packet0,iface=eth1`.
    pub device: String,
    /// Ethernet address; default the device's.
    #[serde(default)]
    pub mac: Option<Mac>,
    /// IP MTU in bytes.
    #[serde(default = "default_mtu")]
    pub mtu: Mtu,
    /// Addresses of the untagged interface.
    #[serde(default)]
    pub addresses: Vec<Interface>,
    /// Tagged interfaces.
    #[serde(default)]
    pub vlans: Vec<Vlan>,
    /// Core of the worker that owns the port's queues and its pause, one of `cores.workers`; default the worker with the
    /// fewest ports, in turn.
    #[serde(default)]
    pub worker: Option<Core>,
    /// Rate of the egress side, a shaper; default the link's (a virtual device is not shaped). Thresholds in time follow it.
    #[serde(default)]
    pub speed: Option<BitRate>,
    /// Speed of the link itself, by which pause quanta and headroom are reckoned; `auto` asks the device (a virtual device's is
    /// `speed`, or 10G).
    #[serde(default)]
    pub link_speed: Auto<BitRate>,
    /// Descriptors of each receive ring; `auto` holds what arrives while a worker is away for `buffer.loop_time`.
    #[serde(default)]
    pub rx_descriptors: Auto<Descriptors>,
    /// Most that may wait in the device's transmit ring, beyond the reach of our queues; default the
    /// larger of two full frames and 2us of the link.
    #[serde(default)]
    pub tx_outstanding: Option<Threshold>,
    /// Length of the cable to the peer; headroom is computed from it.
    #[serde(default = "default_cable")]
    pub cable: Length,
    /// How soon the peer stops after a pause frame.
    #[serde(default)]
    pub peer_response: PeerResponse,
    /// Priority flow control on this port.
    #[serde(default)]
    pub pfc: PortPfc,
    /// Proactive congestion notification for the queues of this port.
    #[serde(default)]
    pub npcc: Option<PortNpcc>,
}

const fn default_mtu() -> Mtu {
    Mtu::fixed(9100)
}

const fn default_cable() -> Length {
    Length::from_metres(40)
}

/// A tagged interface of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Vlan {
    /// The VLAN.
    pub id: VlanId,
    /// Its addresses.
    #[serde(default)]
    pub addresses: Vec<Interface>,
}

/// Whether a port sends and obeys priority pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortPfc {
    /// What the switch can do on this device.
    #[default]
    Auto,
    /// Sends pause and obeys it.
    Send,
    /// Obeys pause, sends none.
    Honour,
    /// Neither.
    Off,
}

npcc_pipeline::defaults! {
    /// Proactive congestion notification for the queues of a port.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct PortNpcc {
        /// Whether it is on.
        pub enable: bool = true,
        /// The priorities whose egress queues are watched.
        pub queues: Vec<PriorityId> = vec![PriorityId::fixed(3)],
        /// Whether CNPs leave for the queues of this port; `npcc.action` can hold back more.
        pub action: Action = Action::default(),
        /// The same for single queues: one of `queues`, and what becomes of decisions about it.
        pub queue_actions: BTreeMap<PriorityId, Action> = BTreeMap::new(),
        /// Who decides which flows are told.
        pub policy: PolicyName = PolicyName::default(),
        /// The same for single queues: one of `queues`, and who decides there.
        pub queue_policies: BTreeMap<PriorityId, PolicyName> = BTreeMap::new(),
        /// Parameters of the policy, by priority and name, each with its unit: `3: { recovery: 300us }`; `show npcc` lists them.
        pub parameters: BTreeMap<PriorityId, BTreeMap<String, Written>> = BTreeMap::new(),
        /// Treatment of frames for this port that a switch before us marked CE.
        pub upstream_ce: UpstreamCe = UpstreamCe::Answer,
        /// How eagerly.
        pub mode: Mode = Mode::default(),
        /// Instead of `npcc.shallow` on this port.
        pub shallow: Option<Threshold> = None,
        /// Instead of `npcc.deep` on this port.
        pub deep: Option<Threshold> = None,
        /// Instead of `npcc.hard` on this port.
        pub hard: Option<Threshold> = None,
    }
}

impl PortNpcc {
    /// Who decides for a queue.
    #[must_use]
    pub fn policy_of(&self, queue: usize) -> PolicyName {
        let mut own = self.queue_policies.iter();
        let own = own.find(|(one, _)| one.index() == queue);
        own.map_or(self.policy, |(_, policy)| *policy)
    }
}

/// How soon the peer stops after a pause frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PeerResponse {
    /// Within the pause quanta IEEE 802.3 allows for its speed.
    #[default]
    Ieee,
    /// Within this time, as a software switch may need.
    Within(Nanos),
}

const RESPONSE: &str = "write ieee, or a time such as 50us when the peer is a software switch";

word_or!(
    PeerResponse as "PeerResponse", "a response time", RESPONSE,
    "ieee" => Ieee, Within(Nanos);
    schema: |generator| {
        "description": RESPONSE,
        "anyOf": [{ "const": "ieee" }, generator.subschema_for::<Nanos>()]
    }
);
