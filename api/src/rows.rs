//! Lines of an answer that comes row by row.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::query::End;

/// Line of an answer, as read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowLine {
    /// A row of the table.
    Row(Value),
    /// The end: no more rows follow in this answer.
    End(End),
    /// The reason why there are no rows, or no more.
    Error(String),
}
