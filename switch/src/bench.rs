//! `bench`: the appliance itself, fed by an endless capture and emptied by a sink, and what a frame costs it.
//!
//! Source: generated RoCEv2 (`traffic`), `net_pcap` with `infinite_rx`. Sink: `net_null`. Between them the program as it
//! runs in production, in a process of its own: worker, control core, eight queues, ECN, buffer accounting, NPCC on.
//! Measured: the worker's CPU time (the scheduler's account, so that being preempted does not count) over frames sent.

use std::fs;
use std::io::BufWriter;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use npcc_pipeline::units::Mac;
use pcap_file::pcap::{PcapPacket, PcapWriter};
use serde::Serialize;

use crate::manage::client;
use crate::manage::protocol::{Reply, Request};
use crate::report::model::Snapshot;
use crate::traffic::{Operation, Traffic};

/// Wait for caches and branch predictors before measuring.
const SETTLE: Duration = Duration::from_millis(700);
/// How long a switch may take to come up; a full table takes its time.
const START: Duration = Duration::from_secs(120);

/// Frames a source holds that stamps them.
const FEW: usize = 64;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Name of the line, and the lengths of frames without FCS in it.
    pub sizes: Vec<(String, Vec<usize>)>,
    /// Connections.
    pub flows: usize,
    /// A source of few frames that are turned into the flows' as they come in, instead of one that holds a frame a flow.
    pub stamped: bool,
    /// A file of prefixes to route, and destinations in them.
    pub routes: Option<Routes>,
    /// Time each line is measured.
    pub time: Duration,
    /// Cores: of the control thread and of the worker.
    pub cores: (usize, usize),
}

impl Plan {
    /// Frames the source holds.
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
    /// The file.
    pub file: PathBuf,
    /// One address in each destination that traffic goes to.
    pub destinations: Vec<IpAddr>,
    /// Routes by family.
    pub counts: [usize; 2],
}

/// A line of figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Frame length in bytes without FCS, or `imix`.
    pub frame: String,
    /// Whether the source stamped its frames.
    pub stamped: bool,
    /// Connections.
    pub flows: usize,
    /// Routes held.
    pub routes: usize,
    /// Frames sent a second, in millions, as the clock on the wall says.
    pub mpps: f64,
    /// CPU time of the worker for each frame sent, in ns.
    pub ns_per_frame: f64,
    /// Frames sent in the time.
    pub frames: u64,
    /// Frames dropped in the time, by reason.
    pub drops: std::collections::BTreeMap<String, u64>,
    /// Share of turns in which frames moved, in percent.
    pub busy: f64,
    /// CNPs sent since the start.
    pub cnps: u64,
}

/// Measures one line.
///
/// # Errors
/// The switch does not start or answer, or the machine has no such core.
pub fn line(plan: &Plan, name: &str, sizes: &[usize]) -> anyhow::Result<Line> {
    let folder = tempfile::tempdir().context("cannot make a folder for the captures")?;
    let traffic = Traffic {
        qps: plan.flows,
        operations: vec![Operation::Send],
        sizes: sizes.to_vec(),
        senders: vec![IpAddr::from([10, 0, 1, 3])],
        receivers: plan
            .routes
            .as_ref()
            .map_or_else(near, |routes| routes.destinations.clone()),
        src_mac: Mac([2, 0, 0, 0, 1, 3]),
        dst_mac: Mac([2, 0, 0, 0, 1, 1]),
        vlan: None,
        dscp: 26,
        ecn: 2,
        seed: 1,
    };
    write(&traffic, &folder.path().join("in.pcap"), plan.held(sizes))?;
    if plan.stamped {
        write(&traffic, &Plan::stamps(folder.path()), plan.flows)?;
    }
    let mut switch = Running::start(plan, sizes, folder.path())?;
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
    let turns = |of: fn(&crate::report::model::Worker) -> u64| {
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
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "figures of a few seconds, printed with one decimal"
)]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b as f64
}

/// The receivers behind the one route of the plain case.
fn near() -> Vec<IpAddr> {
    (1..=64)
        .map(|host| IpAddr::V4(Ipv4Addr::new(10, 0, 2, host)))
        .collect()
}

fn drops(before: &Snapshot, after: &Snapshot) -> std::collections::BTreeMap<String, u64> {
    let mut all = std::collections::BTreeMap::new();
    for (then, now) in before.ports.iter().zip(&after.ports) {
        for (reason, count) in &now.drops {
            let count = count - then.drops.get(reason).copied().unwrap_or(0);
            if count > 0 {
                *all.entry(reason.clone()).or_insert(0) += count;
            }
        }
    }
    all
}

fn write(traffic: &Traffic, path: &Path, steps: usize) -> anyhow::Result<()> {
    let file =
        fs::File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut writer = PcapWriter::new(BufWriter::new(file))?;
    for (_, frame) in traffic.frames(steps)? {
        let length = u32::try_from(frame.len())?;
        writer.write_packet(&PcapPacket::new(Duration::ZERO, length, &frame))?;
    }
    Ok(())
}

/// The configuration under test.
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

/// A switch at work; it goes with this.
#[derive(Debug)]
struct Running {
    child: Child,
    socket: PathBuf,
}

impl Running {
    fn start(plan: &Plan, sizes: &[usize], folder: &Path) -> anyhow::Result<Running> {
        let file = folder.join("bench.yaml");
        fs::write(&file, config(plan, sizes, folder)).context("cannot write the configuration")?;
        let log = folder.join("log");
        let program = std::env::current_exe().context("cannot find this program's file")?;
        let mut command = Command::new(program);
        command.arg("run").arg("-c").arg(&file);
        if let Some(routes) = &plan.routes {
            command.arg("--routes").arg(&routes.file);
        }
        if plan.stamped {
            command.arg("--stamps").arg(Plan::stamps(folder));
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?)
            .spawn()
            .context("cannot start the switch")?;
        let mut switch = Running {
            child,
            socket: folder.join("s.sock"),
        };
        let deadline = Instant::now() + START;
        while switch.snapshot().is_err() {
            let ended = switch.child.try_wait()?.is_some();
            if ended || Instant::now() >= deadline {
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(anyhow!("the switch did not start: {}", said.trim()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(switch)
    }

    fn snapshot(&self) -> anyhow::Result<Snapshot> {
        match client::ask(&self.socket, &Request::Snapshot)? {
            Reply::Snapshot(snapshot) => Ok(*snapshot),
            _ => Err(anyhow!("the switch answered something else")),
        }
    }

    /// CPU time of the worker so far, in ns.
    fn cpu(&self) -> anyhow::Result<u64> {
        let tasks = format!("/proc/{}/task", self.child.id());
        for task in fs::read_dir(&tasks).context("the switch is gone")? {
            let task = task?.path();
            let name = fs::read_to_string(task.join("comm")).unwrap_or_default();
            if name.starts_with("rte-worker") {
                let account = fs::read_to_string(task.join("schedstat"))?;
                let first = account.split_whitespace().next().unwrap_or_default();
                return first
                    .parse()
                    .context("the scheduler's account is not a number");
            }
        }
        Err(anyhow!("the switch has no worker thread"))
    }

    fn stop(&mut self) {
        // Already gone is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}
