//! Which rows of a table are asked for.

use std::net::IpAddr;

use npcc_config::ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Which rows, and how many. What is not given does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Query {
    /// So many rows at most: the heaviest flows, the hosts with most CNPs, the latest lines of the log.
    pub top: Option<usize>,
    /// Which so many of them: 1 for the first.
    pub page: Option<usize>,
    /// Where the answer before ended.
    pub after: Option<u64>,
    /// Of flows from or to these hosts: an address or a prefix.
    pub host: Option<String>,
    /// With this queue pair at either end.
    pub qp: Option<u32>,
    /// That leave by this port.
    pub port: Option<String>,
    /// In the queue of this priority.
    pub priority: Option<u8>,
    /// Whose sender is known by this evidence.
    pub evidence: Option<String>,
    /// That did this after their last CNP.
    pub response: Option<String>,
    /// That nobody has answered yet.
    pub cold: bool,
    /// That were told, or would have been.
    pub told: bool,
    /// Of routes: what the switch has not as the kernel has it, by a comparison made now.
    pub diff: bool,
    /// Of which this became: `sent`, `would-send` or `refused`.
    pub outcome: Option<String>,
}

impl Query {
    /// The hosts that are asked for; none for all.
    ///
    /// # Errors
    /// What they would have to be written as.
    pub fn hosts(&self) -> Result<Option<IpNet>, String> {
        let read = |text: &String| {
            let one = text.parse::<IpAddr>().map(IpNet::from);
            one.or_else(|_| text.parse()).map_err(|_| {
                format!("`{text}` is neither an address nor a prefix such as 10.0.1.0/24")
            })
        };
        self.host.as_ref().map(read).transpose()
    }

    /// The filters that are given, by their names on the command line.
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

/// How an answer of rows ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// Rows that were asked for and are there, in this answer or not; as far as was looked.
    pub matched: u64,
    /// There may be more: ask again after this.
    pub next: Option<u64>,
}
