//! A switch that Linux is integrated with, between two hosts of the kernel that know no MAC address of it.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::manager::Manager;
use super::net::{Net, Space, run, strange_hosts};
use super::{Lab, Running, assert_success};

/// A switch between two hosts, in a namespace of its own.
pub struct Rack {
    pub net: Net,
    pub space: Space,
    pub lab: Lab,
    pub switch: Running,
}

impl Rack {
    /// Started, and answering.
    pub fn new(test: &str, more: &str) -> Rack {
        let net = strange_hosts();
        let space = Space::of(test);
        let lab = Lab::new();
        lab.config(&text(&net, &space, "10.0.2.1/24, '2001:db8:2::1/64'", more));
        let switch = lab.start(&["--stats-json", "stats.json"]);
        let rack = Rack {
            net,
            space,
            lab,
            switch,
        };
        rack.answers();
        rack
    }

    /// As [`Rack::new`], with a service manager that keeps descriptors for the switch.
    pub fn managed(test: &str, more: &str) -> (Rack, Manager) {
        let net = strange_hosts();
        let space = Space::of(test);
        let lab = Lab::new();
        lab.config(&text(&net, &space, "10.0.2.1/24, '2001:db8:2::1/64'", more));
        let run = lab.command(&["run", "-c", "switch.yaml"]);
        let manager = Manager::start(lab.dir.path(), &run);
        let rack = Rack {
            net,
            space,
            lab,
            switch: Running(None),
        };
        rack.answers();
        (rack, manager)
    }

    /// Waits until it does.
    pub fn answers(&self) {
        self.until("it answers", |rack| {
            rack.lab.path("switch.sock").exists() && !rack.show("ports").is_null()
        });
    }

    /// What a command says in the namespace of a host.
    pub fn host(&self, side: &str, command: &str) -> (bool, String) {
        let words = command.split_whitespace();
        let output = std::process::Command::new("ip")
            .args(["netns", "exec", &self.net.space(side)])
            .args(words)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (
            output.status.success(),
            text + &String::from_utf8_lossy(&output.stderr),
        )
    }

    /// Whether a host reaches an address.
    pub fn pings(&self, side: &str, address: &str) -> bool {
        self.host(side, &format!("ping -n -c 1 -W 1 {address}")).0
    }

    /// A table of `show`; null while the switch does not answer.
    pub fn show(&self, what: &str) -> Value {
        let mut all = vec!["show"];
        all.extend(what.split_whitespace());
        all.extend(["--json", "--socket", "switch.sock"]);
        let output = self.lab.command(&all).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// Gives an order that must be obeyed.
    pub fn order(&self, what: &str) {
        let mut all: Vec<&str> = what.split_whitespace().collect();
        all.extend(["--socket", "switch.sock"]);
        assert_success(&self.lab.command(&all).output().unwrap());
    }

    /// Waits until something holds, 20 s at most.
    pub fn until(&self, what: &str, holds: impl Fn(&Rack) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !holds(self) {
            assert!(
                Instant::now() < deadline,
                "{what}: {:#}\n{:#}",
                self.show("linux"),
                self.show("routes")
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What is said of a port.
    pub fn port(&self, index: usize, key: &str) -> String {
        self.show("ports")[index][key]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// No route differs from the kernel's.
    pub fn agrees(&self, when: &str) {
        let differs = self.show("routes --diff");
        assert_eq!(differs, Value::Array(vec![]), "{when}");
    }

    /// Ends the switch; what it said, and its account of all frames.
    pub fn end(mut self) -> (String, Value) {
        let switch = self.switch.0.take().unwrap();
        run(&format!("kill -TERM {}", switch.id()));
        let output = switch.wait_with_output().unwrap();
        assert_success(&output);
        let text = std::fs::read_to_string(self.lab.path("stats.json")).unwrap();
        let stats: Value = serde_json::from_str(&text).unwrap();
        (String::from_utf8_lossy(&output.stderr).into_owned(), stats)
    }
}

/// A configuration of it; `wan` are the addresses of its second port, `more` what stands behind.
pub fn text(net: &Net, space: &Space, wan: &str, more: &str) -> String {
    format!(
        "version: 1
dpdk: {{ eal_args: [\"--no-pci\", \"--in-memory\"] }}
ports:
  - {{ name: dc0, device: \"{}\", mac: \"02:00:00:00:01:01\", addresses: [10.0.1.1/24, \"2001:db8:1::1/64\"] }}
  - {{ name: wan0, device: \"{}\", mac: \"02:00:00:00:02:01\", mtu: 1500, addresses: [{wan}] }}
qos: {{ profile: lossy }}
buffer: {{ pool: 8MB }}
linux: {{ integrate: true, netns: {} }}
{more}",
        net.jumbo_device(0, "dc"),
        net.jumbo_device(1, "wan"),
        space.0
    )
}

/// Waits until something holds; how long that took.
pub fn wait(what: &str, most: Duration, holds: impl Fn() -> bool) -> Duration {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < most, "{what}: not within {most:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    began.elapsed()
}
