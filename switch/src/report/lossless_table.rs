//! Tables of flow control, buffer and queues' settings, for people. Numbers that must be 0 are red when they are not.

use std::collections::BTreeMap;

use npcc_api::lossless::{FlowControl, Group, Pause};
use npcc_api::model::{Port, Snapshot};
use npcc_api::qos::QosPriority;

use super::table::{Cell, count, counts, joined, micros, rate, red, table, thousands, time, word};

/// Number of events in `show pfc`; `show log` has all of them.
const EVENTS: usize = 10;

/// Lists the priorities of a mask.
fn bits(mask: u64) -> String {
    joined((0..8).filter(|bit| mask >> bit & 1 != 0), ",")
}

/// Returns one row for each direction in which a priority was ever paused.
fn history(port: &str, pause: &Pause) -> Vec<Vec<Cell>> {
    let counts = &pause.counts;
    let both = [
        (
            "peer",
            counts.rx_pauses,
            [counts.rx_paused_ns, counts.rx_longest_ns, counts.rx_last_ns],
            pause.rx_began_s_ago,
        ),
        (
            "us",
            counts.tx_pauses,
            [counts.tx_paused_ns, counts.tx_longest_ns, counts.tx_last_ns],
            pause.tx_began_s_ago,
        ),
    ];
    let row = |(by, pauses, [total, longest, last], began): (_, _, [u64; 3], Option<f64>)| {
        Some(vec![
            word("PORT", port),
            word("PRIO", pause.priority),
            word("PAUSED BY", by),
            count("PAUSES", pauses),
            ("TOTAL", time(total)),
            ("LONGEST", time(longest)),
            ("LAST", time(last)),
            ("BEGAN", format!("{} ago", micros(began? * 1e6))),
        ])
    };
    both.into_iter().filter_map(row).collect()
}

/// Renders the longest turn of a worker's loop beside the one that headroom was computed from; red when it is more.
fn slow(snapshot: &Snapshot) -> String {
    let buffer = &snapshot.buffer;
    let longest = format!("longest turn of a worker's loop: {}", time(buffer.turn_ns));
    if buffer.headroom_size == 0 {
        return longest + "\n";
    }
    let turn = format!(
        "{longest}, headroom covers {}",
        time(buffer.turn_covered_ns)
    );
    let worst = snapshot
        .ports
        .iter()
        .max_by_key(|port| port.flow.headroom_short);
    match worst.filter(|port| port.flow.headroom_short > 0) {
        None => turn + "\n",
        Some(port) => format!(
            "\x1b[31m{turn}: up to {} B more than headroom may arrive on {}; isolate the worker's core, or write buffer.loop_time: {}us\x1b[0m\n",
            thousands(port.flow.headroom_short),
            port.name,
            buffer.turn_ns.div_ceil(1_000)
        ),
    }
}

/// Renders a port's flow-control backend in one line: the reason for it, its self-test, and its limits.
fn about(name: &str, flow: &FlowControl) -> String {
    let mut line = format!("{name}: {}, because {}", flow.backend, flow.why);
    if flow.suspected {
        line.push_str("; \x1b[31mpause: suspected\x1b[0m");
    }
    match flow.self_test.as_str() {
        "" | "not run" => {}
        "sent" => line.push_str("; the pause frame of the start was sent"),
        "link down" => line.push_str("; the link was down at start, so no pause frame was tried"),
        other => line.push_str(&format!(
            "; \x1b[31mthe pause frame of the start was {other}\x1b[0m"
        )),
    }
    match flow.link_pause.as_str() {
        "" | "off" | "unknown" => {}
        on => line.push_str(&format!(
            "; \x1b[31mpause of the whole link (802.3x) is {on}, which stops every priority: switch it off at the device\x1b[0m"
        )),
    }
    if let Some(why) = &flow.link_pause_error {
        line.push_str(&format!("; \x1b[31m{why}\x1b[0m"));
    }
    if !flow.honour.is_empty() {
        let us = flow.response_us.ceil();
        line.push_str(&format!("; the peer may count on peer_response: {us:.0}us"));
    }
    if let Some(bytes) = flow.tx_outstanding {
        line.push_str(&format!(
            "; up to {} B in the transmit ring, {}",
            thousands(bytes),
            if flow.counts.tx_answers > 0 {
                "by the driver's answers"
            } else {
                "by time; a whole ring while the link holds"
            }
        ));
        if flow.counts.tx_held > 0 {
            line.push_str(&format!(
                "; the ring kept what it had for {} ms, with up to 64 frames more in each",
                thousands(flow.counts.tx_held)
            ));
        }
    }
    line + "\n"
}

/// Yields the priorities that pause frames named, or may name.
fn paused(port: &Port) -> impl Iterator<Item = (&Port, &Pause)> {
    let shown = |pause: &&Pause| {
        let of = |counts: &[u64; 8]| counts.get(usize::from(pause.priority)).copied();
        let flow = &port.flow;
        flow.send.contains(&pause.priority)
            || flow.honour.contains(&pause.priority)
            || of(&port.pfc.rx) > Some(0)
            || of(&port.pfc.tx) > Some(0)
    };
    port.flow
        .priorities
        .iter()
        .filter(shown)
        .map(move |pause| (port, pause))
}

/// Renders `show pfc`.
#[must_use]
pub fn pfc(snapshot: &Snapshot) -> String {
    let ports = &snapshot.ports;
    let why: String = ports
        .iter()
        .map(|port| about(&port.name, &port.flow))
        .collect();
    let events = snapshot.events.iter().rev().take(EVENTS).rev();
    let events: String = events.map(|event| format!("{event}\n")).collect();
    format!(
        "{}\n{}\n{}\n{}\n{why}{}{events}",
        by_port(ports),
        causes(ports),
        by_priority(ports),
        pauses(ports),
        slow(snapshot)
    )
}

/// Renders the state of each port's flow control.
fn by_port(ports: &[Port]) -> String {
    table(2, &&Port::default(), ports, |port| {
        let flow = &port.flow;
        vec![
            word("PORT", &port.name),
            word("BACKEND", &flow.backend),
            ("SEND", joined(&flow.send, ",")),
            ("HONOUR", joined(&flow.honour, ",")),
            ("PAUSED", bits(flow.paused)),
            ("PAUSING", bits(flow.asserted)),
            ("STORM", bits(flow.storm)),
            ("XOFF", time(flow.response_ns)),
            ("RESPONSE", micros(flow.response_us)),
        ]
    })
}

/// Renders the reasons why each port paused its peer, and what went wrong.
fn causes(ports: &[Port]) -> String {
    table(1, &&Port::default(), ports, |port| {
        let flow = &port.flow;
        let wrong = vec![
            red("LATE", flow.late),
            count("802.3X", flow.global_pause),
            count("INVALID", flow.invalid),
        ];
        let name = vec![word("PORT", &port.name)];
        [name, counts(flow.counts.columns()), wrong].concat()
    })
}

/// Renders pause frames and storms of the priorities that are paused.
fn by_priority(ports: &[Port]) -> String {
    let none = (&Port::default(), &Pause::default());
    let paused = ports.iter().flat_map(paused);
    table(1, &none, paused, |(port, pause)| {
        let of = |counts: &[u64; 8]| counts.get(usize::from(pause.priority)).copied();
        let frames = vec![
            word("PORT", &port.name),
            word("PRIO", pause.priority),
            count("RX PFC", of(&port.pfc.rx).unwrap_or_default()),
            count("TX PFC", of(&port.pfc.tx).unwrap_or_default()),
        ];
        [frames, counts(pause.counts.columns())].concat()
    })
}

/// Renders how long priorities were paused.
fn pauses(ports: &[Port]) -> String {
    let ever = Pause {
        rx_began_s_ago: Some(0.0),
        ..Pause::default()
    };
    let none = history("", &ever).concat();
    let paused = ports.iter().flat_map(paused);
    let rows = paused.flat_map(|(port, pause)| history(&port.name, pause));
    table(3, &none, rows, Vec::clone)
}

/// Renders `show buffer`.
#[must_use]
pub fn buffer(snapshot: &Snapshot) -> String {
    let buffer = &snapshot.buffer;
    let mut out = format!(
        "pool {} B, shared {} B, headroom {} B; held {} B in {} buffers (peak {} B), in headroom {} B (peak {} B)\n\n",
        thousands(buffer.pool),
        thousands(buffer.shared),
        thousands(buffer.headroom_size),
        thousands(buffer.used),
        thousands(buffer.frames),
        thousands(buffer.used_peak),
        thousands(buffer.headroom),
        thousands(buffer.headroom_peak),
    );
    out.push_str(&slow(snapshot));
    out.push('\n');
    let groups = snapshot
        .ports
        .iter()
        .flat_map(|port| port.groups.iter().map(move |group| (port, group)));
    let used =
        groups.filter(|(_, group)| group.lossless || group.held_peak_ever > 0 || group.dropped > 0);
    out + &table(
        1,
        &(&Port::default(), &Group::default()),
        used,
        |(port, group)| {
            let held = vec![
                word("PORT", &port.name),
                word("PRIO", group.priority),
                word("KIND", if group.lossless { "lossless" } else { "-" }),
                count("HELD B", group.held),
                count("PEAK", group.held_peak),
                count("EVER", group.held_peak_ever),
                count("HEADROOM B", group.headroom_size),
                count("USED", group.headroom),
                count("PEAK", group.headroom_peak),
                count("EVER", group.headroom_peak_ever),
            ];
            let lost = vec![red("LOSSLESS LOST", port.lossless_lost)];
            [held, counts(group.counts.columns()), lost].concat()
        },
    )
}

/// Renders `show qos`.
#[must_use]
pub fn qos(snapshot: &Snapshot) -> String {
    let qos = &snapshot.qos;
    let mut out = format!("{}\n", qos.maps());
    let bound = |bits: Option<u64>| bits.map_or_else(|| "-".to_owned(), |bits| rate(Some(bits)));
    out.push_str(&table(
        3,
        &&QosPriority::default(),
        &qos.priorities,
        |queue| {
            vec![
                word("PRIO", queue.priority),
                word("KIND", if queue.lossless { "lossless" } else { "lossy" }),
                word("SCHEDULER", &queue.scheduler),
                ("WEIGHT", joined(queue.weight, "")),
                ("MIN b/s", bound(queue.min_rate)),
                ("MAX b/s", bound(queue.max_rate)),
                ("ECN KMIN/KMAX B", thresholds(&queue.ecn)),
                ("WRED MIN/MAX B", thresholds(&queue.wred)),
            ]
        },
    ));
    out.push('\n');
    out + &table(3, &&Port::default(), &snapshot.ports, |port| {
        let headroom = port.groups.iter().map(|group| group.headroom_size).max();
        vec![
            word("PORT", &port.name),
            ("SHAPED b/s", rate(port.rate)),
            word("PFC", &port.flow.backend),
            ("PRIORITIES", joined(&port.flow.send, ",")),
            count("HEADROOM EACH B", headroom.unwrap_or_default()),
        ]
    })
}

fn thresholds(of: &BTreeMap<String, [u64; 2]>) -> String {
    let all = of
        .iter()
        .map(|(port, [low, high])| format!("{port} {}/{}", thousands(*low), thousands(*high)));
    joined(all, ", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_headroom_does_not_cover_is_red() {
        let mut snapshot = Snapshot::default();
        snapshot.buffer.turn_ns = 41_000;
        snapshot.buffer.turn_covered_ns = 50_000;
        assert_eq!(slow(&snapshot), "longest turn of a worker's loop: 41 us\n");
        snapshot.buffer.headroom_size = 1;
        assert_eq!(
            slow(&snapshot),
            "longest turn of a worker's loop: 41 us, headroom covers 50 us\n"
        );
        snapshot.buffer.turn_ns = 312_000;
        let mut port = Port {
            name: "dc0".to_owned(),
            ..Port::default()
        };
        port.flow.headroom_short = 3_275_000;
        snapshot.ports.push(port);
        let reported = slow(&snapshot);
        assert!(
            reported.contains("\x1b[31m")
                && reported.contains("3,275,000 B")
                && reported.contains("312us"),
            "{reported}"
        );
    }

    #[test]
    fn a_pause_frame_that_was_not_counted_is_red() {
        let mut flow = FlowControl {
            backend: "software".to_owned(),
            why: "a reason".to_owned(),
            self_test: "sent".to_owned(),
            ..FlowControl::default()
        };
        let line = about("dc0", &flow);
        assert!(line.starts_with("dc0: software, because a reason;") && !line.contains('\x1b'));
        flow.link_pause = "both".to_owned();
        assert!(about("dc0", &flow).contains("802.3x) is both"), "M13");
        flow.link_pause = "off".to_owned();
        assert_eq!(about("dc0", &flow), line);
        flow.link_pause_error = Some("could not disable".to_owned());
        assert!(about("dc0", &flow).contains("\x1b[31mcould not disable\x1b[0m"));
        flow.link_pause_error = None;
        flow.suspected = true;
        assert!(about("dc0", &flow).contains("\x1b[31mpause: suspected\x1b[0m"));
        flow.suspected = false;
        flow.self_test = "not counted".to_owned();
        flow.honour = vec![3];
        flow.response_us = 84.2;
        let line = about("dc0", &flow);
        assert!(
            line.contains("\x1b[31m") && line.contains("peer_response: 85us"),
            "{line}"
        );
    }
}
