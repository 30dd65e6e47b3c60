//! `ports:` the ports and their interfaces.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cores::Core;
use super::npcc::{Action, PolicyName, UpstreamCe};
use super::{Descriptors, Mtu, PriorityId, VlanId};
use crate::units::{Auto, BitRate, Interface, Length, Mac, Nanos, Threshold, Written, word_or};

/// Port: a device, its interfaces, and its PFC and NPCC settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Name of the port in the rest of the file and in commands: 1 to 15 of `a-z0-9_-`.
    #[schemars(regex(pattern = r"^[a-z0-9_-]{1,15}$"))]
    pub name: String,
    /// PCI address such as `0000:3b:00.0`, or virtual device such as `net_af_packet0,iface=eth1`.
    pub device: String,
    /// MAC address; default the device's.
    #[serde(default)]
    pub mac: Option<Mac>,
    /// IP MTU in bytes.
    #[serde(default = "default_mtu")]
    pub mtu: Mtu,
    /// IP addresses of the untagged interface.
    #[serde(default)]
    pub addresses: Vec<Interface>,
    /// Tagged (802.1Q) interfaces.
    #[serde(default)]
    pub vlans: Vec<Vlan>,
    /// Core of the worker that owns the port's queues and its pause state, one of `cores.workers`; default the worker with the
    /// fewest ports, in turn.
    #[serde(default)]
    pub worker: Option<Core>,
    /// Egress rate of the port, a shaper; default 99.9 % of the link's speed, so that frames queue in the switch and not in the device (a virtual device is not shaped). Thresholds given as times follow it.
    #[serde(default)]
    pub speed: Option<BitRate>,
    /// Speed of the link itself, used to compute pause quanta and headroom; `auto` reads it from the device (for a virtual device it is
    /// `speed`, or 10G).
    #[serde(default)]
    pub link_speed: Auto<BitRate>,
    /// Number of descriptors of each receive ring; `auto` holds what arrives while a worker is away for `buffer.loop_time`.
    #[serde(default)]
    pub rx_descriptors: Auto<Descriptors>,
    /// Maximum that may wait in the device's transmit ring, beyond the control of the switch's queues; default the
    /// larger of two full frames and 2us of the link.
    #[serde(default)]
    pub tx_outstanding: Option<Threshold>,
    /// Cable length to the peer; headroom is computed from it.
    #[serde(default = "default_cable")]
    pub cable: Length,
    /// Time in which the peer stops sending after a pause frame.
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

/// Tagged (802.1Q) interface of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Vlan {
    /// VLAN ID.
    pub id: VlanId,
    /// IP addresses of the VLAN interface.
    #[serde(default)]
    pub addresses: Vec<Interface>,
}

/// PFC operation of a port: sending and honouring priority pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortPfc {
    /// Enable what the switch supports on this device.
    #[default]
    Auto,
    /// Send and honour pause frames.
    Send,
    /// Honour pause frames, but send none.
    Honour,
    /// Neither send nor honour pause frames.
    Off,
}

npcc_pipeline::defaults! {
    /// Proactive congestion notification for the queues of a port.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct PortNpcc {
        /// Enable proactive congestion notification on this port.
        pub enable: bool = true,
        /// Priorities whose egress queues are watched.
        pub queues: Vec<PriorityId> = vec![PriorityId::fixed(3)],
        /// Transmission of CNPs for the queues of this port; `npcc.action` can restrict it further.
        pub action: Action = Action::default(),
        /// Transmission of CNPs for single queues, by priority; each must be one of `queues`.
        pub queue_actions: BTreeMap<PriorityId, Action> = BTreeMap::new(),
        /// Policy that decides when, and how many, flows are signalled.
        pub policy: PolicyName = PolicyName::default(),
        /// Policy for single queues, by priority; each must be one of `queues`.
        pub queue_policies: BTreeMap<PriorityId, PolicyName> = BTreeMap::new(),
        /// Parameters of the policy, by priority and name, each with its unit: `3: { set_point: 30us }`; `show npcc` lists them.
        pub parameters: BTreeMap<PriorityId, BTreeMap<String, Written>> = BTreeMap::new(),
        /// Treatment of frames to this port that an upstream switch has marked CE.
        pub upstream_ce: UpstreamCe = UpstreamCe::Answer,
        /// Overrides `npcc.shallow` on this port.
        pub shallow: Option<Threshold> = None,
        /// Overrides `npcc.deep` on this port.
        pub deep: Option<Threshold> = None,
    }
}

impl PortNpcc {
    /// Returns the policy of a queue.
    #[must_use]
    pub fn policy_of(&self, queue: usize) -> PolicyName {
        let mut own = self.queue_policies.iter();
        let own = own.find(|(one, _)| one.index() == queue);
        own.map_or(self.policy, |(_, policy)| *policy)
    }
}

/// Time in which the peer stops sending after a pause frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PeerResponse {
    /// Within the pause quanta that IEEE 802.3 allows for its speed.
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
