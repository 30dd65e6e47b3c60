//! Which worker owns which port, and the channels between all workers.

use std::sync::Arc;

use super::channel::{Inward, Outward, channel};
use crate::buffer::UsageBoard;
use crate::units::{PortId, WorkerId};

/// Frames on the way from one worker to another at a time: as many as a receive ring of 1,024 holds.
pub const HANDOFF_RING: usize = 1024;

/// The plan of a switch's workers.
#[derive(Debug, Clone)]
pub struct WorkerPlan {
    /// Number of workers.
    pub workers: u8,
    /// By port: the worker that owns its egress side and its pause.
    pub owners: Vec<WorkerId>,
    /// By port: from how many workers' receive queues its frames come.
    pub receivers: Vec<u8>,
    /// Room of each channel in frames.
    pub ring: usize,
}

impl WorkerPlan {
    /// One worker that owns all of `ports` ports.
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

/// What one worker owns, and its ends of the channels.
#[derive(Debug)]
pub struct WorkerLinks<B> {
    pub(crate) me: WorkerId,
    pub(crate) board: Arc<UsageBoard>,
    pub(crate) plan: Arc<WorkerPlan>,
    /// By worker; none to itself.
    pub(super) out: Vec<Option<Outward<B>>>,
    /// From every other worker.
    pub(super) inward: Vec<Inward<B>>,
}

impl<B> WorkerLinks<B> {
    /// Whose it is.
    #[must_use]
    pub const fn worker(&self) -> WorkerId {
        self.me
    }

    /// The set of ports this worker owns.
    #[must_use]
    pub fn owned(&self) -> u32 {
        let owners = self.plan.owners.iter().zip(0u8..);
        let mine = owners.filter(|(owner, _)| **owner == self.me);
        mine.fold(0, |set, (_, port)| set | PortId(port).bit())
    }
}

/// The ends of all workers, in their order.
#[must_use]
pub fn links<B>(plan: WorkerPlan) -> Vec<WorkerLinks<B>> {
    let workers = usize::from(plan.workers.max(1));
    let board = Arc::new(UsageBoard::new(workers, plan.owners.len()));
    let plan = Arc::new(plan);
    let mut links: Vec<WorkerLinks<B>> = (0..plan.workers.max(1))
        .map(|me| WorkerLinks {
            me: WorkerId(me),
            board: Arc::clone(&board),
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
