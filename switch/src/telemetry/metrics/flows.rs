//! Metrics of the heaviest flows, summed by hosts and queue.
//!
//! Queue pairs come and go by the thousand, and each would be a series for ever: they are in `show flows` only. So are flows beyond
//! the heaviest [`super::HEAVIEST`]. The set of heaviest flows changes, so these metrics are gauges.

use std::collections::BTreeMap;
use std::fmt;

use super::family::{Samples, families};
use super::queues::digit;
use super::scrape::Scrape;

/// Sum of the flows between two hosts in one queue.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    bytes: u64,
    cnps: u64,
    pairs: u64,
}

fn each(all: &Scrape, to: &mut Samples<'_>, of: fn(&Sum) -> u64) -> fmt::Result {
    let mut sums: BTreeMap<(&str, &str, &str, u8), Sum> = BTreeMap::new();
    for flow in &all.flows {
        let key = (
            flow.src.as_str(),
            flow.dst.as_str(),
            flow.port.as_str(),
            flow.priority,
        );
        let sum = sums.entry(key).or_default();
        sum.bytes += flow.bytes;
        sum.cnps += flow.cnps;
        sum.pairs += 1;
    }
    for ((src, dst, port, priority), sum) in &sums {
        let labels = [
            ("src", *src),
            ("dst", *dst),
            ("port", *port),
            ("priority", digit(*priority)),
        ];
        to.gauge(&labels, of(sum))?;
    }
    Ok(())
}

families! {
    "npcc_heaviest_flow_bytes" Gauge "Bytes of the 20 heaviest flows, those between the same hosts in one queue put together." |all, to|
        each(all, to, |sum| sum.bytes);
    "npcc_heaviest_flow_cnps" Gauge "CNPs sent for the 20 heaviest flows, those between the same hosts in one queue put together." |all, to|
        each(all, to, |sum| sum.cnps);
    "npcc_heaviest_flow_queue_pairs" Gauge "How many of the 20 heaviest flows are between these hosts in this queue." |all, to|
        each(all, to, |sum| sum.pairs);
}

#[cfg(test)]
mod tests {
    use crate::telemetry::metrics::{Format, HEAVIEST, Scrape, heads, text};
    use npcc_api::model::Flow;

    #[test]
    fn flows_of_two_hosts_are_one_series_and_no_label_is_a_queue_pair() {
        let flow = |dest_qp, bytes, dst: &str| Flow {
            src: "10.0.1.3".to_owned(),
            dst: dst.to_owned(),
            port: "wan0".to_owned(),
            priority: 3,
            dest_qp,
            bytes,
            ..Flow::default()
        };
        let scrape = Scrape {
            flows: vec![
                flow(0x11, 5, "10.0.2.2"),
                flow(0x12, 7, "10.0.2.2"),
                flow(0x11, 1, "10.0.2.9"),
            ],
            ..Scrape::default()
        };
        let text = text(scrape, Format::Classic).unwrap();
        let lines: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("npcc_heaviest_flow_bytes"))
            .collect();
        assert_eq!(
            lines,
            [
                r#"npcc_heaviest_flow_bytes{src="10.0.1.3",dst="10.0.2.2",port="wan0",priority="3"} 12"#,
                r#"npcc_heaviest_flow_bytes{src="10.0.1.3",dst="10.0.2.9",port="wan0",priority="3"} 1"#,
            ]
        );
        for family in heads().filter(|family| family.name.contains("heaviest")) {
            assert!(
                family.help.contains(&format!(" {HEAVIEST} heaviest")),
                "{}",
                family.help
            );
        }
    }
}
