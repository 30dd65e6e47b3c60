//! Tables of the workers: the work each did, and the cycles it took by stage.

use npcc_api::model::{Snapshot, Worker};
use npcc_pipeline::counters::Stage;

use super::table::{count, counts, table, time, word};

/// Renders `show workers`.
#[must_use]
pub fn shown(snapshot: &Snapshot) -> String {
    let workers = table(3, &&Worker::default(), &snapshot.workers, |worker| {
        let turns = vec![
            word("CORE", worker.core),
            ("OWNS", worker.owns.join(" ")),
            ("RECEIVES", worker.receives.join(" ")),
            count("TURNS", worker.loops),
            count("BUSY", worker.busy),
            ("LONGEST", time(worker.longest_ns)),
            ("RUNS A BURST", runs_a_burst(worker)),
        ];
        let declared = [
            worker.bursts.columns(),
            worker.handoff.columns(),
            worker.counts.columns(),
            worker.capture.columns(),
        ];
        let slept = vec![
            ("SLEPT", time(worker.slept_us.saturating_mul(1_000))),
            count("WOKEN", worker.woken),
        ];
        [turns, counts(declared.concat()), slept].concat()
    });
    workers + &stages(snapshot)
}

/// Returns the average number of runs in a received burst; empty before the first burst.
fn runs_a_burst(worker: &Worker) -> String {
    if worker.bursts.received == 0 {
        return String::new();
    }
    // Hundredths need no float.
    let hundredths = worker.bursts.runs.saturating_mul(100) / worker.bursts.received;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Renders cycles per frame, by stage.
fn stages(snapshot: &Snapshot) -> String {
    let timed = |worker: &&Worker| worker.timed_frames > 0;
    if !snapshot.workers.iter().any(|worker| timed(&worker)) {
        return String::new();
    }
    let timed = snapshot.workers.iter().filter(timed);
    let text = table(1, &&Worker::default(), timed, |worker| {
        let cycles = |cycles: f64| format!("{cycles:.1}");
        let of = |name| worker.cycles.get(name).copied().unwrap_or_default();
        let stages = Stage::ALL.map(|stage| (stage.name(), cycles(of(stage.name()))));
        let all = cycles(worker.cycles.values().sum());
        let mut row = vec![word("CORE", worker.core), ("CYCLES A FRAME", all)];
        row.extend(stages);
        row.push(count("timed frames", worker.timed_frames));
        row
    });
    format!("\n{text}")
}
