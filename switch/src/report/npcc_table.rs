//! Flows, hosts and NPCC's queues as tables for people.

use std::fmt::Write;

use super::model::{Flow, Host, Npcc, NpccQueue, Percentiles, Setting, Snapshot};
use super::table::{finish, list, table, thousands};

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
