//! Configuration in force: the file as it was last read, and the values that `set` has changed, as far as a running switch can take them.
//!
//! | part | taken |
//! |---|---|
//! | `npcc`, a port's policy, parameters, actions, thresholds and `upstream_ce` | yes, but for the keys that [`take_live_keys`] leaves as they are |
//! | `routes`, `neighbors`, ports' `addresses` and `speed` | yes |
//! | `qos` | yes, unless `profile` or `lossless` changes: the buffer is laid out for them |
//! | all else | at a restart |

use npcc_cnp::control::settings::Settings;
use npcc_config::model::{ConfigFile, Npcc, PortNpcc};
use npcc_config::{Config, Difference, Overrides, differences, is_within, patched, unchecked};
use serde_yaml::Value;

use std::path::Path;

use super::keys;
use super::outcome::ApplyError;

/// Configuration in force, resolved.
#[derive(Debug, Clone)]
pub struct ConfigInForce {
    /// File as it was last read.
    pub last_read: ConfigFile,
    /// Values that `set` has changed.
    pub overrides: Overrides,
    /// File with overrides, as far as a running switch can take them.
    pub file: ConfigFile,
    /// Resolved configuration of `file`.
    pub config: Config,
}

/// Text in whose lines mistakes have their places: the configuration with all defaults, and not the file.
const WRITTEN_OUT: &str = "npcc-switch show config";

impl ConfigInForce {
    /// Returns the configuration in force at a start: that of the file, without overrides.
    #[must_use]
    pub fn of(file: &ConfigFile, config: &Config) -> ConfigInForce {
        ConfigInForce {
            last_read: file.clone(),
            overrides: Overrides::default(),
            file: file.clone(),
            config: config.clone(),
        }
    }

    /// Combines a file, called `name`, and overrides, in a switch that started with another file.
    ///
    /// # Errors
    /// Says what is wrong with an override, or that the rest does not fit without the keys that need a restart.
    pub fn new(
        name: &str,
        started: &ConfigFile,
        read: ConfigFile,
        overrides: Overrides,
    ) -> Result<ConfigInForce, ApplyError> {
        // The file as far as it needs no restart; the overrides are checked on top of it.
        let base = take_live_keys(started, &read);
        let restart = differences(&base, &read);
        // An override must not need a restart either: that is the reason given, whatever else is wrong with its value.
        if let Some(file) = unchecked(&base, &overrides)
            && let Some(one) = differences(&take_live_keys(started, &file), &file).first()
        {
            return Err(ApplyError::Invalid(format!(
                "error: `{}` cannot be set while the switch runs, it needs a restart: write it into {name} and restart the switch\n",
                one.key
            )));
        }
        let loaded = patched(WRITTEN_OUT, &base, &overrides).map_err(|report| {
            let report = report.to_string();
            if restart.is_empty()
                || !overrides.is_empty()
                    && patched(WRITTEN_OUT, &base, &Overrides::default()).is_ok()
            {
                return ApplyError::Invalid(report);
            }
            let keys: Vec<&str> = restart.iter().map(|one| one.key.as_str()).collect();
            ApplyError::NeedsRestart {
                keys: keys.join(", "),
                report,
            }
        })?;
        Ok(ConfigInForce {
            last_read: read,
            overrides,
            file: loaded.file,
            config: loaded.config,
        })
    }

    /// Returns the overrides with one more.
    ///
    /// # Errors
    /// Fails if a short key names a port that does not exist, or a queue that NPCC does not watch. All other mistakes in key or value are
    /// found by [`ConfigInForce::new`].
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
            // The parameters belonged to the policy before.
            overrides.set(&parameters, "{}");
        }
        Ok(overrides)
    }

    /// Returns the overrides without those at a key, or none if no key is given.
    ///
    /// # Errors
    /// Fails if no value is set there.
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

    /// Returns the overrides that stay in force with a new file: those whose keys have the same value in the old file and the new.
    /// Parameters go with their policy.
    #[must_use]
    pub fn overrides_kept(&self, new: &ConfigFile) -> Overrides {
        let changed = differences(&self.last_read, new);
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

    /// Returns the differences of the running configuration from a file as it is now: the file's value, and the one in force.
    ///
    /// # Errors
    /// Fails if the file has mistakes.
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

    /// Returns the values that were set: the file's value, and the one in force.
    #[must_use]
    pub fn still_set(&self, started: &ConfigFile) -> Vec<Difference> {
        differences(&take_live_keys(started, &self.last_read), &self.file)
    }

    /// Returns the differences of the file that wait for a restart.
    #[must_use]
    pub fn needs_restart(&self, started: &ConfigFile) -> Vec<Difference> {
        differences(&take_live_keys(started, &self.last_read), &self.last_read)
    }
}

/// Formats the configuration in force as YAML, with every default filled in, and with the overrides listed above it.
impl std::fmt::Display for ConfigInForce {
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

/// Drops the keys that were not written and that have no default.
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

/// Returns the file of the start, with all that can change at run time taken from the new file.
pub(super) fn take_live_keys(started: &ConfigFile, new: &ConfigFile) -> ConfigFile {
    let mut file = started.clone();
    file.routes.clone_from(&new.routes);
    file.neighbors.clone_from(&new.neighbors);
    // All keys are listed, so that a new key does not compile before it is decided when it takes effect.
    let npcc = &mut file.npcc;
    Npcc {
        tick: _,
        action: npcc.action,
        flows: _,
        evidence: npcc.evidence,
        ecn: npcc.ecn,
        gate: npcc.gate,
        shallow: npcc.shallow,
        deep: npcc.deep,
        filter: npcc.filter,
        recovery: npcc.recovery,
        min_cnp_interval: npcc.min_cnp_interval,
        feedback: npcc.feedback,
        trusted_ports: npcc.trusted_ports,
        source_check: npcc.source_check,
        hosts: npcc.hosts,
        cnp: npcc.cnp,
    } = new.npcc.clone();
    let lossless = |file: &ConfigFile| {
        let qos = npcc_config::resolved::ResolvedQos::new(&file.qos);
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
        // NPCC cannot be enabled on a port that was started without it; it can be taken out and put back on the others.
        let (Some(old), Some(fresh)) = (&mut port.npcc, &fresh.npcc) else {
            port.npcc = None;
            continue;
        };
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
            shallow: old.shallow,
            deep: old.deep,
        } = fresh.clone();
        old.enable &= enable;
    }
    file
}
