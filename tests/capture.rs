//! `capture` and `trace packet` of a running switch: what tshark reads of it is what the switch counted, and nothing stays on.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "a test says what is wrong by panicking"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{Lab, Running, alone, assert_success, root};
use npcc_pipeline::capture::{Fields, Filter, Seen};
use npcc_pipeline::craft::Craft;
use npcc_pipeline::units::Mac;
use npcc_pipeline::wire::{checksum, mac_control};
use npcc_testkit::capture::{self, Captured};
use serde_json::Value;

/// Frames that end in as many ways as a switch without Linux knows; wan0 is slow, and its peer pauses priority 4 without end.
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
npcc: { tick: 2ms, recovery: 3ms, shallow: 20KB, deep: 100KB, cnp: { cap: 0.1% } }
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

/// The frame with octets changed, its header checksum right again.
fn changed(craft: &Craft, change: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut frame = craft.frame();
    change(&mut frame);
    frame[24..26].fill(0);
    let sum = !checksum::sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// What comes in by dc0.
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
        // Early dropped, as it is Not-ECT, and past its share of the pool.
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

/// A switch that runs, and what asks it.
struct Switch {
    lab: Lab,
    run: Running,
}

impl Switch {
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
        let log = std::fs::File::create(lab.path("log")).unwrap();
        let child = lab
            .command(&["run", "-c", "switch.yaml", "--stats-json", "stats.json"])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let switch = Switch {
            lab,
            run: Running::of(child),
        };
        switch.until("it answers", |switch| !switch.show("ports").is_null());
        switch
    }

    fn until(&self, what: &str, holds: impl Fn(&Switch) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !holds(self) {
            let log = std::fs::read_to_string(self.lab.path("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "{what}: not in time\n{log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut all = args.to_vec();
        all.extend(["--socket", "switch.sock"]);
        self.lab.command(&all)
    }

    fn output(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn done(&self, args: &[&str]) -> Output {
        let output = self.output(args);
        assert_success(&output);
        output
    }

    /// A table of `show`; null while the switch does not answer.
    fn show(&self, what: &str) -> Value {
        let output = self.output(&["show", what, "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// Captures to a file of this name; what was said at the end.
    fn capture(&self, args: &[&str], name: &str) -> String {
        let all = [&["capture", "-w", name], args].concat();
        let output = self.done(&all);
        String::from_utf8(output.stderr).unwrap()
    }

    /// Whether a worker captures.
    fn captures(&self) -> bool {
        let workers = self.show("workers");
        let mut all = workers.as_array().unwrap().iter();
        all.any(|worker| worker["capture"]["active"] != 0)
    }

    /// Frames dropped so far, by reason, over all ports.
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

/// What tshark prints of these fields, line by line.
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

/// The word behind `key=` in a comment.
fn word<'a>(comment: &'a str, key: &str) -> Option<&'a str> {
    let mut words = comment.split_whitespace();
    words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

fn pause() -> Vec<u8> {
    mac_control::build(Mac([2, 0, 0, 0, 2, 2]), 1 << 4, [u16::MAX; 8]).to_vec()
}

#[test]
fn every_reason_for_which_frames_are_dropped_is_told_with_them_through_a_pipe() {
    let _alone = alone();
    let switch = Switch::start(LOSING, &losing(), &[pause()]);
    let reasons = |comments: &[Vec<String>]| -> BTreeSet<String> {
        let reason = |line: &Vec<String>| word(&line[0], "reason").map(str::to_owned);
        comments.iter().filter_map(reason).collect()
    };
    // The storm is found, and queues stand.
    switch.until("the storm", |switch| {
        switch.drops().contains_key("pfc_storm")
    });
    let script = format!(
        "'{}' capture --filter dropped --snaplen 100 --for 700ms --socket switch.sock -w - 2>said | tshark -r - -T fields -e frame.comment -e frame.interface_name -e frame.cap_len 2>/dev/null",
        env!("CARGO_BIN_EXE_npcc-switch")
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(switch.lab.dir.path())
        .output()
        .unwrap();
    assert_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<String>> = text
        .lines()
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect();
    let seen = reasons(&lines);
    let counted: BTreeSet<String> = switch.drops().into_keys().collect();
    assert_eq!(seen, counted, "as it counts, so it captures");
    let expected = [
        "runt",
        "oversize",
        "not_for_us",
        "multicast",
        "vlan_depth",
        "vlan_unknown",
        "not_ip",
        "ip_header",
        "ip_truncated",
        "ip_checksum",
        "martian",
        "ttl_expired",
        "no_route",
        "no_neighbor",
        "local_unserved",
        "mtu_exceeded",
        "headroom_full",
        "pfc_storm",
        "queue_full",
        "wred",
    ];
    for reason in expected {
        assert!(seen.contains(reason), "{reason}: {seen:?}");
    }
    for line in &lines {
        assert!(line[0].starts_with("dropped reason="), "{line:?}");
        assert!(line[2].parse::<u32>().unwrap() <= 100, "{line:?}");
        match word(&line[0], "out") {
            // A queue's own: where it stands, and how deep.
            Some(out) => {
                assert_eq!(line[1], out, "{line:?}");
                assert!(word(&line[0], "queue").is_some() && word(&line[0], "depth").is_some());
            }
            None => assert_eq!(word(&line[0], "in"), Some(line[1].as_str()), "{line:?}"),
        }
    }
    let full = lines
        .iter()
        .find(|line| word(&line[0], "reason") == Some("queue_full"));
    let depth: u64 = word(&full.unwrap()[0], "depth").unwrap().parse().unwrap();
    assert!(depth > 20_000, "a queue that is full is deep: {full:?}");

    // A link that goes down drops what waits for it.
    let mut capture = switch
        .command(&[
            "capture",
            "--filter",
            "reason link_down",
            "--count",
            "20",
            "-w",
            "down.pcapng",
        ])
        .spawn()
        .unwrap();
    switch.until("it captures", Switch::captures);
    switch.done(&["port", "wan0", "down"]);
    assert!(capture.wait().unwrap().success());
    let down = tshark(&switch.lab.path("down.pcapng"), &["frame.comment"]);
    assert_eq!(down.len(), 20);
    assert_eq!(reasons(&down), BTreeSet::from(["link_down".to_owned()]));
    assert!(!switch.captures(), "nothing stays on");
}

#[test]
fn what_comes_in_goes_out_and_is_made_is_captured_by_port_queue_and_filter() {
    let _alone = alone();
    let mut frames = vec![
        roce("10.0.2.2", 26, 200).frame(),
        roce("10.0.4.9", 10, 64).frame(),
    ];
    frames.push(roce("10.0.2.2", 8, 100).frame());
    let switch = Switch::start(LOSING, &frames, &[pause()]);
    let file = |name: &str| switch.lab.path(name);

    // In by dc0, in the queue 3; snaplen, count.
    let args = [
        "--port",
        "dc0",
        "--queue",
        "3",
        "--filter",
        "received",
        "--snaplen",
        "60",
        "--count",
        "50",
    ];
    let said = switch.capture(&args, "in.pcapng");
    assert!(said.starts_with("50 frames captured"), "{said}");
    let fields = [
        "frame.interface_name",
        "frame.comment",
        "ip.dst",
        "frame.len",
        "frame.cap_len",
        "frame.packet_flags_direction",
    ];
    let lines = tshark(&file("in.pcapng"), &fields);
    assert_eq!(lines.len(), 50);
    for line in &lines {
        let [name, comment, dst, len, kept, direction] = &line[..] else {
            panic!("{line:?}")
        };
        assert_eq!((name.as_str(), dst.as_str()), ("dc0", "10.0.2.2"));
        assert_eq!(comment, "received in=dc0 priority=3");
        assert_eq!((len.as_str(), kept.as_str()), ("258", "60"));
        assert!(direction.ends_with('1'), "inbound: {direction}");
    }

    // Out by wan0: rewritten, with its queue and its depth.
    switch.capture(
        &[
            "--port",
            "wan0",
            "--filter",
            "sent and dqpn 0x11",
            "--count",
            "100",
        ],
        "out.pcapng",
    );
    let fields = [
        "frame.comment",
        "ip.ttl",
        "eth.dst",
        "frame.packet_flags_direction",
        "frame.time_epoch",
    ];
    let lines = tshark(&file("out.pcapng"), &fields);
    assert_eq!(lines.len(), 100);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    for line in &lines {
        assert!(
            line[0].starts_with("sent in=dc0 out=wan0 queue="),
            "{line:?}"
        );
        assert_eq!(
            (line[1].as_str(), line[2].as_str()),
            ("63", "02:00:00:00:02:02")
        );
        assert!(line[3].ends_with('2'), "outbound: {line:?}");
        let time: f64 = line[4].parse().unwrap();
        assert!((now.as_secs_f64() - time).abs() < 30.0, "{time}");
    }
    let deep =
        |line: &Vec<String>| word(&line[0], "depth").unwrap().parse::<u64>().unwrap() > 1_000;
    assert!(lines.iter().any(deep), "the queue of a slow port stands");

    // PFC that is heard and that is told, and what was tagged on its way.
    switch.capture(
        &[
            "--filter",
            "pfc and priority 4 and received",
            "--count",
            "3",
        ],
        "heard.pcapng",
    );
    switch.capture(
        &["--port", "dc0", "--filter", "pfc and sent", "--count", "3"],
        "told.pcapng",
    );
    for (name, begin) in [
        ("heard.pcapng", "received in=wan0"),
        ("told.pcapng", "sent in=switch out=dc0"),
    ] {
        let lines = tshark(&file(name), &["frame.comment", "macc.opcode"]);
        assert_eq!(lines.len(), 3, "{name}");
        for line in lines {
            assert!(line[0].starts_with(begin), "{line:?}");
            assert_eq!(line[1], "0x0101");
        }
    }
    switch.capture(&["--filter", "vlan 300", "--count", "5"], "tagged.pcapng");
    let tagged = tshark(
        &file("tagged.pcapng"),
        &["frame.comment", "vlan.id", "ip.dst"],
    );
    assert_eq!(tagged.len(), 5);
    assert!(
        tagged
            .iter()
            .all(|line| line[0].starts_with("sent in=dc0 out=dc1 queue=2") && line[1] == "300")
    );

    // A CNP of the switch's own, once it knows whom to tell.
    let pair = ["pair", "add", "10.0.1.3", "10.0.2.2", "0x11", "0x99"];
    switch.done(&pair);
    switch.capture(
        &["--filter", "cnp", "--count", "2", "--for", "10s"],
        "cnp.pcapng",
    );
    let cnps = tshark(
        &file("cnp.pcapng"),
        &[
            "frame.comment",
            "infiniband.bth.opcode",
            "infiniband.bth.destqp",
            "ip.dst",
        ],
    );
    assert_eq!(cnps.len(), 2, "CNPs within ten seconds");
    for line in &cnps {
        assert!(
            line[0].starts_with("sent in=switch out=dc0 queue=6"),
            "{line:?}"
        );
        assert_eq!((line[1].as_str(), line[3].as_str()), ("129", "10.0.1.3"));
        assert_eq!(line[2], "0x000099");
    }

    // A time without a frame, and what is refused.
    let begun = Instant::now();
    let said = switch.capture(&["--filter", "arp", "--for", "300ms"], "none.pcapng");
    assert!(said.starts_with("0 frames captured, 0 lost"), "{said}");
    assert!(begun.elapsed() >= Duration::from_millis(300));
    let refused = |args: &[&str]| {
        let output = switch.output(&[&["capture", "-w", "x.pcapng"], args].concat());
        assert!(!output.status.success());
        assert!(
            !file("x.pcapng").exists(),
            "nothing is written where nothing begins"
        );
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, said) = refused(&["--filter", "host 10.0.1.3 and dscp 64"]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("column 24: `64` is not a number from 0 to 63"),
        "{said}"
    );
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines[2].find('^'),
        lines[1].find("64"),
        "the mark stands beneath: {said}"
    );
    let (code, said) = refused(&["--port", "wan9"]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("there is no port `wan9`: dc0, wan0, dc1"),
        "{said}"
    );
}

#[test]
fn a_capture_ends_with_its_client_however_that_goes() {
    let _alone = alone();
    let switch = Switch::start(LOSING, &losing(), &[pause()]);
    let begin = || -> Running {
        let child = switch
            .command(&["capture", "-w", "a.pcapng"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        switch.until("it captures", Switch::captures);
        Running::of(child)
    };
    let said = |child: Child| {
        let output = child.wait_with_output().unwrap();
        (output.status, String::from_utf8(output.stderr).unwrap())
    };
    // One runs at a time, and the other is told.
    let mut first = begin();
    let second = switch.output(&["capture", "-w", "b.pcapng"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&second.stderr).contains("another capture runs"));
    // Killed: nothing of it stays on, and the next may begin.
    first.0.as_mut().unwrap().kill().unwrap();
    switch.until("a killed client's capture ends", |switch| {
        !switch.captures()
    });
    // By SIGINT it is ended well: the file says what was lost.
    let mut third = begin();
    let child = third.0.take().unwrap();
    common::net::run(&format!("kill -INT {}", child.id()));
    let (status, text) = said(child);
    assert!(status.success(), "{text}");
    assert!(text.contains("frames captured, "), "{text}");
    switch.until("an interrupted capture ends", |switch| !switch.captures());
    let whole = Command::new("capinfos")
        .arg("-M")
        .arg(switch.lab.path("a.pcapng"))
        .output();
    // It comes with tshark where that is packaged so; tshark reads to the end in any case.
    assert!(whole.is_err() || whole.unwrap().status.success());
    assert!(!tshark(&switch.lab.path("a.pcapng"), &["frame.number"]).is_empty());
    // A reader of the pipe that goes away.
    let script = format!(
        "'{}' capture --socket switch.sock -w - | head -c 100000 >/dev/null",
        env!("CARGO_BIN_EXE_npcc-switch")
    );
    let piped = Command::new("sh")
        .args(["-c", &script])
        .current_dir(switch.lab.dir.path())
        .output()
        .unwrap();
    assert_success(&piped);
    switch.until("a capture whose reader left ends", |switch| {
        !switch.captures()
    });
    // A switch that ends tells its client.
    let mut last = begin();
    let mut switch = switch;
    let child = switch.run.0.take().unwrap();
    common::net::run(&format!("kill -TERM {}", child.id()));
    assert!(child.wait_with_output().unwrap().status.success());
    let (status, text) = said(last.0.take().unwrap());
    assert!(
        status.success() && text.contains("the switch stopped"),
        "{status} {text}"
    );
}

/// Two ports without a limit: what goes in goes out, as fast as a worker can.
const FAST: &str = "version: 1
dpdk: { eal_args: [\"--no-pci\", \"--in-memory\"] }
ports:
  - { name: dc0, device: \"net_pcap0,rx_pcap=in.pcap,infinite_rx=1\", mac: \"02:00:00:00:01:01\", addresses: [10.0.1.1/24] }
  - { name: wan0, device: \"net_null0,no-rx=1\", mac: \"02:00:00:00:02:01\", addresses: [10.0.12.1/24] }
routes: [ { prefix: 10.0.2.0/24, via: 10.0.12.2 } ]
neighbors: [ { address: 10.0.12.2, port: wan0, mac: \"02:00:00:00:02:02\" } ]
qos: { profile: lossy }
buffer: { pool: 16MB }
";

#[test]
fn at_full_rate_captures_are_lost_and_counted_and_no_frame_is() {
    let _alone = alone();
    let frames: Vec<Vec<u8>> = (0..8).map(|_| roce("10.0.2.2", 26, 1024).frame()).collect();
    let mut switch = Switch::start(FAST, &frames, &[]);
    let forwarded = |switch: &Switch| {
        let begun = Instant::now();
        let before = switch.show("ports")[1]["tx"]["packets"].as_u64().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let after = switch.show("ports")[1]["tx"]["packets"].as_u64().unwrap();
        (after - before) as f64 / begun.elapsed().as_secs_f64() / 1e6
    };
    let off = forwarded(&switch);
    let mut capture = Running::of(
        switch
            .command(&["capture", "-w", "-"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    switch.until("it captures", Switch::captures);
    let on = forwarded(&switch);
    let child = capture.0.take().unwrap();
    common::net::run(&format!("kill -INT {}", child.id()));
    let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    println!("{off:.2} M frames a second, {on:.2} while all of them are captured; {said}");
    let numbers: Vec<u64> = said
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let workers = switch.show("workers");
    let told = &workers[0]["capture"];
    assert_eq!(
        numbers[1],
        told["lost"].as_u64().unwrap(),
        "what is said is what was counted: {told}"
    );
    assert!(
        numbers[0] > 1_000 && numbers[1] > 0,
        "more than a ring takes: {said}"
    );
    assert!(on > 0.0, "frames go on");
    // Every frame that came in left: none was dropped for the capture's sake.
    let child = switch.run.0.take().unwrap();
    common::net::run(&format!("kill -TERM {}", child.id()));
    assert!(child.wait_with_output().unwrap().status.success());
    let stats: Value =
        serde_json::from_str(&std::fs::read_to_string(switch.lab.path("stats.json")).unwrap())
            .unwrap();
    let (dc0, wan0) = (&stats["ports"][0], &stats["ports"][1]);
    assert_eq!(dc0["rx"]["packets"], wan0["tx"]["packets"], "{stats:#}");
    assert_eq!(
        stats["conservation"]["drops"]["packets"], 0,
        "{:#}",
        stats["conservation"]
    );
}

#[test]
fn a_packets_way_is_told_stage_by_stage() {
    let _alone = alone();
    let mut frames = vec![
        roce("10.0.2.2", 26, 200).frame(),
        roce("10.0.4.9", 10, 64).frame(),
    ];
    frames.push(roce("10.0.9.9", 10, 64).frame());
    let switch = Switch::start(LOSING, &frames, &[pause()]);
    let trace = |filter: &str, count: &str| -> Vec<Value> {
        let output = switch.done(&[
            "trace", "packet", "--filter", filter, "--count", count, "--json",
        ]);
        serde_json::from_slice::<Value>(&output.stdout)
            .unwrap()
            .as_array()
            .unwrap()
            .clone()
    };
    let step = |trace: &Value, stage: &str| -> Value {
        let steps = trace["steps"].as_array().unwrap();
        let found = steps.iter().find(|step| step["stage"] == stage);
        found
            .unwrap_or_else(|| panic!("{stage}: {trace:#}"))
            .clone()
    };
    // Through a VLAN.
    let tagged = trace("dst host 10.0.4.9", "3");
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
    // Routed to a queue that stands: it waits there, NPCC looks, and it is marked; or there is no room left.
    let until = |outcome: &str| -> Value {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let traces = trace("dst host 10.0.2.2", "16");
            assert_eq!(traces.len(), 16);
            if let Some(found) = traces.into_iter().find(|one| one["outcome"] == outcome) {
                return found;
            }
            assert!(Instant::now() < deadline, "no packet was {outcome}");
        }
    };
    switch.until("the queue stands", |switch| {
        switch.drops().contains_key("headroom_full")
    });
    let sent = until("sent");
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
    let full = step(&until("dropped"), "dropped");
    assert_eq!(full["reason"], "headroom_full");
    assert_eq!(
        (&full["egress"], &full["queue"]),
        (&"wan0".into(), &3.into())
    );
    // Dropped where it came in.
    let dropped = trace("dst host 10.0.9.9", "1");
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
    // A PFC frame is consumed.
    assert_eq!(trace("pfc", "1")[0]["outcome"], "consumed");
    // A CNP of the switch's own.
    switch.done(&["pair", "add", "10.0.1.3", "10.0.2.2", "0x11", "0x99"]);
    let cnp = trace("cnp", "1");
    let made = step(&cnp[0], "made");
    assert_eq!(
        (&made["egress"], &made["queue"], &made["dest_qp"]),
        (&"dc0".into(), &6.into(), &0x99.into())
    );
    assert_eq!(
        (&cnp[0]["outcome"], &step(&cnp[0], "sent")["egress"]),
        (&"sent".into(), &"dc0".into())
    );
    // For people.
    let text = switch.done(&["trace", "packet", "--filter", "dst host 10.0.9.9"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("packet 1, 122 bytes: dropped"), "{text}");
    assert!(
        text.contains("dropped") && text.contains("reason=no_route"),
        "{text}"
    );
    // Nothing that comes.
    let none = switch.output(&["trace", "packet", "--filter", "arp", "--for", "200ms"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(!switch.captures(), "nothing stays on");
}

/// A filter of ours, and tshark's for the same frames.
const PAIRS: [(&str, &str); 16] = [
    ("roce", "infiniband"),
    ("udp port 4791", "udp.port == 4791"),
    ("host 10.0.1.3", "ip.addr == 10.0.1.3"),
    (
        "src host 10.0.1.3 and roce",
        "ip.src == 10.0.1.3 && infiniband",
    ),
    ("net 10.0.1.0/30", "ip.addr == 10.0.1.0/30"),
    (
        "dst net 10.0.0.0/8 and not src host 10.0.1.3",
        "ip.dst == 10.0.0.0/8 && !(ip.src == 10.0.1.3)",
    ),
    ("dqpn 0x11", "infiniband.bth.destqp == 0x11"),
    (
        "dqpn 0x12 or dqpn 0x18",
        "infiniband.bth.destqp == 0x12 || infiniband.bth.destqp == 0x18",
    ),
    ("opcode 17", "infiniband.bth.opcode == 17"),
    ("class read-request", "infiniband.bth.opcode == 12"),
    (
        "class management",
        "infiniband.bth.opcode == 100 && infiniband.bth.destqp == 1",
    ),
    (
        "ecn ect0 or ecn ce",
        "ip.dsfield.ecn == 2 || ip.dsfield.ecn == 3",
    ),
    ("dscp 0 and ttl 64", "ip.dsfield.dscp == 0 && ip.ttl == 64"),
    ("arp or icmp or ip6", "arp || icmp || ipv6"),
    (
        "greater 500 and not (tcp or vlan)",
        "frame.len >= 500 && !(tcp || vlan)",
    ),
    (
        "qpn 1",
        "infiniband.bth.destqp == 1 || infiniband.deth.srcqp == 1",
    ),
];

/// Frames and bytes that each of tshark's filters chooses, in one reading of the file.
fn statistics(file: &Path) -> Vec<(u64, u64)> {
    let filters: Vec<&str> = PAIRS.iter().map(|(_, theirs)| *theirs).collect();
    let output = Command::new("tshark")
        .args(["-q", "-r", file.to_str().unwrap(), "-z"])
        .arg(format!("io,stat,0,{}", filters.join(",")))
        .output();
    let output = output
        .unwrap_or_else(|error| panic!("tshark does not run ({error}): scripts/test installs it"));
    assert_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    let row = text.lines().find(|line| line.contains("<>")).unwrap();
    let numbers = row
        .split('|')
        .skip(2)
        .filter_map(|cell| cell.trim().parse().ok());
    let numbers: Vec<u64> = numbers.collect();
    numbers.chunks(2).map(|pair| (pair[0], pair[1])).collect()
}

#[test]
fn filters_choose_what_tshark_chooses() {
    let mut chosen = 0;
    for name in ["cm-send", "read-4qp", "write-4qp"] {
        let path = root().join(format!("tests/captures/softroce-{name}.pcap"));
        let frames = capture::read(&path).unwrap();
        let theirs = statistics(&path);
        assert_eq!(theirs.len(), PAIRS.len());
        for ((ours, text), expected) in PAIRS.iter().zip(theirs) {
            let filter = Filter::parse(ours).unwrap();
            let wanted =
                |one: &&Captured| filter.matches(&Fields::of(&one.frame), Seen::Received, None);
            let frames = frames.iter().filter(wanted);
            let sum = frames.fold((0, 0), |(count, bytes), one| {
                (count + 1, bytes + one.frame.len() as u64)
            });
            assert_eq!(sum, expected, "{name}: `{ours}` and `{text}`");
            chosen += usize::from(sum.0 > 0);
        }
    }
    assert!(chosen > 12, "most of them choose something: {chosen}");
}
