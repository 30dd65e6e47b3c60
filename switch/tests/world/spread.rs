//! Receive queues of a card with several: which worker receives a connection.

use super::host::Flow;
use super::{World, packets, trace};

/// Receive queue that a card spreads a frame to: by what all packets of a connection have in common.
pub(super) fn queue(frame: &[u8], queues: usize) -> usize {
    frame.get(26..36).map_or(0, trace::digest) as usize % queues
}

impl World {
    /// Gives a connection the next queue pair whose data a worker receives.
    pub(super) fn steer(&self, flow: &mut Flow, worker: usize) {
        let workers = self.workers.len();
        let way = self.hosts[flow.from].way(self.hosts[flow.to].address);
        let owner = flow.from % workers;
        let received_by = |flow: &Flow| {
            let frame = packets::data(way, (flow.receiver, flow.port()), 0, 0);
            (owner + queue(&frame, workers)) % workers
        };
        while received_by(flow) != worker {
            flow.sender += 0x10_0000;
        }
    }
}
