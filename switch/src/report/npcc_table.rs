//! Tables of flows, hosts and NPCC's queues, for people.

use std::fmt::Write;

use super::model::{Flow, Host, Npcc, NpccQueue, Percentiles, Setting, Snapshot};
use super::table::{count, counts, joined, list, table, thousands, word};

/// Renders `show flows`.
#[must_use]
pub fn flows(flows: &[Flow]) -> String {
    table(2, &&Flow::default(), flows, |flow| {
        let sender = flow.sender_qp.map(|qpn| format!("{qpn:#x}"));
        vec![
            word("SENDER", &flow.src),
            word("RECEIVER", &flow.dst),
            ("SENDER QP", sender.unwrap_or_else(|| "?".to_owned())),
            ("RECEIVER QP", format!("{:#x}", flow.dest_qp)),
            word("EVIDENCE", &flow.evidence),
            word("PORT", &flow.port),
            word("PRIO", flow.priority),
            count("BYTES", flow.bytes),
            count("CNPS", flow.cnps),
            count("WOULD", flow.would_send),
            ("RESPONSE", joined(&flow.response, "")),
            ("REFUSED", refused(flow)),
        ]
    })
}

/// Returns the reason why a flow got no CNP; for a flow left to ECN, the round trips that say so.
fn refused(flow: &Flow) -> String {
    match flow.far_us {
        Some(far) if flow.gated => format!("gated: far {far} us, near {} us", flow.near_us),
        _ => joined(&flow.refused, ""),
    }
}

/// Renders `show hosts`.
#[must_use]
pub fn hosts(hosts: &[Host]) -> String {
    table(4, &&Host::default(), hosts, |host| {
        vec![
            word("HOST", &host.address),
            word("ACTION", &host.action),
            word("CARD", &host.standing),
            ("ODDS (ln)", odds(host.odds)),
            count("FLOWS", host.flows),
            count("PAIRED", host.paired),
            count("CNP SENT", host.cnps_sent),
            count("WOULD", host.would_send),
            count("HALVED", host.halved),
            count("WEAK", host.weak),
            count("NONE", host.unresponsive),
            count("WORKED", host.worked),
            count("VAIN", host.vain),
            ("UNMEASURED", list(&host.unmeasured)),
            count("CNP PASSED", host.cnps_passed),
            count("NAK", host.naks),
            count("RNR NAK", host.rnr_naks),
            count("CE (sampled)", host.ce),
        ]
    })
}

/// Formats a logarithm given in tenths.
fn odds(tenths: i64) -> String {
    let sign = if tenths < 0 { "-" } else { "" };
    let tenths = tenths.unsigned_abs();
    format!("{sign}{}.{}", tenths / 10, tenths % 10)
}

/// Renders `show npcc`.
#[must_use]
pub fn npcc(snapshot: &Snapshot) -> String {
    let npcc = &snapshot.npcc;
    let mut out = table(3, &&NpccQueue::default(), &npcc.queues, |queue| {
        let state = vec![
            ("QUEUE", format!("{}:{}", queue.port, queue.priority)),
            word("ZONE", &queue.zone),
            word("TREND", &queue.trend),
        ];
        let answers = vec![
            word("ACTION", &queue.action),
            word("POLICY", &queue.policy_now),
            ("DECISIONS (ticks)", list(queue.decisions.each_named())),
        ];
        [state, counts(queue.counts.columns()), answers].concat()
    });
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

/// Returns NPCC's counts over all queues, a name and a text for each line.
fn totals_of(npcc: &Npcc) -> [(&'static str, String); 16] {
    let uncounted = npcc
        .uncounted
        .each_named()
        .map(|(why, one)| (why, one.bytes));
    [
        ("action", npcc.action.clone()),
        ("flows", thousands(npcc.flows)),
        ("paired", list(npcc.paired.each_named())),
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
                thousands(npcc.caches.seen.message_drops),
                thousands(npcc.cm.contradicted)
            ),
        ),
        (
            "not told",
            format!(
                "{} packets of transports not read, {} flows refused",
                thousands(npcc.caches.seen.unsupported),
                thousands(npcc.flows_refused)
            ),
        ),
        (
            "not learned",
            format!(
                "{} packets by ports not trusted, {} of sources behind another port, {} with a wrong ICRC, {} CNPs without BECN",
                thousands(npcc.untrusted),
                thousands(npcc.wrong_port),
                thousands(npcc.damaged_ports.values().sum()),
                thousands(npcc.cnps_damaged)
            ),
        ),
        ("uncounted", list(uncounted)),
        (
            "samples",
            format!(
                "{} ({} dropped)",
                thousands(npcc.caches.samples),
                thousands(npcc.caches.sample_drops)
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
        ("suppressed", list(npcc.cnps_suppressed.each_named())),
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
        thousands(npcc.control.late),
        thousands(npcc.control.hastened),
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

/// Renders a queue's policy: its parameters, the reasons it gave, and why CNPs it wanted were not sent.
fn slot(queue: &NpccQueue) -> String {
    let parameter = |one: &Setting| match one.unit.as_str() {
        "ns" if one.value.is_multiple_of(1_000) => format!("{} {}us", one.name, one.value / 1_000),
        "ns" => format!("{} {}ns", one.name, one.value),
        "per-mille" => format!("{} {}/1000", one.name, one.value),
        unit => format!("{} {} {unit}", one.name, one.value),
    };
    let parameters: Vec<String> = queue.parameters.iter().map(parameter).collect();
    let mut out = format!("\n{}:{}\n", queue.port, queue.priority);
    let counts = &queue.counts;
    let marks = format!(
        "{} paid as CNPs, {} merged, {} returned, {} forgotten",
        thousands(counts.marks_paid),
        thousands(counts.marks_merged),
        thousands(counts.marks_returned),
        thousands(counts.marks_forgotten)
    );
    let mut policy = format!("{} ({})", queue.policy, parameters.join(", "));
    if let Some(why) = &queue.policy_why {
        policy = format!("{policy}; now {}: {why}", queue.policy_now);
    }
    for (name, value) in [
        ("marks owed", marks),
        ("policy", policy),
        ("reasons", list(queue.reasons.each_named())),
        ("suppressed", list(queue.suppressed.each_named())),
    ] {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {name:<11} {value}");
    }
    out
}

/// Renders a distribution of reaction times in one line.
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
            standing: "doubted".to_owned(),
            worked: 1_234,
            vain: 77,
            odds: -43,
            unmeasured: [("late".to_owned(), 31), ("grew".to_owned(), 5)].into(),
            ..Host::default()
        }]);
        for part in ["CARD", "doubted", "-4.3", "grew 5, late 31", "1,234", "77"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
