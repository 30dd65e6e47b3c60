//! Cases of a scenario: the combinations of everything that is varied.

use std::fmt;

use npcc_config::units::{Length, Nanos};

use super::{Scenario, Scheme};
use crate::host::params::Sender;

/// One run of a scenario: a value for each thing that it varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Case {
    /// Scheme of the switches.
    pub scheme: Scheme,
    /// Sender model of the hosts.
    pub sender: Sender,
    /// Length of the links between switches, if varied.
    pub length: Option<Length>,
    /// Connections between each pair of hosts, if varied.
    pub qps: Option<u32>,
    /// True if connections are used before the start, so that the switch can know them.
    pub warm: bool,
    /// Time from a cold connection's start after which its sender's host has reported the queue pairs to the switches (a lease), if it does.
    pub host_feed: Option<Nanos>,
}

impl Case {
    /// Returns how connections start: `warm`, `cold`, or cold with reports of the hosts.
    #[must_use]
    pub fn start(&self) -> String {
        match (self.warm, self.host_feed) {
            (true, _) => "warm".to_owned(),
            (false, None) => "cold".to_owned(),
            (false, Some(delay)) => format!("cold with reports after {delay}"),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.sender.name(), self.scheme)?;
        if let Some(length) = self.length {
            write!(out, " {length}")?;
        }
        if let Some(qps) = self.qps {
            write!(out, " {qps} QPs")?;
        }
        if self.warm {
            Ok(())
        } else {
            write!(out, " {}", self.start())
        }
    }
}

fn or_none<T: Copy>(values: &[T]) -> Vec<Option<T>> {
    if values.is_empty() {
        vec![None]
    } else {
        values.iter().copied().map(Some).collect()
    }
}

impl Scenario {
    /// Returns every run, senders outermost, schemes innermost, so that the runs that are compared stand together.
    #[must_use]
    pub fn cases(&self) -> Vec<Case> {
        let vary = &self.vary;
        let mut cases = Vec::new();
        for sender in &vary.sender {
            let starts = vary.warm.iter().map(|warm| (*warm, None));
            let reported = vary.host_feed.iter().map(|delay| (false, Some(*delay)));
            for (warm, host_feed) in starts.chain(reported) {
                for qps in or_none(&vary.qps) {
                    for length in or_none(&vary.length) {
                        cases.extend(vary.scheme.iter().map(|scheme| Case {
                            scheme: *scheme,
                            sender: *sender,
                            length,
                            qps,
                            warm,
                            host_feed,
                        }));
                    }
                }
            }
        }
        cases
    }
}
