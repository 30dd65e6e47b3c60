//! Flow control, buffer and queues' settings as tables for people. What must be 0 is red when it is not.

use super::model::Snapshot;
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
            "RX PAUSES",
            "RX PAUSED US",
            "LAST US",
            "TX PAUSES",
            "TX PAUSED US",
            "STORMS",
            "ENDED",
            "STORM DROPS TX",
            "RX",
        ],
        1,
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
            red(flow.late_refreshes),
            format!("{:.1}", flow.xoff_us),
            format!("{:.1}", flow.response_us),
            thousands(flow.global_pause),
            thousands(flow.invalid),
        ]);
        why.push_str(&format!(
            "{}: {}, because {}\n",
            port.name, flow.backend, flow.why
        ));
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
            priorities.add_row(vec![
                port.name.clone(),
                pause.priority.to_string(),
                thousands(rx),
                thousands(tx),
                thousands(pause.rx_pauses),
                format!("{:.1}", pause.rx_paused_us),
                format!("{:.1}", pause.rx_last_us),
                thousands(pause.tx_pauses),
                format!("{:.1}", pause.tx_paused_us),
                thousands(pause.storms),
                thousands(pause.storms_ended),
                thousands(pause.storm_tx_dropped),
                thousands(pause.storm_rx_dropped),
            ]);
        }
    }
    format!("{}\n{}\n{why}", finish(&ports), finish(&priorities))
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
            curves(queue, |queue| &queue.ecn),
            curves(queue, |queue| &queue.wred),
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

fn curves(
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
