//! Transfer of frames from the workers to Linux, the best class first.

use std::sync::Arc;

use npcc_pipeline::counters::LinuxStats;
use npcc_pipeline::punt::{PuntClass, PuntHost};

use super::claims::Claims;
use super::host::{HostInterface, Resolve};
use super::worker_end::LONGEST;

/// Most frames per turn: between turns the frames from Linux are handled.
const BUDGET: usize = 64;
/// Most requests to resolve next hops per turn.
const ASKS: usize = 64;

/// Workers' ends of the punt queues, with the callback that resolves next hops.
#[derive(derive_more::Debug)]
#[debug("ToHost {{ workers: {workers:?}, .. }}")]
pub struct ToHost {
    workers: Vec<PuntHost>,
    resolve: Resolve,
    stats: Arc<LinuxStats>,
    claims: Arc<Claims>,
    frame: Box<[u8]>,
}

impl ToHost {
    /// Serves these workers; `resolve` is called for each next hop to be resolved.
    #[must_use]
    pub fn new(workers: Vec<PuntHost>, resolve: Resolve) -> ToHost {
        ToHost {
            workers,
            resolve,
            stats: Arc::default(),
            claims: Arc::default(),
            frame: vec![0; LONGEST].into_boxed_slice(),
        }
    }

    /// Returns the counters of both directions.
    #[must_use]
    pub fn stats(&self) -> Arc<LinuxStats> {
        Arc::clone(&self.stats)
    }

    /// Returns the claims of the switch's own addresses.
    #[must_use]
    pub fn claims(&self) -> Arc<Claims> {
        Arc::clone(&self.claims)
    }

    /// Gives Linux the waiting frames, at most a turn's worth, and resolves next hops; returns the number of both. After each frame it
    /// looks for one of a better class.
    pub fn turn(&mut self, interfaces: &[HostInterface]) -> usize {
        self.stats.turns.add(1);
        let moved = (0..BUDGET).take_while(|_| self.one(interfaces)).count();
        for class in PuntClass::ALL {
            let queues = self
                .workers
                .iter()
                .map(|worker| class.pick(&worker.classes));
            let waiting: usize = queues.map(|queue| queue.waiting()).sum();
            class.pick(&self.stats.classes).waiting.set(waiting as u64);
        }
        moved + self.asks()
    }

    /// Gives Linux the oldest frame of the best class that waits; returns false if there is none.
    fn one(&mut self, interfaces: &[HostInterface]) -> bool {
        let ToHost {
            workers,
            stats,
            claims,
            frame,
            ..
        } = self;
        for class in PuntClass::ALL {
            for worker in workers.iter_mut() {
                let Some(queue) = worker.classes.get_mut(class.index()) else {
                    continue;
                };
                let Some((place, bytes)) = queue.pop(frame) else {
                    continue;
                };
                if class == PuntClass::ArpNd {
                    claims.look(place, bytes);
                }
                let to = interfaces.iter().find(|one| one.place == place);
                let counters = class.pick(&stats.classes);
                match to.map(|interface| interface.host.send(bytes)) {
                    Some(Ok(_)) => counters.delivered.add(1),
                    Some(Err(_)) => counters.refused.add(1),
                    None => stats.no_interface.add(1),
                }
                return true;
            }
        }
        false
    }

    /// Has requested next hops resolved; returns their number.
    fn asks(&mut self) -> usize {
        let mut requested = 0;
        for worker in &mut self.workers {
            while requested < ASKS
                && let Ok(ask) = worker.asks.pop()
            {
                (self.resolve)(&ask);
                requested += 1;
            }
        }
        requested
    }
}
