//! Requests to the switch, and its replies.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::anyhow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capture::CaptureRequest;
use super::cnps::CnpOrder;
use super::model::Snapshot;
use super::outcome::Outcome;
use super::pairs::ListedPair;
use super::peers::{Suggested, Suggestion};
use super::query::Query;
use super::ready::Ready;

/// Request. Its name and its fields are those of an operation of the HTTP interface ([`super::operations`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Return since when the switch forwards.
    Ready,
    /// Return everything that `--stats-json` writes.
    Snapshot,
    /// Return a table of `show` as a whole.
    Show {
        /// Name of the table.
        table: String,
    },
    /// Return rows of a table of `show`: a [`RowLine`](super::rows::RowLine) for each, and one more.
    Rows {
        /// Name of the table.
        table: String,
        /// Selection of the rows.
        query: Box<Query>,
    },
    /// Show counters relative to now, to this user.
    ClearCounters {
        /// Name of a port, whose counters alone are cleared.
        #[serde(default)]
        port: Option<String>,
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
        /// Key; absent for all.
        #[serde(default)]
        key: Option<String>,
    },
    /// Return the running configuration, or its differences from the file.
    Config {
        /// True to return the differences.
        #[serde(default)]
        diff: bool,
    },
    /// Report what a reload would do.
    PlanReload,
    /// Read the configuration file again.
    Reload {
        /// Time in milliseconds after which it is rolled back unless committed.
        #[serde(default)]
        confirm_ms: Option<u64>,
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
    /// Add a pair: these queue pairs are one connection.
    AddPair(ListedPair),
    /// Delete the pair of these packets.
    DeletePair {
        /// Address of the sender.
        src: IpAddr,
        /// Address of the receiver.
        dst: IpAddr,
        /// Queue pair of the receiver.
        dest_qp: u32,
    },
    /// Send CNPs to a queue pair.
    SendCnps(CnpOrder),
    /// Capture frames: a [`CaptureLine`](super::capture::CaptureLine) a line.
    Capture(Box<CaptureRequest>),
    /// End a capture: its client gets the frames that are left, and the totals.
    EndCapture {
        /// Number of the capture, from its first line.
        id: u32,
    },
    /// Export ends: an [`EndRow`](super::ends::EndRow) a line.
    Ends {
        /// True to go on with what changes after the snapshot, until the client goes away.
        #[serde(default)]
        follow: bool,
    },
    /// Take what peers report.
    Suggest(Vec<Suggestion>),
    /// Forget all that a peer said and believe nothing of it, or believe it again.
    Trust {
        /// Name of the peer, as `show peers` lists it.
        peer: String,
        /// True to believe it.
        trusted: bool,
    },
}

impl Request {
    /// Returns its name for the log of changes.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Request::Ready => "ready".to_owned(),
            Request::Snapshot => "snapshot".to_owned(),
            Request::Show { table } | Request::Rows { table, .. } => format!("show {table}"),
            Request::Ends { .. } => "show ends".to_owned(),
            Request::Suggest(_) => "pair suggest".to_owned(),
            Request::Trust { peer, trusted } => {
                format!(
                    "pair {} {peer}",
                    if *trusted { "trust" } else { "distrust" }
                )
            }
            Request::ClearCounters { port: None } => "clear counters".to_owned(),
            Request::ClearCounters { port: Some(port) } => format!("clear counters --port {port}"),
            Request::ClearWatermarks => "clear watermarks".to_owned(),
            Request::Set { key, value } => format!("set {key} {value}"),
            Request::Unset { key: Some(key) } => format!("unset {key}"),
            Request::Unset { key: None } => "unset --all".to_owned(),
            Request::Config { .. } => "show config".to_owned(),
            Request::PlanReload => "reload --dry-run".to_owned(),
            Request::Reload { confirm_ms: None } => "reload".to_owned(),
            Request::Reload {
                confirm_ms: Some(ms),
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
            Request::EndCapture { id } => format!("end of capture {id}"),
            Request::Drain { on: true } => "drain".to_owned(),
            Request::Drain { on: false } => "undrain".to_owned(),
            Request::Stop => "stop".to_owned(),
            Request::SendCnps(order) => order.name(),
            Request::AddPair(_) => "pair add".to_owned(),
            Request::DeletePair { .. } => "pair del".to_owned(),
        }
    }
}

/// Reply to a request that has one answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Reply to [`Request::Ready`].
    Ready(Ready),
    /// Reply to [`Request::Snapshot`].
    Snapshot(Box<Snapshot>),
    /// Reply to [`Request::Show`]: that table as `show NAME --json` prints it.
    Table(serde_json::Value),
    /// Reply to [`Request::Config`].
    Text(String),
    /// Reply to [`Request::Set`], [`Request::Unset`], [`Request::Reload`] and [`Request::Rollback`].
    Reloaded(Outcome),
    /// Reply to [`Request::Suggest`], in the order of the peers.
    Suggested(Vec<Suggested>),
    /// The request was carried out.
    Done,
    /// The request was refused, or was not understood.
    Refused(ApiError),
}

/// Status codes of HTTP that tell why a request is refused.
pub mod status {
    /// The request is not understood.
    pub const BAD_REQUEST: u16 = 400;
    /// The socket is for reading.
    pub const FORBIDDEN: u16 = 403;
    /// No such port, peer or path.
    pub const NOT_FOUND: u16 = 404;
    /// The path has no such method.
    pub const METHOD_NOT_ALLOWED: u16 = 405;
    /// The request took too long.
    pub const REQUEST_TIMEOUT: u16 = 408;
    /// The state of the switch does not permit it.
    pub const CONFLICT: u16 = 409;
    /// The request has no body and no length, and needs one.
    pub const LENGTH_REQUIRED: u16 = 411;
    /// The request is too long.
    pub const PAYLOAD_TOO_LARGE: u16 = 413;
    /// The configuration file, or a value, has mistakes.
    pub const UNPROCESSABLE: u16 = 422;
    /// The limit of clients is reached.
    pub const TOO_MANY_REQUESTS: u16 = 429;
    /// A defect: the request panicked.
    pub const INTERNAL_ERROR: u16 = 500;
    /// The switch does not forward, or a thread of it does not answer.
    pub const UNAVAILABLE: u16 = 503;
}

/// Body of an answer that is an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Description of the error.
    pub error: String,
    /// Remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Reason why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// Status code of the answer.
    pub status: u16,
    /// Body of the answer.
    pub problem: Problem,
}

impl ApiError {
    /// Makes a refusal with this status code.
    #[must_use]
    pub fn new(status: u16, error: impl Into<String>) -> ApiError {
        let error = error.into();
        ApiError {
            status,
            problem: Problem { error, hint: None },
        }
    }

    /// Makes a refusal that says what to do.
    #[must_use]
    pub fn with_hint(status: u16, error: impl Into<String>, hint: &str) -> ApiError {
        let mut made = ApiError::new(status, error);
        made.problem.hint = Some(hint.to_owned());
        made
    }
}

/// The state of the switch does not permit it, for this reason.
impl From<String> for ApiError {
    fn from(error: String) -> ApiError {
        ApiError::new(status::CONFLICT, error)
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.problem.error)?;
        match &self.problem.hint {
            Some(hint) => write!(out, ": {hint}"),
            None => Ok(()),
        }
    }
}

/// Error text for a reply that cannot be read, or that answers another request.
pub const OTHER_ANSWER: &str = "the switch answered something else; are both the same version?";

impl Reply {
    /// Converts an unexpected reply to an error: the switch's reason for a refusal, or that the reply does not fit the request.
    #[must_use]
    pub fn unexpected(self) -> anyhow::Error {
        match self {
            Reply::Refused(error) if error.status == status::UNPROCESSABLE => {
                anyhow!(error.problem.error)
            }
            Reply::Refused(error) => anyhow!("the switch refused: {error}"),
            _ => anyhow!(OTHER_ANSWER),
        }
    }
}
