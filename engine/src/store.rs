//! Descriptors that outlive the process: the service manager's descriptor store (`FDSTORE=1`, `sd_notify(3)`).
//!
//! Law: each descriptor that the manager handed over is given out once, by its name; those not taken when all is up are closed, here and
//! in the store. Without a service manager nothing is kept and nothing fails.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::notify;

/// Descriptors handed over by the service manager and not yet taken.
#[derive(Debug, Default)]
pub struct Store {
    handed: Mutex<BTreeMap<String, OwnedFd>>,
}

impl Store {
    /// Creates the store from the descriptors handed over at the start ([`npcc_heap::inherited::claim`]). Of several with one name the last counts.
    #[must_use]
    pub fn of(handed: Vec<(String, OwnedFd)>) -> Store {
        Store {
            handed: Mutex::new(handed.into_iter().collect()),
        }
    }

    /// Returns true if there is a service manager to leave descriptors with.
    #[must_use]
    pub fn listens() -> bool {
        notify::listens()
    }

    /// Takes the descriptor of this name that the process before left.
    #[must_use]
    pub fn take(&self, name: &str) -> Option<OwnedFd> {
        self.handed().remove(name)
    }

    /// Returns true if the process before left a descriptor whose name begins with `begin`.
    #[must_use]
    pub fn has(&self, begin: &str) -> bool {
        self.handed().keys().any(|name| name.starts_with(begin))
    }

    /// Takes all descriptors whose names begin with `begin`, by the rest of their names.
    #[must_use]
    pub fn take_all(&self, begin: &str) -> BTreeMap<String, OwnedFd> {
        let mut handed = self.handed();
        let all = std::mem::take(&mut *handed);
        let (mut taken, mut left) = (BTreeMap::new(), BTreeMap::new());
        for (name, fd) in all {
            match name.strip_prefix(begin) {
                Some(rest) => _ = taken.insert(rest.to_owned(), fd),
                None => _ = left.insert(name, fd),
            }
        }
        *handed = left;
        taken
    }

    /// Leaves a descriptor for the next process under this name, in place of an earlier one of the name.
    ///
    /// # Errors
    /// The service manager cannot be notified. It does not report whether it has room (`FileDescriptorStoreMax=`). One that does not read
    /// at the moment gets the descriptor later.
    pub fn save(&self, name: &str, fd: BorrowedFd<'_>) -> io::Result<()> {
        notify::store(name, Some(fd))
    }

    /// Removes the descriptor of this name from the store.
    ///
    /// # Errors
    /// The service manager cannot be notified.
    pub fn forget(&self, name: &str) -> io::Result<()> {
        notify::store(name, None)
    }

    /// Closes the descriptors that were not taken, here and in the store; returns their names.
    #[must_use]
    pub fn close_rest(&self) -> Vec<String> {
        let rest = std::mem::take(&mut *self.handed());
        let names: Vec<String> = rest.into_keys().collect();
        for name in &names {
            // A manager that went away keeps nothing anyway.
            let _ = self.forget(name);
        }
        names
    }

    fn handed(&self) -> MutexGuard<'_, BTreeMap<String, OwnedFd>> {
        self.handed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn fd() -> OwnedFd {
        let file = tempfile::tempfile().unwrap();
        file.as_fd().try_clone_to_owned().unwrap()
    }

    #[test]
    fn each_is_given_out_once_and_the_rest_is_closed() {
        let names = ["tap.dc0", "state", "tap.wan0", "odd"];
        let handed = names.map(|name| (name.to_owned(), fd()));
        let store = Store::of(handed.into());
        assert!(store.has("tap.") && !store.has("taps"));
        assert!(store.take("state").is_some() && store.take("state").is_none());
        let taps = store.take_all("tap.");
        let taps: Vec<&str> = taps.keys().map(String::as_str).collect();
        assert_eq!(taps, ["dc0", "wan0"]);
        assert_eq!(store.close_rest(), ["odd"]);
        assert!(store.close_rest().is_empty());
    }
}
