//! Rules of the operator about hosts: which may be signalled at all (the switch leaves the others alone, whatever their flows do), which are
//! only observed, and which are known to answer.

use std::net::IpAddr;

use npcc_pipeline::units::{Nanos, Priority};

use crate::action::HostSet;
use npcc_roce::key::FlowKey;

/// Treatment of hosts that do not respond to CNPs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unresponsive {
    /// Their flows stay in their queue, and keep ordinary ECN marking.
    #[default]
    Mark,
    /// Their flows are moved to the queue of this priority.
    Queue(Priority),
}

impl Unresponsive {
    /// Returns the priority of moved hosts, if hosts are moved.
    #[must_use]
    pub const fn priority(self) -> Option<Priority> {
        match self {
            Unresponsive::Mark => None,
            Unresponsive::Queue(priority) => Some(priority),
        }
    }
}

/// Operator's rules about hosts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostRules {
    /// Hosts that may be signalled, and no others; all hosts if the set is empty.
    pub allow: HostSet,
    /// Hosts that are never signalled.
    pub deny: HostSet,
    /// Hosts whose CNPs are decided, counted and logged, but not sent.
    pub observe: HostSet,
    /// Hosts whose cards, by the operator's word, answer CNPs: they have no trials.
    pub answering: HostSet,
    /// Receivers with their network cards' shortest interval between CNPs; the first set that holds a receiver counts.
    pub cnp_intervals: Vec<(HostSet, Nanos)>,
    /// Treatment of hosts that do not respond.
    pub unresponsive: Unresponsive,
}

impl HostRules {
    /// Rules by which all hosts may be signalled, and are known to answer.
    #[must_use]
    pub fn all_answer() -> HostRules {
        HostRules {
            answering: HostSet::all(),
            ..HostRules::default()
        }
    }

    /// Returns true if a host may be signalled.
    #[must_use]
    pub fn admits(&self, host: IpAddr) -> bool {
        (self.allow.is_empty() || self.allow.holds(host)) && !self.deny.holds(host)
    }

    /// Shortest interval between two CNPs of this receiver, if one is given.
    pub(crate) fn cnp_interval(&self, receiver: IpAddr) -> Option<Nanos> {
        let own = self.cnp_intervals.iter();
        let mut own = own.filter(|(hosts, _)| hosts.holds(receiver));
        own.next().map(|(_, interval)| *interval)
    }

    /// Returns true if the sender of a flow may be signalled.
    pub(crate) fn admit(&self, flow: &FlowKey) -> bool {
        self.admits(flow.src())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use npcc_roce::key::Qpn;

    fn set(prefixes: &[(&str, u8)]) -> HostSet {
        let net = |(address, length): &(&str, u8)| (address.parse().unwrap(), *length);
        HostSet::new(prefixes.iter().map(net))
    }

    #[test]
    fn deny_overrides_allow_and_hosts_not_allowed_are_not_signalled() {
        let signalled = |rules: &HostRules| {
            ["10.0.1.1", "10.0.1.9", "10.0.2.1", "2001:db8::1"].map(|sender| {
                let sender: IpAddr = sender.parse().unwrap();
                let signalled = rules.admit(&FlowKey::new(sender, sender, Qpn::new(2)));
                assert_eq!(rules.admits(sender), signalled);
                signalled
            })
        };
        let (none, near) = (HostSet::default(), set(&[("10.0.1.0", 24)]));
        let one = set(&[("10.0.1.9", 32), ("2001:db8::", 32)]);
        let rules = |allow: &HostSet, deny: &HostSet| HostRules {
            allow: allow.clone(),
            deny: deny.clone(),
            ..HostRules::default()
        };
        assert_eq!(signalled(&rules(&none, &none)), [true; 4]);
        assert_eq!(signalled(&rules(&near, &none)), [true, true, false, false]);
        assert_eq!(signalled(&rules(&none, &one)), [true, false, true, false]);
        assert_eq!(signalled(&rules(&near, &one)), [true, false, false, false]);
    }
}
