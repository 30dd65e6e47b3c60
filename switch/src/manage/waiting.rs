//! Note that clients of a socket wait, because the system gives no descriptor for them.

use std::io::{Error, ErrorKind};
use std::time::{Duration, Instant};

use npcc_engine::log::note;

/// Time after which it is noted again.
const QUIET: Duration = Duration::from_mins(1);

/// Notes of one listening socket.
#[derive(Debug, Default)]
pub struct Waiting {
    quiet_until: Option<Instant>,
}

impl Waiting {
    /// Notes, at most once a minute, why clients of `socket` wait; one that went away again is no reason.
    pub fn note(&mut self, socket: &str, error: &Error, now: Instant) {
        if self.is_due(error, now) {
            note(&format!(
                "clients of {socket} wait: {error} (open files: LimitNOFILE= of the unit, or ulimit -n)"
            ));
        }
    }

    fn is_due(&mut self, error: &Error, now: Instant) -> bool {
        let has_gone = matches!(
            error.kind(),
            ErrorKind::Interrupted | ErrorKind::ConnectionAborted
        );
        let is_due = !has_gone && self.quiet_until.is_none_or(|until| now >= until);
        if is_due {
            self.quiet_until = Some(now + QUIET);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_noted_once_a_minute_and_a_client_that_went_away_is_none() {
        let mut waiting = Waiting::default();
        let began = Instant::now();
        let mut at = |seconds, kind| {
            waiting.is_due(&Error::from(kind), began + Duration::from_secs(seconds))
        };
        let full = ErrorKind::Other;
        assert!(!at(0, ErrorKind::ConnectionAborted));
        let due = [0, 1, 59, 60, 61, 119, 120].map(|seconds| at(seconds, full));
        assert_eq!(due, [true, false, false, true, false, false, true]);
    }
}
