//! Replacement of endpoints: the lists of those paired and unpaired, and which one makes room for a newcomer.

use npcc_pipeline::units::Nanos;

use super::{Endpoints, LIVE};
use crate::holdings::{Holder, LOOKED_AT};
use crate::links::NONE;

/// Share of endpoints (1/4) that may be unpaired before no paired one gives way to a newcomer.
const UNPAIRED_SHARE: usize = 4;

/// List of endpoints that may go first.
const UNPAIRED: u8 = 0;
/// List of endpoints that are paired.
pub(super) const PAIRED: u8 = 1;

impl Endpoints {
    /// Makes an endpoint the newest of a list.
    pub(super) fn set_list(&mut self, endpoint: u32, list: u8) {
        let (Some(before), Some(state)) =
            (self.entries.list_of(endpoint), self.entries.get(endpoint))
        else {
            return;
        };
        if before != list {
            self.unpaired.count(state.holder, list == UNPAIRED);
        }
        self.entries.set_list(endpoint, list);
    }

    pub(super) fn make_room(&mut self, newcomer: Holder, now: Nanos) -> bool {
        let is_idle = |endpoint: &u32| {
            let state = self.entries.get(*endpoint);
            state.is_some_and(|state| now.since(state.last_seen) >= LIVE)
        };
        let unpaired = self
            .entries
            .by_age(UNPAIRED)
            .take(LOOKED_AT)
            .find(|endpoint| {
                let state = self.entries.get(*endpoint);
                let holds_more =
                    state.is_some_and(|state| self.unpaired.makes_room(state.holder, newcomer));
                is_idle(endpoint)
                    || holds_more
                        && self
                            .opposite_endpoints(*endpoint)
                            .is_none_or(|others| others == 0)
            });
        // Paired endpoints outlive their traffic, however many newcomers there are: beyond a share of the table newcomers push out each other.
        let few_loose = self.entries.len_of(UNPAIRED) < self.entries.len() / UNPAIRED_SHARE;
        let paired = || {
            let oldest = self.entries.oldest(PAIRED).filter(is_idle);
            oldest.filter(|_| few_loose)
        };
        match unpaired.or_else(paired) {
            Some(endpoint) => {
                self.displaced += 1;
                self.remove(endpoint, now);
                true
            }
            None => {
                // Moved back, so that the next newcomer looks at others.
                self.entries.rotate(UNPAIRED, LOOKED_AT);
                false
            }
        }
    }

    /// Forgets up to `budget` endpoints that are not paired and long unseen.
    pub(crate) fn forget(&mut self, now: Nanos, budget: usize) {
        for _ in 0..budget {
            let Some(endpoint) = self.entries.oldest(UNPAIRED) else {
                return;
            };
            if self
                .entries
                .get(endpoint)
                .is_some_and(|state| now.since(state.last_seen) < LIVE)
            {
                return;
            }
            self.remove(endpoint, now);
        }
    }

    /// Stores an endpoint's partner, and moves both to the list of those to be kept.
    pub(in crate::pair) fn set_partner(&mut self, endpoint: u32, partner: Option<u32>) {
        let Some(state) = self.entries.get_mut(endpoint) else {
            return;
        };
        let before = std::mem::replace(&mut state.partner, partner.unwrap_or(NONE));
        if partner == Some(before) || (partner.is_none() && before == NONE) {
            return;
        }
        if self
            .entries
            .get(before)
            .is_some_and(|other| other.partner == endpoint || other.partner == NONE)
        {
            self.set_list(before, UNPAIRED);
        }
        self.set_list(endpoint, if partner.is_some() { PAIRED } else { UNPAIRED });
        if let Some(partner) = partner {
            self.set_list(partner, PAIRED);
        }
    }
}
