//! `reload`, `reload --confirm`, `commit` and `rollback`: after a reload that locks an operator out, the old settings come back
//! automatically.
//!
//! Law: a reload with a time to confirm stays in force if `commit` comes in time. Otherwise the settings before the first such reload come
//! back: at `rollback`, or when the time has passed, whether or not the client is still there. A `set` in between is undone with it.

use std::sync::{MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use npcc_api::outcome::Outcome;

use super::management::Management;
use super::pending::{Pending, seconds};
use super::targets::LiveTargets;
use crate::apply::desired::ObservedLink;
use crate::apply::outcome::ApplyError;
use crate::apply::running::RunningState;
use npcc_engine::fault;

/// Longest time to confirm.
pub const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// Delay before a failed rollback is tried again.
const AGAIN: Duration = Duration::from_secs(5);
/// Longest wait of a reload for another that reads the file or applies it.
const READING: Duration = Duration::from_secs(5);

impl Management {
    /// Reads the configuration file again and applies what a running switch can take; with a time, it is rolled back unless it is committed
    /// within that. A `dry_run` only reports the outcome.
    ///
    /// # Errors
    /// Fails with [`ApplyError`], and all is as before, unless the error asks for a restart.
    pub fn reload(&self, confirm: Option<Duration>, dry_run: bool) -> Result<Outcome, ApplyError> {
        let refused = |why: &str| Err(ApplyError::Refused(why.to_owned()));
        let deadline = match confirm {
            None => None,
            Some(within) if within.is_zero() || within > LONGEST => {
                return refused("a confirmation is waited for up to a day: write 1s to 24h");
            }
            Some(within) => Some((within, Instant::now() + within)),
        };
        // Reloads are serialised, so that none applies a file older than the last one's; other changes do not wait meanwhile.
        let _reading = self.lock_reload()?;
        fault::waits("reload-reads");
        let loaded = npcc_config::load(self.view.path());
        let loaded = loaded.map_err(|report| ApplyError::Invalid(report.to_string()))?;
        self.with_running(|running, links, targets| {
            if confirm.is_none() && !dry_run && running.is_pending() {
                return refused("a reload waits for its commit: `commit` or `rollback` first");
            }
            let (effective, mut outcome) = running.plan_reload(loaded)?;
            outcome.dry_run = dry_run;
            if dry_run {
                return Ok(outcome);
            }
            running.reload(effective, deadline.is_some(), links, targets)?;
            if let Some((within, deadline)) = deadline {
                *self.view.pending_reload() = Some(Pending { deadline });
                outcome.commit_within_s = Some(seconds(within));
            }
            Ok(outcome)
        })
    }

    /// Acquires the right to read the file, once no other reload reads or applies it.
    ///
    /// # Errors
    /// Fails if another reload takes too long, as when it reads from a network that does not answer.
    fn lock_reload(&self) -> Result<MutexGuard<'_, ()>, ApplyError> {
        let deadline = Instant::now() + READING;
        loop {
            match self.view.reload_lock().try_lock() {
                Ok(reading) => return Ok(reading),
                // The lock guards no data, so a panic left nothing inconsistent.
                Err(TryLockError::Poisoned(reading)) => return Ok(reading.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(TryLockError::WouldBlock) => {
                    let path = self.view.path().display();
                    let why =
                        format!("another reload is still reading {path}: does its disk answer?");
                    return Err(ApplyError::Refused(why));
                }
            }
        }
    }

    /// Confirms the pending reload.
    ///
    /// # Errors
    /// Fails if no reload is pending.
    pub fn commit(&self) -> Result<(), ApplyError> {
        self.with_running(|running, _, _| {
            *self.view.pending_reload() = None;
            running.commit().then_some(()).ok_or_else(nothing_waits)
        })
    }

    /// Restores the settings before the pending reload.
    ///
    /// # Errors
    /// Fails if no reload is pending, or if a target refused: the rollback is tried again after `AGAIN`.
    pub fn rollback(&self) -> Result<Outcome, ApplyError> {
        let done = self
            .with_running(|running, links, targets| self.rollback_pending(running, links, targets));
        done.and_then(|outcome| outcome.ok_or_else(nothing_waits))
    }

    /// Rolls back a reload that was not committed in time; `None` if it was committed meanwhile, or got more time.
    pub(super) fn rollback_if_overdue(&self) -> Option<Result<Outcome, ApplyError>> {
        let done = self.with_running(|running, links, targets| {
            if self.is_overdue() {
                self.rollback_pending(running, links, targets)
            } else {
                Ok(None)
            }
        });
        done.transpose()
    }

    fn rollback_pending(
        &self,
        running: &mut RunningState,
        links: &[ObservedLink],
        targets: &mut LiveTargets<'_>,
    ) -> Result<Option<Outcome>, ApplyError> {
        let Some(done) = running.rollback(links, targets) else {
            return Ok(None);
        };
        let deadline = Instant::now() + AGAIN;
        *self.view.pending_reload() = done.is_err().then_some(Pending { deadline });
        done.map(Some)
    }

    /// Returns true if a reload was not committed in time.
    #[must_use]
    pub fn is_overdue(&self) -> bool {
        let pending = *self.view.pending_reload();
        pending.is_some_and(|pending| Instant::now() >= pending.deadline)
    }
}

fn nothing_waits() -> ApplyError {
    ApplyError::Refused("no reload waits for a commit".to_owned())
}
