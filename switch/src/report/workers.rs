//! Workers as tables: what each did, and where its time went.

use std::fmt::Write;

use super::model::{Snapshot, Worker};
use super::table::{finish, table, thousands};
use crate::worker::stages::Stage;

/// `show workers`
#[must_use]
pub fn shown(snapshot: &Snapshot) -> String {
    let mut table = table(
        &[
            "CORE",
            "OWNS",
            "RECEIVES",
            "TURNS",
            "BUSY",
            "LONGEST US",
            "RUNS A BURST",
            "BYPASSED",
            "HANDED OVER",
            "TAKEN OVER",
            "STALLS",
            "CNP LOST",
            "CAPTURED",
            "SLEPT MS",
            "WOKEN",
        ],
        3,
    );
    for worker in &snapshot.workers {
        table.add_row(vec![
            worker.core.to_string(),
            worker.owns.join(" "),
            worker.receives.join(" "),
            thousands(worker.loops),
            thousands(worker.busy),
            thousands(worker.longest_ns / 1_000),
            runs_a_burst(worker),
            thousands(worker.bursts.bypassed),
            thousands(worker.crossing.handed_over),
            thousands(worker.crossing.taken_over),
            thousands(worker.crossing.stalls),
            thousands(worker.cnp_lost),
            thousands(worker.capture.captured),
            thousands(worker.slept_us / 1_000),
            thousands(worker.woken),
        ]);
    }
    let mut out = finish(&table);
    // Writing to a string cannot fail.
    let _ = out.write_str(&stages(snapshot));
    out
}

/// How many runs a received burst has on average; nothing before the first.
fn runs_a_burst(worker: &Worker) -> String {
    if worker.bursts.received == 0 {
        return String::new();
    }
    // In hundredths, so that no float is needed.
    let hundredths = worker.bursts.runs.saturating_mul(100) / worker.bursts.received;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Cycles a frame by stage.
fn stages(snapshot: &Snapshot) -> String {
    let timed = |worker: &&Worker| worker.timed_frames > 0;
    if !snapshot.workers.iter().any(|worker| timed(&worker)) {
        return String::new();
    }
    let names = Stage::ALL.map(Stage::name);
    let header = ["CORE", "CYCLES A FRAME"].into_iter().chain(names);
    let header: Vec<&str> = header.chain(["timed frames"]).collect();
    let mut table = table(&header, 1);
    for worker in snapshot.workers.iter().filter(timed) {
        let of = |name| worker.cycles.get(name).copied().unwrap_or_default();
        let all: f64 = worker.cycles.values().sum();
        let figures = std::iter::once(all).chain(names.map(of));
        let figures = figures.map(|cycles| format!("{cycles:.1}"));
        let row = std::iter::once(worker.core.to_string()).chain(figures);
        table.add_row(row.chain([thousands(worker.timed_frames)]));
    }
    format!("\n{}", finish(&table))
}
