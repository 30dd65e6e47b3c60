//! `reload`: the configuration file read again, and what of it a running switch can take.
//!
//! | part | taken |
//! |---|---|
//! | `npcc`, a port's policy, mode and thresholds | yes, but for the keys that [`blend`] leaves as they are |
//! | `routes`, `neighbors`, ports' `addresses` | yes |
//! | `qos` | yes, unless `profile` or `lossless` changes: the buffer is laid out for them |
//! | all else | at a restart |
//!
//! A file with a mistake changes nothing. What needs a restart is left as it is running, and named; should the rest make no
//! sense without it, nothing changes either. Values that `set` gave meanwhile go back to the file's.

use std::collections::BTreeSet;
use std::path::PathBuf;

use npcc_config::model::{File, Npcc, PortNpcc};
use npcc_config::{Config, Difference, Loaded, differences};
use serde::{Deserialize, Serialize};

/// A change of one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The key as a path.
    pub key: String,
    /// What it was; absent when it is new.
    pub old: Option<String>,
    /// What it is; absent when it is gone.
    pub new: Option<String>,
}

impl From<Difference> for Change {
    fn from(one: Difference) -> Change {
        Change {
            key: one.key,
            old: one.old,
            new: one.new,
        }
    }
}

/// What a reload came to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// The file.
    pub file: String,
    /// Differences to what was running that hold now.
    pub applied: Vec<Change>,
    /// Differences to what was started that wait for a restart.
    pub restart: Vec<Change>,
    /// Keys that `set` had changed and that are the file's again.
    pub reset: Vec<String>,
    /// What the file says and does not do.
    pub warnings: Vec<String>,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Outcome {
            file,
            applied,
            restart,
            reset,
            warnings,
        } = self;
        for warning in warnings {
            writeln!(out, "{}", warning.trim_end())?;
        }
        let arrow = |change: &Change| {
            let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
            format!(
                "{}: {} -> {}",
                change.key,
                side(&change.old),
                side(&change.new)
            )
        };
        for change in applied {
            writeln!(out, "applied        {}", arrow(change))?;
        }
        for key in reset {
            writeln!(out, "applied        {key}: as set -> as in the file")?;
        }
        for change in restart {
            writeln!(out, "needs restart  {}", arrow(change))?;
        }
        if applied.is_empty() && restart.is_empty() && reset.is_empty() {
            writeln!(out, "{file}: nothing differs")?;
        }
        Ok(())
    }
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The file is wrong: the report.
    #[error("{0}")]
    Invalid(String),
    /// What could be applied makes no sense without what needs a restart.
    #[error(
        "nothing was changed: without a restart for {keys}, the rest does not fit what runs:\n{report}"
    )]
    Torn {
        /// What needs the restart.
        keys: String,
        /// Why the rest does not fit.
        report: String,
    },
    /// Somebody who must obey did not.
    #[error("{0}")]
    Refused(String),
}

/// What runs, and where it came from.
#[derive(Debug)]
pub struct Running {
    /// The file to be read again.
    pub path: PathBuf,
    /// As it was when the switch started: what needs a restart is compared with it.
    pub started: File,
    /// As it was when last applied.
    pub file: File,
    /// The same, resolved.
    pub config: Config,
    /// Keys `set` has changed since.
    pub overrides: BTreeSet<String>,
}

/// What is to be done.
#[derive(Debug)]
pub struct Plan {
    /// The part of the new file that can be applied, over what runs.
    pub file: File,
    /// The same, resolved.
    pub config: Config,
    /// What will be said.
    pub outcome: Outcome,
}

impl Running {
    /// Just started from a file.
    #[must_use]
    pub fn new(path: PathBuf, loaded: &Loaded) -> Running {
        Running {
            path,
            started: loaded.file.clone(),
            file: loaded.file.clone(),
            config: loaded.config.clone(),
            overrides: BTreeSet::new(),
        }
    }

    /// Reads the file again and says what of it can be applied.
    ///
    /// # Errors
    /// [`ReloadError::Invalid`] and [`ReloadError::Torn`].
    pub fn plan(&self) -> Result<Plan, ReloadError> {
        let loaded = npcc_config::load(&self.path)
            .map_err(|report| ReloadError::Invalid(report.to_string()))?;
        let name = self.path.display().to_string();
        let file = blend(&self.started, &loaded.file);
        let restart = differences(&file, &loaded.file);
        let applied = differences(&self.file, &file);
        let text = serde_yaml::to_string(&file).map_err(|error| {
            ReloadError::Refused(format!("cannot encode the settings: {error}"))
        })?;
        let blended = npcc_config::parse(&name, &text).map_err(|report| {
            let keys: Vec<&str> = restart.iter().map(|one| one.key.as_str()).collect();
            ReloadError::Torn {
                keys: keys.join(", "),
                report: report.to_string(),
            }
        })?;
        let changed: BTreeSet<&str> = applied.iter().map(|one| one.key.as_str()).collect();
        let reset = self.overrides.iter();
        let outcome = Outcome {
            file: name,
            reset: reset
                .filter(|key| !changed.contains(key.as_str()))
                .cloned()
                .collect(),
            applied: applied.into_iter().map(Change::from).collect(),
            restart: restart.into_iter().map(Change::from).collect(),
            warnings: loaded.warnings.iter().map(ToString::to_string).collect(),
        };
        Ok(Plan {
            file,
            config: blended.config,
            outcome,
        })
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
        flows: _,
        evidence: npcc.evidence,
        unpaired: npcc.unpaired,
        ecn: npcc.ecn,
        shallow: npcc.shallow,
        deep: npcc.deep,
        hard: npcc.hard,
        hysteresis: npcc.hysteresis,
        filter: npcc.filter,
        recovery: npcc.recovery,
        min_cnp_interval: npcc.min_cnp_interval,
        feedback: npcc.feedback,
        trusted_ports: npcc.trusted_ports,
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
        if let (Some(old), Some(fresh)) = (&mut port.npcc, &fresh.npcc) {
            PortNpcc {
                enable: _,
                queues: _,
                policy: old.policy,
                mode: old.mode,
                shallow: old.shallow,
                deep: old.deep,
                hard: old.hard,
            } = fresh.clone();
        }
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "version: 1
ports:
  - { name: dc0, device: net_null0, addresses: [10.0.1.1/24] }
  - { name: wan0, device: net_null1, speed: 10G, addresses: [10.0.12.1/24], npcc: { queues: [3] } }
routes: [ { prefix: 10.0.2.0/24, via: 10.0.12.2 } ]
buffer: { pool: 16MB }
";

    struct Case {
        folder: tempfile::TempDir,
        running: Running,
    }

    impl Case {
        fn new() -> Case {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("switch.yaml");
            let loaded = npcc_config::parse("switch.yaml", BASE).unwrap();
            let running = Running::new(path, &loaded);
            Case { folder, running }
        }

        fn plan(&self, text: &str) -> Result<Plan, ReloadError> {
            std::fs::write(self.folder.path().join("switch.yaml"), text).unwrap();
            self.running.plan()
        }
    }

    fn keys(changes: &[Change]) -> Vec<&str> {
        changes.iter().map(|one| one.key.as_str()).collect()
    }

    #[test]
    fn each_key_is_applied_or_waits_for_a_restart() {
        let case = Case::new();
        let text = BASE
            .replace("{ queues: [3] }", "{ queues: [3], policy: pi, deep: 90us }")
            .replace("speed: 10G", "speed: 9G")
            .replace("10.0.2.0/24", "10.0.3.0/24")
            + "npcc: { recovery: 500us, tick: 40us }\nqos: { priorities: { 3: { weight: 20 } } }\n";
        let plan = case.plan(&text).unwrap();
        assert_eq!(
            keys(&plan.outcome.applied),
            [
                "npcc.recovery",
                "ports.wan0.npcc.deep",
                "ports.wan0.npcc.policy",
                "qos.priorities.3",
                "routes.10.0.2.0/24",
                "routes.10.0.3.0/24"
            ]
        );
        assert_eq!(
            keys(&plan.outcome.restart),
            ["npcc.tick", "ports.wan0.speed"]
        );
        assert_eq!(plan.config.npcc.tick.nanos(), 20_000, "as it runs");
        let said = plan.outcome.to_string();
        assert!(
            said.contains("applied        npcc.recovery: 300us -> 500us"),
            "{said}"
        );
        assert!(
            said.contains("needs restart  npcc.tick: 20us -> 40us"),
            "{said}"
        );
    }

    #[test]
    fn the_same_file_changes_nothing_but_what_was_set() {
        let mut case = Case::new();
        let plan = case.plan(BASE).unwrap();
        assert!(plan.outcome.to_string().contains("nothing differs"));
        case.running.overrides.insert("npcc.wan0.3.few".to_owned());
        let plan = case.plan(BASE).unwrap();
        assert_eq!(plan.outcome.reset, ["npcc.wan0.3.few"]);
    }

    #[test]
    fn a_lossless_queue_more_keeps_all_queues_as_they_are() {
        let case = Case::new();
        let text = format!(
            "{BASE}qos: {{ priorities: {{ 3: {{ weight: 20 }}, 4: {{ lossless: true }} }} }}\n"
        );
        let plan = case.plan(&text).unwrap();
        assert_eq!(keys(&plan.outcome.applied), [""; 0]);
        assert_eq!(
            keys(&plan.outcome.restart),
            ["qos.priorities.3", "qos.priorities.4"]
        );
    }

    #[test]
    fn mistakes_and_torn_files_change_nothing() {
        let case = Case::new();
        let wrong = case.plan(&BASE.replace("10.0.2.0/24", "10.0.2.1/24"));
        let text = wrong.unwrap_err().to_string();
        assert!(text.contains("switch.yaml:5:21"), "{text}");
        // The route leads through a port that does not run yet.
        let port = "routes: [ { prefix: 10.0.2.0/24, via: 10.0.77.2 } ]";
        let text = BASE
            .replace("routes: [ { prefix: 10.0.2.0/24, via: 10.0.12.2 } ]", port)
            .replace(
                "ports:\n",
                "ports:\n  - { name: wan1, device: net_null2, addresses: [10.0.77.1/24] }\n",
            );
        let torn = case.plan(&text).unwrap_err();
        assert!(matches!(torn, ReloadError::Torn { .. }));
        let text = torn.to_string();
        assert!(
            text.contains("ports.wan1") && text.contains("10.0.77.2"),
            "{text}"
        );
    }
}
