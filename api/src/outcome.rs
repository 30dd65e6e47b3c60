//! Result of a change, as it is printed and sent.

use npcc_config::Difference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Result of a reload, an `unset` or a rollback.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// Name of the configuration file.
    pub file: String,
    /// Differences from the previous state that are now in force.
    pub applied: Vec<Difference>,
    /// Differences from the state at the start that wait for a restart.
    pub restart: Vec<Difference>,
    /// Keys that `set` had changed and that have the file's value again.
    pub reset: Vec<String>,
    /// Keys that `set` has changed and that stay so: the file's value, and the set one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Difference>,
    /// Warnings about keys of the file that have no effect, or less than their names say, and about retired values.
    pub warnings: Vec<String>,
    /// Seconds until it is rolled back unless committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_within_s: Option<u64>,
    /// True if it was a dry run: nothing was changed.
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
        if applied.is_empty() && restart.is_empty() && reset.is_empty() && kept.is_empty() {
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
