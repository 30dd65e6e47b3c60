//! Workers and control core of a configuration, over devices of any kind.
//!
//! The appliance brings DPDK's queues and pools, sleepers and Linux with it; laws of the whole switch bring queues in memory.

use std::sync::Arc;

use anyhow::anyhow;
use npcc_cnp::control::ControlCore;
use npcc_cnp::control::settings::Settings;
use npcc_cnp::flow_cache::{CacheShared, FlowCache};
use npcc_cnp::log::DecisionLog;
use npcc_config::Config;
use npcc_pipeline::capture::{self, CaptureStats};
use npcc_pipeline::counters::ControlStats;
use npcc_pipeline::counters::Counters;
use npcc_pipeline::counters::WorkerStats;
use npcc_pipeline::datapath::{LosslessConfig, PortConfig};
use npcc_pipeline::handoff::WorkerLinks;
use npcc_pipeline::punt::FrameReceiver;
use npcc_pipeline::route::fib::FibReader;
use npcc_pipeline::units::{Nanos, PortId};
use rtrb::{Consumer, Producer};

use super::{eal, npcc, path};
use npcc_engine::control::commands::{self, ControlCommands};
use npcc_engine::control::crossing_timing::AnsweredCrossings;
use npcc_engine::control::inject::{self, Injection, Injector};
use npcc_engine::control::sources::SourceRoutes;
use npcc_engine::control::{Alarms, ControlLoop};
use npcc_engine::sleep::{ControlSleeper, WorkerSleeper};
use npcc_engine::worker::Worker;
use npcc_engine::worker::command::{self, WorkerCommand};
use npcc_engine::worker::dpdk::Dpdk;
use npcc_engine::worker::frame::Datapath;
use npcc_engine::worker::from_linux::FromLinux;
use npcc_engine::worker::io::Io;
use npcc_engine::worker::ports::{PortQueues, RemoteQueue};
use npcc_engine::worker::probe::Probe;
use npcc_engine::worker::receiving::Receiving;
use npcc_engine::worker::telemetry::Telemetry;
use npcc_engine::worker::timings::{self, Timing};

/// Inputs that all workers share.
#[derive(Debug)]
pub struct Shared<'a, C> {
    /// Configuration of the switch.
    pub config: &'a Config,
    /// Ports whose links are down.
    pub down: Vec<PortId>,
    /// Settings of each port.
    pub settings: Vec<PortConfig>,
    /// Pause thresholds and the division of the buffer.
    pub lossless: LosslessConfig,
    /// Time source.
    pub clock: C,
    /// Count of workers that may still hand frames over.
    pub receiving: Arc<Receiving>,
}

/// Parts of a single worker.
#[derive(Debug)]
pub struct WorkerParts<I: Io = Dpdk> {
    /// Reader of the routes.
    pub fib: FibReader,
    /// Channels to the other workers.
    pub links: WorkerLinks<I::Buf>,
    /// Device queues of its own ports.
    pub own: Vec<PortQueues<I>>,
    /// Receive queues of other workers' ports.
    pub remotes: Vec<RemoteQueue<I>>,
    /// Pool of the frames that it makes.
    pub pool: I::Pool,
    /// Sleeper, if it may sleep.
    pub sleeper: Option<WorkerSleeper>,
    /// Statistics of its loop.
    pub stats: Arc<WorkerStats>,
    /// Seed of its tables and of RED.
    pub seed: u64,
}

/// Peer ends of what a worker holds.
#[derive(Debug)]
pub struct WorkerPeer {
    /// Counters of all ports.
    pub counters: Arc<Counters>,
    /// Counters of its flow cache.
    pub cache: Arc<CacheShared>,
    /// Statistics of its loop.
    pub stats: Arc<WorkerStats>,
    /// Ring of the operator's commands.
    pub commands: Producer<WorkerCommand>,
    /// Ring of CNPs.
    pub injections: Producer<Injection>,
    /// Ring of timings.
    pub times: Consumer<Timing>,
    /// Ring of captured frames, and its counters.
    pub captured: (FrameReceiver, Arc<CaptureStats>),
}

/// Makes a worker of its parts, and attaches its flow cache to the control core. `probe` makes its probe; `attach` adds to its packet path,
/// and returns its end of the frames from Linux.
///
/// # Errors
/// Fails if the control core takes no more workers.
pub fn worker<P: Probe, I: Io>(
    shared: &Shared<'_, I::Clock>,
    parts: WorkerParts<I>,
    core: &mut ControlCore,
    probe: impl FnOnce(Telemetry) -> P,
    attach: impl FnOnce(&mut Datapath<I::Buf>) -> Option<FromLinux<I>>,
) -> anyhow::Result<(Worker<P, I>, WorkerPeer)> {
    let config = shared.config;
    let (cache, reader) = FlowCache::new(
        config.npcc.flows.size(),
        npcc::ports(config),
        npcc::RING,
        parts.seed,
    );
    let cache_counters = reader.shared();
    if !core.attach(reader) {
        return Err(anyhow!("the control core takes no more workers"));
    }
    let pool = path::pool(config);
    let (capture, frames, captures) = capture::ends(parts.links.worker());
    let mut path = Datapath::new(shared.settings.clone(), pool, parts.fib, cache, parts.seed)
        .with_vectors(npcc_simd::detected())
        .with_moved_hosts(Arc::clone(core.moved_hosts()))
        .with_lossless(shared.lossless.clone())
        .with_links(parts.links)
        .with_capture(capture);
    let linux = attach(&mut path);
    for port in &shared.down {
        path.link_down(*port, Nanos::ZERO);
    }
    let (producer, commands) = command::ring();
    let (to_worker, injections) = inject::ring();
    let (times, reported) = timings::ring();
    let peer = WorkerPeer {
        counters: Arc::clone(path.counters()),
        cache: cache_counters,
        stats: Arc::clone(&parts.stats),
        commands: producer,
        injections: to_worker,
        times: reported,
        captured: (frames, captures),
    };
    let worker = Worker {
        path,
        ports: parts.own,
        remotes: parts.remotes,
        receiving: Arc::clone(&shared.receiving),
        injections,
        linux,
        commands,
        mempool: parts.pool,
        clock: shared.clock.clone(),
        stats: parts.stats,
        probe: probe(Telemetry::new(times)),
        sleeper: parts.sleeper,
        last: Nanos::ZERO,
    };
    Ok((worker, peer))
}

/// Makes the control core. `sources` locates the sources of packets; `logs` take its decisions.
#[must_use]
pub fn control_core(
    config: &Config,
    settings: Settings,
    (sources, logs): (FibReader, [DecisionLog; 2]),
    seed: u64,
) -> ControlCore {
    let config = npcc::control_config(config, settings, seed);
    let mut core = ControlCore::logging(&config, logs);
    core.know_routes(Box::new(SourceRoutes(sources)));
    core
}

/// Peer ends of the workers that the control core has, in the workers' order.
#[derive(Debug)]
pub struct ControlPeers {
    /// Counters of each worker.
    pub counters: Vec<Arc<Counters>>,
    /// Rings of CNPs to each worker.
    pub injections: Vec<Producer<Injection>>,
    /// Index of the worker that owns each port.
    pub owners: Vec<usize>,
}

/// Makes the control core's loop, and the operators' end of its commands. `routes` lead CNPs to their senders.
#[must_use]
pub fn control<C>(
    config: &Config,
    core: ControlCore,
    peers: ControlPeers,
    (routes, clock): (FibReader, C),
    sleeper: Option<ControlSleeper>,
) -> (ControlLoop<C>, ControlCommands) {
    let (commands, inbox) = commands::ring();
    let (header, priority) = npcc::cnp_header(config);
    let control = ControlLoop {
        injector: Injector::new(routes, header, priority, peers.injections, peers.owners),
        crossings: AnsweredCrossings::default(),
        alarms: Alarms::new(&peers.counters, npcc::ports(config)),
        counters: peers.counters,
        inbox,
        clock,
        stats: Arc::new(ControlStats::default()),
        shared_core_scale: eal::shares(config).then_some(config.time_scale),
        sleeper,
        next: Nanos::ZERO,
        core,
    };
    (control, commands)
}
