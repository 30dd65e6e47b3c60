//! Captures of frames received, sent and originated, selected by port, queue and filter.

use std::time::{Duration, Instant};

use super::{LOSING, Switch, pause, roce, start, tshark, word};
use crate::common::alone;

#[test]
fn received_sent_and_originated_frames_are_captured_by_port_queue_and_filter() {
    let _alone = alone();
    let frames = [
        roce("10.0.2.2", 26, 200).frame(),
        roce("10.0.4.9", 10, 64).frame(),
        roce("10.0.2.2", 8, 100).frame(),
    ];
    let switch = start(LOSING, &frames, &[pause()]);
    comes_in(&switch);
    goes_out(&switch);
    pauses_and_tags(&switch);
    is_made(&switch);
    refuses(&switch);
}

/// Captures frames received by dc0 for queue 3, with a snaplen and a count.
fn comes_in(switch: &Switch) {
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
    let lines = tshark(&switch.path("in.pcapng"), &fields);
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
}

/// Captures a frame sent by wan0: rewritten, with its queue and its depth.
fn goes_out(switch: &Switch) {
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
    let lines = tshark(&switch.path("out.pcapng"), &fields);
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
}

/// Captures PFC frames received and sent, and frames that were tagged on their way.
fn pauses_and_tags(switch: &Switch) {
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
        let lines = tshark(&switch.path(name), &["frame.comment", "macc.opcode"]);
        assert_eq!(lines.len(), 3, "{name}");
        for line in lines {
            assert!(line[0].starts_with(begin), "{line:?}");
            assert_eq!(line[1], "0x0101");
        }
    }
    switch.capture(&["--filter", "vlan 300", "--count", "5"], "tagged.pcapng");
    let tagged = tshark(
        &switch.path("tagged.pcapng"),
        &["frame.comment", "vlan.id", "ip.dst"],
    );
    assert_eq!(tagged.len(), 5);
    assert!(
        tagged
            .iter()
            .all(|line| line[0].starts_with("sent in=dc0 out=dc1 queue=2") && line[1] == "300")
    );
}

/// Captures a CNP of the switch's own, once it knows the sender's queue pair.
fn is_made(switch: &Switch) {
    let pair = ["pair", "add", "10.0.1.3", "10.0.2.2", "0x11", "0x99"];
    switch.done(&pair);
    switch.capture(
        &["--filter", "cnp", "--count", "2", "--for", "40s"],
        "cnp.pcapng",
    );
    let cnps = tshark(
        &switch.path("cnp.pcapng"),
        &[
            "frame.comment",
            "infiniband.bth.opcode",
            "infiniband.bth.destqp",
            "ip.dst",
        ],
    );
    assert_eq!(cnps.len(), 2, "CNPs within 40 s");
    for line in &cnps {
        assert!(
            line[0].starts_with("sent in=switch out=dc0 queue=6"),
            "{line:?}"
        );
        assert_eq!((line[1].as_str(), line[3].as_str()), ("129", "10.0.1.3"));
        assert_eq!(line[2], "0x000099");
    }
}

/// Checks a capture that ends without a frame, and the arguments that are refused.
fn refuses(switch: &Switch) {
    let begun = Instant::now();
    let said = switch.capture(&["--filter", "arp", "--for", "300ms"], "none.pcapng");
    assert!(said.starts_with("0 frames captured, 0 lost"), "{said}");
    assert!(begun.elapsed() >= Duration::from_millis(300));
    let refused = |args: &[&str]| {
        let output = switch.ask(&[&["capture", "-w", "x.pcapng"], args].concat());
        assert!(!output.status.success());
        assert!(
            !switch.path("x.pcapng").exists(),
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
        said.contains("there is no port `wan9`: write one of dc0, wan0, dc1"),
        "{said}"
    );
}
