//! Parts of the kernel's routing that the switch does not follow, or follows in part: each is shown with its reason.

use std::fmt;

use npcc_pipeline::route::prefix::Prefix;

npcc_pipeline::named! {
    /// Reason why a route is not followed, or in part only. docs/linux.md lists them.
    #[derive(PartialOrd, Ord)]
    pub enum Reason {
        /// All next hops are on interfaces that are not the switch's.
        Elsewhere = "none behind a port of the switch",
        /// Some next hops are on interfaces that are not the switch's: the others take all packets.
        PartlyElsewhere = "some next hops not behind a port of the switch",
        /// Encapsulation (MPLS, SRv6, VXLAN and others).
        Tunnel = "into a tunnel",
        /// More next hops than buckets.
        Members = "more next hops than take packets",
        /// Route that only packets from a prefix take (`from`).
        Source = "for packets from a prefix only",
        /// Route that only packets of a type of service take.
        Tos = "for packets with a TOS only",
        /// Route of table `default`, which comes after `main`.
        DefaultTable = "in table default",
        /// Rule of policy routing.
        Rule = "by a rule of policy routing",
    }
}

/// Part of the kernel's routing that is not followed at all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NotFollowed {
    /// Destination prefix.
    pub prefix: Prefix,
    /// Table of the route; `None` for a rule.
    pub table: Option<u32>,
    /// Metric of the route, priority of the rule.
    pub metric: u32,
    /// Reason why it is not followed.
    pub reason: Reason,
    /// Further words: the source prefix, the TOS, the rule.
    pub detail: String,
}

impl fmt::Display for NotFollowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.reason.name())?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}
