//! Cost of a frame: `bench` runs the appliance itself, fed by an endless capture and emptied by a sink.
//!
//! Source: generated RoCEv2 (`traffic`), `net_pcap` with `infinite_rx`. Sink: `net_null`. Between them the program as it
//! runs in production, in a process of its own: worker, control core, eight queues, ECN, buffer accounting, NPCC on.
//! Measured: the worker's CPU time (the scheduler's account, so that being preempted does not count) over frames sent.

mod latency;
mod reaction;
mod running;

use std::fs;
use std::io::BufWriter;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use npcc_api::model::Snapshot;
use npcc_pipeline::num::real;
use npcc_pipeline::units::Mac;
use pcap_file::pcap::{PcapPacket, PcapWriter};
use serde::Serialize;

pub use self::latency::{LOADS, Late, latency};
pub use self::reaction::{Cnps, Reacted, reaction};
use self::running::Running;
use crate::pace::Schedule;
use crate::traffic::{Operation, Traffic, Way};

/// Time to let caches and branch predictors warm up before measuring.
const SETTLE: Duration = Duration::from_millis(700);

/// Largest number of flows whose frames a stamping source holds, as it rewrites them.
const FEW: usize = 64;

/// Plan of the measurements.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Name of each line, and the lengths of frames without FCS in it, in bytes.
    pub sizes: Vec<(String, Vec<usize>)>,
    /// Number of connections.
    pub flows: usize,
    /// True if the source holds few frames that are turned into the flows' as they come in, and false if it holds a frame per flow.
    pub stamped: bool,
    /// File of prefixes to route, and destinations in them.
    pub routes: Option<Routes>,
    /// Duration of the measurement of each line.
    pub time: Duration,
    /// Cores of the control thread and of the worker.
    pub cores: (usize, usize),
}

impl Plan {
    /// Returns the number of frames the source holds.
    fn held(&self, sizes: &[usize]) -> usize {
        let flows = if self.stamped {
            self.flows.min(FEW)
        } else {
            self.flows
        };
        flows * sizes.len().min(flows)
    }

    fn stamps(folder: &Path) -> PathBuf {
        folder.join("flows.pcap")
    }
}

/// Prefixes from a file.
#[derive(Debug, Clone)]
pub struct Routes {
    /// Path of the file.
    pub file: PathBuf,
    /// Destinations of the traffic, one address for each.
    pub destinations: Vec<IpAddr>,
    /// Number of routes by family: IPv4, IPv6.
    pub counts: [usize; 2],
}

/// Results of one line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Frame length in bytes without FCS, or `imix`.
    pub frame: String,
    /// True if the source stamped its frames.
    pub stamped: bool,
    /// Number of connections.
    pub flows: usize,
    /// Number of routes held.
    pub routes: usize,
    /// Frames sent a second, in millions, by wall-clock time.
    pub mpps: f64,
    /// CPU time of the worker for each frame sent, in ns.
    pub ns_per_frame: f64,
    /// Frames sent during the measurement.
    pub frames: u64,
    /// Frames dropped during the measurement, by reason.
    pub drops: std::collections::BTreeMap<String, u64>,
    /// Share of turns in which frames moved, in percent.
    pub busy: f64,
    /// CNPs sent since the start.
    pub cnps: u64,
    /// Share of the frames that were shown to the control core, in percent: high while flows are new.
    pub sampled: f64,
}

/// Measures one line.
///
/// # Errors
/// The switch does not start or answer, or the machine has no such core.
pub fn line(plan: &Plan, name: &str, sizes: &[usize]) -> anyhow::Result<Line> {
    let folder = tempfile::tempdir().context("cannot make a folder for the captures")?;
    let mut switch = started(plan, sizes, folder.path(), None)?;
    std::thread::sleep(SETTLE);
    let (before, used, start) = (switch.snapshot()?, switch.cpu()?, Instant::now());
    std::thread::sleep(plan.time);
    let (after, used, took) = (switch.snapshot()?, switch.cpu()? - used, start.elapsed());
    switch.stop();
    let sent = |shot: &Snapshot| shot.ports.get(1).map_or(0, |port| port.tx.packets);
    let frames = sent(&after) - sent(&before);
    if frames == 0 {
        return Err(anyhow!("no frame came out in {} ms", plan.time.as_millis()));
    }
    let turns = |of: fn(&npcc_api::model::Worker) -> u64| {
        let sum = |shot: &Snapshot| shot.workers.iter().map(of).sum::<u64>();
        sum(&after) - sum(&before)
    };
    Ok(Line {
        frame: name.to_owned(),
        stamped: plan.stamped,
        flows: plan.flows,
        routes: plan
            .routes
            .as_ref()
            .map_or(1, |routes| routes.counts.iter().sum()),
        mpps: ratio(frames, 1_000_000) / took.as_secs_f64(),
        ns_per_frame: ratio(used, frames),
        frames,
        drops: drops(&before, &after),
        busy: 100.0
            * ratio(
                turns(|worker| worker.busy),
                turns(|worker| worker.loops).max(1),
            ),
        cnps: after.npcc.cnps_sent,
        sampled: 100.0
            * ratio(
                after.npcc.caches.samples - before.npcc.caches.samples,
                frames,
            ),
    })
}

/// Starts the switch of a line; `schedule` admits the source's frames (`None`: as fast as the switch can).
fn started(
    plan: &Plan,
    sizes: &[usize],
    folder: &Path,
    schedule: Option<Schedule>,
) -> anyhow::Result<Running> {
    let mut traffic = Traffic {
        qps: plan.flows,
        sizes: sizes.to_vec(),
        ..hosts()
    };
    if let Some(routes) = &plan.routes {
        traffic.receivers.clone_from(&routes.destinations);
    }
    write_way(
        &traffic,
        Way::Forward,
        &folder.join("in.pcap"),
        plan.held(sizes),
    )?;
    let mut args = Vec::new();
    if plan.stamped {
        write_way(&traffic, Way::Forward, &Plan::stamps(folder), plan.flows)?;
        args.extend(["--stamps".into(), Plan::stamps(folder).into()]);
    }
    if let Some(routes) = &plan.routes {
        args.extend(["--routes".into(), routes.file.clone().into()]);
    }
    if let Some(schedule) = schedule {
        args.extend(["--timetable".into(), schedule.to_string().into()]);
    }
    Running::start(folder, &config(plan, sizes, folder), &args)
}

fn ratio(a: u64, b: u64) -> f64 {
    real(a) / real(b)
}

/// Returns traffic from one sender on one side to 64 receivers behind the one route on the other.
fn hosts() -> Traffic {
    let receiver = |host| IpAddr::V4(Ipv4Addr::new(10, 0, 2, host));
    Traffic {
        qps: 64,
        operations: vec![Operation::Send],
        sizes: vec![62],
        senders: vec![IpAddr::from([10, 0, 1, 3])],
        receivers: (1..=64).map(receiver).collect(),
        src_mac: Mac([2, 0, 0, 0, 1, 3]),
        dst_mac: Mac([2, 0, 0, 0, 1, 1]),
        vlan: None,
        dscp: 26,
        ecn: 2,
        seed: 1,
    }
}

fn drops(before: &Snapshot, after: &Snapshot) -> std::collections::BTreeMap<String, u64> {
    let mut all = std::collections::BTreeMap::new();
    for (then, now) in before.ports.iter().zip(&after.ports) {
        for ((reason, count), before) in now.drops.each_named().zip(then.drops.iter()) {
            let count = count - before;
            if count > 0 {
                *all.entry(reason.to_owned()).or_insert(0) += count;
            }
        }
    }
    all
}

fn write_way(traffic: &Traffic, way: Way, path: &Path, steps: usize) -> anyhow::Result<()> {
    let file =
        fs::File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut writer = PcapWriter::new(BufWriter::new(file))?;
    for (_, frame) in traffic.frames(steps)?.filter(|(goes, _)| *goes == way) {
        let length = u32::try_from(frame.len())?;
        writer.write_packet(&PcapPacket::new(Duration::ZERO, length, &frame))?;
    }
    Ok(())
}

/// Returns the configuration under test.
fn config(plan: &Plan, sizes: &[usize], folder: &Path) -> String {
    let longest = sizes.iter().copied().max().unwrap_or(1518);
    let mtu = (longest + 50).max(1500);
    let frames = plan.held(sizes);
    // The endless source keeps its frames in the switch's own buffers.
    let pool = (frames + 65_536) * 1024;
    let (control, worker) = plan.cores;
    let [v4, v6] = plan.routes.as_ref().map_or([1024, 1024], |routes| {
        routes.counts.map(|count| count + 1024)
    });
    let neighbors: Vec<String> = (2..=17)
        .map(|n| {
            format!("  - {{ address: 10.0.12.{n}, port: wan0, mac: \"02:00:00:00:02:{n:02x}\" }}\n")
        })
        .collect();
    format!(
        "version: 1
dpdk: {{ eal_args: [\"--no-pci\", \"--in-memory\"] }}
cores: {{ control: {control}, workers: [{worker}] }}
telemetry: {{ socket: {folder}/s.sock }}
ports:
  - {{ name: dc0, device: \"net_pcap0,rx_pcap={folder}/in.pcap,infinite_rx=1\", mac: \"02:00:00:00:01:01\", mtu: {mtu},
      addresses: [10.0.1.1/24], speed: 400G }}
  - {{ name: wan0, device: \"net_null0,no-rx=1\", mac: \"02:00:00:00:02:01\", mtu: {mtu}, speed: 400G, addresses: [10.0.12.1/24],
      npcc: {{ enable: true, queues: [3] }} }}
routes: [ {{ prefix: 10.0.2.0/24, via: 10.0.12.2 }} ]
routing: {{ ipv4_routes: {v4}, ipv6_routes: {v6} }}
neighbors:
{}buffer: {{ pool: {pool}, lossless_min_frame: 1024 }}
npcc: {{ flows: {} }}
",
        neighbors.concat(),
        (plan.flows * 2).max(65_536),
        folder = folder.display(),
    )
}
