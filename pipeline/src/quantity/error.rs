//! Error for a text that is not a quantity.

use std::fmt;

/// Error: the text is not the expected quantity.
///
/// `{}` prints the text and the problem; `{:#}` prints how such a quantity is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitError {
    text: String,
    problem: String,
    accepted: String,
}

impl UnitError {
    /// Returns the error that `text` is not a `what` at all.
    #[must_use]
    pub fn not(text: impl Into<String>, what: &str, accepted: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            problem: format!("is not {what}"),
            accepted: accepted.into(),
        }
    }

    /// Returns the error that `text` is understood but unusable, for the reason `problem`.
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

    /// Returns how the quantity is written, with an example.
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
