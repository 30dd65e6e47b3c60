//! The validated configuration: what of the model is a name, a profile or a choice, resolved; the rest of the model as it is.
//!
//! Law: a value of these types that came from [`crate::parse`] holds all relations that the checks
//! know; nobody downstream needs to check again. Resolving does not fail.

mod npcc;
mod ports;
mod qos;
mod resolve;
mod routes;

pub use npcc::Thresholds;
pub use ports::{Device, Interface, Port, PortNpcc, Vlan, linux_link};
pub use qos::{EffectiveQos, PriorityPlan};
pub use routes::{Neighbor, NextHop, Route};

use crate::model::{Buffer, Dpdk, Idle, Linux, Npcc, Pfc, Routing, Sandbox, Telemetry};

/// Which cores do what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores {
    /// The core of the control thread.
    pub control: usize,
    /// The cores that move packets; at least one, all different. One of them may be `control` when the tick is wide.
    pub workers: Vec<usize>,
    /// The core of all other threads, if one is written; none of `workers`.
    pub housekeeping: Option<usize>,
    /// What a worker does when there is nothing to do.
    pub idle: Idle,
}

/// A configuration that can be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// How DPDK's environment layer starts.
    pub dpdk: Dpdk,
    /// Which cores do what.
    pub cores: Cores,
    /// The ports, in the file's order; everything else refers to them by index.
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
    /// Indices of the ports whose packets may teach queue pairs; all ports when none is named.
    pub trusted_ports: Vec<usize>,
    /// Linux as the control plane.
    pub linux: Linux,
    /// Management socket and metrics.
    pub telemetry: Telemetry,
    /// Whether what only the start needed is given away.
    pub sandbox: Sandbox,
    /// Dilates every interval and rate; finite and above 0.
    pub time_scale: f64,
}

impl Config {
    /// Classification and queues of a port, for what shows one of all: the file says the same for every port.
    #[must_use]
    pub fn common_qos(&self) -> Option<&EffectiveQos> {
        self.ports.first().map(|port| &port.qos)
    }

    /// Bit n: priority n is lossless on a port.
    #[must_use]
    pub fn lossless_mask(&self) -> u8 {
        let ports = self.ports.iter();
        ports.fold(0, |mask, port| mask | port.qos.lossless_mask())
    }

    /// The port of this name with its index.
    #[must_use]
    pub fn port(&self, name: &str) -> Option<(usize, &Port)> {
        self.ports
            .iter()
            .enumerate()
            .find(|(_, port)| port.name == name)
    }

    /// The largest IP MTU of any port in bytes.
    #[must_use]
    pub fn max_mtu(&self) -> u16 {
        self.ports.iter().map(|port| port.mtu).max().unwrap_or(0)
    }
}
