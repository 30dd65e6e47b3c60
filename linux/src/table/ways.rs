//! Next-hop sets of routes, each stored once with a number, however many routes use it.

use std::net::IpAddr;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::wire::route::{Hop, Way};

/// Number of a next-hop set. It is reused when no route uses the set any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WayId(pub u32);

/// Next-hop set, the preferred source address of packets, and the MTU that the route allows.
///
/// IPv4 routes disappear with their source address, so it distinguishes sets; so does the MTU, which each next hop has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Taken {
    /// Next hops, or a next-hop object.
    pub way: Way,
    /// Preferred source address.
    pub source: Option<IpAddr>,
    /// Largest IP packet in bytes; 0 for that of the link.
    pub mtu: u16,
}

/// All next-hop sets, by number and by content.
#[derive(Debug, Default)]
pub struct Ways {
    slots: Vec<Option<(Taken, usize)>>,
    numbers: HashMap<Taken, WayId, RandomState>,
    free: Vec<WayId>,
}

impl Ways {
    /// Returns the next-hop set of a number.
    #[must_use]
    pub fn get(&self, id: WayId) -> Option<&Taken> {
        self.slot(id).map(|(taken, _)| taken)
    }

    /// Returns the hops of a set that is not a next-hop object's; empty otherwise.
    #[must_use]
    pub fn hops(&self, id: WayId) -> &[Hop] {
        match self.get(id).map(|taken| &taken.way) {
            Some(Way::Hops(hops)) => hops,
            _ => &[],
        }
    }

    /// Iterates over all next-hop sets that a route uses.
    pub fn iter(&self) -> impl Iterator<Item = (WayId, &Taken)> {
        let numbered = (0u32..).zip(&self.slots);
        numbered.filter_map(|(number, slot)| Some((WayId(number), &slot.as_ref()?.0)))
    }

    /// Returns the number of a next-hop set, if a route uses it.
    pub(super) fn find(&self, taken: &Taken) -> Option<WayId> {
        self.numbers.get(taken).copied()
    }

    /// Adds a reference to a next-hop set; returns its number, and true if it is new.
    pub(super) fn hold(&mut self, taken: Taken) -> (WayId, bool) {
        if let Some(id) = self.find(&taken) {
            if let Some(Some((_, count))) = self.slots.get_mut(index(id)) {
                *count += 1;
            }
            return (id, false);
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            WayId(u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX))
        });
        self.numbers.insert(taken.clone(), id);
        if let Some(slot) = self.slots.get_mut(index(id)) {
            *slot = Some((taken, 1));
        }
        (id, true)
    }

    /// Drops a reference to a next-hop set.
    pub(super) fn release(&mut self, id: WayId) {
        let Some(slot) = self.slots.get_mut(index(id)) else {
            return;
        };
        match slot {
            Some((_, count)) if *count > 1 => *count -= 1,
            Some(_) => {
                if let Some((taken, _)) = slot.take() {
                    self.numbers.remove(&taken);
                    self.free.push(id);
                }
            }
            None => {}
        }
    }

    fn slot(&self, id: WayId) -> Option<&(Taken, usize)> {
        self.slots.get(index(id))?.as_ref()
    }
}

const fn index(id: WayId) -> usize {
    id.0 as usize
}
