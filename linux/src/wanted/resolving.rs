//! Neighbours that the kernel must resolve and keep resolved: it sees no data traffic to them.
//!
//! A next hop is requested as `managed extern_learn`: the kernel resolves it, probes it again before it ages out, and never
//! garbage-collects it. So is an attached host, once the kernel has resolved it; a host that does not answer any more is released.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::groups::Groups;
use super::ports::Ports;
use crate::table::model::Model;
use crate::wire::neighbor::{FAILED, PERMANENT};

/// Request to the kernel about a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    /// Resolves this neighbour and keeps it resolved.
    Keep(u32, IpAddr),
    /// Releases a neighbour that need not be kept any more.
    Forget(u32, IpAddr),
}

/// Neighbours that were requested already, so that a request is not repeated before the kernel could have answered.
#[derive(Debug, Default)]
pub struct Resolving {
    requested: BTreeSet<(u32, IpAddr)>,
}

impl Resolving {
    /// Allows a neighbour to be requested again.
    pub fn again(&mut self, neighbor: (u32, IpAddr)) {
        self.requested.remove(&neighbor);
    }

    /// Allows all neighbours to be requested again.
    pub fn all_again(&mut self) {
        self.requested.clear();
    }

    /// Returns the requests for neighbours that changed, or on which a group depends now.
    pub fn asks(
        &mut self,
        neighbors: impl Iterator<Item = (u32, IpAddr)>,
        (model, ports, groups): (&Model, &Ports, &Groups),
    ) -> Vec<Ask> {
        let mut asks = vec![];
        for (link, address) in neighbors {
            let there = model.links().get(link);
            let reachable = there.is_some_and(|link| link.up && link.carrier);
            if !reachable || ports.place(link).is_none() {
                self.requested.remove(&(link, address));
                continue;
            }
            let known = model.neighbors().get(link, address);
            let gateway = groups.is_gateway((link, address));
            let host = groups.hanging_on((link, address)).next().is_some();
            match known {
                Some(one) if one.managed && one.state & FAILED != 0 && !gateway => {
                    asks.push(Ask::Forget(link, address));
                }
                Some(one) if one.managed || one.state & PERMANENT != 0 => {}
                _ if (gateway || host) && self.requested.insert((link, address)) => {
                    asks.push(Ask::Keep(link, address));
                }
                _ => {}
            }
        }
        asks
    }
}
