//! Real nats-servers, feeds as processes, and switches that speak the management protocol from a thread.

#![allow(unreachable_pub, reason = "shared by test files as a module")]

pub mod fake_switch;
pub mod nats;
pub mod published;

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub use fake_switch::{FakeSwitch, end};
pub use nats::Nats;

/// Child process that is killed however the test ends.
#[derive(Debug)]
pub struct Process(pub Child);

impl Process {
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().try_into().unwrap()), signal).unwrap();
    }

    /// Resident memory in KiB.
    pub fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Kills the process, which leaves no time for anything.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes a file of mode 0600.
pub fn write(path: &Path, text: &str) {
    use std::io::Write;
    let _ = fs::remove_file(path);
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

pub fn feed(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_npcc-feed"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A box: a switch in a thread, and a feed as a process.
#[derive(Debug)]
pub struct Edge {
    pub switch: FakeSwitch,
    pub feed: Process,
    pub settings: PathBuf,
}

impl Edge {
    /// Starts box `edge-NUMBER` of a pair at these servers, with this password.
    pub fn start(folder: &Path, number: usize, servers: &[String], password: &str) -> Edge {
        Edge::changed(folder, number, servers, password, |text| text)
    }

    /// Starts it with its settings changed.
    pub fn changed(
        folder: &Path,
        number: usize,
        servers: &[String],
        password: &str,
        change: impl Fn(String) -> String,
    ) -> Edge {
        let switch = FakeSwitch::start(&folder.join(format!("switch-{number}.sock")));
        let settings = settings(folder, number, servers, password, &switch.socket);
        let text = fs::read_to_string(&settings).unwrap();
        write(&settings, &change(text));
        let mut command = Command::new(env!("CARGO_BIN_EXE_npcc-feed"));
        command.args(["run", "-c", settings.to_str().unwrap()]);
        let feed = Process(command.stdin(Stdio::null()).spawn().unwrap());
        Edge {
            switch,
            feed,
            settings,
        }
    }

    /// Returns this box's state as the fleet sees it.
    pub fn state(&self) -> serde_json::Value {
        let out = feed(&["fleet", "--json", "-c", self.settings.to_str().unwrap()]);
        assert!(out.status.success(), "{}", text(&out.stderr));
        let states: Vec<serde_json::Value> = serde_json::from_slice(&out.stdout).unwrap();
        let own = self.settings.file_stem().unwrap().to_str().unwrap();
        states
            .into_iter()
            .find(|state| state["box"] == own)
            .unwrap()
    }
}

/// Returns true if `npcc-feed fleet` with these settings has a row that begins with these words.
pub fn has_row(settings: &Path, row: &str) -> bool {
    let out = feed(&["fleet", "-c", settings.to_str().unwrap()]);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ") + " ";
    let row = row.to_owned() + " ";
    text(&out.stdout)
        .lines()
        .any(|line| words(line).starts_with(&row))
}

/// Writes the settings of box `edge-NUMBER`.
pub fn settings(
    folder: &Path,
    number: usize,
    servers: &[String],
    password: &str,
    socket: &Path,
) -> PathBuf {
    let path = folder.join(format!("edge-{number}.yaml"));
    let secret = folder.join(format!("edge-{number}.password"));
    write(&secret, password);
    let text = format!(
        "site: dc1\nbox: edge-{number}\npeers: [edge-{}]\nbus:\n  servers: [{}]\n  user: edge-{number}\n  password_file: {}\nswitch: {{ socket: {socket}, control: {socket} }}\nleases: true\n",
        3 - number,
        servers.join(", "),
        secret.display(),
        socket = socket.display(),
    );
    write(&path, &text);
    path
}

/// A pair of boxes at these servers.
pub fn pair(folder: &Path, servers: &[String]) -> [Edge; 2] {
    [1, 2].map(|number| Edge::start(folder, number, servers, &format!("change-me-{number}")))
}

/// Returns true if each switch was given exactly the other's ends.
pub fn is_exchanged(pair: &[Edge; 2]) -> bool {
    pair[0].switch.suggested("edge-2") == pair[1].switch.table()
        && pair[1].switch.suggested("edge-1") == pair[0].switch.table()
}
