//! `reload`: the configuration file read again, and what of it a running switch can take.
//!
//! | part | taken |
//! |---|---|
//! | `npcc`, a port's policy, mode, actions and thresholds | yes, but for the keys that [`blend`] leaves as they are |
//! | `routes`, `neighbors`, ports' `addresses` | yes |
//! | `qos` | yes, unless `profile` or `lossless` changes: the buffer is laid out for them |
//! | all else | at a restart |
//!
//! A file with a mistake changes nothing. What needs a restart is left as it is running, and named; should the rest make no
//! sense without it, nothing changes either. Values that `set` gave meanwhile go back to the file's.

use std::collections::BTreeSet;
use std::path::PathBuf;

use npcc_config::ipnet::IpNet;
use npcc_config::model::{File, Npcc, PortNpcc};
use npcc_config::{Config, Difference, Loaded, differences};
use serde::{Deserialize, Serialize};

use crate::control::order::NpccOrder;

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
    /// It is rolled back unless `commit` comes within so many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_within_s: Option<u64>,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Outcome {
            file,
            applied,
            restart,
            reset,
            warnings,
            commit_within_s,
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
        if let Some(seconds) = commit_within_s {
            writeln!(
                out,
                "rolled back in {seconds} s, unless `npcc-switch commit` comes before"
            )?;
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

/// What a switch is told to do: a configuration, and what was changed of it since.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The part of a file that is applied.
    pub file: File,
    /// The same, resolved; with what `set` changed of queues.
    pub config: Config,
    /// Keys `set` has changed.
    pub overrides: BTreeSet<String>,
    /// What `set` has changed of policies' parameters.
    pub orders: Vec<NpccOrder>,
    /// Prefixes routed beside those of the file.
    pub prefixes: Vec<IpNet>,
}

impl Settings {
    /// As a file says, and nothing else.
    #[must_use]
    pub const fn of(file: File, config: Config) -> Settings {
        Settings {
            file,
            config,
            overrides: BTreeSet::new(),
            orders: Vec::new(),
            prefixes: Vec::new(),
        }
    }

    /// Notes an order that NPCC obeyed, if it is a setting.
    pub fn ordered(&mut self, order: &NpccOrder) {
        let Some(key) = order.key() else {
            return;
        };
        // Another policy has the parameters of its configuration.
        let anew = matches!(order, NpccOrder::Policy { .. });
        self.orders.retain(|earlier| {
            let same = earlier.key().as_ref() == Some(&key);
            !(same || anew && earlier.slot() == order.slot())
        });
        if order.parameter().is_some() {
            self.orders.push(order.clone());
        }
        self.overrides.insert(key);
    }
}

/// What runs, and where it came from.
#[derive(Debug)]
pub struct Running {
    /// The file to be read again.
    pub path: PathBuf,
    /// As it was when the switch started: what needs a restart is compared with it.
    pub started: File,
    /// What holds now.
    pub now: Settings,
}

/// What is to be done.
#[derive(Debug)]
pub struct Plan {
    /// The part of the new file that can be applied, over what runs.
    pub settings: Settings,
    /// What will be said.
    pub outcome: Outcome,
}

impl Running {
    /// Just started from a file, with `prefixes` beside it.
    #[must_use]
    pub fn new(path: PathBuf, loaded: &Loaded, prefixes: Vec<IpNet>) -> Running {
        Running {
            path,
            started: loaded.file.clone(),
            now: Settings {
                prefixes,
                ..Settings::of(loaded.file.clone(), loaded.config.clone())
            },
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
        let settings = Settings::of(file, blended.config);
        let outcome = Outcome {
            restart: restart.into_iter().map(Change::from).collect(),
            warnings: loaded.warnings.iter().map(ToString::to_string).collect(),
            ..self.outcome(&settings)
        };
        Ok(Plan { settings, outcome })
    }

    /// What a change from what runs to `settings` comes to.
    #[must_use]
    pub fn outcome(&self, settings: &Settings) -> Outcome {
        let applied = differences(&self.now.file, &settings.file);
        let changed: BTreeSet<&str> = applied.iter().map(|one| one.key.as_str()).collect();
        let reset = self.now.overrides.difference(&settings.overrides);
        Outcome {
            file: self.path.display().to_string(),
            reset: reset
                .filter(|key| !changed.contains(key.as_str()))
                .cloned()
                .collect(),
            applied: applied.into_iter().map(Change::from).collect(),
            ..Outcome::default()
        }
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
        if let (Some(old), Some(fresh)) = (&mut port.npcc, &fresh.npcc) {
            let enable;
            PortNpcc {
                enable,
                queues: _,
                action: old.action,
                queue_actions: old.queue_actions,
                policy: old.policy,
                parameters: old.parameters,
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
            let running = Running::new(path, &loaded, Vec::new());
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
        assert_eq!(plan.settings.config.npcc.tick.0, 20_000, "as it runs");
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
        case.running
            .now
            .overrides
            .insert("npcc.wan0.3.few".to_owned());
        let plan = case.plan(BASE).unwrap();
        assert_eq!(plan.outcome.reset, ["npcc.wan0.3.few"]);
    }

    #[test]
    fn orders_are_kept_as_they_hold_if_given_again() {
        let mut case = Case::new();
        let now = &mut case.running.now;
        let policy = |priority, name: &str| NpccOrder::Policy {
            port: "wan0".to_owned(),
            priority,
            name: name.to_owned(),
        };
        let set = |priority, name: &str, value| NpccOrder::Parameter {
            port: "wan0".to_owned(),
            priority,
            name: name.to_owned(),
            value,
        };
        let few = |priority, value| set(priority, "few", value);
        let all = [
            set(3, "recovery", 1),
            few(4, 2),
            few(4, 3),
            policy(3, "pi"),
            few(3, 5),
        ];
        for order in &all {
            now.ordered(order);
        }
        assert_eq!(now.orders, [few(4, 3), few(3, 5)]);
        assert_eq!(now.overrides.len(), 4);
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
