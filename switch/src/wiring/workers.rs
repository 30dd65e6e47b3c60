//! Assignment of device queues to workers.
//!
//! A port's transmit queue, its queues in the pipeline and its first receive queue belong to its owner; further receive queues, where the
//! device spreads what it receives, belong to the workers after the owner, in turn.

use std::sync::Arc;

use npcc_config::model::Idle;
use npcc_config::{Config, resolved};
use npcc_dpdk::{Port, RxInterrupt};
use npcc_pipeline::counters::WorkerStats;
use npcc_pipeline::handoff::{HANDOFF_RING, WorkerPlan};
use npcc_pipeline::units::{PortId, WorkerId};

use super::ports::OpenPort;
use npcc_engine::sleep::{ControlSleeper, Wakers, WorkerSleeper};
use npcc_engine::worker::ports::{PortQueues, RemoteQueue, RxPoller};

/// Queues of one worker.
#[derive(Debug, Default)]
pub struct Queues {
    /// Queues of its own ports.
    pub own: Vec<PortQueues>,
    /// Receive queues of other workers' ports.
    pub remotes: Vec<RemoteQueue>,
    /// NUMA node of its first port, if it has one.
    pub socket: Option<u32>,
    /// Receive interrupts of its devices.
    pub interrupts: Vec<Arc<RxInterrupt>>,
    /// True if one of its devices has no receive interrupt, so that it must be polled.
    pub polls: bool,
}

impl Queues {
    fn add_interrupts(&mut self, interrupts: &[Arc<RxInterrupt>]) {
        self.interrupts.extend(interrupts.iter().map(Arc::clone));
        self.polls |= interrupts.is_empty();
    }
}

/// Returns the owner of each port, and the number of workers that receive from it, which is given in the order of the ports.
#[must_use]
pub fn assignment(config: &Config, receivers: impl Iterator<Item = usize>) -> WorkerPlan {
    let id = |worker: usize| WorkerId(u8::try_from(worker).unwrap_or(u8::MAX));
    WorkerPlan {
        // The configuration limits the number of workers.
        workers: id(config.cores.workers.len()).0,
        owners: config.ports.iter().map(|port| id(port.worker)).collect(),
        receivers: receivers
            .map(|count| u8::try_from(count).unwrap_or(u8::MAX))
            .collect(),
        ring: HANDOFF_RING,
    }
}

/// Returns the cores of the workers that receive from a port, its owner first.
#[must_use]
pub fn receivers(config: &Config, resolved: &resolved::Port, port: &OpenPort) -> Vec<usize> {
    let workers = config.cores.workers.iter().cycle().skip(resolved.worker);
    workers.take(1 + port.more_rx.len()).copied().collect()
}

/// Distributes the devices' queues to the workers.
#[must_use]
pub fn queues(config: &Config, ports: Vec<OpenPort>) -> Vec<Queues> {
    let mut all: Vec<Queues> = config
        .cores
        .workers
        .iter()
        .map(|_| Queues::default())
        .collect();
    for ((resolved, port), id) in config.ports.iter().zip(ports).zip((0u8..).map(PortId)) {
        let (stale, partial) = (has_wire(&port.port), has_partial_checksums(&port.port));
        let source = |rx| RxPoller::new(rx, stale, partial);
        for (rx, after) in port.more_rx.into_iter().zip(1..) {
            let worker = (resolved.worker + after) % config.cores.workers.len().max(1);
            if let Some(queues) = all.get_mut(worker) {
                queues.remotes.push(RemoteQueue { id, rx: source(rx) });
                queues.add_interrupts(&port.interrupts);
            }
        }
        if let Some(queues) = all.get_mut(resolved.worker) {
            queues.socket = queues.socket.or_else(|| port.port.socket());
            queues.add_interrupts(&port.interrupts);
            let rx = source(port.rx);
            queues.own.push(PortQueues::new(id, rx, port.tx));
        }
    }
    all
}

/// Returns true if a port may receive from outside at any time. A capture starts when it is opened, and a ring's other end is in this
/// process.
fn has_wire(port: &Port) -> bool {
    !["net_pcap", "net_ring", "net_null"].contains(&port.driver_name())
}

/// Returns true if a port may receive checksums that a kernel left to a card: drivers over a kernel interface do not report which.
fn has_partial_checksums(port: &Port) -> bool {
    ["net_af_packet", "net_af_xdp"].contains(&port.driver_name())
}

/// Returns the ports that cannot wake a worker, if workers may sleep.
pub fn without_interrupt<'a>(
    config: &'a Config,
    ports: &'a [OpenPort],
) -> impl Iterator<Item = &'a str> {
    let sleeps = config.cores.idle == Idle::Adaptive;
    let all = config.ports.iter().zip(ports);
    all.filter(move |(_, port)| sleeps && port.interrupts.is_empty())
        .map(|(resolved, _)| resolved.name.as_str())
}

/// Sleep state of workers and control core.
#[derive(Debug, Default)]
pub struct Sleepers {
    /// Sleeper of each worker, if it may sleep.
    pub workers: Vec<Option<WorkerSleeper>>,
    /// Sleeper of the control core.
    pub control: Option<ControlSleeper>,
    /// Wake-up descriptors of all threads that sleep.
    pub wakers: Option<Arc<Wakers>>,
}

/// Makes sleepers for all threads if the configuration lets them sleep.
///
/// # Errors
/// Fails if the system refuses descriptors.
pub fn sleepers(
    config: &Config,
    queues: &[Queues],
    stats: &[Arc<WorkerStats>],
) -> nix::Result<Sleepers> {
    if config.cores.idle == Idle::Poll {
        let workers = queues.iter().map(|_| None).collect();
        return Ok(Sleepers {
            workers,
            ..Sleepers::default()
        });
    }
    let wakers = Wakers::new(queues.len())?;
    let sleeper = |(me, queues): (usize, &Queues)| {
        let others = stats.iter().enumerate().filter(|(other, _)| *other != me);
        let others = others.map(|(_, stats)| Arc::clone(stats)).collect();
        let interrupts = (queues.interrupts.clone(), queues.polls);
        WorkerSleeper::new(Arc::clone(&wakers), me, interrupts, others).map(Some)
    };
    let workers: nix::Result<_> = queues.iter().enumerate().map(sleeper).collect();
    Ok(Sleepers {
        workers: workers?,
        control: Some(ControlSleeper::new(Arc::clone(&wakers))?),
        wakers: Some(wakers),
    })
}
