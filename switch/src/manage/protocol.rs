//! Questions and answers.

use serde::{Deserialize, Serialize};

use super::reload::Outcome;
use crate::control::orders::NpccOrder;
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
        /// Rows at most; all where none is given.
        top: Option<usize>,
    },
    /// Show counters from here on.
    ClearCounters,
    /// Start the user watermarks anew.
    ClearWatermarks,
    /// Change a queue's weight, on all ports.
    Weight {
        /// The queue.
        priority: u8,
        /// Its share among the DWRR queues, 1 to 100.
        weight: u8,
    },
    /// Change a threshold or share of marking or early drop of a queue, on all ports.
    Threshold {
        /// The queue.
        priority: u8,
        /// What: `ecn.kmin`, `wred.max`, ...
        key: String,
        /// Its value, as in the configuration.
        value: String,
    },
    /// Read the configuration file again.
    Reload,
    /// Take a port up or down.
    Port {
        /// Its name.
        name: String,
        /// Whether it may be up.
        up: bool,
    },
    /// Change something of NPCC.
    Npcc(NpccOrder),
}

/// An answer: one line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// To [`Request::Snapshot`].
    Snapshot(Box<Snapshot>),
    /// To [`Request::Show`]: what the table of that name reads.
    Table(serde_json::Value),
    /// To [`Request::Reload`].
    Reloaded(Outcome),
    /// The configuration file has mistakes: the report.
    Invalid(String),
    /// Done.
    Done,
    /// The question was not understood.
    Error(String),
}
