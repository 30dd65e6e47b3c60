//! Requests of a feed and the switch's answers: a line of JSON each.

use npcc_api::ends::{EndRow, Lease, ReportedLease};
use npcc_api::peers::{PeerName, Suggested, Suggestion};
use npcc_api::protocol::{Reply, Request};
use serde::Deserialize;
use serde_json::Value;

use crate::name::Name;

/// Error text for an answer that cannot be read, or that answers another request.
pub(super) const UNEXPECTED: &str =
    "unexpected answer from the switch: install the same version of npcc-feed and npcc-switch";

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

/// Returns a request as it is sent.
pub(super) fn line(request: &Request) -> String {
    // Requests have text keys and always encode.
    serde_json::to_string(request).unwrap_or_default() + "\n"
}

/// Reads a row of the ends; `None` for a kind of row of a later version.
pub(super) fn row(line: &str) -> Result<Option<EndRow>, String> {
    #[derive(Deserialize)]
    struct Refused {
        error: String,
    }
    match serde_json::from_str(line) {
        Ok(row) => Ok(Some(row)),
        Err(_) => serde_json::from_str(line).map_or(Ok(None), |Refused { error }| Err(error)),
    }
}

/// Returns the request that suggests rows of a peer.
pub(super) fn suggestion(peer: &Name, rows: &[EndRow]) -> Request {
    Request::Suggest(Suggestion {
        name: PeerName::Peer(peer.to_string()),
        rows: rows.iter().filter_map(value).collect(),
    })
}

/// Returns the request that passes what hosts' agents reported.
pub(super) fn leases(hosts: &[HostLeases]) -> Request {
    let row = |(lease, expires): &(Lease, u64)| {
        value(&EndRow::Lease(ReportedLease {
            lease: *lease,
            udp_port: None,
            expires: *expires,
        }))
    };
    let of_host = |of: &HostLeases| Suggestion {
        name: PeerName::Host(of.host.to_string()),
        rows: of.rows.iter().filter_map(row).collect(),
    };
    Request::SuggestAll(hosts.iter().map(of_host).collect())
}

fn value(row: &EndRow) -> Option<Value> {
    serde_json::to_value(row).ok()
}

fn read(line: &str) -> Result<Reply, String> {
    match serde_json::from_str(line) {
        Ok(Reply::Error(why)) => Err(why),
        Ok(reply) => Ok(reply),
        Err(_) => Err(UNEXPECTED.to_owned()),
    }
}

/// Reads the answer to a suggestion.
pub(super) fn suggested(line: &str) -> Result<Suggested, String> {
    match read(line)? {
        Reply::Suggested(counts) => Ok(counts),
        _ => Err(UNEXPECTED.to_owned()),
    }
}

/// Reads the answer to the leases of several hosts: one for each, in their order.
pub(super) fn suggested_hosts(line: &str) -> Result<Vec<Suggested>, String> {
    match read(line)? {
        Reply::SuggestedAll(counts) => Ok(counts),
        _ => Err(UNEXPECTED.to_owned()),
    }
}

#[cfg(test)]
#[path = "envelope_tests.rs"]
mod tests;
