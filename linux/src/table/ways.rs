//! By what routes lead, each kept once with a number, however many routes take it.

use std::net::IpAddr;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::wire::route::{Hop, Way};

/// The number of a way. It is given to another when no route takes the way any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WayId(pub u32);

/// A way, and the address of ours that packets are sent from.
///
/// With that address, of IPv4, go the routes, so it tells ways apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Taken {
    /// By what.
    pub way: Way,
    /// From where.
    pub source: Option<IpAddr>,
}

/// All ways, by number and by what they are.
#[derive(Debug, Default)]
pub struct Ways {
    slots: Vec<Option<(Taken, usize)>>,
    numbers: HashMap<Taken, WayId, RandomState>,
    free: Vec<WayId>,
}

impl Ways {
    /// The way of a number.
    #[must_use]
    pub fn get(&self, id: WayId) -> Option<&Taken> {
        self.slot(id).map(|(taken, _)| taken)
    }

    /// The hops of a way that is no object's.
    #[must_use]
    pub fn hops(&self, id: WayId) -> &[Hop] {
        match self.get(id).map(|taken| &taken.way) {
            Some(Way::Hops(hops)) => hops,
            _ => &[],
        }
    }

    /// Every way that a route takes.
    pub fn iter(&self) -> impl Iterator<Item = (WayId, &Taken)> {
        let numbered = (0u32..).zip(&self.slots);
        numbered.filter_map(|(number, slot)| Some((WayId(number), &slot.as_ref()?.0)))
    }

    /// The number of a way, if a route takes it.
    pub(super) fn find(&self, taken: &Taken) -> Option<WayId> {
        self.numbers.get(taken).copied()
    }

    /// One more route takes a way; its number, and whether it is new.
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

    /// One route takes a way no more.
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
