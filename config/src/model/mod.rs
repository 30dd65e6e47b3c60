//! Configuration file as serde sees it, one file for each section. Field names are a contract with operators.
//!
//! Every key has a default except a port's `name` and `device` and the keys that identify a list's entry.
//! No type here relates one field to another; the checks do.

mod buffer;
mod cores;
mod dpdk;
mod linux;
mod neighbors;
mod npcc;
mod pfc;
mod ports;
mod qos;
mod routes;
mod routing;
mod sandbox;
mod telemetry;
mod unresponsive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use buffer::{Buffer, MbufSize};
pub use cores::{Core, Cores, Idle};
pub use dpdk::{Dpdk, Hugepages};
pub use linux::{FrameRate, Linux, Punt};
pub use neighbors::Neighbor;
pub use npcc::{
    Action, Cnp, EcnMode, Evidence, Gate, Hosts, Npcc, PolicyName, SourceCheck, UpstreamCe,
};
pub use pfc::{Pfc, PfcBackend, Watchdog, WatchdogAction};
pub use ports::{PeerResponse, Port, PortNpcc, PortPfc, Vlan};
pub use qos::{Ecn, EcnChoice, Priority, Profile, Qos, Scheduler, Trust, Wred};
pub use routes::{Route, Via};
pub use routing::{EcmpSeed, Routing};
pub use sandbox::Sandbox;
pub use telemetry::{DEFAULT_SOCKET, Telemetry, read_only_beside};
pub use unresponsive::{MovedQueue, Unresponsive};

use crate::units::Ranged;

/// Priority (traffic class), 0 to 7; each has its own queue on every port.
pub type PriorityId = Ranged<0, 7>;
/// DSCP value, 0 to 63.
pub type Dscp = Ranged<0, 63>;
/// VLAN ID, 1 to 4094.
pub type VlanId = Ranged<1, 4094>;
/// IP MTU in bytes, 576 to 9198: at the maximum, a frame of 9216 with Ethernet header and one tag.
pub type Mtu = Ranged<576, 9198>;
/// Number of descriptors of a device's ring, 64 to 32,768.
pub type Descriptors = Ranged<64, 32_768>;

npcc_pipeline::defaults! {
    /// Configuration of the switch: the whole file.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    #[schemars(title = "npcc-switch")]
    pub struct ConfigFile {
        /// Version of the configuration format: 1.
        pub version: u32 = 1,
        /// Startup of DPDK's environment abstraction layer (EAL).
        pub dpdk: Dpdk = Dpdk::default(),
        /// Assignment of CPU cores to threads.
        pub cores: Cores = Cores::default(),
        /// Ports of the switch.
        pub ports: Vec<Port> = Vec::new(),
        /// Static routes.
        pub routes: Vec<Route> = Vec::new(),
        /// Static neighbours.
        pub neighbors: Vec<Neighbor> = Vec::new(),
        /// Sizes of the routing tables.
        pub routing: Routing = Routing::default(),
        /// Classification, queues, scheduling and ECN.
        pub qos: Qos = Qos::default(),
        /// The shared packet buffer.
        pub buffer: Buffer = Buffer::default(),
        /// Priority flow control.
        pub pfc: Pfc = Pfc::default(),
        /// Proactive congestion notification.
        pub npcc: Npcc = Npcc::default(),
        /// Linux integration: the kernel as the control plane.
        pub linux: Linux = Linux::default(),
        /// Management sockets, metrics and the web page.
        pub telemetry: Telemetry = Telemetry::default(),
        /// Drop privileges that only startup needs: system calls, capabilities, files.
        pub sandbox: Sandbox = Sandbox::default(),
        /// System user that a switch started by root becomes once its startup is complete; `root` to remain root. The default is
        /// `npcc-switch` on a host that has this user.
        pub user: Option<String> = None,
        /// Factor by which every interval is stretched and every rate reduced, for real-time demonstrations on a busy machine.
        #[schemars(range(min = 0.001, max = 1_000_000.0))]
        pub time_scale: f64 = 1.0,
    }
}
