//! State that outlives the process: descriptors in the service manager's store, and memory behind some of them.
//!
//! The store ([`npcc_engine::store`]) holds a second descriptor of each TAP, as the kernel removes a TAP, and the routes through it, with its last
//! descriptor. It also holds sealed memory: counters ([`ledger`]), pairs, facts ([`facts`]: what the file wanted of Linux, whether the
//! switch is being drained, pause storms, where the kernel's IPv6 is off) and changes. All but counters are rings of records
//! ([`npcc_heap::records`]). A separate thread writes counters, pairs and storms; the workers and the control core are not involved. See
//! `docs/restart.md`.

pub mod facts;
pub mod ledger;
mod memory;
pub mod pairs;
pub mod storms;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use npcc_api::pairs::ListedPair;
use npcc_cnp::table::FlowView;
use npcc_heap::records::Ring;

use self::facts::{Facts, FactsKept};
use self::ledger::Ledger;
use self::pairs::Pairs;
use npcc_engine::log::note;
use npcc_engine::store::Store;

/// Interval at which counters, pairs and pause storms are written down.
pub const EVERY: Duration = Duration::from_millis(250);

/// State kept for the next process. By default nothing is kept.
#[derive(Debug, Default)]
pub struct SavedState {
    /// True if what is written is kept.
    is_kept: bool,
    store: Arc<Store>,
    /// Counters that continue over restarts.
    pub ledger: Ledger,
    facts: Mutex<FactsKept>,
    pairs: Mutex<Option<Pairs>>,
    /// Pairs that the process before knew, until they are handed out.
    suggested: Mutex<Vec<ListedPair>>,
}

impl SavedState {
    /// Creates the state, with what the process before left; without a service manager nothing is kept.
    #[must_use]
    pub fn open(store: &Arc<Store>) -> SavedState {
        if Store::listens() {
            SavedState::read(store)
        } else {
            SavedState::default()
        }
    }

    /// Creates the state, with what the process before left in `store`.
    #[must_use]
    pub fn read(store: &Arc<Store>) -> SavedState {
        let mut say = |line: String| note(&format!("note: {line}"));
        let ledger = Ledger::open(store, &mut say);
        let facts = FactsKept::open(store, &mut say);
        let (pairs, suggested) = Pairs::open(store, &mut say)
            .map_err(|error| say(format!("pairs do not outlive the switch: {error}")))
            .ok()
            .unzip();
        let facts = facts.map_err(|error| say(format!("facts do not outlive the switch: {error}")));
        SavedState {
            is_kept: true,
            store: Arc::clone(store),
            ledger,
            facts: Mutex::new(facts.unwrap_or_default()),
            pairs: Mutex::new(pairs),
            suggested: Mutex::new(suggested.unwrap_or_default()),
        }
    }

    /// Returns the ring of records of this name and layout, as the process before left it or new; `None` where nothing outlives the process.
    #[must_use]
    pub fn ring(
        &self,
        (name, layout): (&str, &str),
        (slots, longest): (usize, usize),
    ) -> Option<Ring> {
        if !self.is_kept {
            return None;
        }
        let layout = format!("ring of {slots} records of {longest} words: {layout}");
        let mut say = |line: String| note(&format!("note: {line}"));
        memory::ring(&self.store, (name, &layout), (slots, longest), &mut say)
            .map_err(|error| say(format!("`{name}` does not outlive the switch: {error}")))
            .ok()
    }

    /// Returns the descriptor store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the facts: all that is known besides counters and pairs.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        facts.now.clone()
    }

    /// Changes the facts: all that is known besides counters and pairs.
    pub fn change(&self, change: impl FnOnce(&mut Facts)) {
        let mut facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new = facts.now.clone();
        change(&mut new);
        let left = facts.leave(new);
        drop(facts);
        if let Err(error) = left {
            note(&format!(
                "note: the next start will not know of a change: {error}"
            ));
        }
    }

    /// Returns true if pairs are left for the next process.
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

    /// Leaves the known pairs for the next process.
    pub fn leave_pairs(&self, flows: &FlowView) {
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pairs) = pairs.as_mut() {
            pairs.leave(flows);
        }
    }
}
