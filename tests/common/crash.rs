//! Crashes of a switch of every kind, and the state compared before and after.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Lab, Running};

/// Configuration whose ports need nothing from the machine.
pub const NULL_PORTS: &str = "version: 1
dpdk: { eal_args: [\"--no-pci\"] }
ports:
  - { name: dc0, device: net_null0, addresses: [10.0.1.1/24] }
  - { name: wan0, device: \"net_null1,no-rx=1\", addresses: [10.0.2.1/24] }
buffer: { pool: 4MB }
qos: { profile: lossy }
";

/// A way to crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// A panic at a place of `switch/src/fault.rs`.
    Panic(&'static str),
    /// `abort` in the management thread.
    Abort,
    /// A signal sent by another process.
    Signal(&'static str),
    /// A thread hangs at a place of `switch/src/fault.rs`, and the process gets SIGABRT, as from systemd's watchdog.
    Stuck(&'static str),
}

impl Crash {
    /// Every way to crash.
    pub const ALL: [Crash; 9] = [
        Crash::Panic("worker"),
        Crash::Panic("control"),
        Crash::Panic("manage"),
        Crash::Abort,
        Crash::Signal("KILL"),
        Crash::Signal("SEGV"),
        Crash::Stuck("worker-stuck"),
        Crash::Stuck("control-stuck"),
        Crash::Stuck("link-stuck"),
    ];

    fn fault(self) -> Option<&'static str> {
        match self {
            Crash::Panic(place) | Crash::Stuck(place) => Some(place),
            Crash::Abort => Some("abort"),
            Crash::Signal(_) => None,
        }
    }
}

/// A switch in a lab; the test acts as its service manager.
pub struct Victim {
    pub lab: Lab,
}

impl Victim {
    /// Prepares a lab whose configuration is written.
    pub fn of(lab: Lab) -> Victim {
        let socket = UnixDatagram::bind(lab.path("notify")).unwrap();
        fs::create_dir(lab.path("state")).unwrap();
        // A service manager that does not read its socket blocks the process that notifies it.
        std::thread::spawn(move || {
            let mut line = [0; 4096];
            while socket.recv(&mut line).is_ok() {}
        });
        Victim { lab }
    }

    /// Starts the switch; a crash is reported if `reports`.
    pub fn start(&self, fault: Option<&str>, reports: bool) -> Running {
        let mut command = self.lab.command(&["run", "-c", "switch.yaml"]);
        command.env("NOTIFY_SOCKET", self.lab.path("notify"));
        command.env("WATCHDOG_USEC", "2000000");
        if let Some(fault) = fault {
            command.env("NPCC_FAULT", fault);
            command.env("NPCC_FAULT_UNTIL", self.lab.path("now"));
        }
        if reports {
            command.env("STATE_DIRECTORY", self.lab.path("state"));
        }
        let said = fs::File::options()
            .create(true)
            .append(true)
            .open(self.lab.path("stderr"));
        let child = command.stdout(Stdio::null()).stderr(said.unwrap()).spawn();
        Running::of(child.unwrap())
    }

    /// Starts the switch and makes it crash in this way.
    pub fn crash(&self, how: Crash) {
        let mut switch = self.start(how.fault(), false);
        let child = switch.0.as_mut().unwrap();
        match how {
            Crash::Panic(_) => {}
            Crash::Abort => {
                self.await_answer();
                fs::write(self.lab.path("now"), "").unwrap();
            }
            Crash::Signal(signal) => {
                self.await_answer();
                signal_until_dead(child, signal);
            }
            Crash::Stuck(_) => {
                let stuck = || self.said().contains("has not moved for 1 s");
                self.wait("nobody is named as stuck", stuck);
                signal_until_dead(child, "ABRT");
            }
        }
        let ended = child.wait().unwrap();
        assert!(!ended.success(), "{how:?}: {ended}");
        let _ = fs::remove_file(self.lab.path("now"));
    }

    /// Waits until the switch answers `show ports`.
    pub fn await_answer(&self) {
        let socket = self.lab.path("switch.sock");
        let shown = ["show", "ports", "--socket", socket.to_str().unwrap()];
        self.wait("it does not answer", || {
            let output = self.lab.command(&shown).output().unwrap();
            output.status.success()
        });
    }

    /// Waits, at most 40 s, until `so` returns true; panics with `or` if it does not.
    pub fn wait(&self, or: &str, mut so: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(40);
        while !so() {
            assert!(Instant::now() < deadline, "{or}: {}", self.said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns what all runs wrote to standard error.
    pub fn said(&self) -> String {
        fs::read_to_string(self.lab.path("stderr")).unwrap_or_default()
    }

    /// Returns the paths of the crash reports, sorted.
    pub fn reports(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.lab.path("state")).unwrap();
        let paths = all.map(|entry| entry.unwrap().path());
        let mut reports: Vec<PathBuf> = paths
            .filter(|path| path.extension().is_some_and(|end| end == "gz"))
            .collect();
        reports.sort();
        reports
    }

    /// Returns the names in the lab's folder.
    pub fn names(&self) -> BTreeSet<String> {
        let all = fs::read_dir(self.lab.dir.path()).unwrap();
        all.map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

/// Sends a signal until the process is gone: a Rust program survives one SIGSEGV that no fault caused.
pub fn signal_until_dead(child: &mut Child, signal: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "it survives {signal}");
        let id = child.id().to_string();
        let _ = Command::new("kill").args(["-s", signal, &id]).status();
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Returns the number of descriptors a process has open.
pub fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Returns the IDs of the processes that a process has started and not waited for.
pub fn children(pid: u32) -> String {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of = |task: PathBuf| fs::read_to_string(task.join("children")).unwrap_or_default();
    tasks.map(|task| of(task.unwrap().path())).collect()
}

/// Returns the names in a folder that contain this text.
pub fn named(folder: &Path, text: &str) -> Vec<String> {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains(text)).collect()
}

/// Returns the names of EAL's files of this program's switches, as the process's arguments do not tell them.
pub fn eal_files() -> BTreeSet<String> {
    let folders = ["/dev/hugepages", "/run/dpdk"];
    let all = folders
        .iter()
        .flat_map(|folder| named(Path::new(folder), "npcc-"));
    all.collect()
}
