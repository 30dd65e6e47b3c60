//! What outlives the process: descriptors in the service manager's store, and memory behind some of them.
//!
//! A TAP whose last descriptor is closed goes, and the kernel's routes with it; so the store holds a second one ([`store`]). Counters
//! ([`ledger`]), pairs, ends that are not paired, what the file wanted of Linux, whether the switch is being drained and which pause
//! storms there are ([`facts`]) lie in sealed memory that the store holds too. A thread of its own writes them down; no worker knows of
//! any of it, and the control core only shows its ends to whoever asks. `docs/restart.md` tells the
//! whole.

mod copies;
mod ends;
pub mod facts;
pub mod ledger;
mod memory;
mod pairs;
pub mod store;
pub mod storms;
mod words;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use npcc_cnp::pair::loose_end::LooseEnd;
use npcc_cnp::table::FlowView;
use npcc_pipeline::units::Nanos;

use self::ends::Ends;
use self::facts::{Facts, FactsKept};
use self::ledger::Ledger;
use self::pairs::Pairs;
use self::store::Store;
use crate::control::orders::ListedPair;
use crate::log::note;

/// How often counters and pairs are written down.
pub const EVERY: Duration = Duration::from_millis(250);

/// All that is left for the next process. By default nothing is.
#[derive(Debug, Default)]
pub struct Keep {
    store: Arc<Store>,
    /// Counters.
    pub ledger: Ledger,
    facts: Mutex<FactsKept>,
    pairs: Mutex<Option<Pairs>>,
    /// What the process before knew.
    suggested: Mutex<Vec<ListedPair>>,
    ends: Mutex<Option<Ends>>,
    /// What the process before had learned and not paired.
    recalled: Mutex<Vec<LooseEnd>>,
}

impl Keep {
    /// With what the process before left; without a service manager nothing is kept.
    #[must_use]
    pub fn open(store: &Arc<Store>) -> Keep {
        if !Store::listens() {
            return Keep::default();
        }
        let mut say = |line: String| note(&format!("note: {line}"));
        let ledger = Ledger::open(store, &mut say);
        let facts = FactsKept::open(store, &mut say);
        let (pairs, suggested) = Pairs::open(store, &mut say)
            .map_err(|error| say(format!("pairs do not outlive the switch: {error}")))
            .ok()
            .unzip();
        let (ends, recalled) = Ends::open(store, &mut say)
            .map_err(|error| say(format!("ends do not outlive the switch: {error}")))
            .ok()
            .unzip();
        let facts = facts.map_err(|error| say(format!("facts do not outlive the switch: {error}")));
        Keep {
            store: Arc::clone(store),
            ledger,
            facts: Mutex::new(facts.unwrap_or_default()),
            pairs: Mutex::new(pairs),
            suggested: Mutex::new(suggested.unwrap_or_default()),
            ends: Mutex::new(ends),
            recalled: Mutex::new(recalled.unwrap_or_default()),
        }
    }

    /// The descriptors.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What is known beside counters and pairs.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        facts.now.clone()
    }

    /// Changes what is known beside counters and pairs.
    pub fn change(&self, change: impl FnOnce(&mut Facts)) {
        let mut facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new = facts.now.clone();
        change(&mut new);
        if let Err(error) = facts.leave(&self.store, new) {
            note(&format!(
                "note: the next start will not know of a change: {error}"
            ));
        }
    }

    /// Whether pairs are left at all.
    #[must_use]
    pub fn keeps_pairs(&self) -> bool {
        let pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        pairs.is_some()
    }

    /// Hands out the pairs that the process before knew, once.
    #[must_use]
    pub fn take_pairs(&self) -> Vec<ListedPair> {
        let mut suggested = self
            .suggested
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *suggested)
    }

    /// Leaves the pairs that are known.
    pub fn leave_pairs(&self, flows: &FlowView) {
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        let left = pairs.as_mut().map(|pairs| pairs.leave(&self.store, flows));
        if let Some(Err(error)) = left {
            note(&format!(
                "note: pairs are left for the next start no more: {error}"
            ));
            *pairs = None;
        }
    }

    /// Hands out the ends that the process before had not paired, once.
    #[must_use]
    pub fn take_ends(&self) -> Vec<LooseEnd> {
        let mut recalled = self.recalled.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *recalled)
    }

    /// Leaves the ends that are not paired: those known, and those the control core shows.
    pub fn leave_ends(&self, shown: impl Iterator<Item = LooseEnd>, now: Nanos) {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let left = ends.as_mut().map(|ends| {
            shown.for_each(|end| ends.see(&end));
            ends.leave(&self.store, now)
        });
        if let Some(Err(error)) = left {
            note(&format!(
                "note: ends are left for the next start no more: {error}"
            ));
            *ends = None;
        }
    }
}
