//! Requests and answers of the switch's management protocol that a feed uses: a line of JSON each.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agent::Lease;
use crate::name::Name;
use crate::row::Row;

/// Error text for an answer that cannot be read, or that answers another request.
pub(super) const UNEXPECTED: &str =
    "unexpected answer from the switch: install the same version of npcc-feed and npcc-switch";

/// Maximum number of rows of a suggestion: the switch refuses more.
pub const MOST_ROWS: usize = 1_024;

/// Line of an answer of rows.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line {
    /// A row of the table.
    Row(Value),
    /// The end of the answer.
    End {},
    /// Reason why there are no rows, or no more.
    Error(String),
}

/// Answer to a suggestion.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Suggested {
    /// Rows taken.
    pub accepted: u64,
    /// Rows refused, by reason.
    pub refused: BTreeMap<String, u64>,
}

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

/// Returns the request for rows of a table.
pub(super) fn rows(table: &str, query: &Value) -> String {
    json!({"rows": {"table": table, "query": query}}).to_string() + "\n"
}

/// Request for the ends of the switch: a snapshot, then what changes. The answer is a [`Row`] a line, or an error.
pub(super) const FOLLOW: &str = "{\"ends\":{\"follow\":true}}\n";

/// Reads a line of that answer; `None` for a kind of row of a later version.
pub(super) fn row(line: &str) -> Result<Option<Row>, String> {
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
pub(super) fn suggestion(peer: &Name, rows: &[Row]) -> String {
    json!({"suggest": {"peer": peer, "rows": rows}}).to_string() + "\n"
}

/// Returns the request that passes what hosts' agents reported.
pub(super) fn leases(hosts: &[HostLeases]) -> String {
    let row = |(lease, expires): &(Lease, u64)| {
        let mut row = json!({"kind": "lease", "expires": expires});
        if let (Some(row), Ok(Value::Object(lease))) =
            (row.as_object_mut(), serde_json::to_value(lease))
        {
            row.extend(lease);
        }
        row
    };
    let of_host = |of: &HostLeases| {
        let rows: Vec<Value> = of.rows.iter().map(row).collect();
        json!({"host": of.host, "rows": rows})
    };
    let all: Vec<Value> = hosts.iter().map(of_host).collect();
    json!({"suggest-all": all}).to_string() + "\n"
}

/// Answer to a suggestion, or to several of them.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Suggested(Suggested),
    SuggestedAll(Vec<Suggested>),
    Error(String),
}

impl Answer {
    fn read(line: &str) -> Result<Answer, String> {
        match serde_json::from_str(line) {
            Ok(Answer::Error(why)) => Err(why),
            Ok(answer) => Ok(answer),
            Err(_) => Err(UNEXPECTED.to_owned()),
        }
    }
}

/// Reads the answer to a suggestion.
pub(super) fn suggested(line: &str) -> Result<Suggested, String> {
    match Answer::read(line)? {
        Answer::Suggested(counts) => Ok(counts),
        _ => Err(UNEXPECTED.to_owned()),
    }
}

/// Reads the answer to the leases of several hosts: one for each, in their order.
pub(super) fn suggested_hosts(line: &str) -> Result<Vec<Suggested>, String> {
    match Answer::read(line)? {
        Answer::SuggestedAll(counts) => Ok(counts),
        _ => Err(UNEXPECTED.to_owned()),
    }
}

#[cfg(test)]
#[path = "envelope_tests.rs"]
mod tests;
