//! No text makes the parser panic, hang or eat the machine.

use npcc_config::{Severity, load, parse, schema};
use proptest::prelude::*;

const EXAMPLE: &str = include_str!("../examples/dci-edge.yaml");

fn rejection(text: &str) -> String {
    parse("t", text).unwrap_err().to_string()
}

#[test]
fn alias_bombs_are_refused_soon() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for n in 1..12 {
        let p = n - 1;
        text.push_str(&format!(
            "a{n}: &a{n} [*a{p}, *a{p}, *a{p}, *a{p}, *a{p}, *a{p}, *a{p}, *a{p}]\n"
        ));
    }
    // Eight to the eleventh values would end neither in time nor in memory.
    assert!(rejection(&text).contains("holds more than"));
}

#[test]
fn nesting_is_bounded() {
    // The parser has a bound of its own for brackets.
    assert!(rejection(&"[".repeat(100_000)).contains("recursion limit"));
    assert!(rejection(&"[".repeat(100)).contains("nest deeper"));
    assert!(rejection(&"- ".repeat(10_000)).contains("nest deeper"));
    assert!(rejection("a: &x [*x]\n").contains("inside its own anchor"));
}

#[test]
fn anchors_and_aliases_work() {
    let text = "ports:\n\
                - { name: a, device: net_null0, speed: 10G, npcc: &n { queues: [3] } }\n\
                - { name: b, device: net_null1, speed: 10G, npcc: *n }\n";
    let config = parse("t", text).unwrap().config;
    assert_eq!(config.ports[0].npcc, config.ports[1].npcc);
}

#[test]
fn same_prefix_with_another_next_hop_is_one_more_path() {
    let text = "ports: [{ name: a, device: net_null0, addresses: [10.0.0.1/24] }]\n\
                routes:\n\
                - { prefix: 10.1.0.0/16, via: 10.0.0.2 }\n\
                - { prefix: 10.2.0.0/16, via: [10.0.0.2, 10.0.0.3] }\n\
                - { prefix: 10.1.0.0/16, via: 10.0.0.3 }\n";
    let config = parse("t", text).unwrap().config;
    assert_eq!(config.routes.len(), 2);
    assert_eq!(config.routes[0].via.len(), 2);
    assert_eq!(config.routes[1].via.len(), 2);
}

#[test]
fn large_files_report_the_few_bad_lines() {
    let mut text = String::from(
        "ports: [{ name: a, device: net_null0, addresses: [10.0.0.1/24] }]\nroutes:\n",
    );
    for n in 0..10_000 {
        let via = if n % 1000 == 7 {
            "10.9.9.9"
        } else {
            "10.0.0.2"
        };
        text.push_str(&format!(
            "- {{ prefix: 11.{}.{}.0/24, via: {via} }}\n",
            n / 256,
            n % 256
        ));
    }
    let report = parse("t", &text).unwrap_err();
    let errors: Vec<usize> = report
        .diagnostics()
        .iter()
        .filter(|d| d.severity() == Severity::Error)
        .map(|d| d.line())
        .collect();
    assert_eq!(errors, (0..10).map(|k| k * 1000 + 10).collect::<Vec<_>>());
}

#[test]
fn empty_sections_are_defaults() {
    let text = "ports: [{ name: a, device: net_null0 }]\nroutes:\nqos:\nnpcc:\n  # tick: 20us\n";
    let plain = parse("t", "ports: [{ name: a, device: net_null0 }]")
        .unwrap()
        .config;
    assert_eq!(parse("t", text).unwrap().config, plain);
}

#[test]
fn slow_links_with_times_warn_of_empty_zones() {
    let text = "ports: [{ name: a, device: net_null0, speed: 10M, npcc: {} }]\n\
                qos: { profile: lossy }\n";
    let warnings = parse("t", text).unwrap().warnings;
    // The first is of its lossy queue, which may hold half of the pool.
    let [_, empty] = &warnings[..] else {
        panic!("{warnings:?}");
    };
    assert!(empty.message().contains("4 mtu"), "{empty}");
    assert_eq!((empty.line(), empty.column()), (1, 57));
}

/// Returns the messages of the warnings about a switch of two ports with this port rate, `qos:`, `buffer:` and `npcc:`.
fn depth_warnings(speed: &str, qos: &str, buffer: &str, npcc: &str) -> Vec<String> {
    let text = format!(
        "ports:\n  - {{ name: a, device: net_null0, mtu: 1500, speed: {speed} }}\n  - {{ name: b, device: net_null1, mtu: 1500, speed: 100G }}\n\
         qos: {{ profile: lossy, {qos} }}\nbuffer: {{ {buffer} }}\nnpcc: {{ {npcc} }}\n"
    );
    let loaded = parse("t", &text).unwrap_or_else(|report| panic!("{report}"));
    let messages = loaded.warnings.iter().map(|one| one.message().to_owned());
    messages.collect()
}

/// Law: a threshold above what a queue can hold, and one below a frame, is named; a depth that a queue can have is not.
#[test]
fn thresholds_that_never_mark_or_always_do_are_warned_of() {
    let ecn = |curve: &str| {
        let qos = format!("priorities: {{ 3: {{ ecn: {{ {curve} }} }} }}");
        depth_warnings("100G", &qos, "pool: 16MB", "")
    };
    for (curve, words) in [
        (
            "kmin: 1GB, kmax: 2GB",
            "kmin (1GB) comes to 1GB, and the queue never holds more than 7983KB: no frame is marked",
        ),
        ("kmin: 8MB, kmax: 9MB", "no frame is marked"),
        ("kmin: 1ms, kmax: 2ms", "kmin (1ms) comes to 12500KB"),
        (
            "kmin: 1B, kmax: 2B, pmax: 100%",
            "kmax (2B) is less than a frame of 1522 bytes: whatever waits behind one is marked",
        ),
    ] {
        let found = ecn(curve);
        assert!(
            found.len() == 1 && found[0].contains(words),
            "{curve}: {found:?}"
        );
    }
    for curve in [
        "kmin: 7MB, kmax: 9MB",
        "kmin: 1522B, kmax: 1522B",
        "kmin: 1us, kmax: 2us",
    ] {
        assert!(ecn(curve).is_empty(), "{curve}: {:?}", ecn(curve));
    }
    let wred = "priorities: { 0: { wred: { min: 9MB, max: 10MB, prob: 1% } } }";
    let found = depth_warnings("100G", wred, "pool: 16MB", "");
    assert!(found[0].contains("no frame is dropped early"), "{found:?}");
    for (deep, words) in [
        ("9MB", "that a lossy queue ever holds"),
        ("1000B", "less than a frame"),
    ] {
        let found = depth_warnings(
            "100G",
            "",
            "pool: 16MB",
            &format!("shallow: 900B, deep: {deep}"),
        );
        let found: Vec<_> = found
            .into_iter()
            .filter(|text| text.starts_with("deep ("))
            .collect();
        assert!(found.len() == 1 && found[0].contains(words), "{found:?}");
    }
}

/// Law: a lossy queue that only its limit bounds is named with the time that its frames may wait, once, at the slowest port.
#[test]
fn a_lossy_queue_that_may_hold_frames_for_long_is_named_with_its_time() {
    let found = depth_warnings("100M", "", "pool: 16MB", "");
    let words = "queue 0 of `a` may hold 7983KB, 638ms at 100M, before it drops";
    assert_eq!(found, [words]);
    for (speed, qos, buffer) in [
        ("10G", "", "pool: 64MB"),
        (
            "100M",
            "priorities: { 0: { wred: { min: 30KB, max: 150KB, prob: 20% } } }",
            "pool: 16MB",
        ),
        ("100M", "", "pool: 16MB, alpha: 0.0078125"),
    ] {
        let found = depth_warnings(speed, qos, buffer, "");
        assert!(found.is_empty(), "{speed} {qos}: {found:?}");
    }
    let found = depth_warnings("10G", "priorities: { 0: { max_rate: 1G } }", "", "");
    assert!(found[0].contains("255ms at 1G"), "{found:?}");
}

/// Drivers of PCI cards count the room of a buffer in whole units, so frames beyond come in pieces.
#[test]
fn a_written_buffer_that_cuts_frames_of_a_pci_card_is_warned_of() {
    let warnings = |device: &str, mbuf: &str| {
        let text = format!(
            "ports: [{{ name: a, device: '{device}', mtu: 9100 }}]\nbuffer: {{ mbuf: {mbuf} }}\nqos: {{ profile: lossy }}\n"
        );
        parse("t", &text).unwrap().warnings
    };
    let [warning] = &warnings("0000:01:00.0", "9280")[..] else {
        panic!("one warning");
    };
    assert!(warning.to_string().contains("9344B"), "{warning}");
    for (device, mbuf) in [
        ("0000:01:00.0", "9344"),
        ("0000:01:00.0", "10368"),
        ("0000:01:00.0", "auto"),
        ("net_null0", "9280"),
    ] {
        let found = warnings(device, mbuf);
        assert!(found.is_empty(), "{device} {mbuf}: {found:?}");
    }
}

#[test]
fn files_that_cannot_be_read_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let missing = load(&folder.path().join("none.yaml")).unwrap_err();
    assert!(missing.to_string().contains("cannot read the file"));
    assert!(load(folder.path()).is_err());
    let latin = folder.path().join("latin.yaml");
    std::fs::write(&latin, b"ports: []\ncores: {} # caf\xe9\n").unwrap();
    let report = load(&latin).unwrap_err();
    let first = &report.diagnostics()[0];
    assert_eq!((first.line(), first.column()), (2, 16));
    assert!(first.message().contains("UTF-8"));
}

#[test]
fn the_schema_knows_every_section() {
    let schema = schema();
    let known = schema["properties"].as_object().unwrap();
    for section in [
        "version",
        "dpdk",
        "cores",
        "ports",
        "routes",
        "neighbors",
        "routing",
        "qos",
        "buffer",
        "pfc",
        "npcc",
        "linux",
        "telemetry",
        "time_scale",
    ] {
        assert!(known.contains_key(section), "{section}");
    }
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(
        schema["properties"]["cores"]["default"]["workers"],
        serde_json::json!([1])
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        let _ = parse("t", &text).map_err(|r| r.to_string());
    }

    #[test]
    fn any_yaml_like_text(text in "[a-z0-9:&*{}\\[\\]\"'\n ,.!|>#%@`?-]{0,300}") {
        let _ = parse("t", &text).map_err(|r| r.to_string());
    }

    /// A good file with one stretch replaced: read or refused with places inside the text.
    #[test]
    fn any_damage(at in 0..EXAMPLE.len(), cut in 0usize..40, put in "[a-z0-9:{}\\[\\]\n ,./%-]{0,20}") {
        let mut text = EXAMPLE.to_owned();
        let end = (at + cut).min(text.len());
        prop_assume!(text.is_char_boundary(at) && text.is_char_boundary(end));
        text.replace_range(at..end, &put);
        if let Err(report) = parse("t", &text) {
            prop_assert!(!report.diagnostics().is_empty());
            let lines = text.lines().count() + 1;
            for d in report.diagnostics() {
                prop_assert!((1..=lines).contains(&d.line()) && d.column() >= 1, "{}", d);
            }
        }
    }
}

/// A key that has no effect under the policies and modes in force is a warning, and the same key where it has one is none.
#[test]
fn keys_without_effect_are_warnings() {
    let warned = |npcc: &str, port: &str| {
        let text = format!(
            "npcc: {{ {npcc} }}\nports: [{{ name: a, device: net_null0, speed: 10G, npcc: {{ {port} }} }}]\nqos: {{ profile: lossy }}\n"
        );
        let warnings = parse("t", &text).unwrap().warnings;
        warnings
            .iter()
            .filter(|one| one.message().contains("no effect"))
            .count()
    };
    for (npcc, port, without) in [
        ("shallow: 40us", "policy: npcc", "policy: model"),
        ("", "policy: npcc, shallow: 40us", "shallow: 40us"),
        ("cnp: { interval: 50us }", "", ""),
        ("hosts: { cnp_intervals: { 10.0.0.0/8: 50us } }", "", ""),
        ("", "upstream_ce: leave", "upstream_ce: leave"),
    ] {
        let off = if port == without { ", ecn: mark" } else { "" };
        assert_eq!(warned(npcc, port), 0, "{npcc} {port}");
        let npcc = format!("{npcc}{off}");
        assert_eq!(
            warned(npcc.trim_start_matches(", "), without),
            1,
            "{npcc} {without}"
        );
    }
    assert_eq!(warned("gate: off, ecn: mark", ""), 0);
    assert_eq!(warned("gate: off, ecn: off", ""), 1);
    assert_eq!(warned("min_cnp_interval: 90us, ecn: mark", ""), 1);
    assert_eq!(
        warned("min_cnp_interval: 90us", "enable: false"),
        1,
        "no port has NPCC"
    );
}

/// PFC names the tag's priority, so a lossless priority has its own PCP or none; lossy ones have any.
#[test]
fn pcp_maps_that_pfc_can_express_are_accepted() {
    let with = |qos: &str| {
        let text = format!(
            "ports: [{{ name: dc0, device: net_null0, mac: 02:00:00:00:00:01, speed: 10G }}]\nqos: {{ {qos} }}\n"
        );
        parse("t", &text)
    };
    for accepted in [
        "trust: pcp",
        "trust: pcp, pcp_to_priority: { 3: 0, 5: 1, 1: 6 }",
        "trust: pcp, pcp_to_priority: { 5: 3 }, profile: lossy",
        "trust: pcp, pcp_to_priority: { 5: 5 }, priorities: { 5: { lossless: true } }",
        "trust: dscp, pcp_to_priority: { 5: 3 }",
        "trust: both, default_priority: 3",
    ] {
        with(accepted).unwrap_or_else(|report| panic!("{accepted}: {report}"));
    }
    for refused in [
        "trust: pcp, pcp_to_priority: { 5: 3 }",
        "trust: pcp, default_priority: 3",
        "trust: pcp, priorities: { 0: { lossless: true } }",
        "trust: pcp, pcp_to_priority: { 4: 4, 3: 4 }, priorities: { 4: { lossless: true } }",
    ] {
        let report = with(refused).expect_err(refused).to_string();
        assert!(
            report.contains("which PFC cannot pause"),
            "{refused}: {report}"
        );
    }
}

/// Hosts' CNPs have the DSCP that the switch's own have, so the map leads both.
#[test]
fn the_dscp_of_cnps_is_compared_with_the_map() {
    let with = |rest: &str| {
        let port = "{ name: dc0, device: net_null0, mac: 02:00:00:00:00:01, speed: 10G, npcc: { queues: [3] } }";
        parse("t", &format!("ports: [{port}]\n{rest}\n"))
    };
    for (rest, warned) in [
        ("npcc: { cnp: { dscp: 48 } }", false),
        ("npcc: { cnp: { dscp: 46 } }", true),
        (
            "qos: { dscp_to_priority: { 46: 6 } }\nnpcc: { cnp: { dscp: 46 } }",
            false,
        ),
        ("qos: { trust: pcp }\nnpcc: { cnp: { dscp: 26 } }", false),
    ] {
        let loaded = with(rest).unwrap_or_else(|report| panic!("{rest}: {report}"));
        let said = loaded
            .warnings
            .iter()
            .any(|warning| warning.to_string().contains("of CNPs leads to priority 0"));
        assert_eq!(said, warned, "{rest}");
    }
    for refused in [
        "npcc: { cnp: { dscp: 26 } }",
        "qos: { trust: both, profile: lossy }\nnpcc: { cnp: { dscp: 26 } }",
    ] {
        let report = with(refused).expect_err(refused).to_string();
        assert!(
            report.contains("would wait with the data of priority 3"),
            "{refused}: {report}"
        );
    }
}
