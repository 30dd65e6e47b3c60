//! What is said when a text is not a quantity.

use std::fmt;

/// A text that is not the quantity asked for.
///
/// `{}` names the text and the quantity; `{:#}` says how such a quantity is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitError {
    text: String,
    problem: String,
    accepted: String,
}

impl UnitError {
    /// `text` is not a `what` at all.
    #[must_use]
    pub fn not(text: impl Into<String>, what: &str, accepted: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            problem: format!("is not {what}"),
            accepted: accepted.into(),
        }
    }

    /// `text` is understood but unusable, for the reason `problem`.
    #[must_use]
    pub fn bad(
        text: impl Into<String>,
        problem: impl Into<String>,
        accepted: impl Into<String>,
    ) -> Self {
        Self {
            text: text.into(),
            problem: problem.into(),
            accepted: accepted.into(),
        }
    }

    /// How the quantity is written, with an example.
    #[must_use]
    pub fn accepted(&self) -> &str {
        &self.accepted
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            f.write_str(&self.accepted)
        } else {
            write!(f, "`{}` {}", self.text, self.problem)
        }
    }
}

impl std::error::Error for UnitError {}
