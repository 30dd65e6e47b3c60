//! Metrics of ports that no counter has.

use std::fmt;

use npcc_api::model::Port;

use super::family::{Samples, families};
use super::scrape::Scrape;

/// Writes a gauge of each port.
fn gauges(all: &Scrape, to: &mut Samples<'_>, of: fn(&Port) -> u64) -> fmt::Result {
    let mut ports = all.snapshot.ports.iter();
    ports.try_for_each(|port| to.gauge(&[("port", &port.name)], of(port)))
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
        all.snapshot.ports.iter().try_for_each(|port| to.count(&[("port", &port.name)], port.flaps));
    "npcc_pfc_headroom_short_bytes" Gauge "Wire bytes that may arrive beyond headroom, because a worker's turn was longer than headroom covers: must be 0." |all, to|
        gauges(all, to, |port| port.flow.headroom_short);
}
