//! Errors of starting EAL, and what to do about them.

use crate::errno::Errno;

/// Error of starting EAL.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum EalError {
    /// [`Eal::init`](super::Eal::init) was called before in this process.
    #[error(
        "EAL was already started once in this process, and DPDK cannot start twice: start a new \
         process"
    )]
    AlreadyInitialised,
    /// An argument holds a NUL character.
    #[error("EAL argument \"{argument}\" contains a NUL character: remove it")]
    NulInArgument {
        /// The argument, with the NUL made visible.
        argument: String,
    },
    /// The arguments are more than C can count.
    #[error("too many EAL arguments")]
    TooManyArguments,
    /// EAL refused an argument.
    #[error(
        "EAL refused its arguments ({arguments}): {errno}; the lines it printed name the argument \
         (note that DPDK 22.11 refuses --no-huge together with --in-memory)"
    )]
    BadArguments {
        /// The arguments as given.
        arguments: String,
        /// EAL's reason.
        errno: Errno,
    },
    /// No hugepages are free, and EAL was not started with `--no-huge`.
    #[error(
        "EAL found no free hugepages ({errno}): reserve some (echo 512 > \
         /proc/sys/vm/nr_hugepages), or do without them at a cost in speed (EAL arguments \
         --no-huge -m 512 --no-shconf)"
    )]
    NoHugepages {
        /// EAL's reason.
        errno: Errno,
    },
    /// The process lacks a privilege.
    #[error(
        "EAL was refused access ({errno}): run as root, or give this user the hugetlbfs mount, \
         /dev/vfio and /var/run/dpdk; with --no-huge --no-shconf --no-pci none of them is needed"
    )]
    NoPermission {
        /// EAL's reason.
        errno: Errno,
    },
    /// Another process holds a resource that EAL needs.
    #[error(
        "EAL found a resource in use ({errno}): another DPDK process runs under the same name; \
         give each its own --file-prefix, or use --in-memory"
    )]
    InUse {
        /// EAL's reason.
        errno: Errno,
    },
    /// EAL could not get the memory it was configured to take.
    #[error(
        "EAL could not get its memory ({errno}): lower -m (MB), or reserve more hugepages; \
         {free_bytes} bytes of hugepages are free"
    )]
    NoMemory {
        /// EAL's reason.
        errno: Errno,
        /// Free hugepages in bytes when it failed.
        free_bytes: u64,
    },
    /// EAL failed for any other reason.
    #[error("EAL did not start: {errno}; the lines it printed say where")]
    Failed {
        /// EAL's reason.
        errno: Errno,
    },
}

impl EalError {
    /// Derives the error from EAL's `rte_errno`, its arguments, and the bytes of free hugepages.
    pub(super) fn explain(errno: Errno, args: &[String], free_bytes: u64) -> Self {
        let wants_hugepages = !args.iter().any(|arg| arg == "--no-huge");
        match errno.raw() {
            dpdk_sys::EINVAL => Self::BadArguments {
                arguments: args.join(" "),
                errno,
            },
            // 22.11 answers EACCES when it finds no hugepages at all, and ENOMEM when there are too
            // few.
            dpdk_sys::EACCES | dpdk_sys::ENOMEM | dpdk_sys::ENODEV | dpdk_sys::ENOENT
                if wants_hugepages && free_bytes == 0 =>
            {
                Self::NoHugepages { errno }
            }
            dpdk_sys::EACCES | dpdk_sys::EPERM => Self::NoPermission { errno },
            dpdk_sys::EAGAIN | dpdk_sys::EBUSY => Self::InUse { errno },
            dpdk_sys::ENOMEM => Self::NoMemory { errno, free_bytes },
            dpdk_sys::EALREADY => Self::AlreadyInitialised,
            _ => Self::Failed { errno },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explain(code: i32, args: &[&str], free_bytes: u64) -> EalError {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        EalError::explain(Errno::new(code), &args, free_bytes)
    }

    #[test]
    fn no_hugepages_is_told_from_no_permission() {
        assert!(matches!(
            explain(dpdk_sys::EACCES, &[], 0),
            EalError::NoHugepages { .. }
        ));
        assert!(matches!(
            explain(dpdk_sys::EACCES, &[], 2 << 20),
            EalError::NoPermission { .. }
        ));
        assert!(matches!(
            explain(dpdk_sys::EACCES, &["--no-huge"], 0),
            EalError::NoPermission { .. }
        ));
    }

    #[test]
    fn bad_arguments_are_repeated() {
        let error = explain(dpdk_sys::EINVAL, &["--no-huge", "--in-memory"], 0);
        assert!(
            error.to_string().contains("(--no-huge --in-memory)"),
            "{error}"
        );
    }

    #[test]
    fn too_little_memory_says_how_much_there_was() {
        let error = explain(dpdk_sys::ENOMEM, &["-m", "4096"], 2_097_152);
        assert!(error.to_string().contains("2097152 bytes"), "{error}");
    }
}
