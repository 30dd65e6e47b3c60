//! Reasons why a change was not made.

/// Reason why no change was made.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The file or a value is wrong: the report.
    #[error("{0}")]
    Invalid(String),
    /// The rest of the file does not fit without the keys that need a restart.
    #[error(
        "nothing was changed: without a restart for {keys}, the rest does not fit what runs:\n{report}"
    )]
    NeedsRestart {
        /// Keys that need the restart.
        keys: String,
        /// Reason why the rest does not fit.
        report: String,
    },
    /// A target refused it, or it cannot be done now.
    #[error("{0}")]
    Refused(String),
}
