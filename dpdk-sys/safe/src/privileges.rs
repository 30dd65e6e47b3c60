//! Privileges of the process (credentials(7), capabilities(7), landlock(7)), dropped permanently by all its threads.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use seccompiler::BpfProgramRef;

use crate::errno::Errno;

/// Capability that this project needs at some time; the numbers are the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    /// `CAP_NET_ADMIN`: interfaces, addresses, routes, TAPs.
    NetAdmin = 12,
    /// `CAP_NET_RAW`: raw queues of cards that share them with the kernel.
    NetRaw = 13,
    /// `CAP_IPC_LOCK`: locked memory.
    IpcLock = 14,
}

impl Capability {
    /// Returns its name without `CAP_`, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Capability::NetAdmin => "net_admin",
            Capability::NetRaw => "net_raw",
            Capability::IpcLock => "ipc_lock",
        }
    }
}

/// IDs of a user who is not root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    /// User ID.
    pub user: u32,
    /// ID of the primary group.
    pub group: u32,
    /// IDs of the supplementary groups, at most 64.
    pub groups: Vec<u32>,
}

/// Privileges that the process keeps.
#[derive(Clone, Copy, Debug)]
pub struct Privileges<'a> {
    /// Capabilities; a thread does not gain those that it lacks.
    pub capabilities: &'a [Capability],
    /// User that the process becomes; `None` if it stays who it is. A change takes `CAP_SETUID` and `CAP_SETGID`.
    pub user: Option<&'a Ids>,
    /// Landlock ruleset that applies to files opened from now on; `None` for no restriction.
    pub ruleset: Option<BorrowedFd<'a>>,
}

/// Drops all privileges but `keep` in every thread of the process, DPDK's own included. Threads that are created later have those of their
/// creators.
///
/// # Errors
/// The kernel's reason, or [`Errno`] of `EBUSY`: a thread did not comply within two seconds. Threads may have dropped theirs by then.
pub fn keep_privileges(keep: Privileges<'_>) -> Result<(), Errno> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let capabilities = keep.capabilities.iter();
    let groups = keep.user.map_or(&[][..], |ids| &ids.groups);
    let privileges = dpdk_sys::npcc_privileges {
        capabilities: capabilities.fold(0, |set, one| set | 1 << *one as u8),
        changes_user: keep.user.is_some(),
        user: keep.user.map_or(0, |ids| ids.user),
        group: keep.user.map_or(0, |ids| ids.group),
        groups: groups.as_ptr(),
        group_count: groups.len(),
        ruleset: keep.ruleset.map_or(-1, |fd| fd.as_raw_fd()),
    };
    // SAFETY: the function reads the structure and `group_count` numbers behind `groups`, which live until it returns; it copies what
    // handlers read later. It sets a handler for SIGURG while it runs, which makes system calls and touches nothing but its own statics;
    // system calls it interrupts are restarted or report it, as for any signal. The lock keeps others out of the statics.
    Errno::check(unsafe { dpdk_sys::npcc_keep_privileges(&raw const privileges) })
}

/// Applies a seccomp filter to every thread, as [`seccompiler::apply_filter_all_threads`] does, and has the kernel log each call that it
/// refuses.
///
/// # Errors
/// The kernel's reason, `EBUSY` if a thread has another filter, or `EINVAL` for a filter that no kernel takes.
pub fn filter_and_log(filter: BpfProgramRef<'_>) -> Result<(), Errno> {
    let length = u16::try_from(filter.len()).map_err(|_| Errno::new(dpdk_sys::EINVAL))?;
    // SAFETY: the function reads `length` instructions behind the pointer, which are the slice's: seccompiler's type has the kernel's layout.
    Errno::check(unsafe { dpdk_sys::npcc_filter_and_log(filter.as_ptr().cast(), length) })
}
