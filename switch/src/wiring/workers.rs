//! Which worker has which queues.
//!
//! A port's transmit queue, its queues in the pipeline and its first receive queue are its owner's; further receive queues,
//! where the device spreads what it receives, are those of the workers after the owner, in turn.

use npcc_config::{Config, plan};
use npcc_pipeline::cross::{CROSSING_RING, Seating};
use npcc_pipeline::units::{PortId, WorkerId};

use super::ports::OpenPort;
use crate::worker::{GuestQueue, PortQueues};

/// One worker's queues.
#[derive(Debug, Default)]
pub struct Queues {
    /// Of its own ports.
    pub own: Vec<PortQueues>,
    /// Receive queues of others' ports.
    pub guests: Vec<GuestQueue>,
    /// NUMA node of its first port, if it has one.
    pub socket: Option<u32>,
}

/// Who owns and who receives.
#[must_use]
pub fn seating(config: &Config, ports: &[OpenPort]) -> Seating {
    let id = |worker: usize| WorkerId(u8::try_from(worker).unwrap_or(u8::MAX));
    let receivers = |port: &OpenPort| u8::try_from(1 + port.more_rx.len()).unwrap_or(u8::MAX);
    Seating {
        // The configuration bounds their number.
        workers: id(config.cores.workers.len()).0,
        owners: config.ports.iter().map(|port| id(port.worker)).collect(),
        receivers: ports.iter().map(receivers).collect(),
        ring: CROSSING_RING,
    }
}

/// Cores of the workers that receive from a port, its owner first.
#[must_use]
pub fn receivers(config: &Config, plan: &plan::Port, port: &OpenPort) -> Vec<usize> {
    let workers = config.cores.workers.iter().cycle().skip(plan.worker);
    workers.take(1 + port.more_rx.len()).copied().collect()
}

/// Hands the devices' queues out.
#[must_use]
pub fn queues(config: &Config, ports: Vec<OpenPort>) -> Vec<Queues> {
    let mut all: Vec<Queues> = config
        .cores
        .workers
        .iter()
        .map(|_| Queues::default())
        .collect();
    for ((plan, port), id) in config.ports.iter().zip(ports).zip((0u8..).map(PortId)) {
        for (rx, after) in port.more_rx.into_iter().zip(1..) {
            let worker = (plan.worker + after) % config.cores.workers.len().max(1);
            if let Some(queues) = all.get_mut(worker) {
                queues.guests.push(GuestQueue { id, rx });
            }
        }
        if let Some(queues) = all.get_mut(plan.worker) {
            queues.socket = queues.socket.or_else(|| port.port.socket());
            queues.own.push(PortQueues::new(id, port.rx, port.tx));
        }
    }
    all
}
