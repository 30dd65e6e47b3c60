//! System calls of a running switch: an allow list, found by watching all its tests; any other call fails with EPERM.
//!
//! An error and not a kill: a driver that needs another call at a bad moment gets the error, and forwarding goes on.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule,
};

/// System calls allowed with any arguments.
const ALWAYS: &[c_long] = &[
    // Files: the configuration, /proc and /sys, the totals, hugepages.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_openat,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_lseek,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_memfd_create,
    // Devices: vfio, uio, RDMA, TUN, interfaces.
    libc::SYS_ioctl,
    // Sockets: clients, HTTP, the journal, the service manager, netlink, packets.
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_connect,
    libc::SYS_shutdown,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_socketpair,
    // Waiting for events.
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    libc::SYS_futex,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_sched_yield,
    libc::SYS_restart_syscall,
    // Memory management.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_mincore,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_mbind,
    libc::SYS_get_mempolicy,
    libc::SYS_set_mempolicy,
    libc::SYS_membarrier,
    // Threads of this process.
    libc::SYS_clone3,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_rseq,
    libc::SYS_set_tid_address,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_getcpu,
    libc::SYS_getrusage,
    libc::SYS_wait4,
    libc::SYS_waitid,
    // Signals to itself.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    // Identity of the process and its environment.
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getrandom,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_capget,
];

/// Older forms of system calls that exist on this architecture only.
#[cfg(target_arch = "x86_64")]
const OLDER: &[c_long] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_poll,
    libc::SYS_select,
    // EAL makes one whenever a device comes or goes.
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_accept,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_eventfd,
    libc::SYS_time,
    libc::SYS_getdents,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[c_long] = &[];

/// Condition on an argument: its index, the mask of the bits that count, and their value.
type Must = (u8, u64, u64);

/// Returns a flag or an address family as the kernel's registers hold it.
fn bits(number: i32) -> u64 {
    u64::from(number.unsigned_abs())
}

/// Returns the system calls allowed with some arguments only: all conditions of an entry must hold.
fn sometimes() -> Vec<(c_long, Vec<Must>)> {
    let whole = u64::from(u32::MAX);
    let own = u64::from(std::process::id());
    let (executes, thread) = (bits(libc::PROT_EXEC), bits(libc::CLONE_THREAD));
    let kind = |kind| (1, 0xf, bits(kind));
    let family = |family| (0, whole, bits(family));
    vec![
        // No new executable memory.
        (libc::SYS_mmap, vec![(2, executes, 0)]),
        (libc::SYS_mprotect, vec![(2, executes, 0)]),
        // Threads, but no processes.
        (libc::SYS_clone, vec![(0, thread, thread)]),
        (libc::SYS_tgkill, vec![(0, whole, own)]),
        (libc::SYS_prctl, vec![(0, whole, bits(libc::PR_SET_NAME))]),
        // Reading limits, not setting them.
        (libc::SYS_prlimit64, vec![(2, u64::MAX, 0)]),
        // No raw sockets and no packet sockets; drivers query interfaces through a datagram socket.
        (libc::SYS_socket, vec![family(libc::AF_UNIX)]),
        (libc::SYS_socket, vec![family(libc::AF_NETLINK)]),
        (
            libc::SYS_socket,
            vec![family(libc::AF_INET), kind(libc::SOCK_DGRAM)],
        ),
        (
            libc::SYS_socket,
            vec![family(libc::AF_INET6), kind(libc::SOCK_DGRAM)],
        ),
    ]
}

/// Returns the number of different system calls that are allowed.
pub(super) fn allowed() -> usize {
    rules().map_or(0, |rules| rules.len())
}

fn rules() -> Result<BTreeMap<i64, Vec<SeccompRule>>, String> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in ALWAYS.iter().chain(OLDER) {
        rules.insert(*call, Vec::new());
    }
    for (call, musts) in sometimes() {
        let conditions = musts.into_iter().map(|(argument, mask, value)| {
            let length = if mask > u64::from(u32::MAX) {
                Len::Qword
            } else {
                Len::Dword
            };
            SeccompCondition::new(argument, length, Op::MaskedEq(mask), value)
        });
        let rule = conditions
            .collect::<Result<_, _>>()
            .and_then(SeccompRule::new);
        let rule = rule.map_err(|error| error.to_string())?;
        rules.entry(call).or_default().push(rule);
    }
    Ok(rules)
}

/// Builds the seccomp programs, in the order in which they are applied. The first refuses `clone3` with ENOSYS, like a kernel without it,
/// because its flags are in memory where no filter sees them; the C library then uses `clone`. The second is the allow list.
pub(super) fn filters() -> Result<[BpfProgram; 2], String> {
    let make = |rules, otherwise, matched| {
        let architecture = std::env::consts::ARCH.try_into();
        let architecture = architecture.map_err(|error| format!("{error}"))?;
        let filter = SeccompFilter::new(rules, otherwise, matched, architecture);
        let filter = filter.map_err(|error| error.to_string())?;
        BpfProgram::try_from(filter).map_err(|error| error.to_string())
    };
    let refused = |errno: i32| SeccompAction::Errno(errno.unsigned_abs());
    let list = make(rules()?, refused(libc::EPERM), SeccompAction::Allow)?;
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let threads = make(clone3, SeccompAction::Allow, refused(libc::ENOSYS))?;
    Ok([threads, list])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_starts_programs_or_leaves_the_namespace_is_not_on_the_list() {
        let rules = rules().unwrap();
        for call in [
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_setns,
            libc::SYS_unshare,
            libc::SYS_mount,
            libc::SYS_ptrace,
            libc::SYS_bpf,
            libc::SYS_kill,
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_setuid,
            libc::SYS_capset,
            libc::SYS_keyctl,
        ] {
            assert!(!rules.contains_key(&call), "{call}");
        }
        assert_eq!(rules[&libc::SYS_mmap].len(), 1);
        assert_eq!(rules[&libc::SYS_socket].len(), 4);
        assert!(filters().unwrap().iter().all(|filter| filter.len() < 4096));
    }
}
