//! Questions and answers.

use serde::{Deserialize, Serialize};

use crate::control::orders::NpccOrder;
use crate::manage::reload::Outcome;
use crate::report::model::{Flow, Host, Snapshot};

/// A question: one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Everything but flows.
    Snapshot,
    /// All flows.
    Flows,
    /// CNPs, NAKs and CE by host.
    Hosts,
    /// The latest CNPs and why they were sent.
    Log,
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
    /// Change marking or early drop of a queue, on all ports.
    Curve {
        /// The queue.
        priority: u8,
        /// What: `ecn.kmin`, `wred.max`, ...
        key: String,
        /// Its value, as in the configuration.
        value: String,
    },
    /// Read the configuration file again.
    Reload,
    /// Change something of NPCC.
    Npcc(NpccOrder),
}

/// An answer: one line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// To [`Request::Snapshot`].
    Snapshot(Box<Snapshot>),
    /// To [`Request::Flows`].
    Flows(Vec<Flow>),
    /// To [`Request::Hosts`].
    Hosts(Vec<Host>),
    /// To [`Request::Log`], oldest first.
    Log(Vec<String>),
    /// To [`Request::Reload`].
    Reloaded(Outcome),
    /// The configuration file has mistakes: the report.
    Invalid(String),
    /// Done.
    Done,
    /// The question was not understood.
    Error(String),
}
