//! Construction of the workers, and the peer ends of their rings and counters.

use std::sync::Arc;

use anyhow::{Context, anyhow};
use npcc_cnp::control::ControlCore;
use npcc_cnp::flow_cache::FlowCache;
use npcc_config::Config;
use npcc_pipeline::capture;
use npcc_pipeline::datapath::{LosslessConfig, PortConfig};
use npcc_pipeline::handoff::WorkerLinks;
use npcc_pipeline::route::fib::FibReader;
use npcc_pipeline::units::{Nanos, PortId};
use rtrb::{Consumer, Producer};

use super::linux::LinuxSide;
use super::storms;
use crate::clock::Clock;
use crate::control::inject::{self, Injection};
use crate::manage::capture::WorkerCaptures;
use crate::manage::view::Published;
use crate::saved::storms::Storm;
use crate::sleep::WorkerSleeper;
use crate::wiring::workers::{Queues, Sleepers};
use crate::wiring::{self, pools::Pools, ports::OpenPort};
use crate::worker::Worker;
use crate::worker::command::{self, WorkerCommand};
use crate::worker::frame::{Datapath, Frame};
use crate::worker::probe::Probe;
use crate::worker::receiving::Receiving;
use crate::worker::stats::WorkerStats;
use crate::worker::telemetry::Telemetry;
use crate::worker::timings::{self, Timing};

/// Makes all workers, and keeps the peer ends of what they hold.
pub(super) fn workers<P: Probe>(
    shared: &Shared<'_>,
    parts: Vec<WorkerParts>,
    linux: Option<LinuxSide>,
    (core, probe): (&mut ControlCore, &mut impl FnMut(Telemetry) -> P),
) -> anyhow::Result<(Vec<Worker<P>>, WorkerPeers)> {
    let mut peers = WorkerPeers {
        linux,
        ..WorkerPeers::default()
    };
    peers
        .published
        .cores
        .clone_from(&shared.config.cores.workers);
    let workers = parts
        .into_iter()
        .map(|parts| peers.worker(shared, parts, core, probe))
        .collect::<anyhow::Result<_>>()?;
    Ok((workers, peers))
}

/// Inputs that all workers share.
pub(super) struct Shared<'a> {
    pub(super) config: &'a Config,
    /// Ports whose links are down.
    pub(super) down: Vec<PortId>,
    /// Pause storms that the previous process left.
    pub(super) storms: Vec<Storm>,
    pub(super) settings: Vec<PortConfig>,
    pub(super) lossless: LosslessConfig,
    pub(super) pools: &'a Pools,
    pub(super) clock: Clock,
    pub(super) receiving: Arc<Receiving>,
}

/// Parts of a single worker.
pub(super) struct WorkerParts {
    fib: FibReader,
    links: WorkerLinks<Frame>,
    queues: Queues,
    sleeper: Option<WorkerSleeper>,
    stats: Arc<WorkerStats>,
    seed: u64,
}

/// Returns each worker's parts, in the order of the cores.
pub(super) fn parts(
    config: &Config,
    (fibs, links): (Vec<FibReader>, Vec<WorkerLinks<Frame>>),
    ports: Vec<OpenPort>,
    seed: u64,
) -> anyhow::Result<(Vec<WorkerParts>, Sleepers)> {
    let queues = wiring::workers::queues(config, ports);
    let stats: Vec<Arc<WorkerStats>> = queues.iter().map(|_| Arc::default()).collect();
    let mut all = wiring::workers::sleepers(config, &queues, &stats).context("cannot sleep")?;
    let (mut links, mut queues) = (links.into_iter(), queues.into_iter());
    let mut sleepers = std::mem::take(&mut all.workers).into_iter();
    let mut stats = stats.into_iter();
    let one = |(fib, seed)| {
        Some(WorkerParts {
            fib,
            links: links.next()?,
            queues: queues.next()?,
            sleeper: sleepers.next()?,
            stats: stats.next()?,
            seed,
        })
    };
    let parts = fibs.into_iter().zip(seed..).map_while(one).collect();
    Ok((parts, all))
}

/// Peer ends of what the workers hold, each in the workers' order.
#[derive(Default)]
pub(super) struct WorkerPeers {
    pub(super) published: Published,
    pub(super) commands: Vec<Producer<WorkerCommand>>,
    pub(super) injections: Vec<Producer<Injection>>,
    pub(super) times: Vec<Consumer<Timing>>,
    pub(super) captures: Vec<WorkerCaptures>,
    /// Linux integration, which gives each worker its share; `None` where Linux is not integrated.
    pub(super) linux: Option<LinuxSide>,
}

impl WorkerPeers {
    /// Makes a worker of its parts, and keeps the peer ends of what it holds.
    fn worker<P: Probe>(
        &mut self,
        shared: &Shared<'_>,
        parts: WorkerParts,
        core: &mut ControlCore,
        probe: &mut impl FnMut(Telemetry) -> P,
    ) -> anyhow::Result<Worker<P>> {
        let config = shared.config;
        let (cache, reader) = FlowCache::new(
            config.npcc.flows.size(),
            wiring::npcc::ports(config),
            wiring::npcc::RING,
            parts.seed,
        );
        self.published.caches.push(reader.shared());
        if !core.attach(reader) {
            return Err(anyhow!("the control core takes no more workers"));
        }
        let pool = wiring::path::pool(config);
        let (capture, frames, captures) = capture::ends(parts.links.worker());
        let mut path = Datapath::new(shared.settings.clone(), pool, parts.fib, cache, parts.seed)
            .with_vectors(npcc_simd::detected())
            .with_lossless(shared.lossless.clone())
            .with_links(parts.links)
            .with_capture(capture);
        storms::resume(&mut path, &shared.storms, (config, &shared.clock));
        for port in &shared.down {
            path.link_down(*port, Nanos::ZERO);
        }
        let (producer, commands) = command::ring();
        let (to_worker, injections) = inject::ring();
        let (times, reported) = timings::ring();
        let linux = self.linux.as_mut();
        let linux = linux.map(|side| side.worker(&mut path, parts.seed));
        let published = &mut self.published;
        published.counters.push(Arc::clone(path.counters()));
        published.stats.push(Arc::clone(&parts.stats));
        published.captures.push(Arc::clone(&captures));
        self.commands.push(producer);
        self.injections.push(to_worker);
        self.times.push(reported);
        self.captures.push(WorkerCaptures {
            frames,
            stats: captures,
        });
        Ok(Worker {
            path,
            ports: parts.queues.own,
            remotes: parts.queues.remotes,
            receiving: Arc::clone(&shared.receiving),
            injections,
            linux,
            commands,
            mempool: shared.pools.near(parts.queues.socket).clone(),
            clock: shared.clock,
            stats: parts.stats,
            probe: probe(Telemetry::new(times)),
            sleeper: parts.sleeper,
            last: Nanos::ZERO,
        })
    }
}
