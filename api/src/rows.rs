//! Lines of an answer that comes row by row.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::query::End;

/// Line of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RowLine<R = Value> {
    /// A row of the table.
    Row(R),
    /// The end: no more rows follow in this answer.
    End(End),
}
