//! Metrics of the peers: other boxes, and agents of hosts, that report ends.

use std::fmt;

use npcc_roce::pair::foreign::view::PeerCount;

use super::family::{Samples, families};
use super::scrape::Scrape;

/// Writes a counter of each peer.
fn each(all: &Scrape, to: &mut Samples<'_>, of: fn(&PeerCount) -> u64) -> fmt::Result {
    let mut peers = all.peers.iter();
    peers.try_for_each(|row| to.count(&[("peer", &row.peer)], of(&row.counts)))
}

families! {
    "npcc_peer_ends" Gauge "Ends of the peer in the table. The label is the name of a box, or that of a host with host: before it." |all, to| {
        let mut peers = all.peers.iter();
        peers.try_for_each(|row| to.gauge(&[("peer", &row.peer)], row.counts.held))
    };
    "npcc_peer_distrusted" Gauge "1 while nothing of the peer is believed." |all, to| {
        let mut peers = all.peers.iter();
        peers.try_for_each(|row| to.holds(&[("peer", &row.peer)], row.distrusted))
    };
    "npcc_peer_reports" Counter "Reports of the peer that were taken." |all, to|
        each(all, to, |counts| counts.accepted);
    "npcc_peer_reports_refused" Counter "Reports of the peer that were refused, by reason." |all, to| {
        for row in &all.peers {
            for (reason, count) in row.counts.refused.each_named() {
                to.count(&[("peer", &row.peer), ("reason", reason)], *count)?;
            }
        }
        Ok(())
    };
    "npcc_peer_ends_displaced" Counter "Ends that made room for those of the peer." |all, to|
        each(all, to, |counts| counts.displaced);
    "npcc_peer_flows_paired" Counter "Flows whose sender became known by an end of the peer." |all, to|
        each(all, to, |counts| counts.pairs);
    "npcc_peer_cnps" Counter "CNPs to queue pairs that were known by an end of the peer." |all, to|
        each(all, to, |counts| counts.cnps);
}

#[cfg(test)]
mod tests {
    use crate::telemetry::metrics::{Format, Scrape, text};
    use npcc_api::peers::PeerRow;

    #[test]
    fn a_peer_has_its_counts_as_show_peers_has_them() {
        let mut row = PeerRow {
            peer: "edge-2".to_owned(),
            distrusted: true,
            ..PeerRow::default()
        };
        row.counts.held = 7;
        row.counts.cnps = 3;
        let scrape = Scrape {
            peers: vec![row],
            ..Scrape::default()
        };
        let reported = text(scrape, Format::Classic).unwrap();
        for line in [
            "npcc_peer_ends{peer=\"edge-2\"} 7",
            "npcc_peer_distrusted{peer=\"edge-2\"} 1",
            "npcc_peer_cnps_total{peer=\"edge-2\"} 3",
            "npcc_peer_reports_refused_total{peer=\"edge-2\",reason=\"not-behind-port\"} 0",
        ] {
            assert!(
                reported.lines().any(|one| one == line),
                "{line}: {reported}"
            );
        }
    }
}
