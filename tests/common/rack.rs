//! A switch with Linux integrated, between two hosts of the kernel that know no MAC address of it.

use std::process::Stdio;

use npcc_testkit::wait;
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
    /// Starts the switch and waits until it answers.
    pub fn new(test: &str, more: &str) -> Rack {
        let net = strange_hosts();
        let space = Space::of(test);
        let lab = Lab::with(&text(&net, &space, "10.0.2.1/24, '2001:db8:2::1/64'", more));
        Rack::start(net, space, lab)
    }

    /// Starts the switch of a lab whose configuration is written, and waits until it answers.
    pub fn start(net: Net, space: Space, lab: Lab) -> Rack {
        let switch = lab.start(&["--stats-json", "stats.json"]);
        let rack = Rack {
            net,
            space,
            lab,
            switch,
        };
        rack.lab.answers();
        rack
    }

    /// Starts the switch like [`Rack::new`], under a service manager that keeps descriptors for it.
    pub fn managed(test: &str, more: &str) -> (Rack, Manager) {
        let net = strange_hosts();
        let space = Space::of(test);
        let lab = Lab::with(&text(&net, &space, "10.0.2.1/24, '2001:db8:2::1/64'", more));
        let run = lab.command(&["run", "-c", "switch.yaml"]);
        let manager = Manager::start(lab.dir.path(), &run);
        let rack = Rack {
            net,
            space,
            lab,
            switch: Running(None),
        };
        rack.lab.answers();
        (rack, manager)
    }

    /// Runs a command in the namespace of a host; returns whether it succeeded, and its output.
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

    /// Returns true if a host reaches an address.
    pub fn pings(&self, side: &str, address: &str) -> bool {
        self.host(side, &format!("ping -n -c 1 -W 1 {address}")).0
    }

    /// Returns a table of `show`; null while the switch does not answer.
    pub fn show(&self, what: &str) -> Value {
        self.lab.show(what)
    }

    /// Runs a command of the switch's CLI that must succeed.
    pub fn order(&self, what: &str) {
        let words: Vec<&str> = what.split_whitespace().collect();
        self.lab.done(&words);
    }

    /// Waits until `holds` returns true.
    pub fn until(&self, what: &str, holds: impl Fn(&Rack) -> bool) {
        let tables = ["linux", "routes"];
        let awaited = || format!("{what}: {:#?}", tables.map(|table| self.show(table)));
        wait::value(wait::LONG, awaited, || holds(self).then_some(()));
    }

    /// Returns a text value of a port in `show ports`.
    pub fn port(&self, index: usize, key: &str) -> String {
        self.show("ports")[index][key]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Waits until no route differs from the kernel's, which the switch follows.
    pub fn agrees(&self, when: &str) {
        let differs = || self.show("routes --diff");
        let awaited = || format!("the same routes {when}: {}", differs());
        let agree = || differs() == Value::Array(vec![]);
        wait::value(wait::LONG, awaited, || agree().then_some(()));
    }

    /// Ends the switch; returns its output, and its account of all frames.
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

/// Returns the configuration of the switch, whose threads sleep when idle; `wan` are the addresses of its second port, `more` is appended.
pub fn text(net: &Net, space: &Space, wan: &str, more: &str) -> String {
    format!(
        "version: 1
dpdk: {{ eal_args: [--no-pci], hugepages: off }}
cores: {{ control: 0, workers: [1], idle: adaptive }}
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
