//! Crashes of a switch of every kind, and the state compared before and after.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use npcc_testkit::wait;

use super::{Lab, Running};

/// A way to crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// A panic at a place of `engine/src/fault.rs`.
    Panic(&'static str),
    /// `abort` in the management thread.
    Abort,
    /// A signal sent by another process.
    Signal(&'static str),
    /// A thread hangs at a place of `engine/src/fault.rs`, and the process gets SIGABRT, as from systemd's watchdog.
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

    /// Has a switch that was started to try what is forbidden do so once it said `sandbox`; returns what it said until then.
    pub fn tries_what_is_forbidden(&self, sandbox: &str) -> String {
        self.lab.answers();
        self.until(sandbox, || self.said().contains(sandbox));
        fs::write(self.lab.path("now"), "").unwrap();
        self.until("what is forbidden is tried", || {
            self.said().contains("forbidden: another root")
        });
        self.said()
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
                self.lab.answers();
                fs::write(self.lab.path("now"), "").unwrap();
            }
            Crash::Signal(signal) => {
                self.lab.answers();
                signal_until_dead(child, signal);
            }
            Crash::Stuck(_) => {
                let stuck = || self.said().contains("has not moved for 1 s");
                self.until("a thread is named as stuck", stuck);
                signal_until_dead(child, "ABRT");
            }
        }
        let ended = child.wait().unwrap();
        assert!(!ended.success(), "{how:?}: {ended}");
        let _ = fs::remove_file(self.lab.path("now"));
    }

    /// Waits until `holds` returns true.
    pub fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let awaited = || format!("{what}: {}", self.said());
        wait::value(wait::LONG, awaited, || holds().then_some(()));
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
    let id = child.id().to_string();
    wait::until(&format!("its end by {signal}"), wait::LONG, || {
        let _ = Command::new("kill").args(["-s", signal, &id]).status();
        child.try_wait().unwrap().is_some()
    });
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
