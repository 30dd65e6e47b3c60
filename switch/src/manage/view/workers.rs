//! Worker's row of the report.

use std::collections::BTreeMap;

use npcc_api::model::Worker;
use npcc_pipeline::counters::{self, Path};
use npcc_pipeline::counters::{Stage, StageCount};
use npcc_pipeline::num::real;

use super::{PortFacts, View};

impl View {
    /// Returns a worker's row.
    pub(super) fn worker(&self, index: usize) -> Option<Worker> {
        let (stats, core) = (
            self.workers.stats.get(index)?,
            *self.workers.cores.get(index)?,
        );
        let path = Path::ROOT.then("worker").at(core);
        let own = self.workers.counters.get(index)?;
        let mut counts = counters::sum([&**stats]);
        let mut handoff = counters::sum([&*own.handoff]);
        let mut bursts = counters::sum([&*own.bursts]);
        counts.each(path, &mut self.settles());
        handoff.each(path.then("crossing"), &mut self.settles());
        bursts.each(path.then("bursts"), &mut self.settles());
        let names = |mine: &dyn Fn(&PortFacts) -> bool| {
            let ports = self.ports.iter().filter(|facts| mine(facts));
            ports.map(|facts| facts.name.clone()).collect()
        };
        Some(Worker {
            core,
            owns: names(&|facts| facts.workers.first() == Some(&core)),
            receives: names(&|facts| facts.workers.contains(&core)),
            handoff,
            bursts,
            capture: counters::sum([&**self.workers.captures.get(index)?]),
            longest_ever_ns: counts.longest_ns.max(counts.longest_before_ns),
            cycles: cycles(&counts.stages),
            timed_frames: counts.stages.frames,
            slept_us: counts.slept_ns / 1_000,
            counts,
        })
    }
}

/// Returns the cycles per received frame, by stage; empty if no turn was timed.
fn cycles(stages: &StageCount) -> BTreeMap<String, f64> {
    if stages.frames == 0 {
        return BTreeMap::new();
    }
    let mean = |cycles: u64| real(cycles) / real(stages.frames);
    let all = Stage::ALL.iter().zip(stages.cycles);
    all.map(|(stage, cycles)| (stage.name().to_owned(), mean(cycles)))
        .collect()
}
