//! Switch in a process of its own, as it runs in production.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use npcc_api::client::blocking as client;
use npcc_api::model::Snapshot;
use npcc_api::protocol::{Reply, Request};
use npcc_api::query::Query;

use npcc_engine::recorder::place;

/// Time limit for a switch to come up; loading a full table takes long.
const START: Duration = Duration::from_secs(120);

/// Prefixes of the names of the worker threads: those of DPDK 22.11, and since 23.11.
const WORKER_THREADS: [&str; 2] = ["rte-worker", "dpdk-worker"];

/// Running switch; dropping this stops it.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    socket: PathBuf,
}

impl Running {
    /// Starts `run` with this configuration, whose socket is `s.sock` in `folder`, and waits until it answers.
    pub(super) fn start(folder: &Path, config: &str, args: &[OsString]) -> anyhow::Result<Running> {
        let file = folder.join("bench.yaml");
        fs::write(&file, config).context("cannot write the configuration")?;
        let log = folder.join("log");
        let program = std::env::current_exe().context("cannot find this program's file")?;
        let mut command = Command::new(program);
        command.arg("run").arg("-c").arg(&file).args(args);
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

    pub(super) fn snapshot(&self) -> anyhow::Result<Snapshot> {
        match self.ask(&Request::Snapshot)? {
            Reply::Snapshot(snapshot) => Ok(*snapshot),
            _ => Err(anyhow!("the switch answered something else")),
        }
    }

    /// Resets watermarks and distributions.
    pub(super) fn clear(&self) -> anyhow::Result<()> {
        match self.ask(&Request::ClearWatermarks)? {
            Reply::Done => Ok(()),
            _ => Err(anyhow!("the switch answered something else")),
        }
    }

    pub(super) fn ask(&self, request: &Request) -> anyhow::Result<Reply> {
        client::ask(&self.socket, request)
    }

    /// Requests all rows of a table, and discards them.
    pub(super) fn rows(&self, table: &str) -> anyhow::Result<()> {
        client::ask_rows(&self.socket, table, &Query::default(), |_| Ok(())).map(drop)
    }

    /// Returns the CPU time of the worker so far, in ns.
    pub(super) fn cpu(&self) -> anyhow::Result<u64> {
        let tasks = format!("/proc/{}/task", self.child.id());
        for task in fs::read_dir(&tasks).context("the switch is gone")? {
            let task = task?.path();
            let name = fs::read_to_string(task.join("comm")).unwrap_or_default();
            if WORKER_THREADS.iter().any(|prefix| name.starts_with(prefix)) {
                let account = fs::read_to_string(task.join("schedstat"))?;
                let first = account.split_whitespace().next().unwrap_or_default();
                return first
                    .parse()
                    .context("the scheduler's account is not a number");
            }
        }
        Err(anyhow!("the switch has no worker thread"))
    }

    pub(super) fn stop(&mut self) {
        // A process already gone is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The flight recorder of a killed switch stays for the next start, and there is none.
        let _ = fs::remove_file(place::shared(&self.socket));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}
