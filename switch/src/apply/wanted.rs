//! What an operator wants: the file as it was last read, and what `set` has changed of it, as far as a running switch can take
//! them.
//!
//! | part | taken |
//! |---|---|
//! | `npcc`, a port's policy, mode, actions and thresholds | yes, but for the keys that [`blend`] leaves as they are |
//! | `routes`, `neighbors`, ports' `addresses` and `speed` | yes |
//! | `qos` | yes, unless `profile` or `lossless` changes: the buffer is laid out for them |
//! | all else | at a restart |

use npcc_cnp::control::settings::Settings;
use npcc_config::model::{File, Npcc, PortNpcc};
use npcc_config::{Config, Difference, Overrides, differences, is_within, patched};
use serde_yaml::Value;

use std::path::Path;

use super::keys;
use super::outcome::ApplyError;

/// What is wanted, resolved.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The file as it was last read.
    pub read: File,
    /// What `set` has changed of it.
    pub overrides: Overrides,
    /// What a running switch can take of both.
    pub file: File,
    /// The same, resolved.
    pub config: Config,
}

impl Wanted {
    /// The file of a start, and nothing else.
    #[must_use]
    pub fn of(file: &File, config: &Config) -> Wanted {
        Wanted {
            read: file.clone(),
            overrides: Overrides::default(),
            file: file.clone(),
            config: config.clone(),
        }
    }

    /// A file, called `name`, and overrides, in a switch that started with another file.
    ///
    /// # Errors
    /// What is wrong with an override, or that the rest does not fit without what needs a restart.
    pub fn new(
        name: &str,
        started: &File,
        read: File,
        overrides: Overrides,
    ) -> Result<Wanted, ApplyError> {
        let base = blend(started, &read);
        let restart = differences(&base, &read);
        let loaded = patched(name, &base, &overrides).map_err(|report| {
            let report = report.to_string();
            if restart.is_empty()
                || !overrides.is_empty() && patched(name, &base, &Overrides::default()).is_ok()
            {
                return ApplyError::Invalid(report);
            }
            let keys: Vec<&str> = restart.iter().map(|one| one.key.as_str()).collect();
            ApplyError::NeedsRestart {
                keys: keys.join(", "),
                report,
            }
        })?;
        if let Some(one) = differences(&blend(started, &loaded.file), &loaded.file).first() {
            return Err(ApplyError::Invalid(format!(
                "error: `{}` cannot be set while the switch runs, it needs a restart: write it into {name} and restart the switch\n",
                one.key
            )));
        }
        Ok(Wanted {
            read,
            overrides,
            file: loaded.file,
            config: loaded.config,
        })
    }

    /// The overrides with one more.
    ///
    /// # Errors
    /// The key names nothing.
    pub fn with(
        &self,
        key: &str,
        value: &str,
        control: &Settings,
    ) -> Result<Overrides, ApplyError> {
        let path = keys::path(key, &self.config).map_err(ApplyError::Refused)?;
        let value = keys::value(&path, value, control, &self.config);
        let mut overrides = self.overrides.clone();
        overrides.set(&path, &value);
        if let Some(parameters) = keys::parameters_of(&path) {
            // Those were of the policy before.
            overrides.set(&parameters, "{}");
        }
        Ok(overrides)
    }

    /// The overrides without those at a key, or without any.
    ///
    /// # Errors
    /// Nothing is set there.
    pub fn without(&self, key: Option<&str>) -> Result<Overrides, ApplyError> {
        let Some(key) = key else {
            return Ok(Overrides::default());
        };
        let path = keys::path(key, &self.config).map_err(ApplyError::Refused)?;
        let mut overrides = self.overrides.clone();
        let gone = overrides.unset(&path);
        for path in &gone {
            if let Some(parameters) = keys::parameters_of(path) {
                overrides.unset(&parameters);
            }
        }
        if gone.is_empty() {
            let why = format!("`{key}` is as in the file; see show config --diff");
            return Err(ApplyError::Refused(why));
        }
        Ok(overrides)
    }

    /// The overrides that outlive a new file: those of which it says what the old one said. Parameters go with their policy.
    #[must_use]
    pub fn kept(&self, new: &File) -> Overrides {
        let changed = differences(&self.read, new);
        let is_changed = |path: &str| {
            let mut keys = changed.iter().map(|one| one.key.as_str());
            keys.any(|key| is_within(path, key) || is_within(key, path))
        };
        let is_set = |path: &str| self.overrides.iter().any(|(other, _)| other == path);
        let has_another_policy = |path: &str| {
            keys::policies_of(path)
                .is_some_and(|[own, port]| is_changed(&own) || is_changed(&port) && !is_set(&own))
        };
        let mut overrides = self.overrides.clone();
        for (path, _) in self.overrides.iter() {
            if !is_changed(path) && !has_another_policy(path) {
                continue;
            }
            overrides.unset(path);
            if let Some(parameters) = keys::parameters_of(path) {
                overrides.unset(&parameters);
            }
        }
        overrides
    }

    /// How what runs differs from a file as it is now: what it says, and what holds.
    ///
    /// # Errors
    /// The file has mistakes.
    pub fn against_file(&self, path: &Path) -> Result<String, ApplyError> {
        let loaded = npcc_config::load(path);
        let loaded = loaded.map_err(|report| ApplyError::Invalid(report.to_string()))?;
        let all = differences(&loaded.file, &self.file).into_iter();
        let lines: String = all.map(|one| format!("{one}\n")).collect();
        Ok(if lines.is_empty() {
            format!("what runs is as in {}\n", path.display())
        } else {
            lines
        })
    }

    /// What was set: what the file says, and what holds.
    #[must_use]
    pub fn set(&self, started: &File) -> Vec<Difference> {
        differences(&blend(started, &self.read), &self.file)
    }

    /// What of the file waits for a restart.
    #[must_use]
    pub fn waiting(&self, started: &File) -> Vec<Difference> {
        differences(&blend(started, &self.read), &self.read)
    }
}

/// As a configuration, with every default filled in, and with what was set told above it.
impl std::fmt::Display for Wanted {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (path, value) in self.overrides.iter() {
            writeln!(out, "# set {path} {value}")?;
        }
        // A model always encodes.
        let mut all = serde_yaml::to_value(&self.file).unwrap_or_default();
        drop_unwritten(&mut all);
        out.write_str(&serde_yaml::to_string(&all).unwrap_or_default())
    }
}

/// Drops the keys that nobody wrote and that have no default.
fn drop_unwritten(value: &mut Value) {
    match value {
        Value::Mapping(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_unwritten);
        }
        Value::Sequence(all) => all.iter_mut().for_each(drop_unwritten),
        _ => {}
    }
}

/// What started, with what can change while running taken from the new file.
fn blend(started: &File, new: &File) -> File {
    let mut file = started.clone();
    file.routes.clone_from(&new.routes);
    file.neighbors.clone_from(&new.neighbors);
    // All keys are named, so that a new one does not compile before it is known when it holds.
    let npcc = &mut file.npcc;
    Npcc {
        tick: _,
        action: npcc.action,
        flows: _,
        evidence: npcc.evidence,
        unpaired: npcc.unpaired,
        ecn: npcc.ecn,
        gate: npcc.gate,
        shallow: npcc.shallow,
        deep: npcc.deep,
        hard: npcc.hard,
        hysteresis: npcc.hysteresis,
        filter: npcc.filter,
        recovery: npcc.recovery,
        min_cnp_interval: npcc.min_cnp_interval,
        feedback: npcc.feedback,
        trusted_ports: npcc.trusted_ports,
        source_check: npcc.source_check,
        hosts: npcc.hosts,
        cnp: npcc.cnp,
    } = new.npcc.clone();
    let lossless = |file: &File| {
        let qos = npcc_config::plan::EffectiveQos::new(&file.qos);
        (qos.profile, qos.lossless_mask())
    };
    if lossless(started) == lossless(new) {
        file.qos = new.qos.clone();
    }
    for port in &mut file.ports {
        let Some(fresh) = new.ports.iter().find(|fresh| fresh.name == port.name) else {
            continue;
        };
        port.addresses.clone_from(&fresh.addresses);
        port.speed = fresh.speed;
        if let (Some(old), Some(fresh)) = (&mut port.npcc, &fresh.npcc) {
            let enable;
            PortNpcc {
                enable,
                queues: _,
                action: old.action,
                queue_actions: old.queue_actions,
                policy: old.policy,
                queue_policies: old.queue_policies,
                parameters: old.parameters,
                upstream_ce: old.upstream_ce,
                mode: old.mode,
                shallow: old.shallow,
                deep: old.deep,
                hard: old.hard,
            } = fresh.clone();
            // What a port was started without cannot be taken up; what it has can be left and taken up again.
            old.enable &= enable;
        }
    }
    file
}
