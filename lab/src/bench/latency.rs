//! Latency of frames at a share of the worker's capacity: `bench --latency`.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Context;
use npcc_api::model::{Percentiles, Snapshot};
use serde::Serialize;

use super::{Line, Plan, SETTLE, drops, ratio, started};
use crate::pace::Schedule;

/// Shares of the capacity at which latency is measured, in percent.
pub const LOADS: [u8; 3] = [10, 50, 90];

/// Results of one measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Late {
    /// Frame length in bytes without FCS, or `imix`.
    pub frame: String,
    /// Number of connections.
    pub flows: usize,
    /// Share of the capacity offered, in percent.
    pub load: u8,
    /// Frames sent a second, in millions, by wall-clock time.
    pub mpps: f64,
    /// Time from the moment a frame was due until the device has it, in us; one frame in 16 is timed.
    pub latency_us: Percentiles,
    /// Frames dropped during the measurement, by reason: with any, latencies are too long.
    pub drops: BTreeMap<String, u64>,
}

/// Measures latency at `load` percent of the capacity that `line` found for the same frames.
///
/// # Errors
/// Errors of [`super::line`].
pub fn latency(plan: &Plan, line: &Line, sizes: &[usize], load: u8) -> anyhow::Result<Late> {
    let folder = tempfile::tempdir().context("cannot make a folder for the captures")?;
    let schedule = Schedule::even(line.mpps * 1e4 * f64::from(load));
    let mut switch = started(plan, sizes, folder.path(), Some(schedule))?;
    std::thread::sleep(SETTLE);
    switch.clear()?;
    let (before, start) = (switch.snapshot()?, Instant::now());
    std::thread::sleep(plan.time);
    let (after, took) = (switch.snapshot()?, start.elapsed());
    switch.stop();
    let sent = |shot: &Snapshot| shot.ports.get(1).map_or(0, |port| port.tx.packets);
    Ok(Late {
        frame: line.frame.clone(),
        flows: line.flows,
        load,
        mpps: ratio(sent(&after) - sent(&before), 1_000_000) / took.as_secs_f64(),
        latency_us: after.latency_us,
        drops: drops(&before, &after),
    })
}
