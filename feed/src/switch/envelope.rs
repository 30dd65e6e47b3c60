//! Reports of a feed to its switch.

use npcc_api::ends::{EndRow, Lease, ReportedLease};
use npcc_api::peers::{PeerName, Suggestion};
use npcc_api::protocol::Request;
use serde_json::Value;

use crate::name::Name;

/// Leases of one host.
#[derive(Debug)]
pub struct HostLeases {
    /// Name of the host.
    pub host: Name,
    /// The leases, and the time at which each ends, in microseconds since the Unix epoch.
    pub rows: Vec<(Lease, u64)>,
    /// Number of further ones that ended while they waited.
    pub expired: u64,
}

/// Returns the request that suggests rows of a peer.
pub(super) fn suggestion(peer: &Name, rows: &[EndRow]) -> Request {
    Request::Suggest(vec![Suggestion {
        name: PeerName::Peer(peer.to_string()),
        rows: rows.iter().filter_map(value).collect(),
    }])
}

/// Returns the request that passes what hosts' agents reported.
pub(super) fn leases(hosts: &[HostLeases]) -> Request {
    let row = |(lease, expires): &(Lease, u64)| {
        value(&EndRow::Lease(ReportedLease {
            lease: *lease,
            expires: *expires,
        }))
    };
    let of_host = |of: &HostLeases| Suggestion {
        name: PeerName::Host(of.host.to_string()),
        rows: of.rows.iter().filter_map(row).collect(),
    };
    Request::Suggest(hosts.iter().map(of_host).collect())
}

fn value(row: &EndRow) -> Option<Value> {
    serde_json::to_value(row).ok()
}

#[cfg(test)]
#[path = "envelope_tests.rs"]
mod tests;
