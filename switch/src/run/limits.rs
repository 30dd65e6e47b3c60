//! Limits of the process and of its control groups, looked at before anything is opened: EAL ends a process that reaches one of them with a
//! backtrace, and the kernel kills one that has too little memory without a word.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use npcc_config::model::Hugepages;
use npcc_config::{Config, Sizing, cpu_list};

/// Descriptors that a start needs besides those of ports: libraries, EAL's memory, sockets, clients.
const FILES: u64 = 128;
/// Descriptors of a port: its queues' sockets, TAPs of its VLANs, an event of each queue.
const FILES_OF_PORT: u64 = 16;
/// Threads besides the workers: control, management, links, Linux, netlink, HTTP, log, EAL's own and clients.
const THREADS: u64 = 32;

/// Limit that is too low for this configuration.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum LimitError {
    /// A core that the host does not have.
    #[error(
        "core {core} is not online, cores {online} are: change cores.control, cores.workers or cores.housekeeping"
    )]
    Core {
        /// Configured core.
        core: usize,
        /// Cores of the host, as the kernel writes them.
        online: String,
    },
    /// Open files.
    #[error(
        "{limit} files may be open and {needed} are needed: LimitNOFILE= of the unit, or ulimit -n {needed}"
    )]
    Files {
        /// Limit.
        limit: u64,
        /// Need.
        needed: u64,
    },
    /// Threads of the control group.
    #[error(
        "{path} lets {left} more threads start and {needed} are needed: TasksMax= of the unit, or a higher pids.max"
    )]
    Threads {
        /// File of the limit.
        path: PathBuf,
        /// Threads that may still start.
        left: u64,
        /// Need.
        needed: u64,
    },
    /// Memory of the control group.
    #[error(
        "{path} is {} MiB, and this configuration may use {} MiB without hugepages (see `npcc-switch check`): the kernel would kill the switch \
         once its tables fill; raise MemoryMax= of the unit, or lower npcc.flows, routing.ipv4_routes, routing.ipv6_routes or buffer.pool",
        limit >> 20,
        needed >> 20
    )]
    Memory {
        /// File of the limit.
        path: PathBuf,
        /// Limit in bytes.
        limit: u64,
        /// Need in bytes.
        needed: u64,
    },
    /// Hugepages of the control group.
    #[error(
        "{path} is {} MiB, and {} MiB of hugepages are needed: raise it, lower buffer.pool, or set dpdk.hugepages to `off`",
        limit >> 20,
        needed >> 20
    )]
    Hugetlb {
        /// File of the limit.
        path: PathBuf,
        /// Limit in bytes.
        limit: u64,
        /// Need in bytes.
        needed: u64,
    },
}

/// Checks the limits of this process; raises that of open files as far as it may.
///
/// # Errors
/// Names the limit that is too low, and both figures.
pub(super) fn check(config: &Config) -> Result<(), LimitError> {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    cores(config, online.trim())?;
    files(config)?;
    let groups = Groups::of_this_process();
    groups.threads(config)?;
    groups.hugetlb(config)?;
    groups.memory(config)
}

/// Checks that all configured cores are among those online, as the kernel writes them: `0-3,8`. EAL's message for one that is not says
/// that its arguments are invalid.
fn cores(config: &Config, online: &str) -> Result<(), LimitError> {
    let known = cpu_list::read(online);
    if known.is_empty() {
        return Ok(());
    }
    let cores = &config.cores;
    let mut all = cores
        .workers
        .iter()
        .chain([&cores.control])
        .chain(&cores.housekeeping);
    match all.find(|core| !known.contains(core)) {
        Some(core) => Err(LimitError::Core {
            core: *core,
            online: online.to_owned(),
        }),
        None => Ok(()),
    }
}

fn files(config: &Config) -> Result<(), LimitError> {
    let ports = config.ports.iter();
    let of_ports = ports.map(|port| FILES_OF_PORT + u64::try_from(port.vlans.len()).unwrap_or(0));
    let needed = FILES + of_ports.sum::<u64>();
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return Ok(());
    };
    if soft >= needed {
        return Ok(());
    }
    let limit = hard.min(needed);
    if hard < needed || setrlimit(Resource::RLIMIT_NOFILE, limit, hard).is_err() {
        return Err(LimitError::Files {
            limit: hard,
            needed,
        });
    }
    Ok(())
}

/// Control group of this process and those above it, in the unified hierarchy.
struct Groups {
    folders: Vec<PathBuf>,
}

impl Groups {
    fn of_this_process() -> Groups {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Groups::of(Path::new("/sys/fs/cgroup"), &own)
    }

    /// Returns the groups that this text of `/proc/self/cgroup` names, below the folder where they are mounted.
    fn of(mounted: &Path, own: &str) -> Groups {
        let unified = own.lines().find_map(|line| line.strip_prefix("0::/"));
        let own = mounted.join(unified.unwrap_or_default());
        let folders = own.ancestors().take_while(|one| one.starts_with(mounted));
        Groups {
            folders: folders.map(Path::to_owned).collect(),
        }
    }

    /// Returns the least limit in files of this name, less what the file of the second name says is used, and its path.
    fn least(&self, limit: &str, used: Option<&str>) -> Option<(u64, PathBuf)> {
        let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        let left = self.folders.iter().filter_map(|folder| {
            let limit = folder.join(limit);
            let used = used.and_then(|used| number(folder.join(used)));
            let left = number(limit.clone())?.saturating_sub(used.unwrap_or(0));
            Some((left, limit))
        });
        left.min()
    }

    fn threads(&self, config: &Config) -> Result<(), LimitError> {
        let workers = u64::try_from(config.cores.workers.len()).unwrap_or(u64::MAX);
        let needed = workers.saturating_add(THREADS);
        match self.least("pids.max", Some("pids.current")) {
            Some((left, path)) if left < needed => Err(LimitError::Threads { path, left, needed }),
            _ => Ok(()),
        }
    }

    fn hugetlb(&self, config: &Config) -> Result<(), LimitError> {
        let needed = sizing(config).hugepage_bytes();
        match self.least("hugetlb.2MB.max", Some("hugetlb.2MB.current")) {
            Some((limit, path)) if config.dpdk.hugepages != Hugepages::Off && limit < needed => {
                Err(LimitError::Hugetlb {
                    path,
                    limit,
                    needed,
                })
            }
            _ => Ok(()),
        }
    }

    /// Checks the memory without hugepages, which have a limit of their own: all of what `check` prints, since a limit that holds until tables
    /// fill ends the switch under load. Packet buffers in ordinary pages are counted where they are sure to be there.
    fn memory(&self, config: &Config) -> Result<(), LimitError> {
        let sizing = sizing(config);
        let packets = match config.dpdk.hugepages {
            Hugepages::Off => sizing.ordinary_bytes(),
            Hugepages::On | Hugepages::Auto => 0,
        };
        let needed = sizing.table_bytes().saturating_add(packets);
        match self.least("memory.max", None) {
            Some((limit, path)) if limit < needed => Err(LimitError::Memory {
                path,
                limit,
                needed,
            }),
            _ => Ok(()),
        }
    }
}

fn sizing(config: &Config) -> Sizing {
    Sizing::of(config).on_nodes(crate::wiring::pools::nodes(config).len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(hugepages: &str) -> Config {
        let text = format!(
            "ports: [{{ name: a, device: net_null0 }}]\nqos: {{ profile: lossy }}\ndpdk: {{ hugepages: {hugepages} }}\n"
        );
        npcc_config::parse("t", &text).unwrap().config
    }

    #[test]
    fn a_core_that_is_not_online_is_named_before_eal_starts() {
        let text = "ports: [{ name: a, device: net_null0 }]\nqos: { profile: lossy }\ncores: { control: 1, workers: [0, 6] }\n";
        let config = npcc_config::parse("t", text).unwrap().config;
        for online in ["0-7", "0,1,4-6", "", "rubbish"] {
            assert_eq!(cores(&config, online), Ok(()), "{online}");
        }
        for (online, missing) in [("0-5", "core 6"), ("1-7", "core 0"), ("0,6", "core 1")] {
            let error = cores(&config, online).unwrap_err().to_string();
            assert!(error.contains(missing) && error.contains(online), "{error}");
        }
    }

    /// Builds the control groups `unit` below `system`, with these files and contents.
    fn groups(files: &[(&str, u64)]) -> (tempfile::TempDir, Groups) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("system/unit")).unwrap();
        fs::write(folder.path().join("system/memory.max"), "max\n").unwrap();
        for (path, value) in files {
            fs::write(folder.path().join(path), format!("{value}\n")).unwrap();
        }
        let own = "1:name=systemd:/x\n0::/system/unit\n";
        let groups = Groups::of(folder.path(), own);
        (folder, groups)
    }

    /// Law: a limit of any group above that the start is sure to exceed is an error with both figures; no limit is none.
    #[test]
    fn a_limit_that_the_start_exceeds_is_an_error_with_both_figures() {
        let (on, off) = (config("auto"), config("off"));
        let (_folder, none) = groups(&[]);
        for check in [Groups::threads, Groups::hugetlb, Groups::memory] {
            assert_eq!(check(&none, &off), Ok(()));
        }
        let all = sizing(&off);
        let needed = all.total_bytes() - all.mempool_bytes + all.ordinary_bytes();
        let (folder, above) = groups(&[("system/memory.max", needed - 1)]);
        let error = above.memory(&off).unwrap_err();
        let text = error.to_string();
        let file = folder.path().join("system/memory.max");
        assert!(text.contains(&file.display().to_string()), "{text}");
        assert!(
            text.contains(&format!("use {} MiB", needed >> 20))
                && text.contains(&format!("is {} MiB", (needed - 1) >> 20)),
            "{text}"
        );
        assert_eq!(above.memory(&on), Ok(()), "packets may be in hugepages");
        let tables = all.queue_bytes + all.fib_bytes + all.flow_bytes;
        let (_folder, full) = groups(&[("system/memory.max", tables - 1)]);
        assert!(full.memory(&on).is_err(), "tables may fill");
        let (_folder, enough) = groups(&[("system/memory.max", needed)]);
        assert_eq!(enough.memory(&off), Ok(()));

        let huge = sizing(&on).hugepage_bytes();
        let files = [
            ("system/unit/hugetlb.2MB.max", huge),
            ("system/unit/hugetlb.2MB.current", 1),
        ];
        let (_folder, short) = groups(&files);
        assert!(short.hugetlb(&on).is_err() && short.hugetlb(&off).is_ok());
        let (_folder, enough) = groups(&files[..1]);
        assert_eq!(enough.hugetlb(&on), Ok(()));

        let files = [("system/pids.max", 34), ("system/pids.current", 2)];
        let (_folder, few) = groups(&files);
        let error = few.threads(&on).unwrap_err().to_string();
        assert!(
            error.contains("32 more threads start and 33 are needed"),
            "{error}"
        );
    }
}
