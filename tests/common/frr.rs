//! FRR as Debian ships it, with its daemons started one by one in a namespace of the test's own.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use npcc_testkit::wait;
use serde_json::Value;
use tempfile::TempDir;

use super::net::run;
use super::rack::Rack;

/// Daemons of a router, in the order they start.
const DAEMONS: [&str; 4] = ["zebra", "bgpd", "bfdd", "ospfd"];

/// A router of the test's own; its daemons end when it is dropped.
pub struct Frr {
    space: String,
    folder: TempDir,
    daemons: Vec<(&'static str, Child)>,
    /// More options of zebra.
    zebra: &'static [&'static str],
}

/// Returns true if bfdd has a control socket, which several daemons in one place would take from each other: FRR had it until 10.0.
fn has_control_socket() -> bool {
    let help = Command::new("/usr/lib/frr/bfdd").arg("--help").output();
    String::from_utf8_lossy(&help.unwrap().stdout).contains("--bfdctl")
}

impl Frr {
    /// Starts FRR in a namespace, with a configuration for each daemon but bfdd; a daemon without one is not started.
    pub fn start(space: &str, zebra: &str, bgpd: &str, ospfd: &str) -> Frr {
        Frr::start_with(space, &[], [zebra, bgpd, "! no more\n", ospfd])
    }

    /// Starts FRR in a namespace, with more options of zebra and a configuration for each of [`DAEMONS`].
    pub fn start_with(space: &str, options: &'static [&'static str], texts: [&str; 4]) -> Frr {
        let folder = tempfile::tempdir().unwrap();
        run(&format!("chown frr:frr {}", folder.path().display()));
        let mut frr = Frr {
            space: space.to_owned(),
            folder,
            daemons: Vec::new(),
            zebra: options,
        };
        for (daemon, text) in DAEMONS.into_iter().zip(texts) {
            std::fs::write(frr.path(&format!("{daemon}.conf")), text).unwrap();
            if !text.is_empty() {
                frr.launch(daemon);
            }
        }
        frr
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the folder of its daemons' sockets.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts a daemon; also restarts one that was ended by [`Frr::signal`].
    pub fn launch(&mut self, daemon: &'static str) {
        let of = |name: &str| self.path(name).into_os_string();
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.space])
            .arg(format!("/usr/lib/frr/{daemon}"))
            .args(["-u", "frr", "-g", "frr", "-P", "0", "-f"])
            .arg(of(&format!("{daemon}.conf")))
            .arg("-i")
            .arg(of(&format!("{daemon}.pid")))
            .arg("-z")
            .arg(of("zserv.api"))
            .arg("--vty_socket")
            .arg(self.folder.path())
            .arg("--log")
            .arg(format!(
                "file:{}",
                self.path(&format!("{daemon}.log")).display()
            ));
        match daemon {
            "zebra" => drop(command.args(["-s", "16777216"]).args(self.zebra)),
            "bfdd" if has_control_socket() => drop(command.arg("--bfdctl").arg(of("bfdd.sock"))),
            _ => {}
        }
        if daemon == "bgpd" {
            // Its BFD client uses the session's own socket in zebra, not this one.
            command.args(["-p", "179"]);
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // The others need zebra's socket.
        let up = self.path(&format!("{daemon}.vty"));
        let log = self.path(&format!("{daemon}.log"));
        wait::until(daemon, wait::LONG, || {
            if let Some(status) = child.try_wait().unwrap() {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                panic!("{daemon} ended with {status}: {said}");
            }
            up.exists()
        });
        self.daemons.push((daemon, child));
    }

    /// Sends a daemon a signal, such as `KILL` or `STOP`.
    pub fn signal(&mut self, daemon: &str, signal: &str) {
        let at = self
            .daemons
            .iter()
            .position(|(name, _)| *name == daemon)
            .unwrap();
        run(&format!("kill -{signal} {}", self.daemons[at].1.id()));
        if signal == "KILL" {
            let (_, mut child) = self.daemons.remove(at);
            let _ = child.wait();
            let _ = std::fs::remove_file(self.path(&format!("{daemon}.vty")));
        }
    }

    /// Runs commands in vtysh and returns the output; commands after `configure terminal` apply in sequence.
    pub fn vtysh(&self, commands: &[&str]) -> String {
        // Without a timeout, a daemon that does not answer would block until the test is ended, which explains nothing.
        let mut vtysh = Command::new("timeout");
        vtysh.args(["10", "vtysh", "--vty_socket"]);
        vtysh.arg(self.folder.path());
        for command in commands {
            vtysh.args(["-c", command]);
        }
        let output = vtysh.stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Loads a configuration file.
    pub fn vtysh_file(&self, file: &Path) {
        let mut vtysh = Command::new("vtysh");
        vtysh.arg("--vty_socket").arg(self.folder.path());
        let output = vtysh.arg("-f").arg(file).stdin(Stdio::null()).output();
        super::assert_success(&output.unwrap());
    }

    /// Returns the parsed output of a command that ends in `json`.
    pub fn json(&self, command: &str) -> Value {
        serde_json::from_str(&self.vtysh(&[command])).unwrap_or_default()
    }

    /// Returns true if all of these BGP neighbours are established.
    pub fn established(&self, neighbors: &[&str]) -> bool {
        let all = self.json("show bgp neighbors json");
        let is = |name: &&str| all[*name]["bgpState"] == "Established";
        neighbors.iter().all(is)
    }

    /// Returns the number of times a neighbour's session was established.
    pub fn times(&self, neighbor: &str) -> u64 {
        let all = self.json("show bgp neighbors json");
        all[neighbor]["connectionsEstablished"]
            .as_u64()
            .unwrap_or(0)
    }

    /// Returns true if BFD has exactly `peers` peers and all are up.
    pub fn bfd_up(&self, peers: usize) -> bool {
        let all = self.json("show bfd peers json");
        let all = all.as_array().cloned().unwrap_or_default();
        all.len() == peers && all.iter().all(|peer| peer["status"] == "up")
    }

    /// Returns the number of times BFD's sessions went down.
    pub fn downs(&self) -> u64 {
        let all = self.json("show bfd peers counters json");
        let all = all.as_array().cloned().unwrap_or_default();
        all.iter()
            .filter_map(|peer| peer["session-down"].as_u64())
            .sum()
    }

    /// Returns the logs of its daemons.
    pub fn logs(&self) -> String {
        let texts = DAEMONS.map(|daemon| {
            std::fs::read_to_string(self.path(&format!("{daemon}.log"))).unwrap_or_default()
        });
        texts.concat()
    }

    /// Writes lines to a file in its folder, for example a configuration to be loaded.
    pub fn write(&self, name: &str, lines: impl Iterator<Item = String>) -> PathBuf {
        let path = self.path(name);
        let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
        for line in lines {
            writeln!(file, "{line}").unwrap();
        }
        path
    }
}

impl Drop for Frr {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let said = self.vtysh(&[
                "show interface brief",
                "show bgp summary",
                "show bfd peers brief",
                "show ip route",
                "show ip ospf neighbor",
            ]);
            eprintln!("{}: {said}\n{}", self.space, self.logs());
        }
        for (_, child) in self.daemons.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts FRR on a host that speaks BGP with the switch and has a prefix of each family.
pub fn bgp_host(rack: &Rack, side: &str, number: u8, peer: &str, remote: &str) -> Frr {
    let (space, link) = (rack.net.space(side), rack.net.link(&format!("h{side}")));
    for command in [
        format!("ip -n {space} route del default"),
        format!("ip -n {space} -6 route del default"),
        format!("ip -n {space} addr add 10.{number}.0.1/32 dev lo"),
        format!("ip -n {space} addr add 2001:db8:{number}::1/128 dev lo"),
    ] {
        run(&command);
    }
    let peer = if peer == "unnumbered" {
        link
    } else {
        peer.to_owned()
    };
    let bgpd = format!(
        "router bgp 65{number}
 bgp router-id 10.{number}.0.1
 no bgp ebgp-requires-policy
 no bgp network import-check
 timers bgp 1 3
 neighbor {peer} {remote}
 neighbor {peer} bfd
 neighbor {peer} timers connect 1
 neighbor {peer} advertisement-interval 0
 address-family ipv4 unicast
  network 10.{number}.0.0/16
 exit-address-family
 address-family ipv6 unicast
  neighbor {peer} activate
  network 2001:db8:{number}::/48
 exit-address-family
"
    );
    Frr::start(&space, "! none\n", &bgpd, "")
}
