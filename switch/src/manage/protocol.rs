//! Questions and answers.

use std::time::Duration;

use anyhow::anyhow;
use serde::{Deserialize, Serialize};

use super::capture::{CaptureRequest, CaptureStart};
use super::query::Query;
use crate::apply::outcome::Outcome;
use crate::control::order::{ListedPair, NpccOrder};
use crate::report::model::Snapshot;

/// A question: one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Everything that `--stats-json` writes.
    Snapshot,
    /// A table of `show`.
    Show {
        /// Its name.
        table: String,
    },
    /// The rows of a table of `show`. The answer is a [`RowLine`](super::rows::RowLine) for each, and one more.
    Rows {
        /// Its name.
        table: String,
        /// Which rows.
        query: Box<Query>,
    },
    /// Show counters from here on.
    ClearCounters,
    /// Start the user watermarks anew.
    ClearWatermarks,
    /// Set a value of what runs.
    Set {
        /// Its key, as a path of the configuration or in short.
        key: String,
        /// The value, as in the configuration.
        value: String,
    },
    /// Have what was set be as in the file.
    Unset {
        /// The key; all, when it is none.
        key: Option<String>,
    },
    /// The configuration that runs, or how it differs from the file.
    Config {
        /// How it differs.
        diff: bool,
    },
    /// Read the configuration file again.
    Reload {
        /// Roll back unless a commit comes within so many milliseconds.
        confirm_ms: Option<u64>,
        /// Only say what would come of it.
        #[serde(default)]
        dry_run: bool,
    },
    /// The reload that waits for it holds.
    Commit,
    /// What held before the reload that waits for its commit comes back.
    Rollback,
    /// Take a port up or down.
    Port {
        /// Its name.
        name: String,
        /// Whether it may be up.
        up: bool,
    },
    /// Its traffic is being taken away, or no more: for those who look. Who takes it away is not the switch.
    Drain {
        /// Whether it is.
        on: bool,
    },
    /// Stop, as at SIGTERM.
    Stop,
    /// Add or forget a pair.
    Npcc(NpccOrder),
    /// Capture frames. The answer is a [`Reply::Capturing`], then frames, then how it ended: see [`super::capture`].
    Capture(Box<CaptureRequest>),
    /// Take in a list of pairs, or none of it.
    Pairs {
        /// The pairs.
        pairs: Vec<ListedPair>,
        /// Whether each must be confirmed by packets.
        suggested: bool,
    },
}

impl Request {
    /// Whether it only looks.
    #[must_use]
    pub const fn reads(&self) -> bool {
        matches!(
            self,
            Request::Snapshot
                | Request::Show { .. }
                | Request::Rows { .. }
                | Request::Config { .. }
                | Request::Reload { dry_run: true, .. }
        )
    }

    /// What it is called where changes are logged. Pairs are not told apart: they come by the thousand.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Request::Snapshot => "snapshot".to_owned(),
            Request::Show { table } | Request::Rows { table, .. } => format!("show {table}"),
            Request::ClearCounters => "clear counters".to_owned(),
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
            Request::Npcc(order) => match order {
                NpccOrder::AddPair(_) => "pair add".to_owned(),
                NpccOrder::DeletePair { .. } => "pair del".to_owned(),
            },
        }
    }
}

/// An answer: one line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// To [`Request::Snapshot`].
    Snapshot(Box<Snapshot>),
    /// To [`Request::Show`]: what the table of that name reads.
    Table(serde_json::Value),
    /// To [`Request::Config`].
    Text(String),
    /// To [`Request::Reload`], [`Request::Unset`] and [`Request::Rollback`].
    Reloaded(Outcome),
    /// To [`Request::Capture`]: it is on, and frames follow.
    Capturing(Box<CaptureStart>),
    /// The configuration file, or a value, has mistakes: the report.
    Invalid(String),
    /// Done.
    Done,
    /// The question was not understood.
    Error(String),
}

/// What is said of an answer that cannot be read, or is to another question.
pub const OTHER_ANSWER: &str = "the switch answered something else; are both the same version?";

impl Reply {
    /// The error it is to who wanted another answer: why the switch refused, or that this is no answer to the question.
    #[must_use]
    pub fn unexpected(self) -> anyhow::Error {
        match self {
            Reply::Error(why) => anyhow!("the switch refused: {why}"),
            Reply::Invalid(report) => anyhow!(report),
            _ => anyhow!(OTHER_ANSWER),
        }
    }
}
