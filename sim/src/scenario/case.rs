//! Cases of a scenario: the combinations of everything that is varied.

use std::fmt;

use npcc_config::units::Length;

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
            out.write_str(" cold")
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
            for warm in &vary.warm {
                for qps in or_none(&vary.qps) {
                    for length in or_none(&vary.length) {
                        cases.extend(vary.scheme.iter().map(|scheme| Case {
                            scheme: *scheme,
                            sender: *sender,
                            length,
                            qps,
                            warm: *warm,
                        }));
                    }
                }
            }
        }
        cases
    }
}
