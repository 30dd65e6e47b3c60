//! Queue of identities whose rows are still to be passed on, each at most once.

use std::collections::{HashSet, VecDeque};

use npcc_api::ends::Key;

/// Queue of distinct identities, oldest first. Its length is bounded by the number of ends plus as many that are gone.
#[derive(Debug, Default)]
pub(super) struct Pending {
    queue: VecDeque<Key>,
    members: HashSet<Key>,
}

impl Pending {
    pub(super) fn push(&mut self, key: Key) {
        if self.members.insert(key) {
            self.queue.push_back(key);
        }
    }

    pub(super) fn pop(&mut self) -> Option<Key> {
        let key = self.queue.pop_front()?;
        self.members.remove(&key);
        Some(key)
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Removes all identities that do not satisfy `keep`; returns their number.
    pub(super) fn retain(&mut self, keep: impl Fn(&Key) -> bool) -> usize {
        let before = self.queue.len();
        self.queue.retain(&keep);
        self.members.retain(keep);
        before - self.queue.len()
    }
}
