//! The one way to change what runs: a reload, `set`, `unset`, a rollback and a link that comes or goes each say what is wanted, and
//! what differs from what runs is carried out.
//!
//! Law: all or nothing. When a target does not take its part, those before are given back what they had, the last first. Whatever
//! happened before, what runs is what a start with the same file, the same overrides and the same links would run.

use std::path::PathBuf;

use npcc_config::model::File;
use npcc_config::{Config, Loaded, Overrides, differences};

use super::desired::{Desired, Link};
use super::outcome::{ApplyError, Outcome};
use super::wanted::Wanted;

/// Those who must take a change, in the order in which they are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// The table of routes: takes all or nothing, and may refuse.
    Routes,
    /// The workers: take all or nothing.
    Workers,
    /// The control core: may have taken a part when it fails.
    Control,
}

impl Target {
    const ALL: [Target; 3] = [Target::Routes, Target::Workers, Target::Control];
}

/// A configuration and what it comes to.
pub type Side<'a> = (&'a Config, &'a Desired);

/// Has a target change from one to the other.
pub trait Targets {
    /// Has `target` change.
    ///
    /// # Errors
    /// Why it did not.
    fn change(&mut self, target: Target, from: Side<'_>, to: Side<'_>) -> Result<(), String>;
}

/// What runs, and where it came from.
#[derive(Debug)]
pub struct Running {
    /// The file to be read again.
    path: PathBuf,
    /// As it was when the switch started: what needs a restart is compared with it.
    started: File,
    wanted: Wanted,
    now: Desired,
    /// What was wanted before a reload that waits for its commit.
    before: Option<Wanted>,
}

impl Running {
    /// Just started from a file.
    #[must_use]
    pub fn new(path: PathBuf, loaded: &Loaded, now: Desired) -> Running {
        Running {
            path,
            started: loaded.file.clone(),
            wanted: Wanted::of(&loaded.file, &loaded.config),
            now,
            before: None,
        }
    }

    /// What is wanted.
    #[must_use]
    pub const fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// What workers and control core hold.
    #[must_use]
    pub const fn now(&self) -> &Desired {
        &self.now
    }

    /// Whether a reload waits for its commit.
    #[must_use]
    pub const fn is_pending(&self) -> bool {
        self.before.is_some()
    }

    /// Sets a value, as in the configuration.
    ///
    /// # Errors
    /// [`ApplyError`]; nothing has changed.
    pub fn set(
        &mut self,
        (key, value): (&str, &str),
        links: &[Link],
        targets: &mut impl Targets,
    ) -> Result<(), ApplyError> {
        let overrides = self.wanted.with(key, value, &self.now.control)?;
        let wanted = self.want(self.wanted.read.clone(), overrides)?;
        self.become_of(wanted, links, targets)
    }

    /// Has a key, or all that was set, be as in the file.
    ///
    /// # Errors
    /// [`ApplyError`]; nothing has changed.
    pub fn unset(
        &mut self,
        key: Option<&str>,
        links: &[Link],
        targets: &mut impl Targets,
    ) -> Result<Outcome, ApplyError> {
        let overrides = self.wanted.without(key)?;
        let wanted = self.want(self.wanted.read.clone(), overrides)?;
        let outcome = self.outcome(&wanted);
        self.become_of(wanted, links, targets)?;
        Ok(outcome)
    }

    /// What is wanted when the file was read again, and what comes of it.
    ///
    /// # Errors
    /// What is wrong with what was set over the file.
    pub fn read(&self, loaded: Loaded) -> Result<(Wanted, Outcome), ApplyError> {
        let overrides = self.wanted.kept(&loaded.file);
        let wanted = self.want(loaded.file, overrides)?;
        let outcome = Outcome {
            warnings: loaded.warnings.iter().map(ToString::to_string).collect(),
            ..self.outcome(&wanted)
        };
        Ok((wanted, outcome))
    }

    /// Goes by a file that was read, until `commit` if it is `pending`.
    ///
    /// # Errors
    /// A target refused; nothing has changed.
    pub fn reload(
        &mut self,
        wanted: Wanted,
        pending: bool,
        links: &[Link],
        targets: &mut impl Targets,
    ) -> Result<(), ApplyError> {
        let old = self.wanted.clone();
        self.become_of(wanted, links, targets)?;
        if pending {
            self.before.get_or_insert(old);
        }
        Ok(())
    }

    /// A reload that waits for its commit holds; whether there was one.
    pub fn commit(&mut self) -> bool {
        self.before.take().is_some()
    }

    /// What was wanted before the reload that waits for its commit is wanted again; none where none waits.
    ///
    /// # Errors
    /// A target refused; nothing has changed.
    pub fn roll_back(
        &mut self,
        links: &[Link],
        targets: &mut impl Targets,
    ) -> Option<Result<Outcome, ApplyError>> {
        let old = self.before.clone()?;
        let outcome = self.outcome(&old);
        let done = self.become_of(old, links, targets);
        if done.is_ok() {
            self.before = None;
        }
        Some(done.map(|()| outcome))
    }

    /// Follows links that came, went, or have another speed.
    ///
    /// # Errors
    /// A target did not take it; it is tried again with the next change.
    pub fn follow(&mut self, links: &[Link], targets: &mut impl Targets) -> Result<(), String> {
        let mut to = Desired::new(&self.wanted.config, links);
        let side = |desired| (&self.wanted.config, desired);
        targets.change(Target::Workers, side(&self.now), side(&to))?;
        // Frames go on where NPCC is stopping: then its core has what it had.
        if targets
            .change(Target::Control, side(&self.now), side(&to))
            .is_err()
        {
            to.control = self.now.control.clone();
        }
        self.now = to;
        Ok(())
    }

    fn want(&self, read: File, overrides: Overrides) -> Result<Wanted, ApplyError> {
        let name = self.path.display().to_string();
        Wanted::new(&name, &self.started, read, overrides)
    }

    /// What a change from what runs comes to.
    fn outcome(&self, to: &Wanted) -> Outcome {
        let applied = differences(&self.wanted.file, &to.file);
        let is_shown = |path: &str| {
            applied
                .iter()
                .any(|one| npcc_config::is_within(path, &one.key))
        };
        let set = |path: &str| to.overrides.iter().any(|(other, _)| other == path);
        let old = self.wanted.overrides.iter();
        let reset = old.filter(|(path, _)| !set(path) && !is_shown(path));
        let reset = reset.map(|(path, _)| path.to_owned()).collect();
        Outcome {
            file: self.path.display().to_string(),
            reset,
            kept: to.set(&self.started),
            restart: to.waiting(&self.started),
            applied,
            ..Outcome::default()
        }
    }

    fn become_of(
        &mut self,
        wanted: Wanted,
        links: &[Link],
        targets: &mut impl Targets,
    ) -> Result<(), ApplyError> {
        let to = Desired::new(&wanted.config, links);
        let from = (&self.wanted.config, &self.now);
        change(from, (&wanted.config, &to), targets)?;
        (self.wanted, self.now) = (wanted, to);
        Ok(())
    }
}

/// Has every target change from one to the other, or none.
fn change(from: Side<'_>, to: Side<'_>, targets: &mut impl Targets) -> Result<(), ApplyError> {
    let mut told = Vec::new();
    for target in Target::ALL {
        let Err(why) = targets.change(target, from, to) else {
            told.push(target);
            continue;
        };
        if target == Target::Control {
            told.push(target);
        }
        let back = told
            .iter()
            .rev()
            .map(|target| targets.change(*target, to, from));
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
