//! Rare states that runs must have seen: [`seen`] marks one, and a test of all seeds asserts that each was seen.

use std::cell::RefCell;
use std::collections::BTreeMap;

thread_local! {
    static SEEN: RefCell<BTreeMap<&'static str, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// Marks that a state was seen.
pub fn seen(state: &'static str) {
    SEEN.with_borrow_mut(|seen| *seen.entry(state).or_default() += 1);
}

/// Returns how often each state was seen by this thread.
pub fn all() -> BTreeMap<&'static str, u64> {
    SEEN.with_borrow(Clone::clone)
}
