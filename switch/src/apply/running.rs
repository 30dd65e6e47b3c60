//! The only way to change what follows from configuration and links: a reload, `set`, `unset`, a rollback and a link that comes or goes each
//! yield a desired state, and its differences from the running state are applied. Pairs, captures, `clear` and the addresses that Linux has
//! are no part of that state, and reach workers and control core without it.
//!
//! Law: a change of the configuration is applied wholly or not at all. If a target refuses its part, those before are given back their previous
//! state, the last first; if that fails too, the error asks for a restart. A link that comes or goes is applied to the workers even if the
//! control core refuses its part, which it then gets with the next change. But for these two cases, and keys that wait for a restart, the running state is
//! that which a start with the same file, the same overrides and the same links would have.

use std::path::PathBuf;

use npcc_api::outcome::Outcome;
use npcc_config::model::ConfigFile;
use npcc_config::{Config, Loaded, Overrides, differences};

use super::desired::{DesiredState, ObservedLink};
use super::in_force::ConfigInForce;
use super::outcome::ApplyError;

/// Targets of a change, in the order in which they change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// Route table: takes all or nothing, and may refuse.
    Routes,
    /// Workers: take all or nothing.
    Workers,
    /// Control core: may have taken a part when it fails.
    Control,
}

impl Target {
    const ALL: [Target; 3] = [Target::Routes, Target::Workers, Target::Control];
}

/// Configuration and the desired state derived from it.
pub type SwitchState<'a> = (&'a Config, &'a DesiredState);

/// Operations that change a target from one state to another.
pub trait Targets {
    /// Changes `target` from one state to the other.
    ///
    /// # Errors
    /// Gives the reason of a refusal.
    fn apply_to(
        &mut self,
        target: Target,
        from: SwitchState<'_>,
        to: SwitchState<'_>,
    ) -> Result<(), String>;
}

/// Configuration in force and its origin, and the state that follows from it.
#[derive(Debug)]
pub struct RunningState {
    /// Configuration file, which a reload reads again.
    path: PathBuf,
    /// File as it was when the switch started, the reference for keys that need a restart.
    started: ConfigFile,
    in_force: ConfigInForce,
    current: DesiredState,
    /// True if the control core timed out at the last change of a link.
    control_behind: bool,
    /// Configuration before a reload that waits for its commit.
    rollback_to: Option<ConfigInForce>,
}

impl RunningState {
    /// Starts with the file that was loaded and the desired state that runs.
    #[must_use]
    pub fn new(path: PathBuf, loaded: &Loaded, now: DesiredState) -> RunningState {
        RunningState {
            path,
            started: loaded.file.clone(),
            in_force: ConfigInForce::of(&loaded.file, &loaded.config),
            current: now,
            control_behind: false,
            rollback_to: None,
        }
    }

    /// Returns the running configuration.
    #[must_use]
    pub const fn in_force(&self) -> &ConfigInForce {
        &self.in_force
    }

    /// Returns the state that workers and control core hold.
    #[must_use]
    pub const fn current(&self) -> &DesiredState {
        &self.current
    }

    /// Returns true if a reload waits for its commit.
    #[must_use]
    pub const fn is_pending(&self) -> bool {
        self.rollback_to.is_some()
    }

    /// Sets a value of the running configuration, by its key.
    ///
    /// # Errors
    /// Fails with [`ApplyError`], and all is as before, unless the error asks for a restart.
    pub fn set(
        &mut self,
        (key, value): (&str, &str),
        links: &[ObservedLink],
        targets: &mut impl Targets,
    ) -> Result<Outcome, ApplyError> {
        let overrides = self.in_force.with(key, value, &self.current.control)?;
        let outcome = self.override_with(overrides, links, targets)?;
        Ok(Outcome {
            // Only what this key changed; what waits for a restart, and what was set before, is as it was.
            restart: Vec::new(),
            kept: Vec::new(),
            ..outcome
        })
    }

    /// Resets a key, or all that was set, to the file's value.
    ///
    /// # Errors
    /// Fails with [`ApplyError`], and all is as before, unless the error asks for a restart.
    pub fn unset(
        &mut self,
        key: Option<&str>,
        links: &[ObservedLink],
        targets: &mut impl Targets,
    ) -> Result<Outcome, ApplyError> {
        let overrides = self.in_force.without(key)?;
        self.override_with(overrides, links, targets)
    }

    /// Applies other overrides to the file that was last read.
    fn override_with(
        &mut self,
        overrides: Overrides,
        links: &[ObservedLink],
        targets: &mut impl Targets,
    ) -> Result<Outcome, ApplyError> {
        let to = self.combine(self.in_force.last_read.clone(), overrides)?;
        let outcome = self.outcome(&to);
        self.switch_to(to, links, targets)?;
        Ok(outcome)
    }

    /// Returns the configuration that a reload of this file would run, and its outcome.
    ///
    /// # Errors
    /// Says what is wrong with the values set over the file, or with the file without a restart.
    pub fn plan_reload(&self, loaded: Loaded) -> Result<(ConfigInForce, Outcome), ApplyError> {
        let overrides = self.in_force.overrides_kept(&loaded.file);
        let config = self.combine(loaded.file, overrides)?;
        let outcome = Outcome {
            warnings: loaded.warnings.iter().map(ToString::to_string).collect(),
            ..self.outcome(&config)
        };
        Ok((config, outcome))
    }

    /// Applies a file that was read; if `pending`, the reload then waits for `commit`, and can be rolled back until that.
    ///
    /// # Errors
    /// Fails if a target refused, and all is as before, unless the error asks for a restart.
    pub fn reload(
        &mut self,
        to: ConfigInForce,
        pending: bool,
        links: &[ObservedLink],
        targets: &mut impl Targets,
    ) -> Result<(), ApplyError> {
        let old = self.in_force.clone();
        self.switch_to(to, links, targets)?;
        if pending {
            self.rollback_to.get_or_insert(old);
        }
        Ok(())
    }

    /// Confirms the pending reload; returns true if there was one.
    pub fn commit(&mut self) -> bool {
        self.rollback_to.take().is_some()
    }

    /// Restores the configuration before the pending reload; `None` if none is pending.
    ///
    /// # Errors
    /// Fails if a target refused, and all is as before, unless the error asks for a restart.
    pub fn rollback(
        &mut self,
        links: &[ObservedLink],
        targets: &mut impl Targets,
    ) -> Option<Result<Outcome, ApplyError>> {
        let old = self.rollback_to.clone()?;
        let outcome = self.outcome(&old);
        let done = self.switch_to(old, links, targets);
        if done.is_ok() {
            self.rollback_to = None;
        }
        Some(done.map(|()| outcome))
    }

    /// Applies links that came up, went down, or changed their speed.
    ///
    /// # Errors
    /// Fails if the workers did not take it; nothing has changed. A control core that did not take its part is
    /// [behind](Self::is_control_behind), and gets it with the next call or the next change.
    pub fn apply_links(
        &mut self,
        links: &[ObservedLink],
        targets: &mut impl Targets,
    ) -> Result<(), String> {
        let mut to = DesiredState::new(&self.in_force.config, links);
        let state = |desired| (&self.in_force.config, desired);
        targets.apply_to(Target::Workers, state(&self.current), state(&to))?;
        // Forwarding goes on where NPCC is stopping: the control core then keeps its previous settings.
        self.control_behind = targets
            .apply_to(Target::Control, state(&self.current), state(&to))
            .is_err();
        if self.control_behind {
            to.control = self.current.control.clone();
        }
        self.current = to;
        Ok(())
    }

    /// Gives a control core that is [behind](Self::is_control_behind) its part, if it has ticked since the last attempt: one that hangs is not waited
    /// for again. `tried` is its number of ticks at the last attempt, `ticks` the present one. Returns true if it was tried.
    pub fn catch_up(
        &mut self,
        (ticks, tried): (u64, &mut u64),
        links: &[ObservedLink],
        targets: &mut impl Targets,
    ) -> bool {
        let tries = self.control_behind && ticks != *tried;
        if tries {
            *tried = ticks;
            // A core that times out once more stays behind.
            let _ = self.apply_links(links, targets);
        }
        tries
    }

    /// Returns true if the control core did not take the settings of the last change of a link.
    #[must_use]
    pub const fn is_control_behind(&self) -> bool {
        self.control_behind
    }

    fn combine(&self, read: ConfigFile, overrides: Overrides) -> Result<ConfigInForce, ApplyError> {
        let name = self.path.display().to_string();
        ConfigInForce::new(&name, &self.started, read, overrides)
    }

    /// Returns the outcome of a change from the running state.
    fn outcome(&self, to: &ConfigInForce) -> Outcome {
        let applied = differences(&self.in_force.file, &to.file);
        let is_shown = |path: &str| {
            applied
                .iter()
                .any(|one| npcc_config::is_within(path, &one.key))
        };
        let set = |path: &str| to.overrides.iter().any(|(other, _)| other == path);
        let old = self.in_force.overrides.iter();
        let reset = old.filter(|(path, _)| !set(path) && !is_shown(path));
        let reset = reset.map(|(path, _)| path.to_owned()).collect();
        Outcome {
            file: self.path.display().to_string(),
            reset,
            kept: to.still_set(&self.started),
            restart: to.needs_restart(&self.started),
            applied,
            ..Outcome::default()
        }
    }

    fn switch_to(
        &mut self,
        to: ConfigInForce,
        links: &[ObservedLink],
        targets: &mut impl Targets,
    ) -> Result<(), ApplyError> {
        let desired = DesiredState::new(&to.config, links);
        let from = (&self.in_force.config, &self.current);
        apply_all(from, (&to.config, &desired), targets)?;
        (self.in_force, self.current) = (to, desired);
        self.control_behind = false;
        Ok(())
    }
}

/// Changes every target from one state to the other, or none.
fn apply_all(
    from: SwitchState<'_>,
    to: SwitchState<'_>,
    targets: &mut impl Targets,
) -> Result<(), ApplyError> {
    let mut reported = Vec::new();
    for target in Target::ALL {
        let Err(why) = targets.apply_to(target, from, to) else {
            reported.push(target);
            continue;
        };
        // It may have taken a part before it failed, so it is given back its previous state too.
        if target == Target::Control {
            reported.push(target);
        }
        let back = reported
            .iter()
            .rev()
            .map(|target| targets.apply_to(*target, to, from));
        let lost: Vec<String> = back.filter_map(Result::err).collect();
        return Err(ApplyError::Refused(if lost.is_empty() {
            format!("{why}: nothing was changed")
        } else {
            let lost = lost.join("; ");
            format!(
                "{why}; taking back what had been changed failed too ({lost}): restart the switch"
            )
        }));
    }
    Ok(())
}
