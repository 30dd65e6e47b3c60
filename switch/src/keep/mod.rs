//! What outlives the process: descriptors in the service manager's store, and memory behind some of them.
//!
//! A TAP whose last descriptor is closed goes, and the kernel's routes with it; so the store holds a second one ([`store`]). Counters
//! ([`ledger`]), pairs, what the file wanted of Linux, whether the switch is being drained and which pause storms there are ([`facts`])
//! lie in sealed memory that the store holds too. A thread of its own writes them down; no worker and no control core knows of any of it. `docs/restart.md` tells the
//! whole.

mod copies;
pub mod facts;
pub mod ledger;
mod memory;
mod pairs;
pub mod store;
pub mod storms;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use npcc_cnp::table::FlowView;

use self::facts::{Facts, FactsKept};
use self::ledger::Ledger;
use self::pairs::Pairs;
use self::store::Store;
use crate::control::order::ListedPair;
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
        let facts = facts.map_err(|error| say(format!("facts do not outlive the switch: {error}")));
        Keep {
            store: Arc::clone(store),
            ledger,
            facts: Mutex::new(facts.unwrap_or_default()),
            pairs: Mutex::new(pairs),
            suggested: Mutex::new(suggested.unwrap_or_default()),
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
}
