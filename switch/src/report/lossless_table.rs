//! Flow control, buffer and queues' settings as tables for people. What must be 0 is red when it is not.

use comfy_table::Table;

use super::lossless::{FlowControl, Pause};
use super::model::{Port, Snapshot};
use super::qos::QosPriority;
use super::table::{finish, rate, table, thousands};

fn list(priorities: &[u8]) -> String {
    if priorities.is_empty() {
        return "-".to_owned();
    }
    let names: Vec<String> = priorities.iter().map(u8::to_string).collect();
    names.join(",")
}

fn red(count: u64) -> String {
    if count == 0 {
        "0".to_owned()
    } else {
        format!("\x1b[31m{}\x1b[0m", thousands(count))
    }
}

/// Events that `show pfc` tells of; `show log` tells of all.
const EVENTS: usize = 10;

/// One line for each direction in which a priority was ever paused.
fn remember(history: &mut Table, port: &str, pause: &Pause) {
    for (by, pauses, total, longest, last, began) in [
        (
            "peer",
            pause.rx_pauses,
            pause.rx_paused_us,
            pause.rx_longest_us,
            pause.rx_last_us,
            pause.rx_began_s_ago,
        ),
        (
            "us",
            pause.tx_pauses,
            pause.tx_paused_us,
            pause.tx_longest_us,
            pause.tx_last_us,
            pause.tx_began_s_ago,
        ),
    ] {
        let Some(began) = began else { continue };
        history.add_row(vec![
            port.to_owned(),
            pause.priority.to_string(),
            by.to_owned(),
            thousands(pauses),
            format!("{total:.1}"),
            format!("{longest:.1}"),
            format!("{last:.1}"),
            format!("{began:.1} s ago"),
        ]);
    }
}

/// The longest turn of a worker's loop beside what headroom was computed from; red when it is more.
fn slow(snapshot: &Snapshot) -> String {
    let (turn, covered) = (
        snapshot.buffer.turn_ns / 1_000,
        snapshot.buffer.turn_covered_ns / 1_000,
    );
    let worst = snapshot
        .ports
        .iter()
        .max_by_key(|port| port.flow.headroom_short);
    match worst.filter(|port| port.flow.headroom_short > 0) {
        None => {
            format!("longest turn of a worker's loop: {turn} us, headroom covers {covered} us\n")
        }
        Some(port) => format!(
            "\x1b[31mlongest turn of a worker's loop: {turn} us, headroom covers {covered} us: up to {} B more than headroom may arrive on {}; isolate the worker's core, or write buffer.loop_time: {turn}us\x1b[0m\n",
            thousands(port.flow.headroom_short),
            port.name
        ),
    }
}

/// What there is to know of a port's backend, in a line.
fn about(name: &str, flow: &FlowControl) -> String {
    let mut line = format!("{name}: {}, because {}", flow.backend, flow.why);
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
    if !flow.honour.is_empty() {
        let us = flow.response_us.ceil();
        line.push_str(&format!("; the peer may count on peer_response: {us:.0}us"));
    }
    if let Some(bytes) = flow.tx_outstanding {
        line.push_str(&format!(
            "; up to {} B in the transmit ring",
            thousands(bytes)
        ));
    }
    line + "\n"
}

/// A line for each priority of a port that pause frames named, or may name.
fn pauses(table: &mut Table, history: &mut Table, port: &Port) {
    let flow = &port.flow;
    for pause in &flow.priorities {
        let of = |counts: &[u64; 8]| {
            let count = counts.get(usize::from(pause.priority));
            count.copied().unwrap_or_default()
        };
        let (rx, tx) = (of(&port.pfc.rx), of(&port.pfc.tx));
        let configured =
            flow.send.contains(&pause.priority) || flow.honour.contains(&pause.priority);
        if rx + tx == 0 && !configured {
            continue;
        }
        table.add_row(vec![
            port.name.clone(),
            pause.priority.to_string(),
            thousands(rx),
            thousands(tx),
            thousands(pause.storms),
            thousands(pause.storms_ended),
            thousands(pause.storm_tx_dropped),
            thousands(pause.storm_rx_dropped),
        ]);
        remember(history, &port.name, pause);
    }
}

/// `show pfc`
#[must_use]
pub fn pfc(snapshot: &Snapshot) -> String {
    let mut ports = table(
        &[
            "PORT",
            "BACKEND",
            "SEND",
            "HONOUR",
            "PAUSED",
            "PAUSING",
            "STORM",
            "BY BUFFER",
            "BY CPU",
            "LATE",
            "XOFF US",
            "RESPONSE US",
            "802.3X",
            "INVALID",
        ],
        2,
    );
    let mut priorities = table(
        &[
            "PORT",
            "PRIO",
            "RX PFC",
            "TX PFC",
            "STORM DETECTED",
            "RESTORED",
            "TX DROP",
            "RX DROP",
        ],
        1,
    );
    let mut history = table(
        &[
            "PORT",
            "PRIO",
            "PAUSED BY",
            "PAUSES",
            "TOTAL US",
            "LONGEST US",
            "LAST US",
            "BEGAN",
        ],
        3,
    );
    let mut why = String::new();
    for port in &snapshot.ports {
        let flow = &port.flow;
        ports.add_row(vec![
            port.name.clone(),
            flow.backend.clone(),
            list(&flow.send),
            list(&flow.honour),
            list(&flow.paused),
            list(&flow.asserted),
            list(&flow.storm),
            thousands(flow.xoff_buffer),
            thousands(flow.xoff_cpu),
            red(flow.late),
            format!("{:.1}", flow.xoff_us),
            format!("{:.1}", flow.response_us),
            thousands(flow.global_pause),
            thousands(flow.invalid),
        ]);
        why.push_str(&about(&port.name, flow));
        pauses(&mut priorities, &mut history, port);
    }
    let events = snapshot.events.iter().rev().take(EVENTS).rev();
    let events: String = events.map(|event| format!("{event}\n")).collect();
    format!(
        "{}\n{}\n{}\n{why}{}{events}",
        finish(&ports),
        finish(&priorities),
        finish(&history),
        slow(snapshot)
    )
}

/// `show buffer`
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
    let mut groups = table(
        &[
            "PORT",
            "PRIO",
            "KIND",
            "HELD",
            "PEAK",
            "EVER",
            "HEADROOM",
            "USED",
            "PEAK",
            "EVER",
            "DROPPED",
            "LOSSLESS LOST",
        ],
        1,
    );
    for port in &snapshot.ports {
        for group in &port.groups {
            if !group.lossless && group.held_peak_ever == 0 && group.dropped == 0 {
                continue;
            }
            groups.add_row(vec![
                port.name.clone(),
                group.priority.to_string(),
                if group.lossless { "lossless" } else { "-" }.to_owned(),
                thousands(group.held),
                thousands(group.held_peak),
                thousands(group.held_peak_ever),
                thousands(group.headroom_size),
                thousands(group.headroom),
                thousands(group.headroom_peak),
                thousands(group.headroom_peak_ever),
                thousands(group.dropped),
                red(port.lossless_lost),
            ]);
        }
    }
    out.push_str(&finish(&groups));
    out
}

/// `show qos`
#[must_use]
pub fn qos(snapshot: &Snapshot) -> String {
    let qos = &snapshot.qos;
    let map = |map: &std::collections::BTreeMap<u8, u8>| {
        let entries: Vec<String> = map
            .iter()
            .map(|(from, to)| format!("{from} to {to}"))
            .collect();
        entries.join(", ")
    };
    let mut out = format!(
        "profile {}, trust {}\nDSCP {}, the rest to {}\nPCP {}, the rest to {}\n\n",
        qos.profile,
        qos.trust,
        map(&qos.dscp_to_priority),
        qos.default_priority,
        map(&qos.pcp_to_priority),
        qos.default_priority
    );
    let mut queues = table(
        &[
            "PRIO",
            "KIND",
            "SCHEDULER",
            "WEIGHT",
            "MIN",
            "MAX",
            "ECN KMIN/KMAX",
            "WRED MIN/MAX",
        ],
        3,
    );
    let bound = |bits: Option<u64>| bits.map_or_else(|| "-".to_owned(), |bits| rate(Some(bits)));
    for queue in &qos.priorities {
        queues.add_row(vec![
            queue.priority.to_string(),
            if queue.lossless { "lossless" } else { "lossy" }.to_owned(),
            queue.scheduler.clone(),
            queue
                .weight
                .map_or_else(|| "-".to_owned(), |weight| weight.to_string()),
            bound(queue.min_rate),
            bound(queue.max_rate),
            thresholds(queue, |queue| &queue.ecn),
            thresholds(queue, |queue| &queue.wred),
        ]);
    }
    out.push_str(&finish(&queues));
    let mut ports = table(&["PORT", "RATE", "PFC", "PRIORITIES", "HEADROOM EACH"], 3);
    for port in &snapshot.ports {
        let headroom = port.groups.iter().map(|group| group.headroom_size).max();
        ports.add_row(vec![
            port.name.clone(),
            rate(port.rate),
            port.flow.backend.clone(),
            list(&port.flow.send),
            thousands(headroom.unwrap_or_default()),
        ]);
    }
    out.push('\n');
    out.push_str(&finish(&ports));
    out
}

fn thresholds(
    queue: &QosPriority,
    of: fn(&QosPriority) -> &std::collections::BTreeMap<String, [u64; 2]>,
) -> String {
    let all: Vec<String> = of(queue)
        .iter()
        .map(|(port, [low, high])| format!("{port} {}/{}", thousands(*low), thousands(*high)))
        .collect();
    if all.is_empty() {
        "-".to_owned()
    } else {
        all.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_headroom_does_not_cover_is_red() {
        let mut snapshot = Snapshot::default();
        snapshot.buffer.turn_ns = 41_000;
        snapshot.buffer.turn_covered_ns = 50_000;
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
        let told = slow(&snapshot);
        assert!(
            told.contains("\x1b[31m") && told.contains("3,275,000 B") && told.contains("312us"),
            "{told}"
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
