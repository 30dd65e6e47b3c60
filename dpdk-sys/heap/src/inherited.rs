//! Descriptors that a service manager hands a process at its start, as `sd_listen_fds_with_names(3)` has it: [`claim`].
//!
//! Law: each is given out once, to one owner; a process that is not meant (`LISTEN_PID`) gets none.

use std::env;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

/// The number of the first.
const FIRST: RawFd = 3;
/// More than any service manager keeps.
const MOST: RawFd = 4096;

/// Takes what this process was handed, each with its name. To be called first of all, before anything is opened: the descriptors are
/// known by their numbers alone. A second call gets none.
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

/// The owner of an inherited descriptor, which no program that is started from here inherits in its turn; `None` where there is none
/// of this number.
fn own_it(fd: RawFd) -> Option<OwnedFd> {
    // SAFETY: the number is above that of standard error, so not -1; whether it is open is what is asked, and nothing else is done with
    // it before it is known.
    let asked = unsafe { BorrowedFd::borrow_raw(fd) };
    fcntl(asked, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).ok()?;
    // SAFETY: the descriptor is open. The service manager opened it for this process (`LISTEN_PID` names it, `LISTEN_FDS` counts it), `claim`
    // runs once, before the process opened any of its own, so nobody else owns it.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}
