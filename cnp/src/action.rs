//! Action on a policy's decisions: whether CNPs leave, set for the whole switch, for a queue, for a host.
//!
//! Law: the weakest action holds. A CNP leaves only where the switch, its queue and the sender's host all say `send`; none of the three can
//! make another one send.

use std::net::IpAddr;
use std::sync::Arc;

use npcc_pipeline::named;

use npcc_roce::key::{Bits, FlowKey, bits};

named! {
    /// Action on decisions of a policy, the most restrictive first.
    #[derive(PartialOrd, Ord, Default)]
    #[cfg_attr(
        feature = "config",
        derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)
    )]
    #[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
    pub enum Action {
        /// Nothing is decided: the queue is only looked at, and its frames are marked as ECN alone marks them.
        Off = "off",
        /// All is decided, counted and logged, and no CNP leaves; frames are marked as ECN alone marks them.
        Observe = "observe",
        /// CNPs leave.
        #[default]
        Send = "send",
    }
}

/// Set of hosts, given as prefixes. A search takes as many steps as the number of prefixes has binary digits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostSet {
    /// Address ranges (first, last), ascending; no two touch.
    ranges: Arc<[(u128, u128)]>,
}

impl HostSet {
    /// Builds the set from prefixes, which may contain one another.
    #[must_use]
    pub fn new(prefixes: impl IntoIterator<Item = (IpAddr, u8)>) -> HostSet {
        let range = |(address, length): (IpAddr, u8)| {
            // IPv4 is mapped: its prefixes begin behind 96 bits.
            let fixed = u32::from(length) + if address.is_ipv4() { 96 } else { 0 };
            let free = u128::MAX.checked_shr(fixed).unwrap_or(0);
            let first = number(bits(address)) & !free;
            (fixed <= 128).then_some((first, first | free))
        };
        let mut all: Vec<(u128, u128)> = prefixes.into_iter().filter_map(range).collect();
        all.sort_unstable();
        let mut ranges: Vec<(u128, u128)> = Vec::with_capacity(all.len());
        for (first, last) in all {
            match ranges.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = (*end).max(last),
                _ => ranges.push((first, last)),
            }
        }
        HostSet {
            ranges: ranges.into(),
        }
    }

    /// Set of every possible host.
    #[must_use]
    pub fn all() -> HostSet {
        HostSet {
            ranges: Arc::new([(0, u128::MAX)]),
        }
    }

    /// Returns true if the set holds no host.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns true if `host` is in the set.
    #[must_use]
    pub fn holds(&self, host: IpAddr) -> bool {
        self.holds_bits(bits(host))
    }

    /// Returns true if the flow's sender is in the set.
    pub(crate) fn holds_sender(&self, flow: &FlowKey) -> bool {
        !self.ranges.is_empty() && self.holds_bits(flow.src)
    }

    fn holds_bits(&self, host: Bits) -> bool {
        let host = number(host);
        let after = self.ranges.partition_point(|(first, _)| *first <= host);
        let range = after.checked_sub(1).and_then(|at| self.ranges.get(at));
        range.is_some_and(|(_, last)| host <= *last)
    }
}

const fn number([high, low]: Bits) -> u128 {
    (high as u128) << 64 | low as u128
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    fn set(prefixes: &[(&str, u8)]) -> HostSet {
        HostSet::new(
            prefixes
                .iter()
                .map(|(address, length)| (address.parse().unwrap(), *length)),
        )
    }

    #[test]
    fn a_host_is_found_in_its_prefix_and_in_no_other() {
        let hosts = set(&[
            ("10.0.1.0", 24),
            ("10.0.0.0", 24),
            ("10.0.1.7", 32),
            ("2001:db8:1::", 48),
            ("192.168.0.1", 32),
        ]);
        assert_eq!(hosts.ranges.len(), 3, "those that touch are one");
        for (host, held) in [
            ("9.255.255.255", false),
            ("10.0.0.0", true),
            ("10.0.1.255", true),
            ("10.0.2.0", false),
            ("192.168.0.0", false),
            ("192.168.0.1", true),
            ("192.168.0.2", false),
            ("2001:db8:1:ffff::1", true),
            ("2001:db8:2::", false),
            ("::", false),
        ] {
            assert_eq!(hosts.holds(host.parse().unwrap()), held, "{host}");
        }
        assert!(!set(&[]).holds("10.0.0.1".parse().unwrap()));
        let all = set(&[("0.0.0.0", 0)]);
        assert!(all.holds("255.255.255.255".parse().unwrap()));
        assert!(!all.holds("2001:db8::1".parse().unwrap()));
        assert!(set(&[("::", 0)]).holds("10.0.0.1".parse().unwrap()));
    }
}
