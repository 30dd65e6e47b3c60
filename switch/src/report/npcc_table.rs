//! Tables of flows, hosts and NPCC's queues, for people.

use npcc_api::model::{Flow, Host, Npcc, NpccQueue, Percentiles, Setting, Snapshot};
use npcc_pipeline::units::Nanos;

use super::table::{count, counts, item, joined, list, micros, table, thousands, word};

/// Renders `show flows`.
#[must_use]
pub fn flows(flows: &[Flow]) -> String {
    table(2, &&Flow::default(), flows, |flow| {
        let sender = flow.sender_qp.map(|qpn| format!("{qpn:#x}"));
        vec![
            word("SENDER", &flow.src),
            word("RECEIVER", &flow.dst),
            ("SENDER QP", sender.unwrap_or_else(|| "?".to_owned())),
            ("DEST QP", format!("{:#x}", flow.dest_qp)),
            word("EVIDENCE", &flow.evidence),
            ("QUEUE", format!("{}:{}", flow.port, flow.priority)),
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

/// Renders `show hosts`: what is known of each host's card, and what it was sent and sends.
#[must_use]
pub fn hosts(hosts: &[Host]) -> String {
    let cards = table(4, &&Host::default(), hosts, |host| {
        vec![
            word("HOST", &host.address),
            word("ACTION", &host.action),
            word("RESPONDS", &host.responsiveness),
            count("FLOWS", host.flows),
            count("PAIRED", host.paired),
            count("HALVED", host.halved),
            count("WEAK", host.weak),
            count("NONE", host.unresponsive),
            count("PASSED", host.passed),
            count("FAILED", host.failed),
            ("UNMEASURED", list(&host.unmeasured)),
        ]
    });
    let signals = table(1, &&Host::default(), hosts, |host| {
        vec![
            word("HOST", &host.address),
            count("CNP SENT", host.cnps_sent),
            count("WOULD", host.would_send),
            count("CNP PASSED", host.cnps_passed),
            count("NAK", host.naks),
            count("RNR NAK", host.rnr_naks),
            count("CE (sampled)", host.ce),
        ]
    });
    format!("{cards}\n{signals}")
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
        ];
        [state, counts(queue.counts.columns()), answers].concat()
    });
    out.extend(npcc.queues.iter().map(slot));
    out.push('\n');
    let totals = [flows_of(npcc), not_learned(npcc), sent(npcc), work(npcc)].concat();
    out.extend(totals.iter().map(|(name, value)| item(0, name, value)));
    out
}

/// Name and text of a line of counts over all queues.
type Total = (&'static str, String);

/// Returns how much is known of the flows.
fn flows_of(npcc: &Npcc) -> Vec<Total> {
    let health = &npcc.health;
    let known = format!(
        "of {} data bytes {:.1} % paired, {:.1} % below the evidence, {:.1} % without an answer here",
        thousands(health.data_bytes),
        health.paired,
        health.unpaired,
        health.cold
    );
    vec![
        ("action", npcc.action.clone()),
        ("flows", thousands(npcc.flows)),
        ("paired", list(npcc.paired.each_named())),
        ("cold bytes", thousands(npcc.cold_bytes)),
        ("health", known),
    ]
}

/// Returns what was heard, and packets and flows of which nothing was learned.
fn not_learned(npcc: &Npcc) -> Vec<Total> {
    let seen = &npcc.caches.seen;
    let heard = format!(
        "{} heard ({} damaged, {} of another class, {} lost), {} pairs contradicted",
        thousands(npcc.cm.heard),
        thousands(npcc.cm.damaged),
        thousands(npcc.cm.foreign),
        thousands(seen.message_drops),
        thousands(npcc.cm.contradicted)
    );
    let unread = format!(
        "{} packets of transports not read, {} flows refused",
        thousands(seen.unsupported),
        thousands(npcc.flows_refused)
    );
    let ignored = format!(
        "{} packets by ports not trusted, {} of sources behind another port, {} with a wrong ICRC, {} CNPs without BECN",
        thousands(npcc.untrusted),
        thousands(npcc.wrong_port),
        thousands(npcc.damaged_ports.values().sum()),
        thousands(npcc.cnps_damaged)
    );
    let uncounted = npcc.uncounted.each_named();
    let samples = format!(
        "{} ({} dropped)",
        thousands(npcc.caches.samples),
        thousands(npcc.caches.sample_drops)
    );
    vec![
        ("CM", heard),
        ("not told", unread),
        ("not learned", ignored),
        (
            "uncounted",
            list(uncounted.map(|(why, one)| (why, one.bytes))),
        ),
        ("samples", samples),
    ]
}

/// Returns the CNPs that were sent and those that were not, and how soon.
fn sent(npcc: &Npcc) -> Vec<Total> {
    let cnps = format!(
        "{} (and {} would have been; {} of receivers passed)",
        thousands(npcc.cnps_sent),
        thousands(npcc.would_send),
        thousands(npcc.cnps_passed)
    );
    vec![
        ("CNPs sent", cnps),
        ("suppressed", list(npcc.cnps_suppressed.each_named())),
        ("ordered", thousands(npcc.control.ordered)),
        ("reaction", reaction("shallow", npcc.reaction_us)),
        ("", reaction("hard", npcc.reaction_hard_us)),
    ]
}

/// Returns the work of the control core.
fn work(npcc: &Npcc) -> Vec<Total> {
    let ticks = format!(
        "{} ({} late by more than half, {} early for a queue at hard, {} queues deferred)",
        thousands(npcc.ticks),
        thousands(npcc.control.late),
        thousands(npcc.control.early),
        thousands(npcc.queues_deferred)
    );
    let readings = format!(
        "{} of flows, {} weighed; {} flows woken, {} wakes lost",
        thousands(npcc.flows_read),
        thousands(npcc.flows_weighed),
        thousands(npcc.flows_woken),
        thousands(npcc.wakes_lost)
    );
    vec![("ticks", ticks), ("readings", readings)]
}

/// Renders a queue's policy: its parameters, the reasons it gave, and why CNPs it wanted were not sent.
fn slot(queue: &NpccQueue) -> String {
    let parameter = |one: &Setting| match one.unit.as_str() {
        "ns" => format!("{} {}", one.name, Nanos(one.value)),
        "per-mille" => format!("{} {}/1000", one.name, one.value),
        unit => format!("{} {} {unit}", one.name, one.value),
    };
    let parameters: Vec<String> = queue.parameters.iter().map(parameter).collect();
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
    let lines = [
        ("decisions", list(queue.decisions.each_named()) + " (ticks)"),
        ("marks owed", marks),
        ("policy", policy),
        ("reasons", list(queue.reasons.each_named())),
        ("suppressed", list(queue.suppressed.each_named())),
    ];
    let lines = lines.iter().map(|(name, value)| item(2, name, value));
    let head = format!("\n{}:{}\n", queue.port, queue.priority);
    head + &lines.collect::<String>()
}

/// Renders a distribution of reaction times in one line.
fn reaction(threshold: &str, times: Percentiles) -> String {
    if times.count == 0 {
        return format!("to {threshold}: none yet");
    }
    format!(
        "to {threshold}: p50 {}, p99 {}, max {} of {}",
        micros(times.p50),
        micros(times.p99),
        micros(times.max),
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
            responsiveness: "unresponsive".to_owned(),
            passed: 1_234,
            failed: 77,
            unmeasured: [("late".to_owned(), 31), ("paused".to_owned(), 5)].into(),
            ..Host::default()
        }]);
        for part in [
            "RESPONDS",
            "unresponsive",
            "late 31, paused 5",
            "1,234",
            "77",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn no_table_of_npcc_is_wider_than_120_columns() {
        let mut queue = NpccQueue {
            port: "wan0".to_owned(),
            priority: 3,
            zone: "shallow".to_owned(),
            trend: "falling".to_owned(),
            action: "observe".to_owned(),
            policy: "npcc".to_owned(),
            policy_now: "npcc".to_owned(),
            ..NpccQueue::default()
        };
        queue.decisions.fill(1_234_567_890);
        let flow = Flow {
            src: "10.100.101.102".to_owned(),
            dst: "10.200.201.202".to_owned(),
            sender_qp: Some(0xff_ffff),
            dest_qp: 0xff_ffff,
            evidence: "port-hash".to_owned(),
            port: "wan0".to_owned(),
            bytes: 1_234_567_890,
            cnps: 123_456,
            response: Some("halved".to_owned()),
            ..Flow::default()
        };
        let mut host = Host {
            address: "10.100.101.102".to_owned(),
            action: "observe".to_owned(),
            responsiveness: "unknown".to_owned(),
            ..Host::default()
        };
        host.cnps_sent = 1_234_567;
        let mut snapshot = Snapshot::default();
        snapshot.npcc.queues.push(queue);
        for text in [npcc(&snapshot), flows(&[flow]), hosts(&[host])] {
            assert!(text.lines().all(|line| line.len() <= 120), "{text}");
        }
    }
}
