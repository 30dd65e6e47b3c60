//! Metrics of NPCC that no counter has: states of watched queues, reaction times, shares.

use std::fmt;

use npcc_api::model::NpccQueue;
use npcc_cnp::action::Action;
use npcc_cnp::detector::Zone;

use super::family::{Label, Samples, families};
use super::queues::digit;
use super::scrape::Scrape;

/// Calls `each` for each watched queue, with its labels.
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

/// Writes a sample for each word: 1 for the one that holds now, and 0 for the others.
fn state(
    to: &mut Samples<'_>,
    [port, priority]: [Label<'_>; 2],
    (label, now): Label<'_>,
    words: impl IntoIterator<Item = &'static str>,
) -> fmt::Result {
    let mut words = words.into_iter();
    words.try_for_each(|word| to.holds(&[port, priority, (label, word)], word == now))
}

/// Writes ticks by zone and by the change of the depth.
fn ticks(to: &mut Samples<'_>, [port, priority]: [Label<'_>; 2], queue: &NpccQueue) -> fmt::Result {
    let mut decisions = queue.decisions.each_named();
    decisions.try_for_each(|(name, count)| {
        let (zone, row) = name.split_once('-').unwrap_or((name, ""));
        to.count(&[port, priority, ("zone", zone), ("trend", row)], *count)
    })
}

families! {
    "npcc_watched_queue_zone" Gauge "Which zone the watched queue is in: 1 for that one, 0 for the others." |all, to|
        each(all, |labels, queue| state(to, labels, ("zone", &queue.zone), Zone::ALL.map(Zone::name)));
    "npcc_watched_queue_action" Gauge "What becomes of decisions about the watched queue: 1 for that, 0 for the others." |all, to|
        each(all, |labels, queue| state(to, labels, ("action", &queue.action), Action::ALL.map(Action::name)));
    "npcc_watched_queue_ticks" Counter "Ticks of the detector, by the zone it found and by what the depth did." |all, to|
        each(all, |labels, queue| ticks(to, labels, queue));
    "npcc_reaction_seconds" Histogram "From the enqueue that crosses a threshold (shallow, with policy npcc its filter's ticks included; hard) to the offer of the first CNP to the device." |all, to| {
        to.spread(&[("threshold", "shallow")], &all.shallow)?;
        to.spread(&[("threshold", "hard")], &all.hard)
    };
    "npcc_damaged_packets" Counter "Packets with a wrong ICRC, by the port they came by: nothing was learned from them. Only packets about to be shown to the control core are checked." |all, to| {
        let damaged = &all.snapshot.npcc.damaged_ports;
        let count = |port: &str| damaged.get(port).copied().unwrap_or(0);
        let mut ports = all.snapshot.ports.iter();
        ports.try_for_each(|port| to.count(&[("port", &port.name)], count(&port.name)))
    };
    "npcc_data_ratio" Gauge "Share of data bytes in watched queues since the start: whose sender can be told (paired), is known too little (unpaired), or got no answer yet (cold)." |all, to| {
        let health = &all.snapshot.npcc.health;
        to.real(&[("state", "paired")], health.paired / 100.0)?;
        to.real(&[("state", "unpaired")], health.unpaired / 100.0)?;
        to.real(&[("state", "cold")], health.cold / 100.0)
    };
}
