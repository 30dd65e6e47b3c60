//! Two real switches at one edge, with their feeds and nats-servers: flows whose answers take the other path, a box that is killed, and a bus
//! that fails.
//!
//! Needs root and nats-server. Touches only namespaces and links of its own.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a test says what is wrong by panicking"
)]

mod common;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};

use common::forge::{config, links};
use common::net::{Net, peer, run};
use common::switch::Switch;
use common::{Lab, Running, alone};
use npcc_testkit::wait;
use serde::Deserialize;

/// Boxes by which data and answers of connections pass: connection n takes those at n modulo the length.
#[derive(Debug, Clone, Copy)]
struct Paths {
    data: &'static [usize],
    answers: &'static [usize],
}

/// Every other answer by the other box.
const HALF_OF_ANSWERS: Paths = Paths {
    data: &[0],
    answers: &[0, 1],
};
/// Every pair of paths for a quarter of the connections.
const QUARTERS: Paths = Paths {
    data: &[0, 1],
    answers: &[0, 0, 1, 1],
};
/// Data of all by the second box, and no answers.
const SURVIVOR: Paths = Paths {
    data: &[1],
    answers: &[],
};
/// All by the first box.
const ONE_BOX: Paths = Paths {
    data: &[0],
    answers: &[0],
};

impl Paths {
    /// Box that the data of a connection pass.
    fn data_of(self, connection: u32) -> usize {
        self.data[connection as usize % self.data.len()]
    }
}

/// Queue pairs of sender and receiver of a connection, as in `tests/peer/fleet_hosts.py`.
fn numbers(connection: u32) -> (u32, u32) {
    (
        0x10_0000 + connection * 7_919,
        0x80_0000 + connection * 104_729,
    )
}

/// Frames at the hosts' ends of a box's links.
#[derive(Debug, Deserialize)]
struct Seen {
    /// Data frames that came out of the box.
    received: u64,
    /// CNPs by queue pair, and the time of the first in s since the start.
    cnps: BTreeMap<u32, (u64, f64)>,
}

/// Hosts that send.
struct Hosts {
    connections: u32,
    seen: BufReader<ChildStdout>,
    child: Running,
}

impl Hosts {
    /// Waits for the end of a phase; returns what was seen. Every CNP must go to a sender whose data pass the box. The hosts go on.
    fn phase(&mut self, paths: Paths) -> [Seen; 2] {
        let mut line = String::new();
        self.seen.read_line(&mut line).unwrap();
        let seen: [Seen; 2] = serde_json::from_str(&line).unwrap();
        for (at, seen) in seen.iter().enumerate() {
            for qpn in seen.cnps.keys() {
                let sends = |n| numbers(n).0 == *qpn && paths.data_of(n) == at;
                let known = (0..self.connections).any(sends);
                assert!(
                    known,
                    "box {at} signalled {qpn:#x}, which does not send through it"
                );
            }
        }
        seen
    }

    /// Begins the next phase.
    fn next(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }
}

/// Both servers and both feeds, under the process that starts them on loopback from the shipped configuration.
struct Feeds(Running);

impl Feeds {
    fn start(boxes: &[Switch; 2]) -> Feeds {
        let program = Path::new(env!("CARGO_BIN_EXE_npcc-switch")).with_file_name("npcc-feed");
        let made_by = format!("{} is missing: cargo build -p npcc-feed", program.display());
        assert!(program.exists(), "{made_by}");
        let file = |name: &str| File::create(boxes[0].path(name)).unwrap();
        let mut command = Command::new(program);
        command
            .arg("trial")
            .arg("--first")
            .arg(boxes[0].path("switch.sock"))
            .arg("--second")
            .arg(boxes[1].path("switch.sock"))
            .stdin(Stdio::null())
            .stdout(file("fleet"))
            .stderr(file("feeds"));
        Feeds(Running::of(command.spawn().unwrap()))
    }

    /// Processes under it: the two servers, then the two feeds.
    fn processes(&self) -> Vec<u32> {
        let id = self.0.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        let ids = children.split_whitespace();
        ids.map(|id| id.parse().unwrap()).collect()
    }
}

impl Drop for Feeds {
    fn drop(&mut self) {
        // It ends its processes on SIGTERM only.
        let Some(child) = self.0.0.as_mut() else {
            return;
        };
        let id = i32::try_from(child.id()).unwrap();
        run(&format!("kill -TERM {id}"));
        let _ = child.wait();
    }
}

/// A pair of boxes between hosts.
struct Pair {
    feeds: Option<Feeds>,
    boxes: [Switch; 2],
    net: Net,
}

impl Pair {
    fn new() -> Pair {
        let net = links(&["dc1", "wan1", "dc2", "wan2"]);
        let start = |near, far| Switch::start(lab(&net, near, far));
        let boxes = [start("dc1", "wan1"), start("dc2", "wan2")];
        Pair {
            feeds: None,
            boxes,
            net,
        }
    }

    /// Starts servers and feeds, and waits until each box has the other's ends.
    fn connect(&mut self) {
        self.feeds = Some(Feeds::start(&self.boxes));
        self.wait_until_equal();
    }

    /// Waits until the fleet's table says that each feed has the other's ends, from now on.
    fn wait_until_equal(&self) {
        let fleet = self.boxes[0].path("fleet");
        let before = std::fs::metadata(&fleet).unwrap().len();
        let before = usize::try_from(before).unwrap();
        let awaited = || std::fs::read_to_string(self.boxes[0].path("feeds")).unwrap();
        wait::value(wait::LONG, awaited, || {
            let text = std::fs::read_to_string(&fleet).unwrap();
            let equal = |name: &str| text[before..].contains(&format!("{name}:equal"));
            (equal("edge-1") && equal("edge-2")).then_some(())
        });
    }

    /// Has the hosts send by these paths for a time; returns what they saw of each box.
    fn play(&self, connections: u32, paths: Paths, seconds: f64) -> [Seen; 2] {
        let mut hosts = self.hosts(connections, &[(paths, seconds)]);
        hosts.phase(paths)
    }

    /// Starts hosts that send by these paths, each for a time.
    fn hosts(&self, connections: u32, phases: &[(Paths, f64)]) -> Hosts {
        let phase = |(paths, seconds): &(Paths, f64)| {
            let [data, answers] = [paths.data, paths.answers].map(|boxes| {
                let names: Vec<String> = boxes.iter().map(ToString::to_string).collect();
                if names.is_empty() {
                    "-".to_owned()
                } else {
                    names.join(",")
                }
            });
            format!("--phase={seconds}:{data}:{answers}")
        };
        let mut child = peer(&self.net.space("hosts"), "fleet_hosts.py")
            .args(["--connections", &connections.to_string()])
            .args(phases.iter().map(phase))
            .args(["hdc1", "hwan1", "hdc2", "hwan2"].map(|end| self.net.link(end)))
            .stdin(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        Hosts {
            connections,
            seen: BufReader::new(child.stdout.take().unwrap()),
            child: Running::of(child),
        }
    }

    /// Number of connections whose sender is known by the box that its data pass; a wrong sender fails.
    fn known(&self, connections: u32, paths: Paths) -> usize {
        let known = |at: usize| {
            let senders = (0..connections).filter(|n| paths.data_of(*n) == at);
            let senders: BTreeMap<u64, u64> = senders
                .map(numbers)
                .map(|(sender, receiver)| (receiver.into(), sender.into()))
                .collect();
            let flows = self.boxes[at].show("flows --top 1000");
            let known = flows.as_array().unwrap().iter().filter(|flow| {
                let sender = flow["dest_qp"].as_u64().and_then(|dest| senders.get(&dest));
                let is_known = flow["evidence"] != "none" && sender.is_some();
                assert!(
                    !is_known || flow["sender_qp"].as_u64() == sender.copied(),
                    "{flow}"
                );
                is_known
            });
            known.count()
        };
        known(0) + known(1)
    }
}

/// Configuration of a box with these ends of links.
fn lab(net: &Net, near: &str, far: &str) -> Lab {
    let npcc =
        "{ evidence: foreign, tick: 1ms, recovery: 4ms, shallow: 20KB, deep: 100KB, gate: off,
         hosts: { answering: [10.0.1.0/24] }, cnp: { earned: 1KB } }";
    let cores = "cores: { control: 0, workers: [1], idle: adaptive }\n";
    Lab::with(&(config(net, [near, far], npcc) + cores))
}

/// Asserts that nearly all connections are known and signalled; `seen` is what their hosts saw.
fn assert_nearly_all(pair: &Pair, connections: u32, paths: Paths, seen: &[Seen; 2]) {
    let known = pair.known(connections, paths);
    let signalled: usize = seen.iter().map(|seen| seen.cnps.len()).sum();
    println!("{paths:?}: of {connections} are {known} known and {signalled} signalled");
    let least = connections as usize * 99;
    assert!(known * 100 >= least, "{known} of {connections} known");
    assert!(
        signalled * 100 >= least,
        "{signalled} of {connections} signalled"
    );
}

#[test]
fn flows_whose_answers_take_the_other_path_are_paired_by_the_other_box() {
    let _alone = alone();
    for (connections, paths) in [
        (8, HALF_OF_ANSWERS),
        (64, HALF_OF_ANSWERS),
        (8, QUARTERS),
        (64, QUARTERS),
    ] {
        let mut pair = Pair::new();
        pair.play(connections, paths, 0.5);
        assert_eq!(
            pair.known(connections, paths),
            connections as usize / 2,
            "{paths:?}: each for itself"
        );
        pair.connect();
        let seen = pair.play(connections, paths, 2.0);
        assert_nearly_all(&pair, connections, paths, &seen);
    }
}

/// The connections begin while both servers hang, for 5 s.
#[test]
fn a_bus_that_was_cut_makes_up_for_what_it_missed() {
    const CONNECTIONS: u32 = 64;
    let _alone = alone();
    let mut pair = Pair::new();
    pair.connect();
    let processes = pair.feeds.as_ref().unwrap().processes();
    let servers = &processes[..2];
    let mut hosts = pair.hosts(CONNECTIONS, &[(QUARTERS, 5.0), (QUARTERS, 1.0)]);
    let signal = |name: &str| {
        for server in servers {
            run(&format!("kill -{name} {server}"));
        }
    };
    signal("STOP");
    hosts.phase(QUARTERS);
    assert_eq!(pair.known(CONNECTIONS, QUARTERS), CONNECTIONS as usize / 2);
    signal("CONT");
    pair.wait_until_equal();
    hosts.next();
    let seen = hosts.phase(QUARTERS);
    assert_nearly_all(&pair, CONNECTIONS, QUARTERS, &seen);
}

/// The first box is killed while data and answers pass both. From the change of routes on all data pass the second, and no answer does.
#[test]
fn the_survivor_signals_the_flows_of_a_box_that_was_killed() {
    const CONNECTIONS: u32 = 64;
    let _alone = alone();
    let mut pair = Pair::new();
    pair.play(CONNECTIONS, QUARTERS, 0.5);
    pair.connect();
    let mut hosts = pair.hosts(CONNECTIONS, &[(QUARTERS, 1.0), (SURVIVOR, 1.0)]);
    hosts.phase(QUARTERS);
    pair.boxes[0].kill();
    hosts.next();
    let [_, survivor] = hosts.phase(SURVIVOR);
    let moved = (0..CONNECTIONS).filter(|n| QUARTERS.data_of(*n) == 0);
    let first = moved.map(|n| survivor.cnps.get(&numbers(n).0).map(|(_, first)| *first));
    let first: Vec<Option<f64>> = first.collect();
    let signalled = first.iter().flatten().count();
    let last = first
        .iter()
        .flatten()
        .fold(0.0, |last: f64, one| last.max(*one));
    println!(
        "{signalled} of {} signalled within {last:.3} s",
        first.len()
    );
    assert!(signalled * 100 >= first.len() * 95, "{first:?}");
}

/// The feed of a box hangs, then both servers are killed: the boxes forward and signal as one box alone does.
#[test]
fn without_a_bus_each_box_is_as_one_alone() {
    const CONNECTIONS: u32 = 8;
    let _alone = alone();
    let mut pair = Pair::new();
    pair.connect();
    let feeds = pair.feeds.as_ref().unwrap().processes();
    let [server, other, feed, _] = feeds[..] else {
        unreachable!("two servers and two feeds: {feeds:?}");
    };
    for (fault, processes) in [
        ("kill -STOP", &[feed][..]),
        ("kill -KILL", &[server, other]),
    ] {
        for process in processes {
            run(&format!("{fault} {process}"));
        }
        let [seen, _] = pair.play(CONNECTIONS, ONE_BOX, 1.0);
        assert_eq!(pair.known(CONNECTIONS, ONE_BOX), CONNECTIONS as usize);
        assert_eq!(seen.cnps.len(), CONNECTIONS as usize, "{fault}: {seen:?}");
        // The far port takes 10 Mb/s, which is 3,500 of these frames a second.
        assert!(seen.received > 2_000, "{fault}: {seen:?}");
    }
    for switch in &mut pair.boxes {
        switch.stop();
    }
}
