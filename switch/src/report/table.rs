//! The snapshot as tables for people.

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

use super::model::{Flow, Host, Npcc, NpccQueue, Percentiles, Port, Setting, Snapshot};

pub(super) fn table(header: &[&str], left: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(header.to_vec());
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

pub(super) fn finish(table: &Table) -> String {
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

/// `1 234 567` as `1,234,567`.
pub(super) fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A rate in the unit people say.
pub(super) fn rate(bits: Option<u64>) -> String {
    match bits {
        None => "unlimited".to_owned(),
        Some(bits) if bits >= 1_000_000_000 => format!("{}G", decimal(bits, 1_000_000_000)),
        Some(bits) => format!("{}M", decimal(bits, 1_000_000)),
    }
}

fn decimal(value: u64, unit: u64) -> String {
    let tenths = value * 10 / unit;
    if tenths.is_multiple_of(10) {
        (tenths / 10).to_string()
    } else {
        format!("{}.{}", tenths / 10, tenths % 10)
    }
}

fn list(counts: &BTreeMap<String, u64>) -> String {
    let some: Vec<String> = counts
        .iter()
        .filter(|(_, n)| **n > 0)
        .map(|(name, n)| format!("{name} {}", thousands(*n)))
        .collect();
    if some.is_empty() {
        "-".to_owned()
    } else {
        some.join(", ")
    }
}

/// `show ports`
#[must_use]
pub fn ports(snapshot: &Snapshot) -> String {
    let mut table = table(
        &[
            "PORT",
            "OPER",
            "ADMIN",
            "SPEED",
            "FLAPS",
            "LAST CHANGE",
            "DRIVER",
            "RATE",
            "CORES",
            "RX PKTS",
            "RX BYTES",
            "TX PKTS",
            "TX BYTES",
            "CNP IN",
            "CNP OUT",
            "NAK IN",
            "RNR IN",
            "CE IN",
            "DROPS",
        ],
        9,
    );
    for port in &snapshot.ports {
        let mut drops = port.drops.clone();
        let device = port.device_drops;
        for (name, count) in [
            ("rx_missed", device.rx_missed),
            ("rx_nombuf", device.rx_nombuf),
            ("rx_errors", device.rx_errors),
            ("tx_errors", device.tx_errors),
        ] {
            drops.insert(name.to_owned(), count);
        }
        table.add_row(vec![
            port.name.clone(),
            oper(port),
            port.admin.clone(),
            rate(Some(port.link_speed)),
            thousands(port.flaps),
            port.last_change.clone(),
            port.driver.clone(),
            rate(port.rate),
            cores(&port.workers),
            thousands(port.rx.packets),
            thousands(port.rx.bytes),
            thousands(port.tx.packets),
            thousands(port.tx.bytes),
            thousands(port.roce.cnp),
            thousands(port.roce.cnp_out),
            thousands(port.roce.nak),
            thousands(port.roce.rnr),
            thousands(port.roce.ce),
            list(&drops),
        ]);
    }
    finish(&table)
}

/// SONiC's oper status, and why it is down.
fn oper(port: &Port) -> String {
    match port.up {
        true => "up".to_owned(),
        false => format!("down ({})", port.down_reason),
    }
}

fn cores(cores: &[usize]) -> String {
    let cores: Vec<String> = cores.iter().map(ToString::to_string).collect();
    cores.join(",")
}

/// `show queues`
#[must_use]
pub fn queues(snapshot: &Snapshot) -> String {
    let mut table = table(
        &[
            "PORT",
            "PRIO",
            "DEPTH",
            "PEAK",
            "EVER",
            "PACKETS",
            "BYTES",
            "DROPPED",
            "WRED",
            "ECN MARKED",
        ],
        1,
    );
    for port in &snapshot.ports {
        for queue in &port.queues {
            table.add_row(vec![
                port.name.clone(),
                queue.priority.to_string(),
                thousands(queue.depth),
                thousands(queue.peak),
                thousands(queue.peak_ever),
                thousands(queue.enqueued),
                thousands(queue.enqueued_bytes),
                thousands(queue.dropped),
                thousands(queue.wred_dropped),
                thousands(queue.ecn_marked),
            ]);
        }
    }
    finish(&table)
}

/// `show flows`
#[must_use]
pub fn flows(flows: &[Flow]) -> String {
    let mut table = table(
        &[
            "SENDER",
            "RECEIVER",
            "SENDER QP",
            "RECEIVER QP",
            "EVIDENCE",
            "PORT",
            "PRIO",
            "BYTES",
            "CNPS",
            "WOULD",
            "RESPONSE",
            "REFUSED",
        ],
        2,
    );
    for flow in flows {
        table.add_row(vec![
            flow.src.clone(),
            flow.dst.clone(),
            flow.sender_qp
                .map_or_else(|| "?".to_owned(), |qpn| format!("{qpn:#x}")),
            format!("{:#x}", flow.dest_qp),
            flow.evidence.clone(),
            flow.port.clone(),
            flow.priority.to_string(),
            thousands(flow.bytes),
            thousands(flow.cnps),
            thousands(flow.would_send),
            flow.response.clone().unwrap_or_else(|| "-".to_owned()),
            flow.refused.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    finish(&table)
}

/// `show hosts`
#[must_use]
pub fn hosts(hosts: &[Host]) -> String {
    let mut table = table(
        &[
            "HOST",
            "ACTION",
            "CARD",
            "CUT (/1000)",
            "FLOWS",
            "PAIRED",
            "CNP SENT",
            "WOULD",
            "HALVED",
            "WEAK",
            "NONE",
            "WORKED",
            "VAIN",
            "CNP PASSED",
            "NAK",
            "RNR NAK",
            "CE (sampled)",
        ],
        4,
    );
    for host in hosts {
        let counts = [
            host.flows,
            host.paired,
            host.cnps_sent,
            host.would_send,
            host.halved,
            host.weak,
            host.unresponsive,
            host.worked,
            host.vain,
            host.cnps_passed,
            host.naks,
            host.rnr_naks,
            host.ce,
        ]
        .map(thousands);
        let name = [
            host.address.clone(),
            host.action.clone(),
            host.standing.clone(),
            list(&host.cuts),
        ];
        table.add_row(name.into_iter().chain(counts));
    }
    finish(&table)
}

/// `show npcc`
#[must_use]
pub fn npcc(snapshot: &Snapshot) -> String {
    let npcc = &snapshot.npcc;
    let mut table = table(
        &[
            "QUEUE",
            "ZONE",
            "TREND",
            "DEPTH",
            "PEAK",
            "CNPS",
            "WOULD",
            "ACTION",
            "POLICY",
            "DECISIONS (ticks)",
        ],
        3,
    );
    for queue in &npcc.queues {
        table.add_row(vec![
            format!("{}:{}", queue.port, queue.priority),
            queue.zone.clone(),
            queue.trend.clone(),
            thousands(queue.depth),
            thousands(queue.peak),
            thousands(queue.cnps),
            thousands(queue.would_send),
            queue.action.clone(),
            queue.policy_now.clone(),
            list(&queue.decisions),
        ]);
    }
    let mut out = finish(&table);
    for queue in &npcc.queues {
        // Writing to a string cannot fail.
        let _ = out.write_str(&slot(queue));
    }
    for (name, value) in totals_of(npcc) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name:<11} {value}");
    }
    out
}

/// What NPCC counts over all queues, a line each.
fn totals_of(npcc: &Npcc) -> [(&'static str, String); 16] {
    let uncounted = npcc.uncounted.iter();
    let uncounted = uncounted
        .map(|(why, one)| (why.clone(), one.bytes))
        .collect();
    [
        ("action", npcc.action.clone()),
        ("flows", thousands(npcc.flows)),
        ("paired", list(&npcc.paired)),
        ("cold bytes", thousands(npcc.cold_bytes)),
        (
            "health",
            format!(
                "of {} data bytes {:.1} % paired, {:.1} % below the evidence, {:.1} % without an answer here",
                thousands(npcc.health.data_bytes),
                npcc.health.paired,
                npcc.health.unpaired,
                npcc.health.cold
            ),
        ),
        (
            "CM",
            format!(
                "{} heard ({} damaged, {} of another class, {} lost), {} pairs contradicted",
                thousands(npcc.cm.heard),
                thousands(npcc.cm.damaged),
                thousands(npcc.cm.foreign),
                thousands(npcc.seen.message_drops),
                thousands(npcc.cm.contradicted)
            ),
        ),
        (
            "not told",
            format!(
                "{} packets of transports not read, {} flows refused",
                thousands(npcc.seen.unsupported),
                thousands(npcc.flows_refused)
            ),
        ),
        (
            "not learned",
            format!(
                "{} packets by ports not trusted, {} of sources behind another port, {} damaged CNPs",
                thousands(npcc.untrusted),
                thousands(npcc.wrong_port),
                thousands(npcc.cnps_damaged)
            ),
        ),
        ("uncounted", list(&uncounted)),
        (
            "samples",
            format!(
                "{} ({} dropped)",
                thousands(npcc.samples),
                thousands(npcc.sample_drops)
            ),
        ),
        (
            "CNPs sent",
            format!(
                "{} (and {} would have been; {} of receivers passed)",
                thousands(npcc.cnps_sent),
                thousands(npcc.would_send),
                thousands(npcc.cnps_passed)
            ),
        ),
        ("suppressed", list(&npcc.cnps_suppressed)),
        ("reaction", reaction("shallow", npcc.reaction_us)),
        ("", reaction("hard", npcc.reaction_hard_us)),
        ("ticks", ticks(npcc)),
        ("readings", readings(npcc)),
    ]
}

fn ticks(npcc: &Npcc) -> String {
    format!(
        "{} ({} late by more than half, {} early for a queue at hard, {} queues deferred)",
        thousands(npcc.ticks),
        thousands(npcc.ticks_late),
        thousands(npcc.ticks_early),
        thousands(npcc.queues_deferred)
    )
}

fn readings(npcc: &Npcc) -> String {
    format!(
        "{} of flows, {} weighed; {} flows woken, {} wakes lost",
        thousands(npcc.flows_read),
        thousands(npcc.flows_weighed),
        thousands(npcc.flows_woken),
        thousands(npcc.wakes_lost)
    )
}

/// A queue's policy: its parameters, the reasons it gave, and why CNPs it wanted were not sent.
fn slot(queue: &NpccQueue) -> String {
    let parameter = |one: &Setting| match one.unit.as_str() {
        "ns" if one.value.is_multiple_of(1_000) => format!("{} {}us", one.name, one.value / 1_000),
        "ns" => format!("{} {}ns", one.name, one.value),
        "per-mille" => format!("{} {}/1000", one.name, one.value),
        unit => format!("{} {} {unit}", one.name, one.value),
    };
    let parameters: Vec<String> = queue.parameters.iter().map(parameter).collect();
    let mut out = format!("\n{}:{}\n", queue.port, queue.priority);
    let mut policy = format!("{} ({})", queue.policy, parameters.join(", "));
    if let Some(why) = &queue.policy_why {
        policy = format!("{policy}; now {}: {why}", queue.policy_now);
    }
    for (name, value) in [
        ("policy", policy),
        ("reasons", list(&queue.reasons)),
        ("suppressed", list(&queue.suppressed)),
    ] {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {name:<11} {value}");
    }
    out
}

/// A distribution of reaction times in a line.
fn reaction(threshold: &str, times: Percentiles) -> String {
    if times.count == 0 {
        return format!("to {threshold}: none yet");
    }
    format!(
        "to {threshold}: p50 {:.1} us, p99 {:.1} us, max {:.1} us of {}",
        times.p50,
        times.p99,
        times.max,
        thousands(times.count)
    )
}

/// What `run` prints when it ends.
#[must_use]
pub fn totals(snapshot: &Snapshot) -> String {
    let account = &snapshot.conservation;
    let holds = if account.holds() {
        "every frame accounted for"
    } else {
        "FRAMES UNACCOUNTED FOR"
    };
    format!(
        "{}\n{}\n{}\nran {:.1} s: {holds}\n",
        ports(snapshot),
        busy_queues(snapshot),
        npcc(snapshot),
        snapshot.seconds
    )
}

/// Queues that ever held anything.
fn busy_queues(snapshot: &Snapshot) -> String {
    let mut busy = snapshot.clone();
    for port in &mut busy.ports {
        port.queues
            .retain(|queue| queue.enqueued > 0 || queue.dropped > 0);
    }
    queues(&busy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::{Port, Queue};

    #[test]
    fn numbers_read_well() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(rate(None), "unlimited");
        assert_eq!(rate(Some(10_000_000)), "10M");
        assert_eq!(rate(Some(99_900_000_000)), "99.9G");
    }

    #[test]
    fn what_was_learned_of_a_card_is_shown_with_its_host() {
        let text = hosts(&[Host {
            address: "10.0.1.3".to_owned(),
            standing: "fallen-back".to_owned(),
            worked: 1_234,
            vain: 77,
            cuts: [("<100us".to_owned(), 31), (">=4ms".to_owned(), 500)].into(),
            ..Host::default()
        }]);
        for part in ["CARD", "fallen-back", "<100us 31, >=4ms 500", "1,234", "77"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn only_busy_queues_appear_in_the_totals() {
        let queue = |priority, enqueued| Queue {
            priority,
            enqueued,
            ..Queue::default()
        };
        let port = Port {
            name: "wan0".to_owned(),
            queues: vec![queue(0, 0), queue(3, 7)],
            ..Port::default()
        };
        let text = busy_queues(&Snapshot {
            ports: vec![port],
            ..Snapshot::default()
        });
        assert_eq!(text.lines().count(), 2, "{text}");
    }
}
