//! `capture` and `trace packet` of a running switch: tshark reads the frames that the switch counted, and no capture stays on.

mod chosen;
mod dropped;
mod ends;
mod filters;
mod rate;
mod trace;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::common::switch::Switch;
use crate::common::{Lab, assert_success};
use npcc_pipeline::craft::Craft;
use npcc_pipeline::units::Mac;
use npcc_pipeline::wire::{checksum, mac_control};
use npcc_testkit::capture::{self, Captured};

/// Switch without Linux whose traffic meets every outcome possible there; wan0 is slow, and its peer pauses priority 4 without end.
const LOSING: &str = "version: 1
dpdk: { eal_args: [\"--no-pci\", \"--in-memory\"] }
ports:
  - { name: dc0, device: \"net_pcap0,rx_pcap=in.pcap,infinite_rx=1\", mac: \"02:00:00:00:01:01\", mtu: 3000, speed: 10G, pfc: send,
      addresses: [10.0.1.1/24], vlans: [ { id: 100, addresses: [10.0.100.1/24] } ] }
  - { name: wan0, device: \"net_pcap1,rx_pcap=back.pcap,infinite_rx=1\", mac: \"02:00:00:00:02:01\", mtu: 1500, speed: 100M,
      pfc: honour, addresses: [10.0.12.1/24], npcc: { queues: [3] } }
  - { name: dc1, device: \"net_null0,no-rx=1\", mac: \"02:00:00:00:03:01\", mtu: 9000, pfc: off, addresses: [10.0.13.1/24],
      vlans: [ { id: 300, addresses: [10.0.30.1/24] } ] }
routes: [ { prefix: 10.0.2.0/24, via: 10.0.12.2 }, { prefix: 10.0.4.0/24, via: 10.0.30.2 } ]
neighbors:
  - { address: 10.0.12.2, port: wan0, mac: \"02:00:00:00:02:02\" }
  - { address: 10.0.1.3, port: dc0, mac: \"02:00:00:00:01:03\" }
  - { address: 10.0.30.2, port: dc1, mac: \"02:00:00:00:03:02\" }
qos:
  trust: both
  pcp_to_priority: { 3: 3 }
  dscp_to_priority: { 26: 3, 34: 4, 8: 1, 10: 2 }
  priorities: { 3: { lossless: true, ecn: { kmin: 20KB, kmax: 40KB, pmax: 100% } }, 4: { lossless: true }, 0: { max_rate: 10M, wred: { min: 20KB, max: 40KB, prob: 100% } }, 1: { max_rate: 10M } }
buffer: { pool: 4MB }
pfc: { watchdog: { detect: 100ms, restore: 100ms, poll: 100ms } }
npcc: { tick: 2ms, recovery: 3ms, shallow: 20KB, deep: 100KB, gate: off, cnp: { cap: 0.1%, earned: 0B } }
";

fn roce(dst: &str, dscp: u8, payload: usize) -> Craft {
    Craft {
        tos: dscp << 2 | 2,
        ..Craft::roce(
            "10.0.1.3".parse().unwrap(),
            dst.parse().unwrap(),
            0x0a,
            0x11,
            payload,
        )
    }
}

/// Returns the frame with octets changed and its IP header checksum recomputed.
fn changed(craft: &Craft, change: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut frame = craft.frame();
    change(&mut frame);
    frame[24..26].fill(0);
    let sum = !checksum::sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// Returns the frames that come in by dc0.
fn losing() -> Vec<Vec<u8>> {
    let good = roce("10.0.2.2", 26, 200);
    let with = |change: &dyn Fn(&mut Craft)| {
        let mut craft = good.clone();
        change(&mut craft);
        craft.frame()
    };
    vec![
        good.frame(),
        roce("10.0.2.2", 34, 200).frame(),
        // Early-dropped, as it is Not-ECT; and past its share of the pool.
        Craft {
            tos: 0,
            ..roce("10.0.2.2", 0, 200)
        }
        .frame(),
        roce("10.0.2.2", 8, 1000).frame(),
        // No next hop's MAC address, no route, ours, too long for the way out, too long to come in.
        roce("10.0.13.9", 10, 64).frame(),
        roce("10.0.9.9", 10, 64).frame(),
        roce("10.0.13.1", 10, 64).frame(),
        roce("10.0.2.2", 10, 2000).frame(),
        roce("10.0.2.2", 10, 3100).frame(),
        with(&|craft| craft.dst_mac = Mac([2, 9, 9, 9, 9, 9])),
        with(&|craft| craft.dst_mac = Mac([0xff; 6])),
        with(&|craft| craft.tags = vec![1, 2, 3]),
        with(&|craft| craft.tags = vec![3 << 13 | 55]),
        with(&|craft| craft.ttl = 1),
        with(&|craft| craft.src = "127.0.0.1".parse().unwrap()),
        with(&|craft| craft.payload = vec![0; 4])[..20].to_vec(),
        [&good.frame()[..12], &[0x88, 0xb5], &[0; 60]].concat(),
        changed(&good, |frame| frame[14] = 0x55),
        changed(&good, |frame| frame[16] = 0xff),
        {
            let mut frame = good.frame();
            frame[24] ^= 1;
            frame
        },
    ]
}

/// Starts a switch that receives these frames by its first port, and those by its second.
fn start(config: &str, frames: &[Vec<u8>], back: &[Vec<u8>]) -> Switch {
    let lab = Lab::new();
    for (name, frames) in [("in.pcap", frames), ("back.pcap", back)] {
        let captured = |frame: &Vec<u8>| Captured {
            time: 0,
            frame: frame.clone(),
        };
        let all: Vec<Captured> = frames.iter().map(captured).collect();
        capture::write(&lab.path(name), all.iter(), 1).unwrap();
    }
    lab.config(config);
    Switch::start(lab)
}

impl Switch {
    /// Returns a command by the switch's socket.
    fn client(&self, args: &[&str]) -> Command {
        let mut all = args.to_vec();
        all.extend(["--socket", "switch.sock"]);
        self.lab.command(&all)
    }

    /// Captures to a file of this name; returns the summary printed at the end.
    fn capture(&self, args: &[&str], name: &str) -> String {
        let all = [&["capture", "-w", name], args].concat();
        let output = self.ask(&all);
        assert_success(&output);
        String::from_utf8(output.stderr).unwrap()
    }

    /// Returns true if any worker captures.
    fn captures(&self) -> bool {
        let workers = self.show("workers");
        let mut all = workers.as_array().unwrap().iter();
        all.any(|worker| worker["capture"]["active"] != 0)
    }

    /// Returns the number of frames dropped so far, by reason, over all ports.
    fn drops(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for port in self.show("ports").as_array().unwrap() {
            for (reason, count) in port["drops"].as_object().unwrap() {
                *all.entry(reason.clone()).or_default() += count.as_u64().unwrap();
            }
        }
        all.retain(|_, count| *count > 0);
        all
    }
}

/// Returns what tshark prints of these fields, line by line.
fn tshark(file: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-r", file.to_str().unwrap(), "-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output();
    let output = output
        .unwrap_or_else(|error| panic!("tshark does not run ({error}): scripts/test installs it"));
    assert_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| line.split('\t').map(str::to_owned).collect();
    text.lines().map(line).collect()
}

/// Returns the word after `key=` in a comment.
fn word<'a>(comment: &'a str, key: &str) -> Option<&'a str> {
    let mut words = comment.split_whitespace();
    words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

fn pause() -> Vec<u8> {
    mac_control::build(Mac([2, 0, 0, 0, 2, 2]), 1 << 4, [u16::MAX; 8]).to_vec()
}
