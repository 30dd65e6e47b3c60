//! Traces of single packets, stage by stage.

use npcc_testkit::wait;
use serde_json::Value;

use super::{LOSING, Switch, pause, roce, start};
use crate::common::alone;

#[test]
fn a_packet_is_traced_stage_by_stage() {
    let _alone = alone();
    let frames = [
        roce("10.0.2.2", 26, 200).frame(),
        roce("10.0.4.9", 10, 64).frame(),
        roce("10.0.9.9", 10, 64).frame(),
    ];
    let switch = start(LOSING, &frames, &[pause()]);
    through_a_vlan(&switch);
    through_a_queue(&switch);
    dropped_where_it_came_in(&switch);
    // A PFC frame is consumed.
    assert_eq!(trace(&switch, "pfc", "1")[0]["outcome"], "consumed");
    made_here(&switch);
    // No packet matches.
    let none = switch.ask(&["trace", "packet", "--filter", "arp", "--for", "200ms"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(!switch.captures(), "nothing stays on");
}

fn trace(switch: &Switch, filter: &str, count: &str) -> Vec<Value> {
    let args = [
        "trace", "packet", "--filter", filter, "--count", count, "--json",
    ];
    let output = switch.done(&args);
    serde_json::from_str(&output).unwrap()
}

/// Returns the step of a trace for a stage.
fn step(trace: &Value, stage: &str) -> Value {
    let steps = trace["steps"].as_array().unwrap();
    let found = steps.iter().find(|step| step["stage"] == stage);
    found
        .unwrap_or_else(|| panic!("{stage}: {trace:#}"))
        .clone()
}

fn through_a_vlan(switch: &Switch) {
    let tagged = trace(switch, "dst host 10.0.4.9", "3");
    assert_eq!(tagged.len(), 3);
    for one in &tagged {
        assert_eq!(
            (&one["outcome"], &one["length"]),
            (&"sent".into(), &122.into()),
            "{one:#}"
        );
        let came = step(one, "received");
        assert_eq!((&came["port"], &came["worker"]), (&"dc0".into(), &0.into()));
        let parsed = step(one, "parsed");
        assert_eq!(
            (&parsed["dscp"], &parsed["dest_qp"], &parsed["ttl"]),
            (&10.into(), &0x11.into(), &64.into())
        );
        assert_eq!(step(one, "classified")["priority"], 2);
        assert_eq!(step(one, "routed")["prefix"], "10.0.4.0/24");
        let rewritten = step(one, "rewritten");
        assert_eq!(
            (&rewritten["vlan"], &rewritten["dst_mac"]),
            (&300.into(), &"02:00:00:00:03:02".into())
        );
        assert_eq!(
            (&rewritten["ttl"], &rewritten["bytes"]),
            (&63.into(), &126.into())
        );
        let queued = step(one, "queued");
        assert_eq!(
            (&queued["egress"], &queued["queue"]),
            (&"dc1".into(), &2.into())
        );
        assert_eq!(step(one, "sent")["egress"], "dc1");
        assert_eq!(step(one, "sent")["marked"], false);
    }
}

/// Traces packets to wan0 until one has this outcome, and returns it.
fn until(switch: &Switch, outcome: &str) -> Value {
    let awaited = || format!("a packet that is {outcome}");
    wait::value(wait::LONG, awaited, || {
        let traces = trace(switch, "dst host 10.0.2.2", "16");
        assert_eq!(traces.len(), 16);
        traces.into_iter().find(|one| one["outcome"] == outcome)
    })
}

/// Checks a packet that is routed to a blocked queue: it waits there, NPCC examines it, and it is marked; or there is no room left.
fn through_a_queue(switch: &Switch) {
    switch.until("the queue stands", || {
        switch.drops().contains_key("headroom_full")
    });
    let sent = until(switch, "sent");
    assert_eq!(step(&sent, "routed")["prefix"], "10.0.2.0/24");
    assert_eq!(step(&sent, "npcc")["watched"], true);
    assert_eq!(step(&sent, "queued")["waits"], "in the queue");
    assert!(step(&sent, "queued")["depth"].as_u64().unwrap() > 100_000);
    assert!(step(&sent, "admitted")["pool_bytes"].as_u64().unwrap() > 100_000);
    assert!(
        step(&sent, "sent")["after_ns"].as_u64().unwrap() > 100_000,
        "{sent:#}"
    );
    let end = step(&sent, "sent");
    assert_eq!((&end["marked"], &end["ecn"]), (&true.into(), &"ce".into()));
    let full = step(&until(switch, "dropped"), "dropped");
    assert_eq!(full["reason"], "headroom_full");
    assert_eq!(
        (&full["egress"], &full["queue"]),
        (&"wan0".into(), &3.into())
    );
}

fn dropped_where_it_came_in(switch: &Switch) {
    let dropped = trace(switch, "dst host 10.0.9.9", "1");
    assert_eq!(dropped[0]["outcome"], "dropped");
    assert_eq!(step(&dropped[0], "dropped")["reason"], "no_route");
    assert_eq!(step(&dropped[0], "routed")["prefix"], "none");
    let steps: Vec<&str> = dropped[0]["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["stage"].as_str().unwrap())
        .collect();
    assert_eq!(
        steps,
        ["received", "parsed", "classified", "routed", "dropped"]
    );
    let text = switch.done(&["trace", "packet", "--filter", "dst host 10.0.9.9"]);
    assert!(text.contains("packet 1, 122 bytes: dropped"), "{text}");
    assert!(
        text.contains("dropped") && text.contains("reason=no_route"),
        "{text}"
    );
}

/// Checks the trace of a CNP of the switch's own.
fn made_here(switch: &Switch) {
    switch.done(&["pair", "add", "10.0.1.3", "10.0.2.2", "0x11", "0x99"]);
    let cnp = trace(switch, "cnp", "1");
    let made = step(&cnp[0], "made");
    assert_eq!(
        (&made["egress"], &made["queue"], &made["dest_qp"]),
        (&"dc0".into(), &6.into(), &0x99.into())
    );
    assert_eq!(
        (&cnp[0]["outcome"], &step(&cnp[0], "sent")["egress"]),
        (&"sent".into(), &"dc0".into())
    );
}
