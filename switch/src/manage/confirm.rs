//! `reload`, `reload --confirm`, `commit` and `rollback`: an operator who cut himself off by a reload has the old settings back
//! by themselves.
//!
//! Law: a reload with a time to confirm holds until `commit`, or what held before the first such reload comes back: at
//! `rollback`, or when the time has passed, whether or not the client is still there. `set` in between is taken back with it.

use std::sync::{MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use super::orders::Management;
use super::pending::{Pending, seconds};
use super::targets::Running as Targets;
use crate::apply::desired::Link;
use crate::apply::outcome::{ApplyError, Outcome};
use crate::apply::running::Running;
use crate::fault;

/// A confirmation may be waited for so long.
pub const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// When a rollback that failed is tried again.
const AGAIN: Duration = Duration::from_secs(5);
/// How long a reload waits for one that still reads the file.
const READING: Duration = Duration::from_secs(5);

impl Management {
    /// Reads the configuration file again and applies what a running switch can take; with a time, until it is committed. A `dry_run`
    /// says what would come of it.
    ///
    /// # Errors
    /// [`ApplyError`]; nothing has changed.
    pub fn reload(&self, confirm: Option<Duration>, dry_run: bool) -> Result<Outcome, ApplyError> {
        let refused = |why: &str| Err(ApplyError::Refused(why.to_owned()));
        let deadline = match confirm {
            None => None,
            Some(within) if within.is_zero() || within > LONGEST => {
                return refused("a confirmation is waited for up to a day: write 1s to 24h");
            }
            Some(within) => Some((within, Instant::now() + within)),
        };
        // One reload follows the other, so that none goes by a file older than the last one's; no other change waits meanwhile.
        let _reading = self.reading()?;
        fault::waits("reload-reads");
        let loaded = npcc_config::load(self.view.path());
        let loaded = loaded.map_err(|report| ApplyError::Invalid(report.to_string()))?;
        self.change(|running, links, targets| {
            if confirm.is_none() && !dry_run && running.is_pending() {
                return refused("a reload waits for its commit: `commit` or `rollback` first");
            }
            let (wanted, mut outcome) = running.read(loaded)?;
            outcome.dry_run = dry_run;
            if dry_run {
                return Ok(outcome);
            }
            running.reload(wanted, deadline.is_some(), links, targets)?;
            if let Some((within, deadline)) = deadline {
                *self.view.pending() = Some(Pending { deadline });
                outcome.commit_within_s = Some(seconds(within));
            }
            Ok(outcome)
        })
    }

    /// The right to read the file, once who has it is done.
    ///
    /// # Errors
    /// It is still being read, as from a network that does not answer.
    fn reading(&self) -> Result<MutexGuard<'_, ()>, ApplyError> {
        let deadline = Instant::now() + READING;
        loop {
            match self.view.reload().try_lock() {
                Ok(reading) => return Ok(reading),
                // What a panic left is no state.
                Err(TryLockError::Poisoned(reading)) => return Ok(reading.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(TryLockError::WouldBlock) => {
                    let path = self.view.path().display();
                    let why = format!("a reload before still reads {path}: does its disk answer?");
                    return Err(ApplyError::Refused(why));
                }
            }
        }
    }

    /// The reload that waits for it holds.
    ///
    /// # Errors
    /// When none waits.
    pub fn commit(&self) -> Result<(), ApplyError> {
        self.change(|running, _, _| {
            *self.view.pending() = None;
            running.commit().then_some(()).ok_or_else(nothing_waits)
        })
    }

    /// What held before the reload that waits for its commit comes back.
    ///
    /// # Errors
    /// When none waits, or a target did not take it: it is tried again soon.
    pub fn rollback(&self) -> Result<Outcome, ApplyError> {
        let done = self.change(|running, links, targets| self.roll_back(running, links, targets));
        done.and_then(|outcome| outcome.ok_or_else(nothing_waits))
    }

    /// The same, if a reload was not committed in time; none where it was meanwhile, or has got more time.
    pub(super) fn rollback_if_overdue(&self) -> Option<Result<Outcome, ApplyError>> {
        let done = self.change(|running, links, targets| {
            if self.is_overdue() {
                self.roll_back(running, links, targets)
            } else {
                Ok(None)
            }
        });
        done.transpose()
    }

    fn roll_back(
        &self,
        running: &mut Running,
        links: &[Link],
        targets: &mut Targets<'_>,
    ) -> Result<Option<Outcome>, ApplyError> {
        let Some(done) = running.roll_back(links, targets) else {
            return Ok(None);
        };
        let deadline = Instant::now() + AGAIN;
        *self.view.pending() = done.is_err().then_some(Pending { deadline });
        done.map(Some)
    }

    /// Whether a reload was not committed in time.
    #[must_use]
    pub fn is_overdue(&self) -> bool {
        let pending = *self.view.pending();
        pending.is_some_and(|pending| Instant::now() >= pending.deadline)
    }
}

fn nothing_waits() -> ApplyError {
    ApplyError::Refused("no reload waits for a commit".to_owned())
}
