//! Construction of the workers, and the peer ends of their rings and counters.

use std::sync::Arc;

use anyhow::Context;
use npcc_cnp::control::ControlCore;
use npcc_config::Config;
use npcc_pipeline::counters::WorkerStats;
use npcc_pipeline::handoff::WorkerLinks;
use npcc_pipeline::route::fib::FibReader;
use rtrb::{Consumer, Producer};

use super::linux::LinuxSide;
use super::storms;
use crate::manage::capture::WorkerCaptures;
use crate::manage::view::Published;
use crate::saved::storms::Storm;
use crate::wiring::assembly::{self, WorkerParts};
use crate::wiring::workers::{Queues, Sleepers};
use crate::wiring::{self, pools::Pools, ports::OpenPort};
use npcc_engine::clock::Clock;
use npcc_engine::control::inject::Injection;
use npcc_engine::worker::Worker;
use npcc_engine::worker::command::WorkerCommand;
use npcc_engine::worker::frame::Frame;
use npcc_engine::worker::probe::Probe;
use npcc_engine::worker::telemetry::Telemetry;
use npcc_engine::worker::timings::Timing;

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
        .clone_from(&shared.all.config.cores.workers);
    let workers = parts
        .into_iter()
        .map(|parts| peers.worker(shared, parts, core, probe))
        .collect::<anyhow::Result<_>>()?;
    Ok((workers, peers))
}

/// Inputs that all workers share.
pub(super) struct Shared<'a> {
    pub(super) all: assembly::Shared<'a, Clock>,
    /// Pause storms that the previous process left.
    pub(super) storms: Vec<Storm>,
}

/// Returns each worker's parts, in the order of the cores.
pub(super) fn parts(
    config: &Config,
    (fibs, links): (Vec<FibReader>, Vec<WorkerLinks<Frame>>),
    (ports, pools): (Vec<OpenPort>, &Pools),
    seed: u64,
) -> anyhow::Result<(Vec<WorkerParts>, Sleepers)> {
    let queues = wiring::workers::queues(config, ports);
    let stats: Vec<Arc<WorkerStats>> = queues.iter().map(|_| Arc::default()).collect();
    let mut all = wiring::workers::sleepers(config, &queues, &stats).context("cannot sleep")?;
    let (mut links, mut queues) = (links.into_iter(), queues.into_iter());
    let mut sleepers = std::mem::take(&mut all.workers).into_iter();
    let mut stats = stats.into_iter();
    let one = |(fib, seed)| {
        let Queues {
            own,
            remotes,
            socket,
            ..
        } = queues.next()?;
        Some(WorkerParts {
            fib,
            links: links.next()?,
            own,
            remotes,
            pool: pools.near(socket).clone(),
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
        let (seed, linux) = (parts.seed, self.linux.as_mut());
        let (worker, peer) = assembly::worker(&shared.all, parts, core, probe, |path| {
            storms::resume(path, &shared.storms, (shared.all.config, &shared.all.clock));
            linux.map(|side| side.worker(path, seed))
        })?;
        let published = &mut self.published;
        let (frames, captures) = peer.captured;
        published.caches.push(peer.cache);
        published.counters.push(peer.counters);
        published.stats.push(peer.stats);
        published.captures.push(Arc::clone(&captures));
        self.commands.push(peer.commands);
        self.injections.push(peer.injections);
        self.times.push(peer.times);
        self.captures.push(WorkerCaptures {
            frames,
            stats: captures,
        });
        Ok(worker)
    }
}
