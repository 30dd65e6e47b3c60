//! Scenario: topology, traffic, schemes and varied parameters. The file format of `npcc-switch sim`.
//!
//! Sizes, rates, times and lengths are written as in the switch's configuration. Everything but topology and traffic has a
//! default. [`Scenario::cases`] lists the runs: every combination of what `vary` names.

mod application;
mod case;
mod curve;
mod imperfect;
mod limits;
mod model;
mod scheme;
mod target;

use std::path::Path;

use npcc_config::model::Unresponsive;
use npcc_config::units::{BitRate, Bytes, Length, Nanos};
use npcc_pipeline::units::Priority;
use serde::Deserialize;

use crate::host::np::WithinInterval;
use crate::host::params::Sender;
use crate::host::rc::Recovery;
use crate::wire;
pub use application::Application;
pub use case::{Case, Start};
pub use curve::Curve;
pub(crate) use curve::Place;
pub use imperfect::{FarPause, Imperfections};
pub use limits::{ControlCost, Window};
pub use model::{Failure, FlowGroup, HostGroup, LinkSpec, Thresholds, Verb};
pub use scheme::Scheme;
pub use target::Target;

/// Suffix of a link's name that stands for its queue at its `to` end.
pub(crate) const BACK: &str = "/back";

/// Contents of a scenario file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Version of the format: 1.
    pub version: u32,
    /// Short name, for titles.
    pub name: String,
    /// Description of what it shows.
    #[serde(default)]
    pub about: String,
    /// Seed of the random generators; one seed gives one outcome.
    #[serde(default = "one")]
    pub seed: u64,
    /// Simulated time after the start of the traffic.
    pub duration: Nanos,
    /// RoCEv2 path MTU: payload bytes of a full packet.
    #[serde(default = "path_mtu")]
    pub mtu: u16,
    /// Names of the switches.
    pub switches: Vec<String>,
    /// Groups of hosts.
    pub hosts: Vec<HostGroup>,
    /// Links between switches.
    #[serde(default)]
    pub links: Vec<LinkSpec>,
    /// Groups of flows.
    #[serde(default)]
    pub flows: Vec<FlowGroup>,
    /// Closed-loop applications.
    #[serde(default)]
    pub applications: Vec<Application>,
    /// Link failures.
    #[serde(default)]
    pub failures: Vec<Failure>,
    /// Imperfections: late ticks, lost CNPs, far-end pauses.
    #[serde(default)]
    pub imperfections: Imperfections,
    /// Maximum delay of a flow's start, uniformly distributed: what a seed changes besides the phases of ticks and hashes.
    /// 200 ns when absent: no two start in the same nanosecond, or the order of events would decide which is first.
    pub start_jitter: Option<Nanos>,
    /// The egress queue that is reported: a link, or a host group (toward its first host).
    pub watch: String,
    /// Priority of the queue that is reported.
    #[serde(default = "model::three")]
    pub watch_priority: u8,
    /// Egress queues with NPCC or THEMIS: links (`NAME/back`: the queue at the link's `to` end) or host groups. Default: `watch`.
    #[serde(default)]
    pub npcc: Vec<String>,
    /// Treatment of hosts that do not respond to CNPs, as the switch's `npcc.hosts.unresponsive`.
    #[serde(default)]
    pub unresponsive: Unresponsive,
    /// Thresholds for marking and NPCC.
    #[serde(default)]
    pub thresholds: Thresholds,
    /// Shared buffer of each switch; `unlimited` when absent.
    pub pool: Option<Bytes>,
    /// True if switches pause their neighbours before the buffer is full, and hosts obey.
    #[serde(default)]
    pub pfc: bool,
    /// Retransmission scheme for missing packets.
    #[serde(default)]
    pub recovery: Recovery,
    /// Minimum time between two CNPs of a receiver for one flow; a host group may have its own. Default: the sender set's.
    pub cnp_interval: Option<Nanos>,
    /// Bytes that a queue pair may have sent and not acknowledged (WRITE), or `unlimited`; a flow group may have its own.
    #[serde(default)]
    pub window: Window,
    /// Messages that a queue pair may have requested and not received (READ), as `max_rd_atomic`.
    #[serde(default = "sixteen")]
    pub outstanding_reads: u32,
    /// Bytes that a rate limiter sends back to back before it waits for what they take at its rate; 0: each frame by itself.
    #[serde(default)]
    pub limiter_burst: Bytes,
    /// Time from the arrival of a CNP until the sender's rate follows.
    #[serde(default)]
    pub reaction: Nanos,
    /// Time from the arrival of a pause frame at a host until it stops or resumes. The switches' headroom has room for what it sends meanwhile.
    #[serde(default)]
    pub pfc_reaction: Nanos,
    /// Time that a switch's control core takes for its calls.
    #[serde(default)]
    pub control_cost: ControlCost,
    /// Time over which utilisation is measured, from the start.
    #[serde(default = "sixty")]
    pub utilisation_over: Nanos,
    /// Time from which goodput and fairness are measured.
    #[serde(default = "ten")]
    pub goodput_from: Nanos,
    /// Parameters that are varied.
    #[serde(default)]
    pub vary: Vary,
    /// Targets that the runs should meet.
    #[serde(default)]
    pub targets: Vec<Target>,
}

/// Parameters that are varied: every combination is a run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Vary {
    /// Schemes by name; see [`Scheme`].
    pub scheme: Vec<Scheme>,
    /// Sender parameter sets.
    pub sender: Vec<Sender>,
    /// Lengths of the links between switches; as in `links` when empty.
    pub length: Vec<Length>,
    /// Connections between each pair of hosts; as in `flows` when empty.
    pub qps: Vec<u32>,
    /// Values of `warm`; true: connections are used before the start, so that the switch can know them.
    pub warm: Vec<bool>,
    /// Besides `warm`, cold connections whose hosts report their queue pairs to the switches so long after the start: [`Start::Reported`].
    pub host_feed: Vec<Nanos>,
    /// Effects of marks within the receivers' CNP interval: `forget`, or `owe` a CNP when it ends.
    pub np: Vec<WithinInterval>,
}

impl Vary {
    /// Returns the states of connections at their start.
    pub fn starts(&self) -> impl Iterator<Item = Start> {
        let reported = self.host_feed.iter().copied().map(Start::Reported);
        self.warm
            .iter()
            .copied()
            .map(Start::unreported)
            .chain(reported)
    }
}

impl Default for Vary {
    fn default() -> Vary {
        Vary {
            scheme: vec![Scheme::ECN, Scheme::NPCC],
            sender: vec![Sender::HpccVendor],
            length: Vec::new(),
            qps: Vec::new(),
            warm: vec![true],
            host_feed: Vec::new(),
            np: vec![WithinInterval::Forget],
        }
    }
}

/// Reason why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("{path}: cannot read the scenario: {source}")]
    Read {
        /// Path of the file.
        path: String,
        /// Cause of the failure.
        source: std::io::Error,
    },
    /// The text is not a scenario; the message names line and column.
    #[error("{path}: {source}; see config/scenarios for examples")]
    Form {
        /// Path of the file.
        path: String,
        /// Parse error.
        source: serde_yaml::Error,
    },
    /// A value does not fit the others.
    #[error("{path}: {what}")]
    Sense {
        /// Path of the file.
        path: String,
        /// The problem, and what to do about it.
        what: String,
    },
}

const fn one() -> u64 {
    1
}
const fn path_mtu() -> u16 {
    4_096
}
const fn sixteen() -> u32 {
    16
}
const fn sixty() -> Nanos {
    Nanos::from_millis(60)
}
const fn ten() -> Nanos {
    Nanos::from_millis(10)
}

impl Scenario {
    /// Reads and checks a scenario file.
    ///
    /// # Errors
    /// [`ScenarioError`].
    pub fn load(path: &Path) -> Result<Scenario, ScenarioError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| ScenarioError::Read {
            path: name.clone(),
            source,
        })?;
        Scenario::parse(&name, &text)
    }

    /// Parses and checks a scenario's text; `path` names it in errors.
    ///
    /// # Errors
    /// [`ScenarioError`].
    pub fn parse(path: &str, text: &str) -> Result<Scenario, ScenarioError> {
        let mut scenario: Scenario =
            serde_yaml::from_str(text).map_err(|source| ScenarioError::Form {
                path: path.to_owned(),
                source,
            })?;
        let folder = Path::new(path).parent().unwrap_or_else(|| Path::new(""));
        let mut applications = scenario.applications.iter_mut();
        let read = applications.try_for_each(|one| one.read(folder));
        read.and_then(|()| scenario.check())
            .map_err(|what| ScenarioError::Sense {
                path: path.to_owned(),
                what,
            })?;
        Ok(scenario)
    }

    /// Returns the names of the queues that NPCC watches.
    pub fn npcc_queues(&self) -> impl Iterator<Item = &str> {
        let default = self.npcc.is_empty().then_some(&self.watch);
        self.npcc.iter().chain(default).map(String::as_str)
    }

    /// Returns the priorities that data is sent with.
    pub fn priorities(&self) -> impl Iterator<Item = Priority> {
        let used = wire::DATA.map(|class| class.priority).into_iter();
        used.filter(|priority| self.sends(*priority))
            .map(Priority::new)
    }

    /// Returns true if a flow or an application sends data with this priority.
    fn sends(&self, priority: u8) -> bool {
        self.flows.iter().any(|flow| flow.priority == priority)
            || priority == Application::PRIORITY && !self.applications.is_empty()
    }

    /// Returns a copy of the scenario with the seed that comes `later` after its own.
    #[must_use]
    pub fn with_seed(&self, later: u64) -> Scenario {
        Scenario {
            seed: self.seed.wrapping_add(later),
            ..self.clone()
        }
    }

    /// Returns the rate of the reported queue.
    #[must_use]
    pub fn watched_rate(&self) -> BitRate {
        let link = self.links.iter().find(|link| link.name == self.watch);
        let group = self.hosts.iter().find(|group| group.name == self.watch);
        let rate = link.map(|link| link.rate).or_else(|| Some(group?.rate));
        rate.unwrap_or(BitRate(0))
    }

    /// Returns true if any switch or far end may send pauses.
    #[must_use]
    pub const fn pauses(&self) -> bool {
        self.pfc || !self.imperfections.pauses.is_empty()
    }

    fn check(&self) -> Result<(), String> {
        if self.version != 1 {
            return Err(format!(
                "version {} is not known; write version: 1",
                self.version
            ));
        }
        if !(64..=9_000).contains(&self.mtu) {
            return Err(format!("mtu {} is outside 64 to 9000", self.mtu));
        }
        if self.duration.0 == 0 {
            return Err("duration must be above 0".to_owned());
        }
        let group = |name: &str| self.hosts.iter().any(|group| group.name == name);
        let switch = |name: &str| self.switches.iter().any(|known| known == name);
        let link = |name: &str| self.links.iter().any(|link| link.name == name);
        let links = self.links.iter().flat_map(|link| [&link.from, &link.to]);
        let hung = self.hosts.iter().map(|group| &group.switch);
        if let Some(name) = links.chain(hung).find(|name| !switch(name)) {
            return Err(format!("`{name}` is not in switches"));
        }
        let mut ends = self.flows.iter().flat_map(|flow| [&flow.from, &flow.to]);
        if let Some(name) = ends.find(|name| !group(name)) {
            return Err(format!("flows name `{name}`, which is not in hosts"));
        }
        self.check_queues()?;
        if let Some(failure) = self.failures.iter().find(|failure| !link(&failure.link)) {
            return Err(format!(
                "failures name `{}`, which is not in links",
                failure.link
            ));
        }
        self.check_limits()?;
        let mut pauses = self.imperfections.pauses.iter();
        if let Some(pause) = pauses.find(|pause| !link(&pause.link) || pause.every <= pause.time) {
            return Err(format!(
                "imperfections.pauses: `{}` must be in links, and every longer than time",
                pause.link
            ));
        }
        if let Some(flow) = self
            .flows
            .iter()
            .find(|flow| flow.burst.is_some() != flow.every.is_some())
        {
            return Err(format!(
                "flows from `{}`: set both burst and every, or neither",
                flow.from
            ));
        }
        if self
            .hosts
            .iter()
            .any(|group| group.count == 0 || group.rate.0 == 0)
        {
            return Err("hosts: count and rate must be above 0".to_owned());
        }
        if self.flows.is_empty() && self.applications.is_empty() {
            return Err("flows or applications: name at least one".to_owned());
        }
        self.check_priorities()?;
        self.applications
            .iter()
            .try_for_each(|application| application.check(self))?;
        let vary = &self.vary;
        if vary.scheme.is_empty()
            || vary.sender.is_empty()
            || vary.np.is_empty()
            || vary.starts().next().is_none()
        {
            return Err(
                "vary: scheme, sender, np and warm (or host_feed) need at least one value each"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Checks that each queue is named by a link or a host group.
    fn check_queues(&self) -> Result<(), String> {
        let group = |name: &str| self.hosts.iter().any(|group| group.name == name);
        let link = |name: &str| self.links.iter().any(|link| link.name == name);
        let ends = self
            .npcc
            .iter()
            .map(|name| name.strip_suffix(BACK).unwrap_or(name));
        let mut queues = ends.chain([self.watch.as_str()]);
        if let Some(name) = queues.find(|name| !group(name) && !link(name)) {
            return Err(format!("`{name}` is neither a link nor a host group"));
        }
        Ok(())
    }

    fn check_limits(&self) -> Result<(), String> {
        let own = self.flows.iter().filter_map(|flow| flow.window);
        let mut windows = own.chain([self.window]);
        if let Some(window) = windows.find(|window| window.packets(self.mtu) == Some(0)) {
            return Err(format!(
                "window {window} is less than a packet of {} bytes (mtu); write more, or unlimited",
                self.mtu
            ));
        }
        for (key, time) in [
            ("reaction", self.reaction),
            ("pfc_reaction", self.pfc_reaction),
            ("control_cost.call", self.control_cost.call),
            ("control_cost.record", self.control_cost.record),
            ("control_cost.flow", self.control_cost.flow),
            ("control_cost.cnp", self.control_cost.cnp),
        ] {
            if time >= self.duration {
                return Err(format!(
                    "{key} {time} is as long as the run of {}; write less",
                    self.duration
                ));
            }
        }
        if self.outstanding_reads == 0 {
            return Err("outstanding_reads must be above 0, or no READ is sent".to_owned());
        }
        Ok(())
    }

    fn check_priorities(&self) -> Result<(), String> {
        let known = |priority: u8| wire::DATA.iter().any(|class| class.priority == priority);
        if let Some(flow) = self.flows.iter().find(|flow| !known(flow.priority)) {
            return Err(format!(
                "flows from `{}`: priority {} is not known; write 3 or 4",
                flow.from, flow.priority
            ));
        }
        let moved = self.unresponsive.queue().map(|queue| queue.byte());
        if let Some(queue) =
            moved.filter(|queue| [0, wire::CONTROL_TOS >> 5].contains(queue) || known(*queue))
        {
            return Err(format!(
                "unresponsive: queue {queue} has other traffic; write 1, 2, 5 or 7"
            ));
        }
        let watched = self.watch_priority;
        if !self.sends(watched) {
            return Err(format!(
                "watch_priority: no flow has priority {watched}, whose queue is reported"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "
version: 1
name: small
duration: 1ms
switches: [a]
hosts: [{ name: from, count: 2, switch: a }, { name: to, count: 1, switch: a }]
flows: [{ from: from, to: to }]
watch: to
";

    #[test]
    fn a_links_other_end_is_a_queue_of_npcc_and_not_one_to_watch() {
        let with = |keys: &str| {
            let links = "links: [{ name: dci, from: a, to: b, rate: 100G, length: 1km }]";
            let text = SMALL.replace("[a]", "[a, b]") + links + "\n" + keys + "\n";
            Scenario::parse("small.yaml", &text)
        };
        let both = with("npcc: [dci, dci/back]").unwrap();
        let both: Vec<_> = both.npcc_queues().collect();
        assert_eq!(both, ["dci", "dci/back"]);
        for wrong in ["npcc: [ice/back]", "npcc: [dci/forth]"] {
            let error = with(wrong).unwrap_err().to_string();
            assert!(error.contains("neither a link nor a host group"), "{error}");
        }
        let watched = SMALL.replace("watch: to", "watch: to/back");
        assert!(Scenario::parse("small.yaml", &watched).is_err());
    }

    #[test]
    fn defaults_fill_what_is_not_written() {
        let scenario = Scenario::parse("small.yaml", SMALL).unwrap();
        assert_eq!(scenario.hosts[0].rate.0, 100_000_000_000);
        assert_eq!(scenario.cases().len(), 2);
        assert_eq!(scenario.npcc_queues().collect::<Vec<_>>(), ["to"]);
    }

    #[test]
    fn mistakes_are_named() {
        for (from, to, said) in [
            ("version: 1", "version: 2", "version 2"),
            ("watch: to", "watch: there", "`there` is neither"),
            ("to: to }", "to: who }", "`who`"),
            ("switch: a }, {", "switch: b }, {", "`b` is not in switches"),
            ("duration: 1ms", "duration: 1", "line 4"),
            ("name: small", "nmae: small", "nmae"),
            (
                "watch: to",
                "watch: to\nvary: { warm: [] }",
                "(or host_feed)",
            ),
            ("watch: to", "watch: to\nwindow: 4KB", "window 4KB is less"),
            ("to: to }", "to: to, window: 1B }", "window 1B is less"),
            ("watch: to", "watch: to\nwindow: wide", "or unlimited"),
            ("watch: to", "watch: to\nreaction: 1ms", "reaction 1ms is"),
            (
                "watch: to",
                "watch: to\npfc_reaction: 2ms",
                "pfc_reaction 2ms is",
            ),
            (
                "watch: to",
                "watch: to\ncontrol_cost: { cnp: 1s }",
                "control_cost.cnp 1s is",
            ),
            (
                "to: to }",
                "to: to, priority: 5 }",
                "priority 5 is not known",
            ),
            (
                "to: to }",
                "to: to, priority: 4 }",
                "watch_priority: no flow",
            ),
            (
                "watch: to",
                "watch: to\nwatch_priority: 4",
                "watch_priority: no flow",
            ),
            (
                "watch: to",
                "watch: to\noutstanding_reads: 0",
                "outstanding_reads must",
            ),
            (
                "watch: to",
                "watch: to\nunresponsive: { queue: 3 }",
                "queue 3 has other traffic",
            ),
            ("watch: to", "watch: to\nunresponsive: drop", "line 9"),
        ] {
            let text = SMALL.replacen(from, to, 1);
            let error = Scenario::parse("small.yaml", &text)
                .unwrap_err()
                .to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
