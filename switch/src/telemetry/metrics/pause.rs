//! Metrics of pause: both ways, by port and priority, and what went wrong with it.

use std::fmt;

use super::family::{Label, Samples, families};
use super::queues::digit;
use super::scrape::Scrape;
use crate::report::lossless::{FlowControl, Pause};
use crate::report::model::Port;

/// Does something for each priority of each port, with its labels.
fn each(
    all: &Scrape,
    mut each: impl FnMut(&[Label<'_>], &Port, &Pause) -> fmt::Result,
) -> fmt::Result {
    for port in &all.snapshot.ports {
        for pause in &port.flow.priorities {
            let priority = digit(pause.priority);
            each(&[("port", &port.name), ("priority", priority)], port, pause)?;
        }
    }
    Ok(())
}

/// A count of the frames of each priority.
fn frames(all: &Scrape, to: &mut Samples<'_>, of: fn(&Port) -> &[u64; 8]) -> fmt::Result {
    for port in &all.snapshot.ports {
        for (priority, count) in (0..).zip(of(port)) {
            let labels = [("port", port.name.as_str()), ("priority", digit(priority))];
            to.count(&labels, *count)?;
        }
    }
    Ok(())
}

/// Whether a list of the port has the priority.
fn holds(all: &Scrape, to: &mut Samples<'_>, of: fn(&FlowControl) -> &Vec<u8>) -> fmt::Result {
    each(all, |labels, port, pause| {
        to.holds(labels, of(&port.flow).contains(&pause.priority))
    })
}

/// A counter of each port.
fn counts(all: &Scrape, to: &mut Samples<'_>, of: fn(&FlowControl) -> u64) -> fmt::Result {
    let mut ports = all.snapshot.ports.iter();
    ports.try_for_each(|port| to.count(&[("port", &port.name)], of(&port.flow)))
}

families! {
    "npcc_pfc_receive_frames" Counter "PFC frames received that name the priority, XON included." |all, to|
        frames(all, to, |port| &port.pfc.rx);
    "npcc_pfc_transmit_frames" Counter "PFC frames sent that name the priority, XON included." |all, to|
        frames(all, to, |port| &port.pfc.tx);
    "npcc_pfc_receive_pauses" Counter "Pauses that the peer began." |all, to|
        each(all, |labels, _, pause| to.count(labels, pause.rx_pauses));
    "npcc_pfc_transmit_pauses" Counter "Pauses that this switch began." |all, to|
        each(all, |labels, _, pause| to.count(labels, pause.tx_pauses));
    "npcc_pfc_receive_paused_seconds" Counter "Time for which the peer had this switch paused." |all, to|
        each(all, |labels, _, pause| to.count_seconds(labels, pause.rx_paused_us / 1e6));
    "npcc_pfc_transmit_paused_seconds" Counter "Time for which this switch had the peer paused." |all, to|
        each(all, |labels, _, pause| to.count_seconds(labels, pause.tx_paused_us / 1e6));
    "npcc_pfc_paused" Gauge "Whether the peer has this switch paused now." |all, to|
        holds(all, to, |flow| &flow.paused);
    "npcc_pfc_asserted" Gauge "Whether this switch has the peer paused now." |all, to|
        holds(all, to, |flow| &flow.asserted);
    "npcc_pfc_storm" Gauge "Whether the watchdog finds a pause storm now." |all, to|
        holds(all, to, |flow| &flow.storm);
    "npcc_pfc_storms" Counter "Pause storms that the watchdog found." |all, to|
        each(all, |labels, _, pause| to.count(labels, pause.storms));
    "npcc_pfc_storm_drops" Counter "Frames dropped because of a storm: on their way out (tx), and on the port they came in by (rx)." |all, to|
        each(all, |labels, _, pause| {
            let &[port, priority] = labels else { return Ok(()) };
            to.count(&[port, priority, ("direction", "tx")], pause.storm_tx_dropped)?;
            to.count(&[port, priority, ("direction", "rx")], pause.storm_rx_dropped)
        });
    "npcc_pfc_xoff" Counter "Pauses begun by cause: the buffer filled, or the worker (cpu) fell behind the receive ring." |all, to| {
        for port in &all.snapshot.ports {
            to.count(&[("port", &port.name), ("cause", "buffer")], port.flow.counts.xoff_buffer)?;
            to.count(&[("port", &port.name), ("cause", "cpu")], port.flow.counts.xoff_cpu)?;
        }
        Ok(())
    };
    "npcc_pfc_late_refreshes" Counter "Refreshes that went out after the peer's pause had run out." |all, to|
        counts(all, to, |flow| flow.counts.late);
    "npcc_pfc_failed_frames" Counter "Pause frames that were due and found no buffer, or no room in the device." |all, to|
        counts(all, to, |flow| flow.counts.failed);
    "npcc_pfc_global_pause_frames" Counter "802.3x pause frames received, which are ignored." |all, to|
        counts(all, to, |flow| flow.counts.global_pause);
    "npcc_pfc_invalid_frames" Counter "MAC control frames received that are neither pause nor PFC, or are malformed." |all, to|
        counts(all, to, |flow| flow.counts.invalid);
    "npcc_pfc_xoff_longest_seconds" Gauge "Longest time from a wanted XOFF to the frame in the device." |all, to| {
        let mut ports = all.snapshot.ports.iter();
        ports.try_for_each(|port| to.real(&[("port", &port.name)], port.flow.xoff_us / 1e6))
    };
    "npcc_pfc_headroom_short_bytes" Gauge "Wire bytes that may arrive beyond headroom, because a worker's turn was longer than headroom covers: must be 0." |all, to| {
        let mut ports = all.snapshot.ports.iter();
        ports.try_for_each(|port| to.gauge(&[("port", &port.name)], port.flow.headroom_short))
    };
}
