//! Ends and peers, for people and scripts.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, UNIX_EPOCH};

use npcc_roce::pair::foreign::view::PeerCount;
use serde::{Deserialize, Serialize};

use super::table::{count, list, table, word};
use crate::manage::ends::row::EndFields;

/// Renders `show ends`.
#[must_use]
pub fn ends(ends: &[EndFields]) -> String {
    let nowhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let none = EndFields {
        from: nowhere,
        to: nowhere,
        queue_pair: 0,
        udp_port: 0,
        transport: String::new(),
        first_seen: 0,
        last_seen: 0,
        packets: 0,
        acked_psn: None,
        acked_at: None,
    };
    table(4, &&none, ends, |end| {
        vec![
            word("FROM", end.from),
            word("TO", end.to),
            ("QUEUE PAIR", format!("{:#x}", end.queue_pair)),
            word("TRANSPORT", &end.transport),
            word("UDP PORT", end.udp_port),
            count("PACKETS", end.packets),
        ]
    })
}

/// Output of `show peers --json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PeerTable {
    /// Version of the program.
    pub version: String,
    /// Time in microseconds since 1970 since when the routes are complete; null while they are not.
    pub routes_ready: Option<u64>,
    /// Time since when the sender of 95 % of the flows is known; null while that of fewer is, or there are no flows.
    pub pairs_ready: Option<u64>,
    /// Peers, in the order in which they were first heard.
    pub peers: Vec<PeerRow>,
}

/// Peer in `show peers`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PeerRow {
    /// Name of the box; of a host's agent with `host:` before it.
    pub peer: String,
    /// True while nothing of it is believed.
    pub distrusted: bool,
    /// Time of its last report in microseconds since 1970; null before the first.
    pub heard: Option<u64>,
    /// Counters of the peer.
    #[serde(flatten)]
    pub counts: PeerCount,
}

impl PeerTable {
    /// Renders `show peers`.
    #[must_use]
    pub fn text(&self) -> String {
        let since = |ready: Option<u64>| match ready {
            None => "not ready".to_owned(),
            Some(us) => {
                let at = UNIX_EPOCH + Duration::from_micros(us);
                format!("ready since {}", humantime::format_rfc3339_seconds(at))
            }
        };
        let rows = table(2, &&PeerRow::default(), &self.peers, |row| {
            let state = if row.distrusted {
                "distrusted"
            } else {
                "believed"
            };
            let counts = &row.counts;
            vec![
                word("PEER", &row.peer),
                word("STATE", state),
                count("ENDS", counts.held),
                count("ACCEPTED", counts.accepted),
                count("DISPLACED", counts.displaced),
                count("PAIRS", counts.pairs),
                count("CNPS", counts.cnps),
                ("REFUSED", list(counts.refused.each_named())),
            ]
        });
        let (routes, pairs) = (since(self.routes_ready), since(self.pairs_ready));
        format!("routes: {routes}\npairs: {pairs}\n{rows}")
    }
}
