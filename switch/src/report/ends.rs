//! Ends and peers, for people and scripts.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, UNIX_EPOCH};

use npcc_api::ends::{End, Transport};
use npcc_api::peers::{PeerRow, PeerTable};

use super::table::{count, list, table, word};

/// Renders `show ends`.
#[must_use]
pub fn ends(ends: &[End]) -> String {
    let nowhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let none = End {
        from: nowhere,
        to: nowhere,
        queue_pair: 0,
        udp_port: 0,
        transport: Transport::Rc,
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
            word("TRANSPORT", end.transport.name()),
            word("UDP PORT", end.udp_port),
            count("PACKETS", end.packets),
        ]
    })
}

/// Renders `show peers`.
#[must_use]
pub fn peers(peers: &PeerTable) -> String {
    let since = |ready: Option<u64>| match ready {
        None => "not ready".to_owned(),
        Some(us) => {
            let at = UNIX_EPOCH + Duration::from_micros(us);
            format!("ready since {}", humantime::format_rfc3339_seconds(at))
        }
    };
    let rows = table(2, &&PeerRow::default(), &peers.peers, |row| {
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
    let (routes, pairs) = (since(peers.routes_ready), since(peers.pairs_ready));
    format!("routes: {routes}\npairs: {pairs}\n{rows}")
}
