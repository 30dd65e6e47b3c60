//! Which neighbours the kernel is to find and keep: it sees none of the data that goes to them.
//!
//! A next hop is asked for as `managed extern_learn`: the kernel finds it, asks again before it ages out, and never collects
//! it as garbage. So is an attached host, once the kernel found it; a host that does not answer any more is given back.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::groups::Groups;
use super::ports::Ports;
use crate::table::model::Model;
use crate::wire::neighbor::PERMANENT;

/// `NUD_FAILED`.
const FAILED: u16 = 0x20;

/// What the kernel is to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    /// Find this neighbour, and keep it.
    Keep(u32, IpAddr),
    /// This one need not be kept any more.
    Forget(u32, IpAddr),
}

/// Whom the kernel was asked for already, so that it is not asked again before it could have answered.
#[derive(Debug, Default)]
pub struct Resolving {
    asked: BTreeSet<(u32, IpAddr)>,
}

impl Resolving {
    /// The kernel may be asked for a neighbour again.
    pub fn again(&mut self, neighbor: (u32, IpAddr)) {
        self.asked.remove(&neighbor);
    }

    /// The kernel may be asked for everyone again.
    pub fn all_again(&mut self) {
        self.asked.clear();
    }

    /// What to ask about neighbours that changed, or came to be hung on.
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
                self.asked.remove(&(link, address));
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
                _ if (gateway || host) && self.asked.insert((link, address)) => {
                    asks.push(Ask::Keep(link, address));
                }
                _ => {}
            }
        }
        asks
    }
}
