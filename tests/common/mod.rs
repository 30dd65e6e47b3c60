//! A switch as a child process on captures, and the oracles that read its output.
#![allow(unreachable_pub, reason = "shared by test files as a module")]

pub mod busy;
pub mod cards;
pub mod crash;
pub mod fifty;
pub mod forge;
pub mod frr;
pub mod http;
pub mod manager;
pub mod net;
pub mod rack;
pub mod switch;

use std::fmt::Write as _;
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use npcc_api::model::Snapshot;
use npcc_appliance::wiring::eal;
use npcc_engine::recorder::place;
pub use npcc_testkit::python::python;
use serde::Deserialize;
use tempfile::TempDir;

use self::switch::Switch;

/// Configuration whose ports need nothing from the machine and receive nothing.
pub const NULL_PORTS: &str = "version: 1
dpdk: { eal_args: [--no-pci], hugepages: off }
cores: { control: 0, workers: [1], idle: adaptive }
ports:
  - { name: dc0, device: \"net_null0,no-rx=1\", addresses: [10.0.1.1/24] }
  - { name: wan0, device: \"net_null1,no-rx=1\", addresses: [10.0.2.1/24] }
buffer: { pool: 4MB }
qos: { profile: lossy }
";

/// Serialises tests, as switches poll two cores: one at a time in this process (and in others by nextest's test group).
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the duration in seconds of a test that can last longer: `NPCC_SECONDS` if set, or `least`.
pub fn seconds(least: u64) -> u64 {
    std::env::var("NPCC_SECONDS").map_or(least, |text| text.parse().unwrap())
}

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns a command that runs the program under test. nextest decides which tests run beside each other, so plain `cargo test` is refused.
pub fn switch() -> Command {
    assert!(
        std::env::var_os("NEXTEST").is_some(),
        "these tests start switches that poll two cores: cargo nextest run -p npcc-switch --test process process:: NAME"
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_npcc-switch"));
    command.stdin(Stdio::null());
    command
}

/// A child process that is killed however the test ends: a switch left behind would poll two cores for ever.
pub struct Running(pub Option<Child>);

impl Running {
    /// Takes over a process that was started.
    pub fn of(child: Child) -> Running {
        Running(Some(child))
    }

    /// Sends a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        net::run(&format!("kill -{name} {}", self.id()));
    }

    /// Waits until the process has ended by itself, or by a signal sent before.
    pub fn wait_with_output(mut self) -> io::Result<Output> {
        self.0.take().unwrap().wait_with_output()
    }
}

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.0.as_ref().unwrap()
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            if !std::thread::panicking() {
                let _ = child.wait();
            } else if let Ok(output) = child.wait_with_output() {
                eprintln!(
                    "{}: {}",
                    output.status,
                    String::from_utf8_lossy(&output.stderr)
                );
            }
        }
    }
}

/// A folder that is removed at the end, with the recorders that killed switches left in `/dev/shm` and EAL's empty folder.
pub struct Folder(TempDir);

impl Deref for Folder {
    type Target = TempDir;

    fn deref(&self) -> &TempDir {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Usually there is none.
        let socket = self.0.path().join("switch.sock");
        let _ = std::fs::remove_file(place::shared(&socket));
        let prefix = eal::file_prefix(&socket.to_string_lossy());
        let _ = std::fs::remove_dir(Path::new("/run/dpdk").join(prefix));
        let all = std::fs::read_dir("/dev/shm").into_iter().flatten();
        for path in all.flatten().map(|entry| entry.path()) {
            let ours = place::read(&path)
                .is_ok_and(|recorder| recorder.folder == self.0.path().to_string_lossy());
            if ours {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

/// A folder with a configuration in it, which is removed with the last copy of this.
#[derive(Clone)]
pub struct Lab {
    pub dir: Arc<Folder>,
    /// Network namespace its commands run in; `None` for this process's own.
    space: Option<String>,
}

impl Lab {
    pub fn new() -> Lab {
        Lab {
            dir: Arc::new(Folder(tempfile::tempdir().unwrap())),
            space: None,
        }
    }

    /// Creates a lab with this configuration.
    pub fn with(yaml: &str) -> Lab {
        let lab = Lab::new();
        lab.config(yaml);
        lab
    }

    /// Creates a lab whose commands run in a network namespace, as on a machine of their own.
    pub fn inside(space: String) -> Lab {
        Lab {
            space: Some(space),
            ..Lab::new()
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes the configuration, with a socket of its own.
    pub fn config(&self, yaml: &str) -> PathBuf {
        let mut text = yaml.to_owned();
        if !text.contains("telemetry:") {
            write!(
                text,
                "\ntelemetry: {{ socket: {} }}\n",
                self.path("switch.sock").display()
            )
            .unwrap();
        }
        let path = self.path("switch.yaml");
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = switch();
        if let Some(space) = &self.space {
            let program = command.get_program().to_owned();
            command = Command::new("ip");
            command
                .args(["netns", "exec", space])
                .arg(program)
                .stdin(Stdio::null());
        }
        command.current_dir(self.dir.path()).args(args);
        command
    }

    /// Starts `run` in the background.
    pub fn start(&self, args: &[&str]) -> Running {
        let mut all = vec!["run", "-c", "switch.yaml"];
        all.extend(args);
        let command = self
            .command(&all)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        Running::of(command.unwrap())
    }

    /// Runs the switch until `holds` returns true and returns the totals; the account of all frames must close.
    pub fn run_until(&self, what: &str, holds: impl Fn(&Switch) -> bool) -> Snapshot {
        let mut switch = Switch::start(self.clone());
        switch.until(what, || holds(&switch));
        let snapshot = switch.stop();
        assert_eq!(
            snapshot.conservation.held.packets, 0,
            "a stopped switch holds nothing"
        );
        snapshot
    }
}

/// Asserts that a distribution has samples, and that its quantiles do not decrease.
pub fn assert_distribution(times: &serde_json::Value) {
    let of = |name: &str| times[name].as_f64().unwrap();
    assert!(of("count") >= 1.0 && of("p50") > 0.0, "{times}");
    let all = ["p50", "p99", "p999", "max"].map(of);
    assert!(all.is_sorted(), "{times}");
}

pub fn assert_success(output: &Output) {
    assert!(
        output.status.success(),
        "{}\nstdout:\n{}\nstderr:\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A CNP as scapy reads it.
#[derive(Debug, Clone, Deserialize)]
pub struct ScapyCnp {
    pub src: String,
    pub dst: String,
    pub tos: u8,
    pub ttl: u8,
    pub sport: u16,
    pub dport: u16,
    pub vlan: Option<u16>,
    pub pcp: Option<u8>,
    pub dqpn: u32,
    pub becn: u8,
    pub fecn: u8,
    pub migreq: u8,
    pub pkey: u16,
    pub psn: u32,
    pub ackreq: u8,
    pub zeros: bool,
    pub icrc_ok: bool,
    pub checksums_ok: bool,
    pub eth_src: String,
    pub eth_dst: String,
}

impl ScapyCnp {
    /// Asserts the fields that are the same in every CNP of this switch (IBTA annex A17.9.3).
    pub fn assert_well_formed(&self) {
        assert!(self.icrc_ok && self.checksums_ok, "{self:?}");
        assert!(self.zeros, "{self:?}");
        assert_eq!(
            (self.becn, self.fecn, self.migreq, self.ackreq),
            (1, 0, 0, 0),
            "{self:?}"
        );
        assert_eq!(
            (self.pkey, self.psn, self.tos, self.ttl),
            (0xffff, 0, 0xc2, 64),
            "{self:?}"
        );
        assert_eq!((self.sport, self.dport), (0, 4791), "{self:?}");
    }
}

/// Returns the CNPs of a capture, as scapy reads them.
pub fn scapy_cnps(capture: &Path) -> Vec<ScapyCnp> {
    let python = python();
    let output = Command::new(&python)
        .arg(root().join("tests/oracle/verify_cnps.py"))
        .arg(capture)
        .output();
    let output = output.unwrap_or_else(|error| {
        panic!(
            "{} does not run ({error}): scripts/test sets up the virtual environment with scapy",
            python.display()
        )
    });
    assert_success(&output);
    let mut all: Vec<Vec<ScapyCnp>> = serde_json::from_slice(&output.stdout).unwrap();
    all.remove(0)
}

/// Returns `(destination address, destination QP)` of every CNP of a capture, as tshark reads them.
pub fn tshark_cnps(capture: &Path) -> Vec<(String, u32)> {
    let output = Command::new("tshark")
        .args([
            "-Y",
            "infiniband.bth.opcode == 129",
            "-T",
            "fields",
            "-e",
            "ip.dst",
            "-e",
            "ipv6.dst",
            "-e",
            "infiniband.bth.destqp",
            "-r",
        ])
        .arg(capture)
        .output()
        .unwrap_or_else(|error| panic!("tshark does not run ({error}): scripts/test installs it"));
    assert_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let address = if fields[0].is_empty() {
                fields[1]
            } else {
                fields[0]
            };
            let qp = u32::from_str_radix(fields[2].trim_start_matches("0x"), 16).unwrap();
            (address.to_owned(), qp)
        })
        .collect()
}
