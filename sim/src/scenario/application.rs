//! Closed-loop applications of a scenario.

use std::path::Path;
use std::sync::Arc;

use npcc_config::units::{Bytes, Nanos};
use serde::Deserialize;

use super::Scenario;
use crate::app::{Graph, Job, Kind, Shape, read_goal};

/// An application: its ranks do one step after the other, each as soon as the network and the others let it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Application {
    /// Name in reports.
    pub name: String,
    /// Kind of the application.
    pub kind: Kind,
    /// Host groups whose hosts are its ranks, in this order.
    pub ranks: Vec<String>,
    /// True if ranks are dealt to the groups in turn: neighbours in a ring are then on different sites.
    #[serde(default)]
    pub interleaved: bool,
    /// Host groups of storage hosts (`checkpoint`) or servers (`request-response`).
    #[serde(default)]
    pub to: Vec<String>,
    /// Payload of a step, by rank: what is reduced, sent, written or answered.
    #[serde(default = "one_mb")]
    pub size: Bytes,
    /// Number of connections from a host to another; messages take turns.
    #[serde(default = "four")]
    pub queue_pairs: u32,
    /// Payload of one message (NCCL: a step of its buffer).
    #[serde(default = "nccl_chunk")]
    pub chunk: Bytes,
    /// Messages from a host to another that may be unacknowledged (NCCL: `NCCL_STEPS`); `request-response`: outstanding requests.
    #[serde(default = "nccl_steps")]
    pub in_flight: u32,
    /// Chunks that go through a ring at a time, each through all phases (NCCL: channels). Default: all, as `in_flight` lets them.
    pub channels: Option<u32>,
    /// Computing before each step.
    #[serde(default)]
    pub gap: Nanos,
    /// True if no rank begins a step before all have done the last.
    #[serde(default)]
    pub barrier: bool,
    /// Number of steps; until the end when absent.
    pub steps: Option<u32>,
    /// GOAL file of a step, from the scenario's folder.
    pub goal: Option<String>,
    /// Time at which the ranks begin.
    #[serde(default)]
    pub start: Nanos,
    /// Operations of the GOAL file.
    #[serde(skip)]
    pub(crate) graph: Option<Arc<Graph>>,
}

const fn one_mb() -> Bytes {
    Bytes(1_000_000)
}
const fn four() -> u32 {
    4
}
const fn nccl_chunk() -> Bytes {
    Bytes(512 << 10)
}
const fn nccl_steps() -> u32 {
    8
}

impl Application {
    /// Priority of its data.
    pub(crate) const PRIORITY: u8 = super::model::three();

    /// Reads its GOAL file; `folder` is the scenario's.
    pub(super) fn read(&mut self, folder: &Path) -> Result<(), String> {
        let Some(file) = &self.goal else {
            return Ok(());
        };
        let path = folder.join(file);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let graph = read_goal(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        self.graph = Some(Arc::new(graph));
        Ok(())
    }

    /// Makes its graph for so many ranks and peers.
    pub(crate) fn job(&self, ranks: u32, peers: u32) -> Result<Job, String> {
        if let Some(graph) = &self.graph {
            let wanted = graph.ranks().len();
            if wanted > ranks as usize {
                return Err(format!(
                    "the file has {wanted} ranks, the groups {ranks} hosts"
                ));
            }
            return Ok(Job::of_goal(Arc::clone(graph)));
        }
        Job::of(&Shape {
            kind: self.kind,
            ranks,
            peers,
            size: self.size.0,
            chunk: self.chunk.0,
            channels: self.channels,
            in_flight: self.in_flight,
        })
    }

    /// Returns the hosts of these groups, in the order of their ranks: (place of the group in the scenario, place in the group).
    pub(crate) fn hosts(&self, scenario: &Scenario, names: &[String]) -> Vec<(usize, u32)> {
        let groups = names.iter().filter_map(|name| {
            let place = scenario
                .hosts
                .iter()
                .position(|group| group.name == *name)?;
            Some((place, scenario.hosts[place].count))
        });
        let groups: Vec<(usize, u32)> = groups.collect();
        let most = groups.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let all = |host| {
            groups
                .iter()
                .map(move |(group, count)| (*group, host, *count))
        };
        if self.interleaved {
            let dealt = (0..most).flat_map(all);
            return dealt
                .filter(|(_, host, count)| host < count)
                .map(|(group, host, _)| (group, host))
                .collect();
        }
        let hosts = groups
            .iter()
            .flat_map(|(group, count)| (0..*count).map(move |host| (*group, host)));
        hosts.collect()
    }

    /// Checks it against the scenario.
    pub(super) fn check(&self, scenario: &Scenario) -> Result<(), String> {
        let named = |what: String| Err(format!("applications: `{}`: {what}", self.name));
        for name in self.ranks.iter().chain(&self.to) {
            if !scenario.hosts.iter().any(|group| group.name == *name) {
                return named(format!("`{name}` is not in hosts"));
            }
        }
        if self.queue_pairs == 0 || self.steps == Some(0) || self.channels == Some(0) {
            return named("queue_pairs, steps and channels must be above 0".to_owned());
        }
        if (self.kind == Kind::Goal) != self.goal.is_some() {
            return named("kind goal needs a file (`goal:`), and no other kind has one".to_owned());
        }
        if self.in_flight == 0 {
            return named("in_flight must be above 0".to_owned());
        }
        let mut names: Vec<&String> = self.ranks.iter().chain(&self.to).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return named("a host group is named twice".to_owned());
        }
        let count = |names: &[String]| -> u64 {
            let groups = scenario.hosts.iter();
            let groups = groups.filter(|group| names.contains(&group.name));
            groups.map(|group| u64::from(group.count)).sum()
        };
        let count = |names: &[String]| crate::num::small(count(names));
        match self.job(count(&self.ranks), count(&self.to)) {
            Ok(_) => Ok(()),
            Err(what) => named(what),
        }
    }
}

impl Scenario {
    /// Returns a copy of the scenario in which this application, by its place in `applications`, is alone; see
    /// [`interference`](crate::app::interference).
    #[must_use]
    pub fn alone(&self, application: usize) -> Scenario {
        let one = self.applications.get(application);
        Scenario {
            flows: Vec::new(),
            applications: one.into_iter().cloned().collect(),
            ..self.clone()
        }
    }
}
