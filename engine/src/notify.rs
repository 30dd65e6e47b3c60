//! Messages to the service manager, by systemd's protocol (`sd_notify(3)`); none are sent where no manager listens.
//!
//! Law: no message waits for the manager to read. One that does not fit into its socket is dropped, unless the manager has to know of it:
//! such a message is owed and sent again, in order, until the manager takes it or the process has ended for [`LAST`].

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg};
use sd_notify::NotifyState;

/// Time at the end of the process for which messages that are owed are sent again.
pub const LAST: Duration = Duration::from_secs(1);
/// Interval of these attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Messages that are owed to the service manager, oldest first.
static OWED: Mutex<VecDeque<Owed>> = Mutex::new(VecDeque::new());

/// Message that is owed.
struct Owed {
    /// Name of the descriptor that it concerns; empty if it concerns none.
    name: String,
    text: String,
    fd: Option<OwnedFd>,
}

/// Returns true if there is a service manager.
#[must_use]
pub fn listens() -> bool {
    manager().is_some()
}

/// Sends a message that may be lost.
pub fn tell(state: &[NotifyState<'_>]) {
    // The next one is as good; the manager may also be gone.
    let _ = send(&text(state), None);
}

/// Sends a message that must not be lost.
pub fn owe(state: &[NotifyState<'_>]) {
    let mut owed = owed();
    owed.push_back(Owed {
        name: String::new(),
        text: text(state),
        fd: None,
    });
    // A manager that is gone need not know.
    let _ = pay(&mut owed);
}

/// Leaves a descriptor with the manager under this name in place of an earlier one, or just removes that.
///
/// # Errors
/// The system gives no descriptor, or the manager is gone.
pub fn store(name: &str, fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let fd = fd.map(|fd| fd.try_clone_to_owned()).transpose()?;
    let mut owed = owed();
    // They are replaced, so that there are never more than names.
    owed.retain(|earlier| earlier.name != name);
    let removal = [NotifyState::FdStoreRemove, NotifyState::FdName(name)];
    let storage = [NotifyState::FdStore, NotifyState::FdName(name)];
    let with = |state, fd| Owed {
        name: name.to_owned(),
        text: text(state),
        fd,
    };
    owed.push_back(with(&removal, None));
    if fd.is_some() {
        owed.push_back(with(&storage, fd));
    }
    pay(&mut owed)
}

/// Sends what is owed, as far as there is room.
pub fn retry() {
    // A manager that is gone keeps nothing.
    let _ = pay(&mut owed());
}

/// Sends what is owed until the manager has taken it, [`LAST`] at most; called at the end of the process. Returns the names of the descriptors
/// that it did not take.
#[must_use]
pub fn finish() -> Vec<String> {
    let deadline = Instant::now() + LAST;
    loop {
        retry();
        let left = owed();
        if left.is_empty() || Instant::now() >= deadline {
            let fds = left.iter().filter(|one| one.fd.is_some());
            return fds.map(|one| one.name.clone()).collect();
        }
        drop(left);
        std::thread::sleep(PAUSE);
    }
}

/// Sends what is owed until there is no room. Gives the last error for which a message was given up.
fn pay(owed: &mut VecDeque<Owed>) -> io::Result<()> {
    let mut paid = Ok(());
    while let Some(first) = owed.front() {
        match send(&first.text, first.fd.as_ref()) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => paid = Err(error),
        }
        owed.pop_front();
    }
    paid
}

/// Sends a datagram, without waiting.
fn send(text: &str, fd: Option<&OwnedFd>) -> io::Result<()> {
    let Some(manager) = manager() else {
        return Ok(());
    };
    let from = UnixDatagram::unbound()?;
    let fds: Vec<_> = fd.iter().map(|fd| fd.as_raw_fd()).collect();
    let rights = [ControlMessage::ScmRights(&fds)];
    let rights = if fds.is_empty() { &[] } else { &rights[..] };
    let octets = [io::IoSlice::new(text.as_bytes())];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    let to = UnixAddr::new(&manager)?;
    sendmsg(from.as_raw_fd(), &octets, rights, flags, Some(&to))?;
    Ok(())
}

/// Returns the path of the manager's socket.
fn manager() -> Option<PathBuf> {
    std::env::var_os("NOTIFY_SOCKET").map(PathBuf::from)
}

fn text(state: &[NotifyState<'_>]) -> String {
    state.iter().map(|one| format!("{one}\n")).collect()
}

fn owed() -> MutexGuard<'static, VecDeque<Owed>> {
    OWED.lock().unwrap_or_else(PoisonError::into_inner)
}
