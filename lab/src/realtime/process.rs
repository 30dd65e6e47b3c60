//! Switch process: its configuration for a scenario, its start, its state while it runs, its totals.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use npcc_api::client::blocking as client;
use npcc_api::ends::{EndRow, Lease, ReportedLease};
use npcc_api::model::{Queue, Snapshot};
use npcc_api::peers::PeerName;
use npcc_api::peers::{MOST_ROWS, Suggestion};
use npcc_api::protocol::{Reply, Request};
use npcc_cnp::control::config::EcnMode;
use npcc_roce::key::Qpn;
use npcc_roce::pair::foreign::{RefusedEnd, ReportedEnd};
use npcc_sim::engine::Attachment;
use npcc_sim::scenario::{Case, Scenario};

use super::net;

/// Priority of the data.
const DATA: u8 = 3;
/// Time limit for a switch to come up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Running switch process.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    socket: PathBuf,
    totals: PathBuf,
    log: PathBuf,
    watched: usize,
    stop: Arc<AtomicBool>,
    depth: Arc<AtomicU64>,
    watcher: Option<JoinHandle<()>>,
    /// Threads that report ends to the switch.
    reports: Vec<JoinHandle<anyhow::Result<()>>>,
}

/// Returns the configuration of the switch in the middle of a scenario. `time_scale` dilates its clock.
#[must_use]
pub(super) fn config(
    scenario: &Scenario,
    case: &Case,
    attachments: &[Attachment],
    time_scale: f64,
    socket: &Path,
) -> String {
    let scheme = &case.scheme;
    let mut ports = String::new();
    let (mut routes, mut neighbors) = (String::new(), String::new());
    for (index, at) in attachments.iter().enumerate() {
        let npcc = match scheme.policy {
            Some(_) if at.watched => format!(
                ", npcc: {{ enable: true, queues: [{DATA}], policy: {} }}",
                // Only the policy's name: marking is configured below.
                scheme
                    .to_string()
                    .split(['+', '/'])
                    .next()
                    .unwrap_or_default()
            ),
            _ => String::new(),
        };
        // Infallible: the target is a string.
        let _ = write!(
            ports,
            "\n  - {{ name: p{index}, device: \"net_af_packet{index},iface={},blocksz=73728,framesz=9216,framecnt=1024\", mac: \"{}\", mtu: {}, speed: {}bps{npcc} }}",
            net::device(index),
            at.mac,
            net::MTU,
            at.rate.0
        );
        for (host, mac) in &at.hosts {
            let _ = write!(routes, "\n  - {{ prefix: {host}/32, via: {host} }}");
            let _ = write!(
                neighbors,
                "\n  - {{ address: {host}, port: p{index}, mac: \"{mac}\" }}"
            );
        }
    }
    let limits = &scenario.thresholds;
    let ecn = if scheme.policy.is_none() && scheme.ecn == EcnMode::Off {
        "off".to_owned()
    } else {
        format!(
            "{{ kmin: {}, kmax: {}, pmax: {} }}",
            limits.kmin, limits.kmax, limits.pmax
        )
    };
    let marks = scheme.ecn.name();
    let evidence = case.start.evidence().name();
    format!(
        "version: 1
dpdk: {{ eal_args: [\"--no-pci\", \"--in-memory\"] }}
time_scale: {time_scale}
telemetry: {{ socket: {} }}
ports:{ports}
routes:{routes}
neighbors:{neighbors}
qos: {{ profile: roce-semi-lossless, priorities: {{ {DATA}: {{ ecn: {ecn} }} }} }}
buffer: {{ pool: 256MB, lossless_min_frame: 4096 }}
npcc: {{ ecn: {marks}, shallow: {}, deep: {}, evidence: {evidence} }}
",
        socket.display(),
        limits.shallow,
        limits.deep
    )
}

impl Process {
    /// Starts the switch and waits until it forwards; polls its queue every `every` from then on. `longest` bounds its life.
    ///
    /// # Errors
    /// The switch does not come up; the message holds its output.
    pub(super) fn start(
        folder: &Path,
        text: &str,
        watched: usize,
        every: Duration,
        longest: Duration,
    ) -> anyhow::Result<Process> {
        let (config, totals, log) = (
            folder.join("switch.yaml"),
            folder.join("stats.json"),
            folder.join("switch.log"),
        );
        let socket = folder.join("switch.sock");
        fs::write(&config, text).with_context(|| format!("cannot write {}", config.display()))?;
        let out = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let err = out.try_clone().context("cannot write the switch's log")?;
        let child = Command::new(std::env::current_exe().context("cannot find this program")?)
            .arg("run")
            .arg("-c")
            .arg(&config)
            .arg("--for")
            .arg(format!("{}ms", longest.as_millis()))
            .arg("--stats-json")
            .arg(&totals)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .context("cannot start the switch")?;
        let mut process = Process {
            child,
            socket,
            totals,
            log,
            watched,
            stop: Arc::default(),
            depth: Arc::default(),
            watcher: None,
            reports: Vec::new(),
        };
        process.await_ready()?;
        process.watch(every);
        Ok(process)
    }

    fn await_ready(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while client::ask(&self.socket, &Request::Snapshot).is_err() {
            let ended = self
                .child
                .try_wait()
                .context("cannot query the switch process")?;
            if ended.is_some() || begun.elapsed() > PATIENCE {
                let said = fs::read_to_string(&self.log).unwrap_or_default();
                bail!("the switch does not come up:\n{said}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn watch(&mut self, every: Duration) {
        let (stop, depth) = (Arc::clone(&self.stop), Arc::clone(&self.depth));
        let (socket, watched) = (self.socket.clone(), self.watched);
        self.watcher = Some(std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                if let Ok(Reply::Snapshot(snapshot)) = client::ask(&socket, &Request::Snapshot)
                    && let Some(queue) = queue(&snapshot, watched)
                {
                    depth.store(queue.level.depth, Ordering::Relaxed);
                }
                std::thread::sleep(every);
            }
        }));
    }

    /// Returns the depth of the watched queue as last reported by the switch, in wire bytes.
    #[must_use]
    pub(super) fn depth(&self) -> u64 {
        self.depth.load(Ordering::Relaxed)
    }

    /// Reports ends to the switch as a host's agent does, in a thread of its own: the hosts do not wait for the answer. [`Process::finish`] has
    /// its failure.
    pub(super) fn report(&mut self, ends: Vec<ReportedEnd>) {
        let socket = self.socket.clone();
        self.reports
            .push(std::thread::spawn(move || report(&socket, &ends)));
    }

    /// Stops the switch and reads its totals.
    ///
    /// # Errors
    /// The switch failed, did not take what hosts reported, or its totals do not balance.
    pub(super) fn finish(mut self) -> anyhow::Result<Totals> {
        for report in self.reports.drain(..) {
            // The thread cannot panic: it only sends requests.
            report.join().unwrap_or(Ok(()))?;
        }
        self.halt();
        let status = self.child.wait().context("cannot wait for the switch")?;
        if !status.success() {
            let said = fs::read_to_string(&self.log).unwrap_or_default();
            bail!("the switch ended with {status}:\n{said}");
        }
        let text = fs::read_to_string(&self.totals).context("the switch left no totals")?;
        let snapshot: Snapshot =
            serde_json::from_str(&text).context("the switch's totals cannot be read")?;
        if !snapshot.conservation.holds() {
            bail!(
                "the switch's totals do not balance: frames in differ from frames out, dropped and held; report this as a bug"
            );
        }
        let queue = queue(&snapshot, self.watched);
        let queue = queue.context("the switch's totals lack the watched queue")?;
        Ok(Totals {
            peak: queue.peak,
            marked: queue.ecn_marked,
            cnps: snapshot.npcc.cnps_sent,
            dropped: snapshot.conservation.drops.packets,
            ticks: snapshot.npcc.ticks,
            ticks_late: snapshot.npcc.control.late,
        })
    }

    fn halt(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            // The watcher cannot panic: it only sends requests.
            let _ = watcher.join();
        }
        if let Ok(None) = self.child.try_wait()
            && let Ok(id) = i32::try_from(self.child.id())
        {
            // A process that has just ended needs no signal.
            let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.halt();
        // After `finish` this returns at once.
        let _ = self.child.wait();
    }
}

/// Reports ends to the switch at this socket as a host's agent does. It refuses those of flows that do not leave by an NPCC port.
fn report(socket: &Path, ends: &[ReportedEnd]) -> anyhow::Result<()> {
    for ends in ends.chunks(MOST_ROWS) {
        let rows: Result<Vec<_>, _> = ends.iter().map(lease).map(serde_json::to_value).collect();
        let request = Request::Suggest(vec![Suggestion {
            name: PeerName::Host("model-hosts".to_owned()),
            rows: rows.context("cannot write what hosts report")?,
        }]);
        let taken = client::ask(socket, &request).and_then(|reply| match reply {
            Reply::Suggested(taken) => Ok(taken.into_iter().next().unwrap_or_default()),
            other => Err(other.unexpected()),
        });
        let taken = taken.context("the switch does not take what hosts report")?;
        let mut refused = taken.refused.keys();
        if let Some(reason) = refused.find(|reason| *reason != RefusedEnd::NotBehindPort.name()) {
            bail!(
                "the switch refuses what hosts report: {reason}; see docs/pairing.md, \"Foreign ends\""
            );
        }
    }
    Ok(())
}

/// Returns the lease of an end. It holds as long as any lease may: hosts do not renew it here.
fn lease(end: &ReportedEnd) -> EndRow {
    let lease = Lease {
        to: end.key.dst(),
        from: Some(end.key.src()),
        queue_pair: end.key.dest_qp().get(),
        remote_queue_pair: end.partner.map_or(0, Qpn::get),
        udp_port: NonZeroU16::new(end.udp_port),
    };
    EndRow::Lease(ReportedLease {
        lease,
        expires: u64::MAX,
    })
}

/// Totals of a run, as reported by the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Largest depth of the watched queue, in wire bytes.
    pub peak: u64,
    /// Frames that the watched queue marked CE.
    pub marked: u64,
    /// CNPs that the switch sent.
    pub cnps: u64,
    /// Frames that the switch dropped, for whatever reason.
    pub dropped: u64,
    /// Number of turns of the detector.
    pub ticks: u64,
    /// Number of those turns that were late by more than half a tick.
    pub ticks_late: u64,
}

fn queue(snapshot: &Snapshot, port: usize) -> Option<&Queue> {
    let port = snapshot.ports.get(port)?;
    port.queues.iter().find(|queue| queue.priority == DATA)
}
