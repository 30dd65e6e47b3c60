//! The switch on network cards that `dpdk-sys/double` plays: whole processes, one port a card, with the answers of the drivers' table.
//!
//! Longer than 500 lines, as each test of a played card needs the same few helpers. Needs root, and the plug-in that `scripts/cards` builds. Touches only namespaces and links of its own.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use npcc_api::client::blocking as client;
use npcc_api::protocol::{Reply, Request};
use npcc_pipeline::handoff::HANDOFF_RING;

use crate::common::cards::{Card, Cards, Traffic, plugin};
use crate::common::net::run;
use crate::common::{alone, root};
use npcc_card::answers::{Moment, Outcome, Received};
use npcc_card::{Profile, Shape};
use npcc_dpdk::Device;
use npcc_testkit::wait;
use serde_json::Value;

/// Descriptors of a card's largest ring.
const RING: u32 = 1_024;

/// Returns pairs of ports; the last port of an odd number is paired with the first.
fn pairs(ports: usize) -> Vec<(usize, usize)> {
    let pair = |one: usize| (one, if one + 1 < ports { one + 1 } else { 0 });
    (0..ports).step_by(2).map(pair).collect()
}

/// Returns true if a port of this card whose switch sends pause receives the pauses of its peer.
fn passes_pause(profile: &Profile) -> bool {
    match profile.pause_received.get() {
        Received::Passed => true,
        Received::PassedIfSet => profile.flow_ctrl_set.get().code() == 0,
        Received::Consumed => false,
    }
}

/// Returns true if the card puts the longest frame of its port into several buffers of the switch.
fn is_chained(card: &Card) -> bool {
    const ROOM: u32 = 9_216;
    let (profile, mtu) = (&card.profile, card.mtu());
    let shape = profile.shape(u32::from(mtu) + 14, ROOM, mtu, profile.scatters(ROOM, mtu));
    matches!(shape, Shape::Chained(_))
}

/// Fails if a card without hardware PFC was started again, or if its link went down for more than the switch-off of 802.3x pause.
fn asks_once(profile: &Profile, report: &BTreeMap<String, u64>) {
    if profile.priority_flow_ctrl_set.get().code() == 0 {
        return;
    }
    let off = profile.flow_ctrl_set.get().code() == 0;
    let flaps = u64::from(off && profile.flaps.get().contains(&Moment::FlowCtrlSet));
    let counts = ["pfc_sets", "starts", "stops", "flaps"].map(|name| report[name]);
    assert_eq!(counts, [1, 1, 0, flaps], "{}: {report:?}", profile.name);
}

/// Starts a switch on these cards, forwards ten rings each way in two classes, the second under pause, and ends it.
fn forwards_ten_rings(cards: &[Card]) {
    let cards = Cards::new(cards);
    let mut switch = cards.start();
    let pairs = pairs(cards.cards.len());
    let mut pauses = vec![0; cards.cards.len()];
    // A worker that is kept from its core loses no lossy frame either: the channel to it has room for all that are under way.
    let few = u32::try_from(HANDOFF_RING / (2 * pairs.len())).unwrap();
    let many = Traffic::of(0).window;
    for (dscp, pause, window) in [(0, None, few.min(many)), (26, Some(0.01), many)] {
        let traffic = Traffic {
            dscp,
            pause,
            window,
            ..Traffic::of(10 * RING)
        };
        let ways = cards.exchange(&pairs, traffic);
        for (n, way) in ways.iter().enumerate() {
            let (one, other) = pairs[n / 2];
            let (from, to) = [(one, other), (other, one)][n % 2];
            let names = [from, to].map(|port| cards.cards[port].profile.name);
            assert_eq!(
                (way.came, way.disorder, way.damaged),
                (10 * RING, 0, 0),
                "{names:?}, DSCP {dscp}: {way:?}\n{}",
                switch.log()
            );
            pauses[to] += u64::from(way.pauses);
        }
    }
    for (n, card) in cards.cards.iter().enumerate() {
        let passed = if passes_pause(&card.profile) {
            pauses[n]
        } else {
            0
        };
        let port = || switch.show("ports")[n].clone();
        let awaited = || format!("{} has {passed} pauses: {}", card.profile.name, port());
        wait::value(wait::LONG, awaited, || {
            (port()["pfc"]["rx"][3] == passed).then_some(())
        });
        asks_once(&card.profile, &cards.report(n));
    }
    switch.stop();
    let mut status_calls = 0;
    for (n, card) in cards.cards.iter().enumerate() {
        let report = cards.report(n);
        let of = |name: &str| report[name];
        let name = card.profile.name;
        let passed = if passes_pause(&card.profile) {
            pauses[n]
        } else {
            0
        };
        assert!(pauses[n] > 0, "{name}");
        assert_eq!(
            (of("rx_control"), of("rx_control_passed")),
            (pauses[n], passed),
            "{name}: {report:?}"
        );
        let chained = is_chained(card);
        assert_eq!(
            (of("rx_chained") > 0, of("rx_split")),
            (chained, 0),
            "{name}: {report:?}"
        );
        assert!(name != "mlx5" || of("rx_status_calls") == 0, "{report:?}");
        status_calls += of("rx_status_calls");
        assert_eq!(of("closes"), 1, "{name}: {report:?}");
        assert_eq!(of("mtu"), u64::from(card.mtu()), "{name}: {report:?}");
    }
    assert!(status_calls > 0, "no worker looked at a receive ring");
}

#[test]
fn each_card_forwards_ten_rings_each_way_under_pause() {
    let _alone = alone();
    let profiles = Profile::all();
    let cards: Vec<Card> = profiles
        .iter()
        .map(|profile| Card::of(profile.name, "send"))
        .collect();
    forwards_ten_rings(&cards);
}

/// The same with the second answer wherever the drivers' source leaves two.
#[test]
fn each_card_with_its_other_answers_does_too() {
    let _alone = alone();
    let cards: Vec<Card> = Profile::all()
        .iter()
        .filter(|profile| !profile.open().is_empty())
        .map(|profile| Card::other(profile.name, "send"))
        .collect();
    forwards_ten_rings(&cards);
}

/// Outcome of a start with a lossless priority and `pfc: auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// The card starts, and nothing is said against its pause.
    Works,
    /// The card starts, and its pause is suspected rather than known to work.
    Suspected,
    /// The start is refused.
    Refused,
}

/// Expected start of each card.
const STARTS: [(&str, Start); 13] = [
    ("bnxt", Start::Refused),
    ("e1000e", Start::Works),
    ("ena", Start::Refused),
    ("hns3", Start::Suspected),
    ("i40e", Start::Refused),
    ("iavf", Start::Refused),
    ("ice", Start::Suspected),
    ("igb", Start::Works),
    ("ixgbe", Start::Works),
    ("ixgbe_vf", Start::Refused),
    ("mlx5", Start::Refused),
    ("virtio", Start::Works),
    ("vmxnet3", Start::Works),
];

fn expected(profile: &Profile) -> Start {
    let row = STARTS.iter().find(|(name, _)| *name == profile.name);
    row.unwrap_or_else(|| panic!("{}: give it a row in STARTS", profile.name))
        .1
}

#[test]
fn cards_whose_pause_can_work_start_with_a_lossless_priority() {
    let _alone = alone();
    let profiles = Profile::all();
    let starting: Vec<&Profile> = profiles
        .iter()
        .filter(|profile| expected(profile) != Start::Refused)
        .collect();
    let cards: Vec<Card> = starting
        .iter()
        .map(|profile| Card::of(profile.name, "auto"))
        .collect();
    let cards = Cards::new(&cards);
    let mut switch = cards.start();
    let ports = switch.show("ports");
    for (n, profile) in starting.iter().enumerate() {
        let report = cards.report(n);
        let pfc = *profile.priority_flow_ctrl_set.get();
        let once = [Outcome::Unsupported, Outcome::NoCall].contains(&pfc);
        assert_eq!(
            (report["starts"] == 1, report["dcb_configures"] == 0),
            (once, once),
            "{}: {report:?}",
            profile.name
        );
        assert_eq!(
            ports[n]["flow"]["suspected"] == true,
            expected(profile) == Start::Suspected,
            "{}: {}",
            profile.name,
            ports[n]["flow"]
        );
    }
    switch.stop();
}

/// Runs a switch on these cards for a moment with this configuration; returns true if it started, and what it printed.
fn started(cards: &Cards, text: &str) -> (bool, String) {
    cards.lab.config(text);
    let mut command = cards
        .lab
        .command(&["run", "-c", "switch.yaml", "--for", "100ms"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), text)
}

/// Settings that a reject message names: `key: value` in backticks.
fn remedies(message: &str) -> Vec<&str> {
    let quoted = message.split('`').skip(1).step_by(2);
    quoted.filter(|text| text.contains(": ")).collect()
}

/// Writes a setting into a configuration: of the ports, or of a group of keys.
fn with_setting(text: &str, setting: &str) -> String {
    match setting.split_once('.') {
        Some((group, setting)) => {
            text.replace(&format!("{group}: {{"), &format!("{group}: {{ {setting},"))
        }
        None => text.replace("pfc: auto", setting),
    }
}

#[test]
fn cards_whose_pause_cannot_work_are_refused_and_start_with_each_setting_that_the_message_names() {
    let _alone = alone();
    let mut message = String::new();
    let mut refused = Vec::new();
    for profile in Profile::all() {
        if expected(&profile) != Start::Refused {
            continue;
        }
        let card = Card::of(profile.name, "auto");
        let cards = Cards::new(std::slice::from_ref(&card));
        let (starts, printed) = started(&cards, &cards.text());
        let named = |line: &&str| line.contains("port p0: a priority is lossless");
        message = printed.lines().find(named).unwrap_or_default().to_owned();
        assert!(
            !starts && !message.is_empty(),
            "{}: {printed}",
            profile.name
        );
        refused.push(card);
    }
    let cards = Cards::new(&refused);
    let remedies = remedies(&message);
    assert_eq!(remedies.len(), 2, "{message}");
    for remedy in remedies {
        let text = with_setting(&cards.text(), remedy);
        assert_ne!(text, cards.text(), "{remedy}");
        let (starts, printed) = started(&cards, &text);
        assert!(starts, "{remedy}: {printed}");
    }
}

#[test]
fn every_card_starts_once_with_pause_off_and_has_the_ports_mtu() {
    let _alone = alone();
    let profiles = Profile::all();
    let mut cards: Vec<Card> = profiles
        .iter()
        .map(|profile| Card::of(profile.name, "off"))
        .collect();
    // A lossless priority needs a port that sends pause.
    let all = cards.len();
    cards.push(Card::of("igb", "send"));
    let cards = Cards::new(&cards);
    let mut switch = cards.start();
    for (n, profile) in profiles.iter().enumerate() {
        let report = cards.report(n);
        let mtu = u64::from(cards.cards[n].mtu());
        assert_eq!(
            (report["starts"], report["stops"], report["mtu"]),
            (1, 0, mtu),
            "{}: {report:?}",
            profile.name
        );
        if *profile.kernel_interface.get() {
            let command = format!("ip -n {} link show c{n}", cards.net.space("sw"));
            let words: Vec<&str> = command.split(' ').collect();
            let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains(&format!("mtu {mtu} ")), "{text}");
        }
    }
    let ports = switch.show("ports");
    let drivers: Vec<&str> = ports.as_array().unwrap()[..all]
        .iter()
        .map(|port| port["driver"].as_str().unwrap())
        .collect();
    let named: Vec<&str> = profiles
        .iter()
        .map(|profile| profile.driver.get().as_str())
        .collect();
    assert_eq!(drivers, named);
    switch.stop();
}

#[test]
fn a_card_that_takes_no_frame_is_an_event_and_counted_until_it_goes_on() {
    let _alone = alone();
    let cards = Cards::new(&["ice", "igb"].map(|profile| Card::of(profile, "send")));
    let stalls = cards.lab.path("stalls");
    let argument = format!(",stalls={},iface=c1,", stalls.display());
    cards.change(",iface=c1,", &argument);
    let mut switch = cards.start();
    std::fs::write(&stalls, "").unwrap();
    let is_stall = |text: &Value| {
        text.as_str()
            .is_some_and(|text| text.contains("took no frame"))
    };
    let ways = std::thread::scope(|scope| {
        let ways = scope.spawn(|| cards.exchange(&[(0, 1)], Traffic::of(RING)));
        let awaited = || format!("p1 stalls: {}", switch.show("log"));
        wait::value(wait::LONG, awaited, || {
            let log = switch.show("log");
            let event = |event: &Value| event["port"] == "p1" && is_stall(&event["text"]);
            log.as_array()?.iter().any(event).then_some(())
        });
        std::fs::remove_file(&stalls).unwrap();
        ways.join().unwrap()
    });
    assert!(ways.iter().all(|way| way.came == RING), "{ways:?}");
    let totals = switch.stop();
    let stalled = [0, 1].map(|n| totals.ports[n].flow.counts.tx_stalled);
    assert!(stalled[0] == 0 && stalled[1] > 0, "{stalled:?}");
}

/// Two cards receive faster than the third sends; the switch pauses the peers of both.
#[test]
fn pauses_that_a_card_filters_never_reach_its_peer() {
    let _alone = alone();
    let cards = Cards::new(&["i40e", "igb", "e1000e"].map(|profile| Card::of(profile, "send")));
    cards.slow(20);
    cards.change("pool: 96MB", "pool: 96MB, alpha: 0.0078125");
    let mut switch = cards.start();
    let traffic = Traffic {
        window: 300,
        dscp: 26,
        ..Traffic::of(1_000)
    };
    let ways = cards.exchange(&[(0, 1), (2, 1)], traffic);
    let totals = switch.stop();
    for (n, way, filters) in [(0, &ways[1], true), (2, &ways[3], false)] {
        let report = cards.report(n);
        let [sent, filtered] = ["tx_control", "tx_control_filtered"].map(|name| report[name]);
        assert!(sent > 0, "{report:?}");
        assert_eq!(sent, totals.ports[n].counts.pfc.tx[3], "{report:?}");
        assert_eq!(filtered, if filters { sent } else { 0 }, "{report:?}");
        assert_eq!(way.heard == 0, filters, "{way:?}");
    }
}

#[test]
fn a_card_that_cannot_send_pause_starts_with_honour_and_obeys_its_peer() {
    let _alone = alone();
    let cards = Cards::new(&[Card::of("i40e", "honour"), Card::of("igb", "send")]);
    let mut switch = cards.start();
    let traffic = Traffic {
        dscp: 26,
        pause: Some(0.01),
        ..Traffic::of(RING)
    };
    let ways = cards.exchange(&[(0, 1)], traffic);
    assert!(ways.iter().all(|way| way.came == RING), "{ways:?}");
    let rx = || switch.show("ports")[0]["pfc"]["rx"][3].clone();
    let awaited = || format!("{} pauses: {}", ways[1].pauses, rx());
    wait::value(wait::LONG, awaited, || {
        (rx() == ways[1].pauses).then_some(())
    });
    let totals = switch.stop();
    let flow = &totals.ports[0].flow;
    assert_eq!((&flow.send[..], &flow.honour[..]), (&[][..], &[3][..]));
    let pause = flow.priorities.iter().find(|pause| pause.priority == 3);
    let pause = &pause.unwrap().counts;
    assert!(pause.rx_pauses > 0 && pause.rx_paused_ns > 0, "{pause:?}");
    assert_eq!(cards.report(0)["tx_control"], 0);
}

#[test]
fn a_card_that_is_pulled_out_is_down_and_the_others_go_on() {
    let _alone = alone();
    let cards = Cards::new(&["ice", "igb", "e1000e"].map(|profile| Card::of(profile, "send")));
    let mut switch = cards.start();
    run(&format!("ip -n {} link del c2", cards.net.space("sw")));
    let reason = || {
        let ports = switch.show("ports");
        let reason = ports[2]["down_reason"].as_str().map(str::to_owned);
        reason.filter(|reason| reason == "device")
    };
    let awaited = || format!("p2 is gone: {}", switch.show("ports"));
    wait::value(wait::LONG, awaited, reason);
    let ways = cards.exchange(&[(0, 1)], Traffic::of(RING));
    assert!(ways.iter().all(|way| way.came == RING), "{ways:?}");
    switch.stop();
    assert_eq!(cards.report(2)["closes"], 1);
}

/// A link that is back before the next poll has been down all the same: mlx5 shares the kernel's interface, whose carrier counts.
#[test]
fn a_shared_card_misses_none_of_a_thousand_flaps() {
    let _alone = alone();
    let cards = Cards::new(&["mlx5", "igb"].map(|profile| Card::of(profile, "send")));
    let mut switch = cards.start();
    let mut ip = Command::new("ip")
        .args(["-n", &cards.net.space("sw"), "-batch", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut orders = ip.stdin.take().unwrap();
    let flaps = || {
        let reply = client::ask(&switch.path("switch.sock"), &Request::Snapshot).unwrap();
        let Reply::Snapshot(snapshot) = reply else {
            panic!("{reply:?}");
        };
        (snapshot.ports[0].up, snapshot.ports[0].flaps)
    };
    let before = flaps().1;
    for n in 1..=1_000 {
        orders
            .write_all(b"link set h0 down\nlink set h0 up\n")
            .unwrap();
        let awaited = || format!("flap {n}: {:?}", flaps());
        wait::value(wait::LONG, awaited, || {
            (flaps() >= (true, before + n)).then_some(())
        });
    }
    drop(orders);
    assert!(ip.wait().unwrap().success());
    assert_eq!(flaps(), (true, before + 1_000));
    switch.stop();
}

/// Commands with which the switch sees a PCI device in its own view of `/sys`, with this kernel driver and these IDs, and then runs.
const IN_SYSFS: &str = "set -e; all=/sys/bus/pci/devices; card=$all/d0b1:00:00.0
mount -t tmpfs cards $all; mkdir $card; ln -s ../../drivers/$1 $card/driver
[ -z \"$2\" ] || { echo 0x$2 > $card/vendor; echo 0x$3 > $card/device; }
shift 3; exec \"$@\"";

/// Starts a switch on a card that lacks something; returns what it prints.
fn refused_for_lack(profile: &str, lacks: &str, sysfs: [&str; 3]) -> String {
    let cards = Cards::new(&[Card::of(profile, "send")]);
    let path = cards.lab.path("switch.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replace(",iface=", &format!(",lacks={lacks},iface="));
    std::fs::write(path, text).unwrap();
    let output = Command::new("ip")
        .args(["netns", "exec", &cards.net.space("sw")])
        .args(["sh", "-c", IN_SYSFS, "sh"])
        .args(sysfs)
        .arg(env!("CARGO_BIN_EXE_npcc-switch"))
        .args(["run", "-c", "switch.yaml", "--for", "100ms"])
        .current_dir(cards.lab.dir.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{profile}: {text}");
    text
}

#[test]
fn a_driver_that_refuses_a_card_is_quoted_and_only_right_kernel_drivers_are_advised() {
    let _alone = alone();
    // The IDs are unknown, so the driver counts as installed, and probes.
    let ice = refused_for_lack("ice", "ddp", ["vfio-pci", "", ""]);
    let said = "DPDK: double: this machine lacks what net_ice needs: ddp";
    let quoted = |line: &str| line.starts_with("error: port p0") && line.contains("(errno 1)");
    let quoted = |line: &str| quoted(line) && line.contains(said);
    assert!(ice.lines().any(quoted), "{ice}");
    assert!(!ice.contains("--bind"), "{ice}");
    let mlx5 = refused_for_lack("mlx5", "verbs", ["mlx5_core", "15b3", "1017"]);
    assert!(mlx5.contains("error: port p0"), "{mlx5}");
    assert!(!mlx5.contains("vfio-pci"), "{mlx5}");
}

#[test]
fn a_played_card_is_a_pci_device_of_which_the_product_knows_nothing() {
    let device: Device = "d0b1:00:00.0,profile=ice,iface=c0".parse().unwrap();
    assert!(!device.is_vdev(), "{device}");
    let name = plugin();
    let name = name.file_stem().unwrap().to_str().unwrap();
    let mut folders: Vec<_> = [
        "switch",
        "pipeline",
        "config",
        "cnp",
        "doctor",
        "linux",
        "lab",
        "dpdk-sys/safe",
        "dpdk-sys/src",
        "dpdk-sys/csrc",
    ]
    .map(|folder| root().join(folder))
    .to_vec();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&text);
            let knows = ["d0b1", name, "npcc-double"]
                .iter()
                .any(|word| text.contains(word));
            assert!(!knows, "{} knows of the double", path.display());
        }
    }
}
