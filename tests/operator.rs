//! A running switch operated by hand: `pair`, `set`, `reload`, SIGHUP, and what `show` reports about them.
//!
//! An endless capture comes in by dc0 and congests wan0. Nothing comes back, so no sender can be signalled until `pair` names it.

use std::collections::BTreeSet;

use crate::common::switch::Switch;
use crate::common::{Lab, alone, assert_success, tshark_cnps};
use npcc_pipeline::craft::Craft;
use npcc_pipeline::units::Mac;
use npcc_testkit::capture::{self, Captured};
use npcc_testkit::wait;
use serde_json::Value;

const CONFIG: &str = "version: 1
dpdk: { eal_args: [\"--no-pci\", \"--in-memory\"] }
ports:
  - { name: dc0, device: \"net_pcap0,rx_pcap=in.pcap,tx_pcap=dc-out.pcap,infinite_rx=1\", mac: \"02:00:00:00:01:01\",
      mtu: 1500, speed: 10G, addresses: [10.0.1.1/24] }
  - { name: wan0, device: \"net_null0,no-rx=1\", mac: \"02:00:00:00:02:01\", mtu: 1500, speed: 100M, addresses: [10.0.12.1/24],
      npcc: { queues: [3], policy: npcc } }
routes: [ { prefix: 10.0.2.0/24, via: 10.0.12.2 } ]
neighbors:
  - { address: 10.0.12.2, port: wan0, mac: \"02:00:00:00:02:02\" }
  - { address: 10.0.1.3, port: dc0, mac: \"02:00:00:00:01:03\" }
qos: { profile: lossy }
buffer: { pool: 4MB }
npcc: { tick: 2ms, recovery: 3ms, shallow: 20KB, deep: 100KB, gate: off, cnp: { cap: 0.1%, earned: 0B } }
";

/// Writes the capture: data to queue pairs 0x11.. of 10.0.2.2, and to one host without a route.
fn capture(lab: &Lab) {
    let frame = |dst: &str, qpn| Craft {
        dst_mac: Mac([2, 0, 0, 0, 1, 1]),
        ..Craft::roce(
            "10.0.1.3".parse().unwrap(),
            dst.parse().unwrap(),
            0x0a,
            qpn,
            1024,
        )
    };
    let flows = [0x11, 0x12, 0x13].map(|qpn| frame("10.0.2.2", qpn));
    let frames: Vec<Captured> = flows
        .into_iter()
        .chain([frame("10.0.3.9", 0x21)])
        .map(|craft| Captured {
            time: 0,
            frame: craft.frame(),
        })
        .collect();
    capture::write(&lab.path("in.pcap"), frames.iter(), 1).unwrap();
}

/// Starts a switch with this configuration and the capture.
fn start_with(config: &str) -> Switch {
    let lab = Lab::new();
    capture(&lab);
    lab.config(config);
    Switch::start(lab)
}

fn start() -> Switch {
    start_with(CONFIG)
}

impl Switch {
    /// Runs a command that must fail with this code and print all of `parts`.
    fn refused(&self, args: &[&str], code: i32, parts: &[&str]) {
        let output = self.ask(args);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
        for part in parts {
            assert!(text.contains(part), "{args:?}: {part} in\n{text}");
        }
    }

    fn queue(&self) -> Value {
        self.show("npcc")["queues"][0].clone()
    }

    fn parameter(&self, name: &str) -> u64 {
        let queue = self.queue();
        let all = queue["parameters"].as_array().unwrap();
        let one = all.iter().find(|one| one["name"] == name);
        one.unwrap_or_else(|| panic!("no {name} in {all:?}"))["value"]
            .as_u64()
            .unwrap()
    }

    /// Returns receiver and sender queue pair of each flow, in the order of the receivers'.
    fn senders(&self) -> Vec<(u64, Option<u64>)> {
        let flows = self.show("flows");
        let mut all: Vec<_> = flows.as_array().unwrap().iter().collect();
        all.sort_by_key(|flow| flow["dest_qp"].as_u64());
        all.iter()
            .map(|flow| {
                (
                    flow["dest_qp"].as_u64().unwrap(),
                    flow["sender_qp"].as_u64(),
                )
            })
            .collect()
    }

    fn no_route(&self) -> u64 {
        self.show("ports")[0]["drops"]["no_route"]
            .as_u64()
            .unwrap_or(0)
    }
}

#[test]
fn pairs_are_added_and_deleted() {
    let _alone = alone();
    let mut switch = start();
    let add = |qpns: [&'static str; 2]| ["pair", "add", "10.0.1.3", "10.0.2.2", qpns[0], qpns[1]];
    switch.refused(&add(["0x11", "0"]), 1, &["0 is no queue pair"]);
    switch.refused(
        &["pair", "del", "10.0.1.3", "10.0.2.2", "7"],
        1,
        &["no such pair"],
    );
    wait::until("three flows", wait::LONG, || switch.senders().len() == 3);
    assert_eq!(
        switch.show("npcc")["cnps_sent"],
        0,
        "nobody knows whom to tell"
    );
    assert_eq!(switch.senders(), [(0x11, None), (0x12, None), (0x13, None)]);

    switch.done(&add(["0x11", "0x31"]));
    switch.done(&add(["0x12", "50"]));
    let all = [(0x11, Some(0x31)), (0x12, Some(50)), (0x13, None)];
    wait::until("two are paired", wait::LONG, || switch.senders() == all);
    wait::until("both are told", wait::LONG, || {
        let flows = switch.show("flows");
        let signalled = |flow: &&Value| flow["cnps"].as_u64() > Some(0);
        flows.as_array().unwrap().iter().filter(signalled).count() == 2
    });
    let npcc = switch.show("npcc");
    assert!(npcc["health"]["data_bytes"].as_u64() > Some(0));
    assert!(npcc["queues"][0]["reasons"].as_object().unwrap().len() > 1);
    let shown = switch.done(&["show", "npcc"]);
    for part in [
        "policy      npcc (",
        "reasons",
        "CM",
        "health",
        "suppressed",
    ] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    let ports = switch.show("ports");
    assert!(
        ports[0]["roce"]["cnp_out"].as_u64() > Some(0),
        "they leave toward the sender"
    );

    switch.done(&["pair", "del", "10.0.1.3", "10.0.2.2", "0x11"]);
    wait::until("the first is not paired any more", wait::LONG, || {
        switch.senders()[0] == (0x11, None)
    });
    switch.stop();
    let signalled: BTreeSet<_> = tshark_cnps(&switch.path("dc-out.pcap"))
        .into_iter()
        .collect();
    let sender = |qp| ("10.0.1.3".to_owned(), qp);
    assert_eq!(signalled, [0x31, 50].map(sender).into_iter().collect());
}

/// Returns the number of CNPs sent, and of those that would have been sent, from the queue's counters.
fn cnps(switch: &Switch) -> (u64, u64) {
    let queue = switch.queue();
    let count = |name: &str| queue[name].as_u64().unwrap();
    (count("cnps"), count("would_send"))
}

/// Waits until CNPs leave, or would; returns true if they leave.
fn leave(switch: &Switch) -> bool {
    let before = cnps(switch);
    wait::until("CNPs that leave or would", wait::LONG, || {
        let (sent, would) = cnps(switch);
        sent + would > before.0 + before.1 + 3
    });
    let (sent, would) = cnps(switch);
    assert!(
        sent == before.0 || would == before.1,
        "{before:?} {sent} {would}"
    );
    sent > before.0
}

const PAIR: [&str; 6] = ["pair", "add", "10.0.1.3", "10.0.2.2", "0x11", "0x31"];

/// The levels of `action`, and the marks of a queue whose CNPs are not sent, are laws of the world (`switch/tests/world_actions.rs`).
#[test]
fn nothing_is_sent_while_the_action_is_observe() {
    let _alone = alone();
    let observe = "npcc: { action: observe, hosts: { answering: [10.0.1.0/24] }, ";
    let mut switch = start_with(&CONFIG.replace("npcc: { tick", &format!("{observe}tick")));
    switch.done(&PAIR);
    assert!(!leave(&switch));
    let npcc = switch.show("npcc");
    assert_eq!(
        (&npcc["action"], &npcc["cnps_sent"]),
        (&"observe".into(), &0.into())
    );
    assert!(npcc["would_send"].as_u64() > Some(0));
    let flows = switch.show("flows");
    let signalled = flows
        .as_array()
        .unwrap()
        .iter()
        .find(|flow| flow["dest_qp"] == 0x11);
    assert_eq!(signalled.unwrap()["cnps"], 0);
    assert!(signalled.unwrap()["would_send"].as_u64() > Some(0));
    let refused: Vec<_> = flows
        .as_array()
        .unwrap()
        .iter()
        .map(|flow| &flow["refused"])
        .collect();
    assert!(refused.contains(&&"cold".into()), "{refused:?}");
    let hosts = switch.show("hosts");
    assert_eq!(hosts[0]["action"], "observe");
    assert!(hosts[0]["would_send"].as_u64() > Some(0));
    let log = switch.done(&["show", "log", "--jsonl", "--outcome", "would-send"]);
    let entry: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&entry["src"], &entry["outcome"]),
        (&"10.0.1.3".into(), &"would-send".into())
    );
    assert!(switch.done(&["show", "log"]).contains("would have got CNP"));

    // The operator says so; there was no trial.
    assert_eq!(hosts[0]["responsiveness"], "answers");
    assert_eq!(
        (&hosts[0]["passed"], &hosts[0]["failed"]),
        (&0.into(), &0.into())
    );

    let said = switch.done(&["set", "npcc.action", "send"]);
    assert_eq!(said, "applied        npcc.action: observe -> send\n");
    assert!(leave(&switch));
    assert!(switch.show("npcc")["flows_read"].as_u64() > Some(0));
    switch.refused(&["set", "npcc.action", "dry"], 2, &["off, observe, send"]);
    switch.refused(
        &["set", "npcc.wan0.5.action", "send"],
        1,
        &["does not watch"],
    );
    let said = switch.done(&["reload"]);
    assert!(
        said.contains("still set      npcc.action: observe -> send"),
        "{said}"
    );
    assert!(leave(&switch));
    let said = switch.done(&["unset", "npcc.action"]);
    assert!(
        said.contains("applied        npcc.action: send -> observe"),
        "{said}"
    );
    assert!(!leave(&switch));
    switch.stop();
}

/// Guards `action` at each level: each alone holds CNPs back, by `set` and by `reload`.
#[test]
fn cnps_are_held_back_for_a_queue_a_port_and_a_host() {
    let _alone = alone();
    let mut switch = start();
    switch.done(&PAIR);
    assert!(leave(&switch));
    switch.done(&["set", "npcc.wan0.3.action", "observe"]);
    assert!(!leave(&switch));
    assert_eq!(switch.queue()["action"], "observe");
    switch.done(&["unset", "npcc.wan0.3.action"]);
    assert!(leave(&switch));
    for (file, why) in [
        (
            CONFIG.replace(
                "{ queues: [3], policy: npcc }",
                "{ queues: [3], policy: npcc, action: observe }",
            ),
            "port",
        ),
        (
            CONFIG.replace(
                "{ queues: [3], policy: npcc }",
                "{ queues: [3], queue_actions: { 3: observe } }",
            ),
            "queue",
        ),
        (
            CONFIG.replace(
                "npcc: { tick",
                "npcc: { hosts: { observe: [10.0.1.0/24] }, tick",
            ),
            "host",
        ),
    ] {
        switch.config(&file);
        let said = switch.done(&["reload"]);
        assert!(said.contains("applied"), "{why}: {said}");
        assert!(!leave(&switch), "{why}");
        assert_eq!(
            switch.show("hosts")[0]["action"] == "observe",
            why == "host"
        );
        switch.config(CONFIG);
        switch.done(&["reload"]);
        assert!(leave(&switch), "{why}");
    }
    switch.config(&CONFIG.replace(
        "{ queues: [3], policy: npcc }",
        "{ queues: [3], enable: false }",
    ));
    let said = switch.done(&["reload"]);
    assert!(
        said.contains("applied        ports.wan0.npcc.enable: true -> false"),
        "{said}"
    );
    assert_eq!(switch.queue()["action"], "off");
    let before = cnps(&switch);
    switch.turn("management", 10);
    assert_eq!(cnps(&switch), before, "nothing is decided");
    switch.config(CONFIG);
    switch.done(&["reload"]);
    assert!(leave(&switch), "and it can be taken up again");
    switch.stop();
}

#[test]
fn flows_are_picked_paged_and_exported() {
    let _alone = alone();
    let mut switch = start();
    wait::until("three flows that nobody has answered", wait::LONG, || {
        let cold = switch.done(&["show", "flows", "--jsonl", "--cold"]);
        cold.lines().count() == 3
    });
    switch.done(&PAIR);
    wait::until("three flows, one paired", wait::LONG, || {
        let senders = switch.senders();
        senders.len() == 3 && senders[0].1 == Some(0x31)
    });
    let picked = |args: &[&str]| -> Vec<u64> {
        let text = switch.done(&[&["show", "flows", "--jsonl"], args].concat());
        let row = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        text.lines()
            .map(|line| row(line)["dest_qp"].as_u64().unwrap())
            .collect()
    };
    let sorted = |args: &[&str]| -> Vec<u64> {
        let mut picked = picked(args);
        picked.sort_unstable();
        picked
    };
    assert_eq!(sorted(&[]), [0x11, 0x12, 0x13]);
    let pages = [["1"], ["2"], ["3"]].map(|page| picked(&["--top", "2", "--page", page[0]]).len());
    assert_eq!(pages, [2, 1, 0]);
    assert_eq!(sorted(&["--evidence", "cm"]), [0x11]);
    assert_eq!(sorted(&["--evidence", "none"]), [0x12, 0x13]);
    assert_eq!(sorted(&["--cold"]), [0x12, 0x13], "nobody answers");
    assert_eq!(sorted(&["--qp", "0x31"]), [0x11]);
    assert_eq!(sorted(&["--qp", "0x13"]), [0x13]);
    assert_eq!(sorted(&["--host", "10.0.1.0/24"]).len(), 3);
    assert_eq!(sorted(&["--host", "10.0.1.4"]).len(), 0);
    assert_eq!(sorted(&["--port", "wan0", "--priority", "3"]).len(), 3);
    assert_eq!(sorted(&["--port", "dc0"]).len(), 0);
    switch.refused(&["show", "flows", "--port", "lan9"], 1, &["no port `lan9`"]);
    switch.refused(&["show", "flows", "--evidence", "guess"], 1, &["port-hash"]);
    switch.refused(&["show", "flows", "--host", "here"], 2, &["address"]);
    switch.refused(&["show", "hosts", "--cold"], 2, &["does not take --cold"]);
    switch.refused(
        &["show", "ports", "--top", "3"],
        2,
        &["flows, hosts and log"],
    );
    assert_eq!(
        switch.done(&["show", "log", "--last", "2"]).lines().count(),
        2
    );

    switch.stop();
}

#[test]
fn settings_change_while_running_or_are_refused_with_a_reason() {
    let _alone = alone();
    let mut switch = start();
    for (args, parts) in [
        (
            ["set", "npcc.lan9.3.policy", "npcc"],
            &["no port `lan9`"][..],
        ),
        (["set", "npcc.wan0.5.policy", "npcc"], &["does not watch"]),
    ] {
        switch.refused(&args, 1, parts);
    }
    for (args, parts) in [
        (["set", "npcc.wan0.3.policy", "best"], &["model, npcc"][..]),
        (
            ["set", "npcc.wan0.3.few", "2000"],
            &["out of range", "1000"],
        ),
        (
            ["set", "npcc.wan0.3.set_point", "1ms"],
            &["no parameter `set_point`"],
        ),
        (
            ["set", "qos.priorities.6.weight", "5"],
            &["qos.priorities.6.weight 5: error", "strict"],
        ),
        (["set", "npcc.wan0.3.recovery", "soon"], &["not a time"]),
        (["set", "qos.priorities.3.weight", "101"], &["1 to 100"]),
        (
            ["set", "ports.wan0.mtu", "9000"],
            &["ports.wan0.mtu", "needs a restart"],
        ),
    ] {
        switch.refused(&args, 2, parts);
    }
    switch.done(&["set", "npcc.wan0.3.policy", "model"]);
    assert_eq!(switch.queue()["policy"], "model");
    switch.done(&["set", "npcc.wan0.3.set_point", "500us"]);
    assert_eq!(switch.parameter("set_point"), 500_000);
    switch.done(&["set", "npcc.wan0.3.policy", "npcc"]);
    assert_eq!(switch.queue()["policy"], "npcc");
    switch.done(&["set", "qos.priorities.3.weight", "7"]);
    assert_eq!(switch.show("qos")["priorities"][3]["weight"], 7);
    switch.stop();
}

/// The pace itself is a law of the world (`switch/tests/world_speeds.rs`).
#[test]
fn a_ports_speed_is_set_and_its_thresholds_follow() {
    let _alone = alone();
    let file = CONFIG.replace("shallow: 20KB, deep: 100KB", "shallow: 2ms, deep: 8ms");
    let mut switch = start_with(&file);
    let thresholds = || switch.queue()["shallow"].as_u64().unwrap();
    assert_eq!(thresholds(), 25_000, "2 ms of 100M");
    switch.done(&["set", "ports.wan0.speed", "20M"]);
    assert_eq!(
        thresholds(),
        6_000,
        "2 ms of 20M are 5,000 bytes; four frames"
    );
    // The setting survives a link flap.
    switch.done(&["port", "wan0", "down"]);
    wait::until("down", wait::LONG, || {
        switch.show("ports")[1]["up"] == false
    });
    switch.done(&["port", "wan0", "up"]);
    wait::until("up", wait::LONG, || switch.show("ports")[1]["up"] == true);
    assert_eq!(thresholds(), 6_000);
    let said = switch.done(&["unset", "--all"]);
    assert!(said.contains("ports.wan0.speed: 20M -> 100M"), "{said}");
    assert_eq!(thresholds(), 25_000);
    switch.stop();
}

#[test]
fn what_was_set_stays_over_a_reload_is_listed_and_goes_with_unset() {
    let _alone = alone();
    let mut switch = start();
    switch.done(&["set", "npcc.wan0.3.few", "70"]);
    switch.done(&["set", "qos.priorities.3.weight", "9"]);
    switch.done(&["set", "npcc.recovery", "5ms"]);
    let held = || (switch.parameter("few"), switch.parameter("recovery"));
    assert_eq!(held(), (70, 5_000_000));

    // The file has another value for one of them.
    switch.config(
        &CONFIG
            .replace("recovery: 3ms", "recovery: 4ms, tick: 3ms")
            .replace("tick: 2ms, ", ""),
    );
    let before = switch.done(&["show", "config"]);
    assert!(before.contains("# set npcc.recovery 5ms"), "{before}");
    assert!(before.contains("recovery: 5ms"), "{before}");
    let diff = switch.done(&["show", "config", "--diff"]);
    for line in [
        "npcc.recovery: 4ms -> 5ms",
        "npcc.tick: 3ms -> 2ms",
        "qos.priorities.3: none -> ",
    ] {
        assert!(diff.contains(line), "{line} in\n{diff}");
    }
    let parts = [
        "applied        npcc.recovery: 5ms -> 4ms",
        "still set      ports.wan0.npcc.parameters.3: none -> ",
        "needs restart  npcc.tick: 2ms -> 3ms",
    ];
    let dry = switch.ask(&["reload", "--dry-run", "--exit-code"]);
    assert_eq!(dry.status.code(), Some(3));
    let said = String::from_utf8(dry.stdout).unwrap();
    assert!(said.contains("nothing was changed"), "{said}");
    assert_eq!(switch.done(&["show", "config"]), before);
    assert_eq!(held(), (70, 5_000_000));
    let applied = switch.ask(&["reload", "--exit-code"]);
    assert_eq!(applied.status.code(), Some(3));
    for part in parts {
        assert!(said.contains(part), "{part} in\n{said}");
        let applied = String::from_utf8_lossy(&applied.stdout);
        assert!(applied.contains(part), "{part} in\n{applied}");
    }
    assert_eq!(held(), (70, 4_000_000));
    // Without the flag the exit status is 0.
    switch.done(&["reload"]);

    switch.refused(&["unset"], 2, &["--all"]);
    switch.refused(&["unset", "npcc.recovery"], 1, &["as in the file"]);
    let said = switch.done(&["unset", "qos"]);
    assert!(said.contains("qos.priorities.3: "), "{said}");
    assert_eq!(switch.show("qos")["priorities"][3]["weight"], 50);
    switch.done(&["unset", "--all"]);
    assert_eq!(held(), (50, 4_000_000));
    switch.config(CONFIG);
    assert_eq!(
        switch.ask(&["reload", "--exit-code"]).status.code(),
        Some(0)
    );
    let same = switch.done(&["show", "config", "--diff"]);
    let file = switch.path("switch.yaml");
    let expected = format!("what runs is as in {}\n", file.display());
    assert_eq!(same, expected);
    // The output is a valid configuration.
    let printed = switch.done(&["show", "config"]);
    std::fs::write(switch.path("printed.yaml"), printed).unwrap();
    let check = switch
        .lab
        .command(&["check", "-c", "printed.yaml"])
        .output();
    assert_success(&check.unwrap());
    switch.stop();
}

/// Guards settings over a link flap: a link that came up again gave its queues the policy and the parameters of the file.
#[test]
fn a_link_that_flaps_keeps_what_was_set() {
    let _alone = alone();
    let mut switch = start();
    for (key, value) in [
        ("npcc.wan0.3.policy", "model"),
        ("npcc.wan0.3.set_point", "250us"),
        ("npcc.wan0.3.action", "observe"),
        ("qos.priorities.3.weight", "7"),
        ("qos.priorities.3.ecn.kmax", "123KB"),
    ] {
        switch.done(&["set", key, value]);
    }
    let held = || {
        let queue = switch.queue();
        let of = |name: &str| queue[name].clone();
        let qos = switch.show("qos")["priorities"][3].clone();
        (of("policy"), of("parameters"), of("action"), qos)
    };
    let before = held();
    assert_eq!(before.0, "model");
    assert_eq!(switch.parameter("set_point"), 250_000);
    let up = |up: bool| switch.show("ports")[1]["up"] == up;
    switch.done(&["port", "wan0", "down"]);
    wait::until("the link is down", wait::LONG, || up(false));
    switch.done(&["port", "wan0", "up"]);
    wait::until("the link is up", wait::LONG, || up(true));
    assert_eq!(held(), before);
    // A reload still reports that these are not the file's.
    let said = switch.done(&["reload"]);
    assert!(
        said.contains("still set      ports.wan0.npcc.queue_policies.3"),
        "{said}"
    );
    assert_eq!(held(), before);
    switch.done(&["unset", "--all"]);
    assert_eq!(switch.queue()["policy"], "npcc");
    switch.stop();
}

/// Returns the configuration with changes of which some apply and some wait for a restart.
fn changed_everywhere() -> String {
    CONFIG
        .replace("speed: 100M", "speed: 200M")
        .replace(
            "10.0.2.0/24, via: 10.0.12.2 }",
            "10.0.2.0/23, via: 10.0.12.2 }",
        )
        .replace(
            "profile: lossy",
            "profile: lossy, priorities: { 3: { weight: 20, ecn: { kmin: 1KB, kmax: 2KB } } }",
        )
        .replace(
            "tick: 2ms, recovery: 3ms",
            "tick: 3ms, recovery: 9ms, evidence: cm",
        )
}

#[test]
fn a_reload_applies_the_file_and_lists_what_needs_a_restart() {
    let _alone = alone();
    let mut switch = start();
    assert!(switch.done(&["reload"]).contains("nothing differs"));

    // A mistake changes nothing, though the rest of the file has changes.
    let wrong = CONFIG.replace(
        "{ queues: [3], policy: npcc }",
        "{ queues: [3], policy: model, deeep: 1ms }",
    );
    switch.config(&wrong);
    switch.refused(
        &["reload"],
        2,
        &["switch.yaml:7:", "deeep", "hint: did you mean"],
    );
    assert_eq!(switch.queue()["policy"], "npcc");

    switch.done(&["set", "npcc.wan0.3.few", "900"]);
    wait::until("frames without a route", wait::LONG, || {
        switch.no_route() > 0
    });
    switch.config(&changed_everywhere());
    let outcome: Value = serde_json::from_str(&switch.done(&["reload", "--json"])).unwrap();
    let keys = |part: &str| -> Vec<String> {
        let changes = outcome[part].as_array().unwrap().iter();
        changes
            .map(|one| one["key"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        keys("applied"),
        [
            "npcc.evidence",
            "npcc.recovery",
            "ports.wan0.speed",
            "qos.priorities.3",
            "routes.10.0.2.0/23",
            "routes.10.0.2.0/24"
        ]
    );
    assert_eq!(keys("restart"), ["npcc.tick"]);
    assert_eq!(keys("kept"), ["ports.wan0.npcc.parameters.3"]);
    assert_eq!(
        (switch.parameter("few"), switch.parameter("recovery")),
        (900, 9_000_000)
    );
    let qos = switch.show("qos");
    assert_eq!(qos["priorities"][3]["weight"], 20);
    assert_eq!(qos["priorities"][3]["ecn"]["wan0"][0], 1_000);
    let marked = |switch: &Switch| switch.show("queues")[1]["queues"][3]["ecn_marked"].as_u64();
    wait::until("all frames are marked now", wait::LONG, || {
        marked(&switch) > Some(0)
    });
    wait::until("10.0.3.9 has a route", wait::LONG, || {
        let before = switch.no_route();
        switch.turn("management", 3);
        switch.no_route() == before
    });
    assert!(
        switch
            .done(&["reload"])
            .contains("needs restart  npcc.tick: 2ms -> 3ms")
    );

    switch.config(&CONFIG.replace(
        "{ queues: [3], policy: npcc }",
        "{ queues: [3], policy: model }",
    ));
    switch.signal("HUP");
    wait::until("SIGHUP reloads", wait::LONG, || {
        switch.queue()["policy"] == "model"
    });
    let before = switch.no_route();
    wait::until("the old route is back", wait::LONG, || {
        switch.no_route() > before
    });
    switch.stop();
    let said = switch.log();
    assert!(
        said.contains("applied        ports.wan0.npcc.policy: npcc -> model"),
        "{said}"
    );
}
