//! Metrics of ports.

use std::fmt;

use npcc_pipeline::drop::DropReason;

use super::family::{Samples, families};
use super::scrape::Scrape;
use crate::report::model::Port;

/// A counter of each port.
fn counts(all: &Scrape, to: &mut Samples<'_>, of: fn(&Port) -> u64) -> fmt::Result {
    let mut ports = all.snapshot.ports.iter();
    ports.try_for_each(|port| to.count(&[("port", &port.name)], of(port)))
}

/// A gauge of each port.
fn gauges(all: &Scrape, to: &mut Samples<'_>, of: fn(&Port) -> u64) -> fmt::Result {
    let mut ports = all.snapshot.ports.iter();
    ports.try_for_each(|port| to.gauge(&[("port", &port.name)], of(port)))
}

/// Counters of each port that are told apart by a label.
fn kinds<const N: usize>(
    all: &Scrape,
    to: &mut Samples<'_>,
    label: &'static str,
    of: fn(&Port) -> [(&'static str, u64); N],
) -> fmt::Result {
    for port in &all.snapshot.ports {
        for (kind, count) in of(port) {
            to.count(&[("port", &port.name), (label, kind)], count)?;
        }
    }
    Ok(())
}

families! {
    "npcc_port_up" Gauge "Whether frames pass the port: its link is up, and the operator lets it be." |all, to|
        gauges(all, to, |port| u64::from(port.up));
    "npcc_port_admin_up" Gauge "Whether the operator lets the port be up." |all, to|
        gauges(all, to, |port| u64::from(port.admin == "up"));
    "npcc_port_link_speed_bytes_per_second" Gauge "Speed of the port's link, of the time it was last up." |all, to|
        gauges(all, to, |port| port.link_speed / 8);
    "npcc_port_rate_bytes_per_second" Gauge "Rate the port's egress side is shaped to; no sample where it is not shaped." |all, to| {
        let shaped = |port: &Port| port.rate.map(|rate| (port.name.clone(), rate));
        let mut shaped = all.snapshot.ports.iter().filter_map(shaped);
        shaped.try_for_each(|(name, rate)| to.gauge(&[("port", &name)], rate / 8))
    };
    "npcc_port_flaps" Counter "How often the port went down." |all, to|
        counts(all, to, |port| port.flaps);
    "npcc_port_receive_frames" Counter "Frames received, without MAC control." |all, to|
        counts(all, to, |port| port.rx.packets);
    "npcc_port_receive_bytes" Counter "Bytes received, without FCS and without MAC control." |all, to|
        counts(all, to, |port| port.rx.bytes);
    "npcc_port_transmit_frames" Counter "Frames given to the device to send." |all, to|
        counts(all, to, |port| port.tx.packets);
    "npcc_port_transmit_bytes" Counter "Bytes given to the device to send, without FCS." |all, to|
        counts(all, to, |port| port.tx.bytes);
    "npcc_port_originated_frames" Counter "Frames the switch made itself and queued on the port." |all, to|
        counts(all, to, |port| port.originated.packets);
    "npcc_port_mac_control_frames" Counter "MAC control frames received, pause among them." |all, to|
        counts(all, to, |port| port.consumed.packets);
    "npcc_port_punted_frames" Counter "Frames received and given to Linux." |all, to|
        counts(all, to, |port| port.punted.packets);
    "npcc_port_drops" Counter "Frames dropped by reason; on the port they came in by until a queue is chosen, on the egress port after that." |all, to| {
        for port in &all.snapshot.ports {
            for reason in DropReason::ALL.map(DropReason::name) {
                let count = port.drops.get(reason).copied().unwrap_or_default();
                to.count(&[("port", &port.name), ("reason", reason)], count)?;
            }
        }
        Ok(())
    };
    "npcc_port_dropped_bytes" Counter "Bytes of the frames dropped, for whatever reason." |all, to|
        counts(all, to, |port| port.drop_bytes);
    "npcc_port_lossless_lost_frames" Counter "Frames of lossless priorities lost for want of room, in the switch or in the device: must stay 0." |all, to|
        counts(all, to, |port| port.lossless_lost);
    "npcc_port_device_drops" Counter "Frames the device itself lost: rx_missed (ring full), rx_nombuf (no buffer), rx_errors, tx_errors." |all, to|
        kinds(all, to, "kind", |port| [
            ("rx_missed", port.device_drops.rx_missed),
            ("rx_nombuf", port.device_drops.rx_nombuf),
            ("rx_errors", port.device_drops.rx_errors),
            ("tx_errors", port.device_drops.tx_errors),
        ]);
    "npcc_port_roce_receive_packets" Counter "RoCEv2 packets received that say something of congestion or loss: ce, cnp, nak, rnr; and unsupported ones that NPCC does not read." |all, to|
        kinds(all, to, "kind", |port| [
            ("ce", port.roce.ce),
            ("cnp", port.roce.cnp),
            ("nak", port.roce.nak),
            ("rnr", port.roce.rnr),
            ("unsupported", port.roce.unsupported),
        ]);
    "npcc_port_cnps_sent" Counter "CNPs of this switch that were queued on the port." |all, to|
        counts(all, to, |port| port.roce.cnp_out);
}
