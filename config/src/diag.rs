//! Diagnostics: an error or warning with its place in the file and a hint.

use std::fmt;

use crate::tree::Span;

/// Maximum number of diagnostics shown: by then one mistake is usually repeated.
const MAX_SHOWN: usize = 100;
/// Maximum length of an excerpt, in characters; longer lines are cut around the caret.
const MAX_EXCERPT: usize = 160;

npcc_pipeline::named! {
    /// Severity of a diagnostic.
    #[derive(PartialOrd, Ord)]
    pub enum Severity {
        /// The configuration cannot be used.
        Error = "error",
        /// The configuration can be used, but does not do all that it says.
        Warning = "warning",
    }
}

/// Mistake with its place in the text, not yet tied to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Problem {
    pub(crate) fn new(span: Span, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            span,
            message: visible(&message.into()),
            hint: visible(&hint.into()),
        }
    }
}

/// Replaces control characters by spaces: they would move the caret or the operator's terminal.
fn visible(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Finding about a configuration file.
///
/// Displayed as `file:line:column: error: message`, the line with a caret below, and the hint, without
/// a line end after the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    severity: Severity,
    file: String,
    problem: Problem,
    line: String,
}

impl Diagnostic {
    pub(crate) fn new(severity: Severity, file: &str, lines: &[&str], problem: Problem) -> Self {
        let line = lines.get(problem.span.line.saturating_sub(1)).copied();
        Self {
            severity,
            file: file.to_owned(),
            line: line.unwrap_or_default().to_owned(),
            problem,
        }
    }

    /// Returns a finding without a place: about a file that could not be read, or about a value that is in no file.
    pub(crate) fn of_file(severity: Severity, file: &str, message: String, hint: String) -> Self {
        let span = Span::default();
        let problem = Problem {
            span,
            message,
            hint,
        };
        Self::new(severity, file, &[], problem)
    }

    /// Severity of the finding.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.severity
    }

    /// Line number, from 1; 0 when the file could not be read.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.problem.span.line
    }

    /// Column in characters, from 1; 0 when the file could not be read.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.problem.span.column
    }

    /// Message: the mistake.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.problem.message
    }

    /// Hint on how to fix the mistake; may be empty.
    #[must_use]
    pub fn hint(&self) -> &str {
        &self.problem.hint
    }

    /// Writes the text line with the caret line below it.
    fn excerpt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.problem.span.line.to_string();
        let before = self.problem.span.column.saturating_sub(1);
        let start = before.saturating_sub(MAX_EXCERPT / 2);
        let cut: String = self
            .line
            .trim_end()
            .chars()
            .skip(start)
            .take(MAX_EXCERPT)
            .collect();
        let shown = visible(&cut);
        let room = shown.chars().count().saturating_sub(before - start).max(1);
        let carets = "^".repeat(self.problem.span.length.clamp(1, room));
        let margin = " ".repeat(number.len());
        write!(
            f,
            "\n {number} | {shown}\n {margin} | {}{carets}",
            " ".repeat(before - start)
        )
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = self.severity.name();
        if self.problem.span.line == 0 {
            write!(f, "{}: {severity}: {}", self.file, self.problem.message)?;
        } else {
            let Span { line, column, .. } = self.problem.span;
            write!(
                f,
                "{}:{line}:{column}: {severity}: {}",
                self.file, self.problem.message
            )?;
            self.excerpt(f)?;
        }
        if self.problem.hint.is_empty() {
            Ok(())
        } else {
            write!(f, "\n   hint: {}", self.problem.hint)
        }
    }
}

/// Refusal of a configuration: every mistake found, in the order of the file, and warnings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    diagnostics: Vec<Diagnostic>,
}

impl Report {
    pub(crate) fn new(mut diagnostics: Vec<Diagnostic>) -> Self {
        diagnostics.sort_by_key(|d| (d.line(), d.column(), d.severity));
        Self { diagnostics }
    }

    /// Returns all findings, in the order of the file.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    fn count(&self, severity: Severity) -> usize {
        self.diagnostics
            .iter()
            .filter(|d| d.severity == severity)
            .count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for diagnostic in self.diagnostics.iter().take(MAX_SHOWN) {
            writeln!(f, "{diagnostic}\n")?;
        }
        if let Some(more) = self
            .diagnostics
            .len()
            .checked_sub(MAX_SHOWN)
            .filter(|n| *n > 0)
        {
            writeln!(f, "... and {more} more\n")?;
        }
        let (errors, warnings) = (self.count(Severity::Error), self.count(Severity::Warning));
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        write!(f, "{errors} error{}", plural(errors))?;
        if warnings > 0 {
            write!(f, ", {warnings} warning{}", plural(warnings))?;
        }
        writeln!(f)
    }
}

impl std::error::Error for Report {}
