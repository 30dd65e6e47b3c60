//! `reload`, `reload --confirm`, `commit` and `rollback`: an operator who cut himself off by a reload has the old settings back
//! by themselves.
//!
//! Law: a reload with a time to confirm holds until `commit`, or what held before the first such reload comes back: at
//! `rollback`, or when the time has passed, whether or not the client is still there. `set` in between is taken back with it.

use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use super::orders::{Live, Management};
use super::pending::{Pending, seconds};
use super::reload::{Outcome, Plan, ReloadError};

/// A confirmation may be waited for so long.
pub const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// When a rollback that failed is tried again.
const AGAIN: Duration = Duration::from_secs(5);

impl Management {
    /// Reads the configuration file again and applies what a running switch can take; with a time, until it is committed.
    ///
    /// # Errors
    /// [`ReloadError`]; nothing has changed.
    pub fn reload(&self, confirm: Option<Duration>) -> Result<Outcome, ReloadError> {
        let refused = |why: &str| Err(ReloadError::Refused(why.to_owned()));
        let deadline = match confirm {
            None => None,
            Some(within) if within.is_zero() || within > LONGEST => {
                return refused("a confirmation is waited for up to a day: write 1s to 24h");
            }
            Some(within) => Some((within, Instant::now() + within)),
        };
        let mut live = self
            .live()
            .map_err(|torn| ReloadError::Refused(torn.to_string()))?;
        if confirm.is_none() && live.before.is_some() {
            return refused("a reload waits for its commit: `commit` or `rollback` first");
        }
        let Plan {
            settings,
            mut outcome,
        } = live.running.plan()?;
        let Live {
            running,
            routes,
            before,
        } = &mut *live;
        self.change(routes, &running.now, &settings)?;
        let old = std::mem::replace(&mut running.now, settings);
        if let Some((within, deadline)) = deadline {
            before.get_or_insert(old);
            *self.view.pending() = Some(Pending { deadline });
            outcome.commit_within_s = Some(seconds(within));
        }
        drop(live);
        Ok(outcome)
    }

    /// The reload that waits for it holds.
    ///
    /// # Errors
    /// When none waits.
    pub fn commit(&self) -> Result<(), String> {
        let mut live = self.live().map_err(|torn| torn.to_string())?;
        let waited = live.before.take();
        *self.view.pending() = None;
        drop(live);
        waited.map(drop).ok_or_else(nothing_waits)
    }

    /// What held before the reload that waits for its commit comes back.
    ///
    /// # Errors
    /// When none waits, or somebody did not obey: it is tried again soon.
    pub fn rollback(&self) -> Result<Outcome, ReloadError> {
        let live = self.live();
        self.roll_back(live.map_err(|torn| ReloadError::Refused(torn.to_string()))?)
    }

    /// The same, if a reload was not committed in time; none where it was meanwhile, or has got more time.
    pub(super) fn rollback_if_overdue(&self) -> Option<Result<Outcome, ReloadError>> {
        match self.live() {
            Ok(live) => self.is_overdue().then(|| self.roll_back(live)),
            Err(torn) => Some(Err(ReloadError::Refused(torn.to_string()))),
        }
    }

    fn roll_back(&self, mut live: MutexGuard<'_, Live>) -> Result<Outcome, ReloadError> {
        let Live {
            running,
            routes,
            before,
        } = &mut *live;
        let Some(old) = before.take() else {
            return Err(ReloadError::Refused(nothing_waits()));
        };
        let outcome = running.outcome(&old);
        if let Err(error) = self.change(routes, &running.now, &old) {
            *before = Some(old);
            let deadline = Instant::now() + AGAIN;
            *self.view.pending() = Some(Pending { deadline });
            return Err(error);
        }
        running.now = old;
        *self.view.pending() = None;
        drop(live);
        Ok(outcome)
    }

    /// Whether a reload was not committed in time.
    #[must_use]
    pub fn is_overdue(&self) -> bool {
        let pending = *self.view.pending();
        pending.is_some_and(|pending| Instant::now() >= pending.deadline)
    }
}

fn nothing_waits() -> String {
    "no reload waits for a commit".to_owned()
}
