//! Two switches side by side: the one that is drained loses no frame when it stops.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::frr::Frr;
use crate::common::net::{Net, Space, run};
use crate::common::{Lab, Running, alone, assert_success, root};
use npcc_testkit::wait;
use serde_json::Value;

/// One of two parallel switches between the client's host and the server's.
struct Beside {
    lab: Lab,
    space: Space,
    switch: Running,
    frr: Option<Frr>,
}

impl Beside {
    /// Starts the switch of this number, 1 or 2, with BGP to both hosts.
    fn new(net: &Net, number: u8) -> Beside {
        let (lab, space) = (Lab::new(), Space::of(&format!("box{number}")));
        let port = |index: u8, side: &str, subnet: u8| {
            let device = net.jumbo_device(index, ENDS[usize::from(number - 1)][usize::from(index)]);
            format!(
                "  - {{ name: {side}0, device: \"{device}\", mac: \"02:00:00:00:{subnet}:0{number}\", mtu: 1500, addresses: [10.{subnet}.{number}.1/24] }}\n"
            )
        };
        lab.config(&format!(
            "version: 1
dpdk: {{ eal_args: [--no-pci], hugepages: off }}
cores: {{ control: 0, workers: [1], idle: adaptive }}
ports:
{}{}qos: {{ profile: lossy }}
buffer: {{ pool: 8MB }}
linux: {{ integrate: true, netns: {} }}
",
            port(0, "c", 11),
            port(1, "s", 12),
            space.0
        ));
        let mut beside = Beside {
            switch: lab.start(&[]),
            lab,
            space,
            frr: None,
        };
        beside.lab.answers();
        let neighbors = [("11", 65101), ("12", 65102)].map(|(subnet, other)| {
            let peer = format!(" neighbor 10.{subnet}.{number}.3");
            format!("{peer} remote-as {other}\n{peer} timers connect 1\n{peer} advertisement-interval 0\n")
        });
        let bgpd = format!(
            "router bgp 6500{number}\n bgp router-id 10.11.{number}.1\n no bgp ebgp-requires-policy\n timers bgp 1 3\n{}",
            neighbors.concat()
        );
        beside.frr = Some(Frr::start(&beside.space.0, "! none\n", &bgpd, ""));
        beside
    }

    /// Returns the number of frames received that were not for Linux.
    fn frames(&self) -> u64 {
        let ports = self.lab.show("ports");
        let count = |port: &Value, key: &str| port[key]["packets"].as_u64().unwrap();
        let all = ports.as_array().unwrap().iter();
        all.map(|port| count(port, "rx") - count(port, "punted"))
            .sum()
    }

    /// Runs `drain` or `undrain`, with this change of FRR; returns its output.
    fn order(&self, verb: &str, change: &str, more: &[&str]) -> String {
        let folder = self.frr.as_ref().unwrap().folder();
        let by = format!(
            "vtysh --vty_socket {} -c 'conf t' -c 'router bgp' -c '{change}'",
            folder.display()
        );
        let mut all = vec![verb, "--by", &by, "--socket", "switch.sock"];
        all.extend(more);
        let output = self.lab.command(&all).output().unwrap();
        assert_success(&output);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// Ends of links that are the switches' ports, by switch.
const ENDS: [[&str; 2]; 2] = [["ca", "sa"], ["cb", "sb"]];

/// Starts FRR on a host with an address of its own, which it announces to both switches.
fn host(net: &Net, side: &'static str, subnet: u8, number: u8) -> Frr {
    let space = net.space(side);
    run(&format!("ip -n {space} link set lo up"));
    run(&format!("ip -n {space} addr add 10.{number}.0.1/32 dev lo"));
    run(&format!(
        "ip netns exec {space} sysctl -q -w net.ipv4.fib_multipath_hash_policy=1"
    ));
    let mut neighbors = String::new();
    for (switch, ends) in (1..).zip(ENDS) {
        let end = ends[usize::from(subnet - 11)];
        let (outside, inside) = (net.link(end), net.link(&format!("h{end}")));
        for command in [
            format!(
                "ip link add {outside} mtu 9200 type veth peer name {inside} mtu 1500 netns {space}"
            ),
            format!("ip link set {outside} up"),
            format!("ip -n {space} link set {inside} up"),
            format!("ip -n {space} addr add 10.{subnet}.{switch}.3/24 dev {inside}"),
        ] {
            run(&command);
        }
        let peer = format!(" neighbor 10.{subnet}.{switch}.1");
        neighbors += &format!(
            "{peer} remote-as 6500{switch}\n{peer} timers connect 1\n{peer} advertisement-interval 0\n"
        );
    }
    let bgpd = format!(
        "router bgp 65{number}
 bgp router-id 10.{number}.0.1
 no bgp ebgp-requires-policy
 bgp bestpath as-path multipath-relax
 timers bgp 1 3
{neighbors} address-family ipv4 unicast
  network 10.{number}.0.1/32
  maximum-paths 2
 exit-address-family
"
    );
    Frr::start(&space, "! none\n", &bgpd, "")
}

/// Starts a sender or a counter of datagrams in the namespace of a host.
fn frames(net: &Net, side: &str, words: &[&str]) -> Child {
    let mut python = Command::new("ip");
    python.args(["netns", "exec", &net.space(side), "/usr/bin/python3", "-B"]);
    python
        .arg(root().join("tests/manager/frames.py"))
        .args(words);
    python
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns true if a counter listens in the namespace of a host.
fn counts(net: &Net, side: &str) -> bool {
    let listening = Command::new("ip")
        .args(["netns", "exec", &net.space(side), "ss", "-Hlun"])
        .output()
        .unwrap();
    String::from_utf8_lossy(&listening.stdout).contains(":7000")
}

/// Ends a counter and returns its count.
fn total(mut child: Child) -> u64 {
    drop(child.stdin.take());
    let mut said = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(child.wait().unwrap().success());
    said.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_switch_that_is_drained_and_stopped_loses_no_frame() {
    let _alone = alone();
    let net = Net::of(&["c", "s"], &["ca", "cb", "sa", "sb"]);
    let client = host(&net, "c", 11, 101);
    let server = host(&net, "s", 12, 102);
    let (mut first, second) = (Beside::new(&net, 1), Beside::new(&net, 2));
    let long = Duration::from_secs(60);
    let ways = |side: &str, to: &str| {
        let space = net.space(side);
        let output = Command::new("ip")
            .args(["-n", &space, "route", "show", to])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout)
            .matches("nexthop")
            .count()
    };
    wait::until("two ways each", long, || {
        ways("c", "10.102.0.1") == 2 && ways("s", "10.101.0.1") == 2
    });
    for _ in 0..3 {
        for (side, from, to) in [
            ("c", "10.101.0.1", "10.102.0.1"),
            ("s", "10.102.0.1", "10.101.0.1"),
        ] {
            let ping = format!(
                "ip netns exec {} ping -n -q -c 5 -i 0.1 -I {from} {to}",
                net.space(side)
            );
            let words: Vec<&str> = ping.split(' ').collect();
            // The first frames resolve the neighbours.
            let _ = Command::new(words[0])
                .args(&words[1..])
                .stdout(Stdio::null())
                .status();
        }
    }
    let counters = [("c", "10.101.0.1"), ("s", "10.102.0.1")]
        .map(|(side, at)| frames(&net, side, &["count", at]));
    wait::until("both count", long, || {
        ["c", "s"].iter().all(|side| counts(&net, side))
    });
    let (a, b) = ("10.101.0.1", "10.102.0.1");
    let senders = [("c", a, b), ("s", b, a)]
        .map(|(side, from, to)| frames(&net, side, &["send", from, to, "32", "300"]));
    for (switch, name) in [(&first, "the first"), (&second, "the second")] {
        let before = switch.frames();
        wait::until(&format!("{name} has a part"), long, || {
            switch.frames() > before + 50
        });
    }

    let said = first.order(
        "drain",
        "bgp graceful-shutdown",
        &["--below", "10", "--timeout", "30s"],
    );
    println!("{said}");
    assert!(said.contains("drained after"), "{said}");
    assert!(first.lab.show("linux")["draining_s"].is_u64());
    first.order("undrain", "no bgp graceful-shutdown", &[]);
    assert!(first.lab.show("linux")["draining_s"].is_null());
    wait::until("two ways again", long, || {
        ways("c", b) == 2 && ways("s", a) == 2
    });
    let before = first.frames();
    wait::until("frames come again", long, || first.frames() > before + 50);

    let said = first.order("drain", "bgp graceful-shutdown", &["--stop"]);
    println!("{said}");
    let switch = first.switch.0.take().unwrap();
    assert_success(&switch.wait_with_output().unwrap());
    let before = second.frames();
    wait::until("the second has all", long, || {
        second.frames() > before + 300
    });
    let sent: u64 = senders.into_iter().map(total).sum();
    let mut before = 0;
    wait::until("the last frames have passed", long, || {
        let now = second.frames();
        std::mem::replace(&mut before, now) == now
    });
    let counted: u64 = counters.into_iter().map(total).sum();
    println!("sent {sent}, counted {counted}");
    assert!(sent > 3_000, "{sent}");
    assert_eq!(sent, counted, "frames were lost");
    drop((client, server, first, second));
}
