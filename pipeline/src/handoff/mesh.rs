//! Assignment of ports to workers, and the channels between all workers.

use std::sync::Arc;

use super::channel::{Inward, Outward, channel};
use crate::buffer::UsageLedger;
use crate::units::{PortId, WorkerId};

/// Capacity of a channel between two workers in frames. One priority of one ingress port gets half of it at most, which is as many as a
/// receive ring of 1,024 holds.
pub const HANDOFF_RING: usize = 2048;

/// Assignment of a switch's ports to its workers.
#[derive(Debug, Clone)]
pub struct WorkerPlan {
    /// Number of workers.
    pub workers: u8,
    /// Worker that owns each port's egress side and its pause, by port.
    pub owners: Vec<WorkerId>,
    /// Number of workers that receive from each port, by port.
    pub receivers: Vec<u8>,
    /// Capacity of each channel in frames.
    pub ring: usize,
}

impl WorkerPlan {
    /// Returns the plan of one worker that owns all of `ports` ports.
    #[must_use]
    pub fn alone(ports: usize) -> WorkerPlan {
        WorkerPlan {
            workers: 1,
            owners: vec![WorkerId::FIRST; ports],
            receivers: vec![1; ports],
            ring: HANDOFF_RING,
        }
    }
}

/// Ports that one worker owns, and its ends of the channels.
#[derive(Debug)]
pub struct WorkerLinks<B> {
    pub(crate) me: WorkerId,
    pub(crate) ledger: Arc<UsageLedger>,
    pub(crate) plan: Arc<WorkerPlan>,
    /// Sending ends, by worker; `None` for the worker itself.
    pub(super) out: Vec<Option<Outward<B>>>,
    /// Receiving ends, from every other worker.
    pub(super) inward: Vec<Inward<B>>,
}

impl<B> WorkerLinks<B> {
    /// Returns the worker these ends belong to.
    #[must_use]
    pub const fn worker(&self) -> WorkerId {
        self.me
    }

    /// Returns the set of ports this worker owns.
    #[must_use]
    pub fn owned(&self) -> u32 {
        let owners = self.plan.owners.iter().zip(0u8..);
        let mine = owners.filter(|(owner, _)| **owner == self.me);
        mine.fold(0, |set, (_, port)| set | PortId(port).bit())
    }
}

/// Creates the channels, and returns the ends of each worker in order of worker number.
#[must_use]
pub fn links<B>(plan: WorkerPlan) -> Vec<WorkerLinks<B>> {
    let workers = usize::from(plan.workers.max(1));
    let ledger = Arc::new(UsageLedger::new(workers, plan.owners.len()));
    let plan = Arc::new(plan);
    let mut links: Vec<WorkerLinks<B>> = (0..plan.workers.max(1))
        .map(|me| WorkerLinks {
            me: WorkerId(me),
            ledger: Arc::clone(&ledger),
            plan: Arc::clone(&plan),
            out: Vec::new(),
            inward: Vec::new(),
        })
        .collect();
    for from in 0..workers {
        for to in 0..workers {
            let (give, take) = (from != to).then(|| channel(plan.ring)).unzip();
            if let Some(link) = links.get_mut(from) {
                link.out.push(give);
            }
            if let Some(link) = links.get_mut(to) {
                link.inward.extend(take);
            }
        }
    }
    links
}
