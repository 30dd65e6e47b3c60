//! Descriptors that outlive the process: the service manager's descriptor store (`FDSTORE=1`, `sd_notify(3)`).
//!
//! Law: what the manager handed over is given out once, by its name; what nobody took when all is up is closed, here and in the store.
//! Without a service manager nothing is kept and nothing fails.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sd_notify::NotifyState;

/// See the module's text.
#[derive(Debug, Default)]
pub struct Store {
    handed: Mutex<BTreeMap<String, OwnedFd>>,
}

impl Store {
    /// With what this process was handed at its start ([`npcc_heap::inherited::claim`]). Of several with one name the last counts.
    #[must_use]
    pub fn of(handed: Vec<(String, OwnedFd)>) -> Store {
        Store {
            handed: Mutex::new(handed.into_iter().collect()),
        }
    }

    /// Whether there is a service manager to leave anything with.
    #[must_use]
    pub fn listens() -> bool {
        std::env::var_os("NOTIFY_SOCKET").is_some()
    }

    /// Takes the descriptor of a name that the process before left.
    #[must_use]
    pub fn take(&self, name: &str) -> Option<OwnedFd> {
        self.handed().remove(name)
    }

    /// Whether the process before left one whose name begins like this.
    #[must_use]
    pub fn has(&self, begin: &str) -> bool {
        self.handed().keys().any(|name| name.starts_with(begin))
    }

    /// Takes all whose names begin like this, by the rest of their names.
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

    /// Leaves a descriptor for the next process, by this name, in the place of another of the name.
    ///
    /// # Errors
    /// The service manager cannot be told. Whether it has room (`FileDescriptorStoreMax=`) it does not say.
    pub fn keep(&self, name: &str, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.forget(name)?;
        let state = [NotifyState::FdStore, NotifyState::FdName(name)];
        sd_notify::notify_with_fds(&state, &[fd])
    }

    /// Leaves nothing of this name for the next process.
    ///
    /// # Errors
    /// The service manager cannot be told.
    pub fn forget(&self, name: &str) -> io::Result<()> {
        sd_notify::notify(&[NotifyState::FdStoreRemove, NotifyState::FdName(name)])
    }

    /// Closes what nobody took, here and in the store; the names.
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
