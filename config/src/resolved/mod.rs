//! Validated configuration: names, profiles and choices of the model resolved; the rest of the model as it is.
//!
//! Law: a value of these types that came from [`crate::parse`] satisfies all relations that the checks
//! know; no code downstream needs to check again. Resolving does not fail.

mod npcc;
mod ports;
mod qos;
mod resolve;
mod routes;

pub use npcc::Thresholds;
pub use ports::{Device, Interface, Port, RING_HEADER, ResolvedPortNpcc, Vlan, linux_link};
pub use qos::{ResolvedPriority, ResolvedQos};
pub use routes::{Neighbor, NextHop, Route};

use crate::model::{Buffer, Dpdk, Idle, Linux, Npcc, Pfc, Routing, Sandbox, Telemetry};

/// Assignment of CPU cores to threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores {
    /// CPU core of the control thread.
    pub control: usize,
    /// CPU cores of the workers; at least one, all different. One of them may be `control` when the tick is long enough.
    pub workers: Vec<usize>,
    /// CPU core of all other threads, if configured; none of `workers`.
    pub housekeeping: Option<usize>,
    /// Behaviour of a worker that has no packets to process.
    pub idle: Idle,
}

/// Configuration that can be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Startup of DPDK's environment abstraction layer (EAL).
    pub dpdk: Dpdk,
    /// Assignment of CPU cores to threads.
    pub cores: Cores,
    /// Ports in the file's order; everything else refers to them by index.
    pub ports: Vec<Port>,
    /// Static routes, one per prefix, connected ones not included.
    pub routes: Vec<Route>,
    /// Static neighbours.
    pub neighbors: Vec<Neighbor>,
    /// Capacities of the routing tables.
    pub routing: Routing,
    /// The shared packet buffer.
    pub buffer: Buffer,
    /// Priority flow control.
    pub pfc: Pfc,
    /// Proactive congestion notification.
    pub npcc: Npcc,
    /// Indices of the ports from whose packets queue pairs may be learned; all ports when none is named.
    pub trusted_ports: Vec<usize>,
    /// Linux integration: the kernel as the control plane.
    pub linux: Linux,
    /// Management sockets, metrics and the web page.
    pub telemetry: Telemetry,
    /// Sandbox mode: dropping of privileges that only startup needs.
    pub sandbox: Sandbox,
    /// User that a switch started by root becomes; `None` if none is named.
    pub user: Option<String>,
    /// Factor by which every interval is stretched and every rate reduced; finite and above 0.
    pub time_scale: f64,
}

impl Config {
    /// Returns classification and queues of the first port, for views that show one for all: the file configures every port alike.
    #[must_use]
    pub fn common_qos(&self) -> Option<&ResolvedQos> {
        self.ports.first().map(|port| &port.qos)
    }

    /// Lossless priorities of any port; bit n: priority n.
    #[must_use]
    pub fn lossless_mask(&self) -> u8 {
        let ports = self.ports.iter();
        ports.fold(0, |mask, port| mask | port.qos.lossless_mask())
    }

    /// Returns the port of this name with its index.
    #[must_use]
    pub fn port(&self, name: &str) -> Option<(usize, &Port)> {
        self.ports
            .iter()
            .enumerate()
            .find(|(_, port)| port.name == name)
    }

    /// Returns the largest IP MTU of any port in bytes.
    #[must_use]
    pub fn max_mtu(&self) -> u16 {
        self.ports.iter().map(|port| port.mtu).max().unwrap_or(0)
    }
}
