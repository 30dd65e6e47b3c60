//! Metrics of NPCC: watched queues, what was told and what not, how fast, and how much it knows of the traffic.

use std::collections::BTreeMap;
use std::fmt;

use npcc_cnp::action::Action;
use npcc_cnp::detector::Zone;
use npcc_cnp::pair::Evidence;
use npcc_cnp::plan::Suppressed;
use npcc_cnp::policy::Reason;
use npcc_cnp::status::Row;
use npcc_cnp::uncounted::Uncounted;

use super::family::{Label, Samples, families};
use super::queues::digit;
use super::scrape::Scrape;
use crate::report::model::{self, NpccQueue};

/// Does something for each watched queue, with its labels.
fn each(
    all: &Scrape,
    mut each: impl FnMut([Label<'_>; 2], &NpccQueue) -> fmt::Result,
) -> fmt::Result {
    let mut queues = all.snapshot.npcc.queues.iter();
    queues.try_for_each(|queue| {
        let priority = digit(queue.priority);
        each([("port", &queue.port), ("priority", priority)], queue)
    })
}

/// What a map says of each name; nothing counted is 0.
fn named(
    to: &mut Samples<'_>,
    [port, priority]: [Label<'_>; 2],
    names: impl IntoIterator<Item = &'static str>,
    counted: &BTreeMap<String, u64>,
) -> fmt::Result {
    for name in names {
        let count = counted.get(name).copied().unwrap_or_default();
        to.count(&[port, priority, ("reason", name)], count)?;
    }
    Ok(())
}

/// Which of these words holds now.
fn state(
    to: &mut Samples<'_>,
    [port, priority]: [Label<'_>; 2],
    (label, now): Label<'_>,
    words: impl IntoIterator<Item = &'static str>,
) -> fmt::Result {
    let mut words = words.into_iter();
    words.try_for_each(|word| to.holds(&[port, priority, (label, word)], word == now))
}

/// Ticks by zone and by what the depth did.
fn ticks(
    to: &mut Samples<'_>,
    [port, priority]: [Label<'_>; 2],
    decisions: &BTreeMap<String, u64>,
) -> fmt::Result {
    for zone in Zone::ALL.map(Zone::name) {
        for row in Row::ALL.map(Row::name) {
            let count = decisions.get(&format!("{zone}-{row}")).copied();
            let labels = [port, priority, ("zone", zone), ("trend", row)];
            to.count(&labels, count.unwrap_or_default())?;
        }
    }
    Ok(())
}

/// Something of contributors without an entry in the flow table, by reason.
fn uncounted(all: &Scrape, to: &mut Samples<'_>, of: fn(&model::Uncounted) -> u64) -> fmt::Result {
    for reason in Uncounted::ALL.map(Uncounted::name) {
        let count = all.snapshot.npcc.uncounted.get(reason).map(of);
        to.count(&[("reason", reason)], count.unwrap_or_default())?;
    }
    Ok(())
}

families! {
    "npcc_cnps_sent" Counter "CNPs that left for flows of the watched queue." |all, to|
        each(all, |labels, queue| to.count(&labels, queue.cnps));
    "npcc_cnps_would_send" Counter "CNPs that would have left for flows of the watched queue, where nothing is sent." |all, to|
        each(all, |labels, queue| to.count(&labels, queue.would_send));
    "npcc_cnps_suppressed" Counter "CNPs not sent for flows of the watched queue, by reason." |all, to|
        each(all, |labels, queue| named(to, labels, Suppressed::ALL.map(Suppressed::name), &queue.suppressed));
    "npcc_watched_queue_depth_bytes" Gauge "Wire bytes that the detector saw last, with what is outstanding in the device." |all, to|
        each(all, |labels, queue| to.gauge(&labels, queue.depth));
    "npcc_watched_queue_peak_bytes" Gauge "Most wire bytes that the detector saw." |all, to|
        each(all, |labels, queue| to.gauge(&labels, queue.peak));
    "npcc_watched_queue_threshold_bytes" Gauge "Depths from which the watched queue is shallow, deep and hard." |all, to|
        each(all, |[port, priority], queue| {
            to.gauge(&[port, priority, ("zone", "shallow")], queue.shallow)?;
            to.gauge(&[port, priority, ("zone", "deep")], queue.deep)?;
            to.gauge(&[port, priority, ("zone", "hard")], queue.hard)
        });
    "npcc_watched_queue_zone" Gauge "Which zone the watched queue is in: 1 for that one, 0 for the others." |all, to|
        each(all, |labels, queue| state(to, labels, ("zone", &queue.zone), Zone::ALL.map(Zone::name)));
    "npcc_watched_queue_action" Gauge "What becomes of decisions about the watched queue: 1 for that, 0 for the others." |all, to|
        each(all, |labels, queue| state(to, labels, ("action", &queue.action), Action::ALL.map(Action::name)));
    "npcc_watched_queue_ticks" Counter "Ticks of the detector, by the zone it found and by what the depth did." |all, to|
        each(all, |labels, queue| ticks(to, labels, &queue.decisions));
    "npcc_watched_queue_reasons" Counter "Looks of the policy at the watched queue, by the reason it gave." |all, to|
        each(all, |labels, queue| named(to, labels, Reason::ALL.map(Reason::name), &queue.reasons));
    "npcc_watched_queue_contributors" Gauge "Flows that put bytes into the watched queue, at the last decision." |all, to|
        each(all, |labels, queue| to.gauge(&labels, queue.contributors));
    "npcc_watched_queue_policy_fallbacks" Counter "Looks at which another policy answered than the one in the slot." |all, to|
        each(all, |labels, queue| to.count(&labels, queue.policy_fallbacks));
    "npcc_reaction_seconds" Histogram "From the enqueue that crosses a threshold (shallow, with the filter's ticks; hard, without) to the CNP in the device's hands." |all, to| {
        to.spread(&[("threshold", "shallow")], &all.shallow)?;
        to.spread(&[("threshold", "hard")], &all.hard)
    };
    "npcc_ticks" Counter "Turns of the detector." |all, to|
        to.count(&[], all.snapshot.npcc.ticks);
    "npcc_late_ticks" Counter "Turns of the detector that came late by more than half a tick." |all, to|
        to.count(&[], all.snapshot.npcc.ticks_late);
    "npcc_early_ticks" Counter "Turns of the detector that came early because a queue had just risen to hard." |all, to|
        to.count(&[], all.snapshot.npcc.ticks_early);
    "npcc_flows" Gauge "Flows known." |all, to|
        to.gauge(&[], all.snapshot.npcc.flows);
    "npcc_flows_by_evidence" Gauge "Flows by the evidence for their sender's queue pair." |all, to| {
        let known = |name| all.snapshot.npcc.paired.get(name).copied();
        let mut names = Evidence::ALL.map(Evidence::name).into_iter();
        names.try_for_each(|name| to.gauge(&[("evidence", name)], known(name).unwrap_or_default()))
    };
    "npcc_flows_refused" Counter "New flows refused: their source had too many, or the table was full of live ones." |all, to|
        to.count(&[], all.snapshot.npcc.flows_refused);
    "npcc_data_bytes" Counter "Wire bytes of data in watched queues." |all, to|
        to.count(&[], all.snapshot.npcc.health.data_bytes);
    "npcc_cold_bytes" Counter "Wire bytes of data from flows that nobody could tell yet, as no packet came back." |all, to|
        to.count(&[], all.snapshot.npcc.cold_bytes);
    "npcc_data_ratio" Gauge "Share of data bytes in watched queues since the start: whose sender can be told (paired), is known too little (unpaired), or got no answer yet (cold)." |all, to| {
        let health = &all.snapshot.npcc.health;
        to.real(&[("state", "paired")], health.paired / 100.0)?;
        to.real(&[("state", "unpaired")], health.unpaired / 100.0)?;
        to.real(&[("state", "cold")], health.cold / 100.0)
    };
    "npcc_samples" Counter "Detailed records of packets that the control core took in." |all, to|
        to.count(&[], all.snapshot.npcc.samples);
    "npcc_sample_drops" Counter "Detailed records of packets that found no room on the way to the control core." |all, to|
        to.count(&[], all.snapshot.npcc.sample_drops);
    "npcc_cnps_passed" Counter "CNPs of receivers that passed through." |all, to|
        to.count(&[], all.snapshot.npcc.cnps_passed);
    "npcc_cnps_damaged" Counter "CNPs that passed with a wrong ICRC or without BECN." |all, to|
        to.count(&[], all.snapshot.npcc.cnps_damaged);
    "npcc_untrusted_packets" Counter "Packets of ports that are not trusted: nothing was learned from them." |all, to|
        to.count(&[], all.snapshot.npcc.untrusted);
    "npcc_wrong_port_packets" Counter "Packets whose source does not lie behind the port they came by: nothing was learned from them." |all, to|
        to.count(&[], all.snapshot.npcc.wrong_port);
    "npcc_uncounted_packets" Counter "Packets of contributors without an entry in the flow table that were shown, by reason." |all, to|
        uncounted(all, to, |one| one.records);
    "npcc_uncounted_bytes" Counter "Wire bytes of contributors without an entry in the flow table, at least, by reason." |all, to|
        uncounted(all, to, |one| one.bytes);
    "npcc_cm_packets" Counter "Packets of the connection manager: heard; of these damaged, of a foreign class, or lost for want of room (dropped)." |all, to| {
        let (cm, seen) = (&all.snapshot.npcc.cm, &all.snapshot.npcc.seen);
        to.count(&[("kind", "heard")], cm.heard)?;
        to.count(&[("kind", "damaged")], cm.damaged)?;
        to.count(&[("kind", "foreign")], cm.foreign)?;
        to.count(&[("kind", "dropped")], seen.message_drops)
    };
    "npcc_contradicted_pairs" Counter "Pairs taken back because something spoke against them." |all, to|
        to.count(&[], all.snapshot.npcc.cm.contradicted);
}
