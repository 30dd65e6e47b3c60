//! Descriptors inherited from a service manager at start, as `sd_listen_fds_with_names(3)` describes it: [`claim`].
//!
//! Law: each is given out once, to one owner; a process that `LISTEN_PID` does not name gets none.

use std::env;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

/// First inherited descriptor number.
const FIRST: RawFd = 3;
/// Upper bound on the number of descriptors, more than any service manager keeps.
const MOST: RawFd = 4096;

/// Takes the descriptors that this process inherited, each with its name. Must be called before anything is opened: the descriptors are
/// known by their numbers alone. A second call returns none.
#[must_use]
pub fn claim() -> Vec<(String, OwnedFd)> {
    static CLAIMED: AtomicBool = AtomicBool::new(false);
    if CLAIMED.swap(true, Ordering::SeqCst) {
        return Vec::new();
    }
    let number = |name: &str| env::var(name).ok()?.parse::<RawFd>().ok();
    let own = i32::try_from(std::process::id()).ok();
    if own.is_none() || number("LISTEN_PID") != own {
        return Vec::new();
    }
    let count = number("LISTEN_FDS").unwrap_or_default().clamp(0, MOST);
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':').map(str::to_owned);
    let all = (FIRST..FIRST + count).map(|fd| (names.next().unwrap_or_default(), own_it(fd)));
    all.filter_map(|(name, fd)| Some((name, fd?))).collect()
}

/// Takes ownership of an inherited descriptor and sets close-on-exec, so that programs started from here do not inherit it; `None` if no
/// descriptor has this number.
fn own_it(fd: RawFd) -> Option<OwnedFd> {
    // SAFETY: the number is above that of standard error, so not -1; whether it is open is what is asked, and nothing else is done with
    // it before it is known.
    let requested = unsafe { BorrowedFd::borrow_raw(fd) };
    let flags = fcntl(requested, FcntlArg::F_GETFD).ok()?;
    // What a program inherits has no such flag; the standard library sets it on all that it opens, which has an owner.
    if FdFlag::from_bits_retain(flags).contains(FdFlag::FD_CLOEXEC) {
        return None;
    }
    fcntl(requested, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).ok()?;
    // SAFETY: the descriptor is open. The service manager opened it for this process (`LISTEN_PID` names it, `LISTEN_FDS` counts it), `claim`
    // runs once, before the process opened any of its own, so nobody else owns it; of what was opened before all the same, the standard
    // library's are refused above.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}
