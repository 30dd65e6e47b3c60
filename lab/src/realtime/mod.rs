//! Hosts and links of a scenario in real time around a real switch process: the closed loop, for anyone to watch.
//!
//! ```text
//!   this process: model hosts, links with length      child: npcc-switch run
//!     host0..n  <- packet socket, veth, net_af_packet ->  p0..pn
//! ```
//! Both clocks are dilated by the same `time_scale`, so that 100 Gb/s and 20 us are within reach of two ordinary cores. Law:
//! queue depth and peak are reported by the switch itself, CNPs are counted where senders read them, and the report of a run says if the
//! machine could not keep up.

mod net;
mod process;
mod report;

use std::time::{Duration, Instant};

use anyhow::Context;
use npcc_pipeline::frame::FrameBuf;
use npcc_pipeline::units::Nanos;
use npcc_sim::engine::{Live, Outcome, Seen, run};
use npcc_sim::scenario::{Case, Scenario};

pub use process::Totals;
pub use report::{svg, table};

use net::{FRAME, Wires};
use process::Process;

/// Largest number of frames read from one wire before the others get their turn.
const BURST: usize = 64;
/// Minimum time between two polls of the switch's queue.
const LOOK: Duration = Duration::from_millis(20);
/// Largest number of polls over a run: the points of its curve.
const POINTS: u32 = 600;
/// Allowance for starting up and stopping, in real time.
const SLACK: Duration = Duration::from_secs(30);

/// Run of one case, with its results.
#[derive(Debug, Clone)]
pub struct LiveRun {
    /// Case that was run.
    pub case: Case,
    /// Observations of the hosts.
    pub seen: Seen,
    /// Totals reported by the switch.
    pub totals: Totals,
    /// Number of frames the kernel refused on their way to the switch.
    pub refused: u64,
    /// Result of the same case in simulated time, for comparison.
    pub simulated: Outcome,
}

/// Runs every case, one after the other, `time_scale` times slower than real; `begins` is called before each.
///
/// # Errors
/// This process is not root, the scenario does not fit, or the switch fails.
pub fn all(
    scenario: &Scenario,
    time_scale: f64,
    begins: &dyn Fn(&Case, Duration),
) -> anyhow::Result<Vec<LiveRun>> {
    let cases = scenario.cases();
    let mut wires: Option<Wires> = None;
    let mut runs = Vec::new();
    for case in &cases {
        let live = Live::new(scenario, case)?;
        let wires = match &mut wires {
            Some(wires) => wires,
            none => none.insert(Wires::new(live.attachments().len())?),
        };
        begins(case, real(live.span().1, time_scale));
        runs.push(one(scenario, case, live, wires, time_scale)?);
    }
    Ok(runs)
}

fn real(time: Nanos, time_scale: f64) -> Duration {
    Duration::from_nanos(time.0).mul_f64(time_scale)
}

fn one(
    scenario: &Scenario,
    case: &Case,
    mut live: Live,
    wires: &mut Wires,
    time_scale: f64,
) -> anyhow::Result<LiveRun> {
    let folder = tempfile::tempdir().context("cannot make a folder for the switch's files")?;
    let attachments = live.attachments();
    let watched = attachments.iter().position(|at| at.watched).unwrap_or(0);
    let socket = folder.path().join("switch.sock");
    let text = process::config(scenario, case, &attachments, time_scale, &socket);
    let (_, end) = live.span();
    let whole = real(end, time_scale);
    let every = (whole / POINTS).max(LOOK);
    let mut switch = Process::start(folder.path(), &text, watched, every, whole + SLACK)?;
    let refused = wires.refused;
    let mut buffer = [0; FRAME];
    let begun = Instant::now();
    loop {
        let passed = begun.elapsed().div_f64(time_scale);
        let now = Nanos::from(passed);
        if now > end {
            break;
        }
        live.depth(switch.depth());
        let next = live.advance(now);
        let mut moved = false;
        let reported: Vec<_> = std::iter::from_fn(|| live.reported()).collect();
        // Without NPCC the switch takes no reports.
        if !reported.is_empty() && case.scheme.policy.is_some() {
            switch.report(reported);
        }
        while let Some((port, frame)) = live.leaving() {
            wires.send(port, frame.data());
            moved = true;
        }
        for port in 0..wires.count() {
            for _ in 0..BURST {
                let Some(frame) = wires.receive(port, &mut buffer)? else {
                    break;
                };
                live.entering(port, frame);
                moved = true;
            }
        }
        if !moved {
            let until = real(next.unwrap_or(end).min(end), time_scale);
            let time = until.saturating_sub(begun.elapsed());
            wires.wait(time.min(LOOK));
        }
    }
    // The last advance closes the measurement of utilisation at the end.
    live.advance(end);
    let totals = switch.finish()?;
    // Frames still on the wires belong to this run.
    for port in 0..wires.count() {
        while wires.receive(port, &mut buffer)?.is_some() {}
    }
    Ok(LiveRun {
        case: *case,
        seen: live.seen(),
        totals,
        refused: wires.refused - refused,
        simulated: run(scenario, case)?,
    })
}
