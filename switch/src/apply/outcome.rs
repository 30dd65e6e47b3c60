//! What a change came to, as it is printed and sent.

use npcc_config::Difference;
use serde::{Deserialize, Serialize};

/// What a reload, an `unset` or a rollback came to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// The file.
    pub file: String,
    /// Differences to what was running that hold now.
    pub applied: Vec<Difference>,
    /// Differences to what was started that wait for a restart.
    pub restart: Vec<Difference>,
    /// Keys that `set` had changed and that are the file's again.
    pub reset: Vec<String>,
    /// Keys that `set` has changed and that stay so: what the file says, and what was set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Difference>,
    /// What the file says and does not do.
    pub warnings: Vec<String>,
    /// It is rolled back unless `commit` comes within so many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_within_s: Option<u64>,
    /// Nothing was changed: it was only asked what a reload would do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Outcome {
            file,
            applied,
            restart,
            reset,
            kept,
            warnings,
            commit_within_s,
            dry_run,
        } = self;
        for warning in warnings {
            writeln!(out, "{}", warning.trim_end())?;
        }
        for change in applied {
            writeln!(out, "applied        {change}")?;
        }
        for key in reset {
            writeln!(out, "applied        {key}: as set -> as in the file")?;
        }
        for change in kept {
            writeln!(out, "still set      {change}")?;
        }
        for change in restart {
            writeln!(out, "needs restart  {change}")?;
        }
        if applied.is_empty() && restart.is_empty() && reset.is_empty() {
            writeln!(out, "{file}: nothing differs")?;
        }
        if *dry_run {
            writeln!(out, "a dry run: nothing was changed")?;
        }
        if let Some(seconds) = commit_within_s {
            writeln!(
                out,
                "rolled back in {seconds} s, unless `npcc-switch commit` comes before"
            )?;
        }
        Ok(())
    }
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The file is wrong, or a value: the report.
    #[error("{0}")]
    Invalid(String),
    /// What could be applied makes no sense without what needs a restart.
    #[error(
        "nothing was changed: without a restart for {keys}, the rest does not fit what runs:\n{report}"
    )]
    NeedsRestart {
        /// What needs the restart.
        keys: String,
        /// Why the rest does not fit.
        report: String,
    },
    /// A target did not take it, or it cannot be done now.
    #[error("{0}")]
    Refused(String),
}
