//! Restarts under a service manager that keeps descriptors: counters, and the flows that NPCC signals, continue.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::busy::{BUSY, busy};
use crate::common::manager::Manager;
use crate::common::{Lab, alone, http};
use npcc_pipeline::craft::Craft;
use npcc_pipeline::units::Mac;
use npcc_pipeline::wire::mac_control;
use npcc_testkit::capture::{self, Captured};
use npcc_testkit::wait;

/// Creates a lab with data of one connection to a slow queue and its answers, all by one UDP port; only evidence as strong as the connection
/// manager's is trusted.
fn telling() -> (Lab, std::net::SocketAddr, &'static str) {
    let (lab, address) = (busy(), http::free());
    let craft = |src: &str, dst: &str, opcode, qpn, len| {
        let mut craft = Craft::roce(src.parse().unwrap(), dst.parse().unwrap(), opcode, qpn, len);
        craft.src_port = 50_007;
        craft
    };
    let data = craft("10.0.1.3", "10.0.2.2", 0x0a, 0x11, 1024);
    let ack = Craft {
        dst_mac: Mac([2, 0, 0, 0, 2, 1]),
        ..craft("10.0.2.2", "10.0.1.3", 0x11, 0x31, 4)
    };
    for (name, craft) in [("in.pcap", &data), ("back.pcap", &ack)] {
        let all = [Captured {
            time: 0,
            frame: craft.frame(),
        }];
        capture::write(&lab.path(name), all.iter(), 1).unwrap();
    }
    let text = BUSY.replace("npcc: { tick", "npcc: { evidence: cm, tick");
    assert_ne!(text, BUSY);
    let socket = lab.path("switch.sock");
    lab.config(&format!(
        "{text}telemetry: {{ socket: {}, http: \"{address}\" }}\n",
        socket.display()
    ));
    (
        lab,
        address,
        "npcc_cnps_sent_total{port=\"wan0\",priority=\"3\"}",
    )
}

/// Returns the counters of a scrape, by name and labels.
fn counters(address: std::net::SocketAddr) -> Option<BTreeMap<String, f64>> {
    let (_, text) = http::get(address, "/metrics", "")?;
    let mut kinds = BTreeMap::new();
    let mut all = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ')?;
            kinds.insert(name.to_owned(), kind.to_owned());
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ')?;
            let name = series.split('{').next()?;
            let family = ["_bucket", "_count", "_sum"]
                .iter()
                .find_map(|end| name.strip_suffix(end));
            let kind = kinds.get(name).or_else(|| kinds.get(family?));
            if kind.is_some_and(|kind| kind == "counter" || kind == "histogram") {
                all.insert(series.to_owned(), value.parse().ok()?);
            }
        }
    }
    Some(all)
}

/// Waits for a scrape, asserts that no counter went down, and returns it.
fn next(address: std::net::SocketAddr, before: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let now = wait::value(wait::LONG, || "a scrape".to_owned(), || counters(address));
    for (series, value) in before {
        let now = now.get(series);
        assert!(
            now.is_some_and(|now| now >= value),
            "{series}: {value}, then {now:?}"
        );
    }
    now
}

const FRAMES: &str = "npcc_port_receive_frames_total{port=\"dc0\"}";

/// Number of frames of a busy sender, whose pair would earn many CNPs.
const MANY: f64 = 50_000.0;

/// Waits until [`MANY`] more frames came; returns the scrape after them.
fn after_frames(
    address: std::net::SocketAddr,
    before: &BTreeMap<String, f64>,
) -> BTreeMap<String, f64> {
    let mut now = next(address, before);
    wait::until("many frames", wait::LONG, || {
        now = next(address, &now);
        now[FRAMES] > before[FRAMES] + MANY
    });
    now
}

#[test]
fn counters_never_go_back_and_the_same_senders_are_signalled_after_restarts() {
    let _alone = alone();
    let (lab, address, cnps) = telling();
    let mut manager = Manager::start(lab.dir.path(), &lab.command(&["run", "-c", "switch.yaml"]));
    let signalled = |all: &BTreeMap<String, f64>| all.get(cnps).copied().unwrap_or(0.0);
    let mut all = after_frames(address, &next(address, &BTreeMap::new()));
    assert!(signalled(&all) < 0.5, "nobody said who sends");
    lab.done(&["pair", "add", "10.0.1.3", "10.0.2.2", "0x11", "0x31"]);
    while signalled(&all) < 3.0 {
        all = next(address, &all);
    }
    assert!(all.len() > 500, "{}", all.len());
    for round in 0..6 {
        // The stimulus is a kill at another time of each round, so that it is not always just after a checkpoint.
        std::thread::sleep(Duration::from_millis(300 + 70 * round));
        all = next(address, &all);
        if round % 3 == 2 {
            manager.restart();
        } else {
            manager.kill();
        }
        let before = all.clone();
        // Only the pair that was kept makes CNPs: no packet here tells a switch that forgot it.
        // The device's counters are read now and then, and may show frames later than the control core shows its CNPs.
        let awaited = || format!("a CNP and frames after the restart: {}", manager.said());
        wait::value(wait::LONG, awaited, || {
            all = next(address, &all);
            (signalled(&all) > signalled(&before) && all[FRAMES] > before[FRAMES]).then_some(())
        });
    }
    // The answers take another path from now on: nothing confirms the pair.
    let far = Craft {
        dst_mac: Mac([2, 0, 0, 0, 2, 1]),
        ..Craft::roce(
            "10.0.2.7".parse().unwrap(),
            "10.0.1.3".parse().unwrap(),
            0x11,
            0x99,
            4,
        )
    };
    let none = [Captured {
        time: 0,
        frame: far.frame(),
    }];
    capture::write(&lab.path("back.pcap"), none.iter(), 1).unwrap();
    manager.kill();
    all = next(address, &all);
    let after = after_frames(address, &all);
    assert_eq!(
        signalled(&all),
        signalled(&after),
        "told without a confirmation"
    );
    assert!(
        manager
            .said()
            .contains("1 pairs were known before the start"),
        "{}",
        manager.said()
    );
    manager.stop();
}

/// Returns the changes of `show audit`, once the switch answers.
fn audit(lab: &Lab) -> Vec<serde_json::Value> {
    lab.answers();
    lab.show("audit")["changes"].as_array().unwrap().clone()
}

#[test]
fn the_audit_is_there_with_keys_and_counts_after_a_restart_and_a_kill() {
    let _alone = alone();
    let (lab, ..) = telling();
    let mut manager = Manager::start(lab.dir.path(), &lab.command(&["run", "-c", "switch.yaml"]));
    assert_eq!(audit(&lab).len(), 0);
    lab.done(&["set", "npcc.wan0.3.few", "70"]);
    let path = lab.path("switch.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    let deeper = text.replace("deep: 100KB", "deep: 120KB");
    assert_ne!(deeper, text);
    std::fs::write(&path, deeper).unwrap();
    lab.done(&["reload"]);
    let mut before = audit(&lab);
    let whats: Vec<&str> = before
        .iter()
        .filter_map(|one| one["what"].as_str())
        .collect();
    assert_eq!(whats, ["set npcc.wan0.3.few 70", "reload"]);
    let keys = serde_json::json!([
        { "effect": "applied", "key": "npcc.deep", "old": "100KB", "new": "120KB" },
    ]);
    assert_eq!(before[1]["keys"], keys);
    manager.restart();
    // The clock of the new process began later.
    for change in &mut before {
        change["time_us"] = 0.into();
    }
    assert_eq!(audit(&lab), before);
    // A change at the last moment is kept, too.
    lab.done(&["clear", "counters"]);
    manager.kill();
    let after = audit(&lab);
    assert_eq!(after[..2], before);
    assert_eq!(
        (after.len(), &after[2]["what"]),
        (3, &"clear counters".into())
    );
    let text = lab.done(&["show", "audit"]);
    assert!(
        text.contains("\n    applied npcc.deep: 100KB -> 120KB\n"),
        "{text}"
    );
    let log = lab.done(&["show", "log"]);
    assert!(log.contains(" clear counters (uid "), "{log}");
    manager.stop();
}

/// Replaces the traffic with data of priority 4 alone.
fn send_into_the_storm(lab: &Lab) {
    let held = Craft {
        tos: 34 << 2,
        ..Craft::roce(
            "10.0.1.3".parse().unwrap(),
            "10.0.2.2".parse().unwrap(),
            0x0a,
            0x11,
            1024,
        )
    };
    let data = [Captured {
        time: 0,
        frame: held.frame(),
    }];
    capture::write(&lab.path("in.pcap"), data.iter(), 1).unwrap();
}

/// Waits until the switch has saved its state again: the thread that does so every 250 ms takes 10 ms and more for each of its turns.
fn is_kept(lab: &Lab) {
    lab.turn("keeping thread", 60);
}

/// Guards storm state over a restart: detected afresh it would take the watchdog five seconds, and meanwhile frames would be held, not dropped.
#[test]
fn a_pause_storm_goes_on_over_a_kill_and_ends_once_the_peer_is_quiet() {
    let _alone = alone();
    let (lab, address, _) = telling();
    let path = lab.path("switch.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    let pause =
        |priority: u8| mac_control::build(Mac([2, 0, 0, 0, 2, 2]), 1 << priority, [u16::MAX; 8]);
    let peer = |frame: &[u8]| {
        let frame = [Captured {
            time: 0,
            frame: frame.to_vec(),
        }];
        capture::write(&lab.path("back.pcap"), frame.iter(), 1).unwrap();
    };
    send_into_the_storm(&lab);
    peer(&pause(4));
    let mut manager = Manager::start(lab.dir.path(), &lab.command(&["run", "-c", "switch.yaml"]));
    let of = |all: &BTreeMap<String, f64>, name: &str| {
        let series = format!("npcc_pfc_{name}_total{{port=\"wan0\",priority=\"4\"}}");
        all.get(&series).copied()
    };
    let storm = || {
        let (_, text) = http::get(address, "/metrics", "").unwrap();
        let mut lines = text.lines();
        lines.any(|line| line == "npcc_pfc_storm{port=\"wan0\",priority=\"4\"} 1")
    };
    next(address, &BTreeMap::new());
    wait::until("a storm", wait::LONG, storm);
    is_kept(&lab);
    let slow = text.replace("detect: 100ms", "detect: 5s");
    assert_ne!(slow, text);
    std::fs::write(&path, slow).unwrap();
    let before = next(address, &BTreeMap::new());
    assert_eq!(of(&before, "storms"), Some(1.0), "{before:?}");
    manager.kill();
    let after = next(address, &before);
    assert!(storm(), "{}", manager.said());
    let dropped = "npcc_port_drops_total{port=\"wan0\",reason=\"pfc_storm\"}";
    // Detected afresh, it would count as another one.
    let mut again = after.clone();
    wait::until(dropped, wait::LONG, || {
        again = next(address, &again);
        again[dropped] > after[dropped]
    });
    assert_eq!(of(&again, "storms"), Some(1.0), "it is the same one");
    let said = manager.said();
    assert!(
        said.contains(
            "note: the pause storm on port wan0, priority 4, from before the start goes on"
        ),
        "{said}"
    );
    // The peer comes back while the switch is away.
    peer(&pause(5));
    manager.kill();
    let after = next(address, &again);
    wait::until("the end of the storm", wait::LONG, || !storm());
    let end = next(address, &after);
    assert_eq!(of(&end, "storms"), Some(1.0));
    is_kept(&lab);
    manager.kill();
    next(address, &end);
    assert!(!storm());
    assert_eq!(
        manager
            .said()
            .matches("from before the start goes on")
            .count(),
        2
    );
    manager.stop();
}

#[test]
fn memory_of_another_kind_is_not_used_and_the_switch_says_so() {
    let _alone = alone();
    let (lab, address, _) = telling();
    let file = lab.path("zeros");
    std::fs::write(&file, [0; 4096]).unwrap();
    let mut manager = Manager::start(lab.dir.path(), &lab.command(&["run", "-c", "switch.yaml"]));
    next(address, &BTreeMap::new());
    for name in ["audit", "counters", "facts", "pairs"] {
        manager.forget(name);
        manager.put(name, file.to_str().unwrap());
    }
    manager.kill();
    next(address, &BTreeMap::new());
    let said = manager.said();
    assert!(said.contains("counters begin at 0"), "{said}");
    for name in ["audit", "facts", "pairs"] {
        assert!(
            said.contains(&format!("left as `{name}` is not used")),
            "{name}: {said}"
        );
    }
    assert_eq!(manager.names(), ["audit", "counters", "facts", "pairs"]);
    manager.stop();
}
