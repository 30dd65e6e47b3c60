//! Routes, neighbours, and the synchronisation of both with the kernel.

use std::net::IpAddr;

use npcc_pipeline::route::nexthop::{Adjacency, Kind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Row of `show routes --json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Route {
    /// Destination prefix.
    pub prefix: String,
    /// State of the route: `installed`; `left-out`: the switch does not follow it; `refused`: there was no room; `differs`, in `--diff` only:
    /// the switch has not what the kernel has.
    pub state: String,
    /// Reason why it is left out, or followed in part only; what differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Next hops of the route, and what happens to frames there.
    pub next_hops: Vec<NextHop>,
    /// Origin of the kernel's route as in `ip route`, such as `bgp` or `static`; absent without a route in the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Metric of the kernel's route; the lower, the better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<u32>,
}

/// Next hop of a route.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NextHop {
    /// Kind: `forward`, `unresolved`, `local`, `blackhole`, `unreachable`, `prohibited` or `none`.
    pub kind: String,
    /// Egress port; empty where frames are dropped.
    pub port: String,
    /// VLAN on the port, 0 without a tag.
    pub vlan: u16,
    /// Gateway address; absent where the destination itself is the next hop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// MAC address of the next hop, where frames are forwarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Weight against the route's other next hops.
    pub weight: u16,
    /// Largest IP packet in bytes that the route allows, where it says one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
}

impl NextHop {
    /// Converts an adjacency; `port` is the name of its port.
    #[must_use]
    pub fn of(path: &Adjacency, port: &str) -> NextHop {
        let leads = matches!(path.kind, Kind::Forward | Kind::Unresolved | Kind::Local);
        NextHop {
            kind: path.kind.name().to_owned(),
            port: if leads { port } else { "" }.to_owned(),
            vlan: path.vlan,
            gateway: None,
            mac: (path.kind == Kind::Forward).then(|| path.dst.to_string()),
            weight: 1,
            mtu: Some(path.mtu).filter(|mtu| *mtu > 0),
        }
    }
}

/// Row of `show neighbors --json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Neighbor {
    /// IP address of the neighbour.
    pub address: String,
    /// Port the neighbour is behind.
    pub port: String,
    /// VLAN on the port, 0 without a tag.
    pub vlan: u16,
    /// MAC address of the neighbour, while the kernel uses one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Kernel's state of the neighbour, such as `reachable`, or `static` for one of the configuration.
    pub state: String,
    /// True if the kernel was asked to keep the neighbour resolved.
    pub kept: bool,
    /// Time for which it has, or had, the MAC address, in s; absent if the kernel never had one, and for those of the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_s: Option<u64>,
    /// Number of times that the MAC address changed.
    pub moves: u32,
    /// Reason why no frame is sent to the MAC address: `broadcast`, `group`, `zero`, or `own`, the address of a port of the switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Contents of `show linux --json`: how the kernel is followed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Linux {
    /// Version of the program.
    pub version: String,
    /// True if Linux is integrated; if not, `show linux` prints a drain and nothing else.
    pub integrated: bool,
    /// Name of the network namespace; absent where it is that of the process that started the switch.
    pub namespace: Option<String>,
    /// Time in seconds since the switch began to drain its traffic (`drain`); absent when it does not.
    pub draining_s: Option<u64>,
    /// IPv4 prefixes in the kernel.
    pub kernel_ipv4: usize,
    /// IPv6 prefixes in the kernel.
    pub kernel_ipv6: usize,
    /// Prefixes of these that nothing is forwarded by: of the loopback, groups and link-local addresses, at the last comparison.
    pub aside: usize,
    /// Prefixes the switch has, attached hosts included.
    pub installed: usize,
    /// Prefixes of these that are attached hosts, without a route in the kernel, at the last comparison.
    pub hosts: usize,
    /// Next-hop groups the switch has.
    pub groups: usize,
    /// Prefixes without a next hop behind a port of ours.
    pub left_out: usize,
    /// Prefixes there was no room for.
    pub refused: usize,
    /// Size of the netlink receive buffer: octets of messages that may wait to be read.
    pub receive_buffer: usize,
    /// Messages read.
    pub messages: u64,
    /// Messages that lacked a mandatory part.
    pub malformed: u64,
    /// Number of times the kernel had to discard messages.
    pub overruns: u64,
    /// Number of comparisons with the kernel.
    pub comparisons: u64,
    /// Differences that a comparison found though no change was in progress: faults.
    pub faults: u64,
    /// Number of times a neighbour's MAC address was refused as no host's: a group's, broadcast, zero, or of a port of the switch.
    pub refused_neighbors: u64,
    /// Number of packets whose way Linux was asked for.
    pub lookups: u64,
    /// Number of these that Linux would send another way than the switch, in two rounds.
    pub lookups_differing: u64,
    /// Duration of the last comparison, in us.
    pub compared_us: u64,
    /// Differences the last comparison found.
    pub differences: usize,
}

impl Linux {
    /// Calls `each` with the name and the value of each counter.
    pub fn each_count(&mut self, mut each: impl FnMut(&'static str, &mut u64)) {
        each("messages", &mut self.messages);
        each("malformed", &mut self.malformed);
        each("overruns", &mut self.overruns);
        each("comparisons", &mut self.comparisons);
        each("faults", &mut self.faults);
        each("refused_neighbors", &mut self.refused_neighbors);
        each("lookups", &mut self.lookups);
        each("lookups_differing", &mut self.lookups_differing);
    }
}
