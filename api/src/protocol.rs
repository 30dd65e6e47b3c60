//! Management protocol: requests and replies.

use std::time::Duration;

use anyhow::anyhow;
use serde::{Deserialize, Serialize};

use super::capture::{CaptureRequest, CaptureStart};
use super::cnps::CnpOrder;
use super::model::Snapshot;
use super::outcome::Outcome;
use super::pairs::{ListedPair, PairRequest};
use super::peers::{PeerName, Suggested, Suggestion};
use super::query::Query;

/// Request: one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Everything that `--stats-json` writes.
    Snapshot,
    /// A table of `show`.
    Show {
        /// Name of the table.
        table: String,
    },
    /// Rows of a table of `show`. The answer is a [`RowLine`](super::rows::RowLine) for each, and one more.
    Rows {
        /// Name of the table.
        table: String,
        /// Selection of the rows.
        query: Box<Query>,
    },
    /// Show counters relative to now, to this user.
    ClearCounters,
    /// Show the counters of one port relative to now, to this user.
    ClearPortCounters {
        /// Name of the port.
        port: String,
    },
    /// Restart the user watermarks.
    ClearWatermarks,
    /// Set a value of the running configuration.
    Set {
        /// Key, as a path of the configuration or in short.
        key: String,
        /// Value, as in the configuration.
        value: String,
    },
    /// Reset what was set to the file's values.
    Unset {
        /// Key; `None` for all.
        key: Option<String>,
    },
    /// Return the running configuration, or its differences from the file.
    Config {
        /// True to return the differences.
        diff: bool,
    },
    /// Read the configuration file again.
    Reload {
        /// Time in milliseconds after which it is rolled back unless committed.
        confirm_ms: Option<u64>,
        /// True to report the outcome only.
        #[serde(default)]
        dry_run: bool,
    },
    /// Confirm the pending reload.
    Commit,
    /// Restore the settings before the pending reload.
    Rollback,
    /// Take a port up or down.
    Port {
        /// Name of the port.
        name: String,
        /// True to allow it up.
        up: bool,
    },
    /// Mark the switch's traffic as being drained, or no longer, for monitoring. The switch itself does not divert traffic.
    Drain {
        /// True while it is being drained.
        on: bool,
    },
    /// Stop, as at SIGTERM.
    Stop,
    /// Add or forget a pair.
    Npcc(PairRequest),
    /// Send CNPs to a queue pair.
    SendCnps(CnpOrder),
    /// Capture frames. The answer is a [`Reply::Capturing`], then frames, then how it ended.
    Capture(Box<CaptureRequest>),
    /// Export ends. The answer is an [`EndRow`](super::ends::EndRow) a line.
    Ends {
        /// True to go on with what changes after the snapshot, until the client goes away.
        #[serde(default)]
        follow: bool,
    },
    /// Take what a peer reports.
    Suggest(Suggestion),
    /// Take what several peers report.
    SuggestAll(Vec<Suggestion>),
    /// Forget all that a peer said, and believe nothing of it.
    Distrust(PeerName),
    /// Believe a distrusted peer again.
    Trust(PeerName),
    /// Take a list of pairs, all or none.
    Pairs {
        /// The pairs.
        pairs: Vec<ListedPair>,
        /// True if packets must confirm each.
        suggested: bool,
    },
}

impl Request {
    /// Returns true if it changes nothing.
    #[must_use]
    pub const fn reads(&self) -> bool {
        matches!(
            self,
            Request::Snapshot
                | Request::Show { .. }
                | Request::Rows { .. }
                | Request::Ends { .. }
                | Request::Config { .. }
                | Request::Reload { dry_run: true, .. }
        )
    }

    /// Returns true if it reports what others saw of queue pairs.
    #[must_use]
    pub const fn reports(&self) -> bool {
        matches!(self, Request::Suggest(_) | Request::SuggestAll(_))
    }

    /// Returns its name for the log of changes. Pairs are not listed: they come by the thousand.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Request::Snapshot => "snapshot".to_owned(),
            Request::Show { table } | Request::Rows { table, .. } => format!("show {table}"),
            Request::Ends { .. } => "show ends".to_owned(),
            Request::Suggest(_) | Request::SuggestAll(_) => "pair suggest".to_owned(),
            Request::Distrust(name) => format!("pair distrust {name}"),
            Request::Trust(name) => format!("pair trust {name}"),
            Request::ClearCounters => "clear counters".to_owned(),
            Request::ClearPortCounters { port } => format!("clear counters --port {port}"),
            Request::ClearWatermarks => "clear watermarks".to_owned(),
            Request::Set { key, value } => format!("set {key} {value}"),
            Request::Unset { key: Some(key) } => format!("unset {key}"),
            Request::Unset { key: None } => "unset --all".to_owned(),
            Request::Config { .. } => "show config".to_owned(),
            Request::Reload { dry_run: true, .. } => "reload --dry-run".to_owned(),
            Request::Reload {
                confirm_ms: None, ..
            } => "reload".to_owned(),
            Request::Reload {
                confirm_ms: Some(ms),
                ..
            } => {
                let within = Duration::from_millis(*ms);
                format!("reload --confirm {}", humantime::format_duration(within))
            }
            Request::Commit => "commit".to_owned(),
            Request::Rollback => "rollback".to_owned(),
            Request::Port { name, up } => {
                format!("port {name} {}", if *up { "up" } else { "down" })
            }
            Request::Capture(request) => request.name(),
            Request::Drain { on: true } => "drain".to_owned(),
            Request::Drain { on: false } => "undrain".to_owned(),
            Request::Stop => "stop".to_owned(),
            Request::Pairs { .. } => "pair import".to_owned(),
            Request::SendCnps(order) => order.name(),
            Request::Npcc(request) => match request {
                PairRequest::AddPair(_) => "pair add".to_owned(),
                PairRequest::DeletePair { .. } => "pair del".to_owned(),
            },
        }
    }
}

/// Reply: one line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// Reply to [`Request::Snapshot`].
    Snapshot(Box<Snapshot>),
    /// Reply to [`Request::Show`]: the data of that table.
    Table(serde_json::Value),
    /// Reply to [`Request::Config`].
    Text(String),
    /// Reply to [`Request::Reload`], [`Request::Unset`] and [`Request::Rollback`].
    Reloaded(Outcome),
    /// Reply to [`Request::Capture`]: the capture is on, and frames follow.
    Capturing(Box<CaptureStart>),
    /// Reply to [`Request::Suggest`].
    Suggested(Suggested),
    /// Reply to [`Request::SuggestAll`], in the order of the peers.
    SuggestedAll(Vec<Suggested>),
    /// The configuration file, or a value, has mistakes: the report.
    Invalid(String),
    /// The request was carried out.
    Done,
    /// The request was refused or not understood: the reason.
    Error(String),
}

/// Error text for a reply that cannot be read, or that answers another request.
pub const OTHER_ANSWER: &str = "the switch answered something else; are both the same version?";

impl Reply {
    /// Converts an unexpected reply to an error: the switch's reason for a refusal, or that the reply does not fit the request.
    #[must_use]
    pub fn unexpected(self) -> anyhow::Error {
        match self {
            Reply::Error(why) => anyhow!("the switch refused: {why}"),
            Reply::Invalid(report) => anyhow!(report),
            _ => anyhow!(OTHER_ANSWER),
        }
    }
}
