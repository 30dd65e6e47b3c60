//! Errors of workers and control core, as a client gets them.

use npcc_api::protocol::{ApiError, status};

use npcc_engine::control::pairs::ControlCommandError;
use npcc_engine::worker::command::Unresponsive;

/// Returns why the control core did not carry a command out, as a client gets it.
pub(super) fn of_control(error: &ControlCommandError) -> ApiError {
    let status = match error {
        ControlCommandError::TimedOut | ControlCommandError::Silent => status::UNAVAILABLE,
        ControlCommandError::Refused(_) => status::CONFLICT,
        ControlCommandError::QueuePair(_)
        | ControlCommandError::Families(..)
        | ControlCommandError::Address(_) => status::BAD_REQUEST,
    };
    ApiError::new(status, error.to_string())
}

/// Returns that a worker did not take a command, as a client gets it.
pub(super) fn of_worker(error: Unresponsive) -> ApiError {
    ApiError::new(status::UNAVAILABLE, error.to_string())
}
