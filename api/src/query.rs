//! Selection of a table's rows.

use std::net::IpAddr;

use npcc_config::ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Filters and limits of rows. A field that is not given does not restrict.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Query {
    /// Most rows: the heaviest flows, the hosts with most CNPs, the latest lines of the log.
    pub top: Option<usize>,
    /// Page of `top` rows: 1 for the first.
    pub page: Option<usize>,
    /// Position where the previous answer ended.
    pub after: Option<u64>,
    /// Flows from or to these hosts: an address or a prefix.
    pub host: Option<String>,
    /// Flows with this queue pair at either end.
    pub qp: Option<u32>,
    /// Flows that leave by this port.
    pub port: Option<String>,
    /// Flows in the queue of this priority.
    pub priority: Option<u8>,
    /// Flows whose sender is known by this evidence.
    pub evidence: Option<String>,
    /// Flows with this response after their last CNP.
    pub response: Option<String>,
    /// Flows that no packet in the reverse direction has answered yet.
    pub cold: bool,
    /// Flows that were sent a CNP, or would have been.
    pub told: bool,
    /// Routes that differ between switch and kernel, by a comparison made now.
    pub diff: bool,
    /// Decisions with this outcome: `sent`, `would-send` or `refused`.
    pub outcome: Option<String>,
}

impl Query {
    /// Returns the requested hosts; `None` for all.
    ///
    /// # Errors
    /// Says how to write them.
    pub fn hosts(&self) -> Result<Option<IpNet>, String> {
        let read = |text: &String| {
            let one = text.parse::<IpAddr>().map(IpNet::from);
            one.or_else(|_| text.parse()).map_err(|_| {
                format!("`{text}` is neither an address nor a prefix such as 10.0.1.0/24")
            })
        };
        self.host.as_ref().map(read).transpose()
    }

    /// Returns the filters that are given, by their names on the command line.
    pub fn filters(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            (self.host.is_some(), "--host"),
            (self.qp.is_some(), "--qp"),
            (self.port.is_some(), "--port"),
            (self.priority.is_some(), "--priority"),
            (self.evidence.is_some(), "--evidence"),
            (self.response.is_some(), "--response"),
            (self.cold, "--cold"),
            (self.told, "--told"),
            (self.outcome.is_some(), "--outcome"),
            (self.diff, "--diff"),
        ];
        given
            .into_iter()
            .filter_map(|(given, name)| given.then_some(name))
    }
}

/// End of an answer of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "PageEnd")]
pub struct End {
    /// Number of rows that match, in this answer or not, as far as the switch searched.
    pub matched: u64,
    /// Position to continue from in the next request, if there may be more.
    pub next: Option<u64>,
}
