//! Questions and answers.

use serde::{Deserialize, Serialize};

use crate::report::model::{Flow, Snapshot};

/// A question: one line of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Everything but flows.
    Snapshot,
    /// All flows.
    Flows,
}

/// An answer: one line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// To [`Request::Snapshot`].
    Snapshot(Box<Snapshot>),
    /// To [`Request::Flows`].
    Flows(Vec<Flow>),
    /// The question was not understood.
    Error(String),
}
