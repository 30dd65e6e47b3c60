//! Constant facts, published counters, and the state set by operators, from which the view is built.

use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};

use npcc_cnp::flow_cache::CacheShared;
use npcc_cnp::host_rules::HostRules;
use npcc_linux::netlink::handle::Handle;
use npcc_linux::netlink::interface::Interface;
use npcc_pipeline::capture::CaptureStats;
use npcc_pipeline::counters::Counters;
use npcc_pipeline::counters::LinuxStats;
use npcc_pipeline::counters::WorkerStats;
use npcc_pipeline::punt::PuntRates;
use npcc_pipeline::units::{Mac, Nanos};

use crate::apply::in_force::ConfigInForce;
use crate::manage::carrier::Carrier;
use crate::manage::pending::Pending;
use crate::wiring;
use npcc_engine::linux_io::claims::Claims;

/// Constant facts about a port.
#[derive(Debug)]
pub struct PortFacts {
    /// Name of the port.
    pub name: String,
    /// Device, as configured.
    pub device: String,
    /// MAC address.
    pub mac: Mac,
    /// Device handle.
    pub port: Arc<npcc_dpdk::Port>,
    /// Carrier of the kernel's interface of the same card, or under its packet sockets; `None` where DPDK has the card alone.
    pub carrier: Option<Mutex<Carrier>>,
    /// Kernel's messages about the interface under its packet sockets; `None` for a device whose driver reports the link.
    pub interface: Option<Mutex<Interface>>,
    /// Cores of the workers that receive from it, its owner first.
    pub workers: Vec<usize>,
}

/// Sizes of the buffer, which do not change.
#[derive(Debug, Clone, Copy, Default)]
pub struct BufferFacts {
    /// Size of the pool in wire bytes.
    pub pool: u64,
    /// Shared part of the pool, in wire bytes.
    pub shared: u64,
    /// Dynamic threshold: the share of the free shared bytes that a group may hold, in 1/256.
    pub alpha_256: u32,
    /// Headroom in wire bytes.
    pub headroom: u64,
    /// Longest turn of a worker's loop that headroom covers.
    pub turn: Nanos,
}

/// Facts about Linux, where it is integrated.
#[derive(Debug)]
pub struct LinuxFacts {
    /// Limits of the frames punted to Linux.
    pub rates: PuntRates,
    /// Counters of the thread between Linux and the workers.
    pub stats: Arc<LinuxStats>,
    /// Claims of the switch's own addresses by others.
    pub claims: Arc<Claims>,
    /// Handle of the thread that follows the kernel.
    pub kernel: Handle,
    /// Name of the network namespace; `None` if it is the one in which the switch was started.
    pub namespace: Option<String>,
}

/// Counters and statistics that the workers publish, each in the workers' order.
#[derive(Debug, Default)]
pub struct Published {
    /// Core of each worker.
    pub cores: Vec<usize>,
    /// Counters of all ports.
    pub counters: Vec<Arc<Counters>>,
    /// Capture counters.
    pub captures: Vec<Arc<CaptureStats>>,
    /// Loop statistics.
    pub stats: Vec<Arc<WorkerStats>>,
    /// Flow caches.
    pub caches: Vec<Arc<CacheShared>>,
}

/// State set by operators.
#[derive(Debug)]
pub struct Operators {
    /// Reload that waits for its commit.
    pub(super) pending: Mutex<Option<Pending>>,
    /// Rules about hosts that are in force.
    pub(super) hosts: Mutex<HostRules>,
    /// Running configuration, and the values that `set` has changed.
    pub(super) config: Mutex<ConfigInForce>,
    /// Path of the configuration file.
    pub(super) path: PathBuf,
    /// Lock that a reload holds while it reads the file and applies it.
    pub(super) reading: Mutex<()>,
    /// Number of the latest capture that a client ended.
    pub(super) ended_capture: AtomicU32,
}

impl Operators {
    /// Starts with this configuration, before any change.
    #[must_use]
    pub fn new(started: ConfigInForce, path: PathBuf) -> Operators {
        let hosts = wiring::npcc::host_rules(&started.config.npcc.hosts);
        Operators {
            pending: Mutex::default(),
            hosts: Mutex::new(hosts),
            config: Mutex::new(started),
            path,
            reading: Mutex::default(),
            ended_capture: AtomicU32::default(),
        }
    }
}
