//! Cases of a scenario: the combinations of everything that is varied.

use std::fmt;

use npcc_config::units::{Length, Nanos};
use npcc_roce::pair::Evidence;

use super::{Scenario, Scheme};
use crate::host::np::WithinInterval;
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
    /// State of the connections at their start.
    pub start: Start,
    /// Effect of marks within the receivers' CNP interval.
    pub np: WithinInterval,
}

/// State of connections at their start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Start {
    /// They were used before, so that the switches can know them.
    Warm,
    /// No switch has seen them.
    Cold,
    /// No switch has seen them; the senders' hosts report the queue pairs (leases) so long after the start.
    Reported(Nanos),
}

impl Start {
    /// Returns the state of connections that report nothing; `warm`: they were used before.
    #[must_use]
    pub const fn unreported(warm: bool) -> Start {
        if warm { Start::Warm } else { Start::Cold }
    }

    /// Weakest evidence on which a CNP is sent: reports count where hosts make any.
    #[must_use]
    pub const fn evidence(self) -> Evidence {
        match self {
            Start::Warm | Start::Cold => Evidence::Port,
            Start::Reported(_) => Evidence::Foreign,
        }
    }
}

impl fmt::Display for Start {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Start::Warm => out.write_str("warm"),
            Start::Cold => out.write_str("cold"),
            Start::Reported(delay) => write!(out, "cold with reports after {delay}"),
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
        if self.start != Start::Warm {
            write!(out, " {}", self.start)?;
        }
        if self.np != WithinInterval::default() {
            write!(out, " np {}", self.np.name())?;
        }
        Ok(())
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
            for start in vary.starts() {
                for np in &vary.np {
                    for qps in or_none(&vary.qps) {
                        for length in or_none(&vary.length) {
                            cases.extend(vary.scheme.iter().map(|scheme| Case {
                                scheme: *scheme,
                                sender: *sender,
                                length,
                                qps,
                                start,
                                np: *np,
                            }));
                        }
                    }
                }
            }
        }
        cases
    }
}
