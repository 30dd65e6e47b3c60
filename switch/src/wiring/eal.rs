//! Arguments for EAL.

use std::path::Path;

use npcc_config::model::Hugepages;
use npcc_config::resolved::Device;
use npcc_config::sizing::HUGEPAGE;
use npcc_config::{Config, Sizing};

/// Reason why EAL cannot be started as configured.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum EalError {
    /// Hugepages are required and too few are free.
    #[error(
        "dpdk.hugepages is `on`, but {free} MiB of hugepages are free and {needed} MiB are needed: \
         echo {pages} > /proc/sys/vm/nr_hugepages, or lower buffer.pool, or set dpdk.hugepages to `auto`"
    )]
    Hugepages {
        /// MiB free.
        free: u64,
        /// MiB needed.
        needed: u64,
        /// 2 MiB pages needed.
        pages: u64,
    },
    /// Hugepages are required, and EAL could not reach them.
    #[error(
        "dpdk.hugepages is `on`, but no hugetlbfs is mounted: mount -t hugetlbfs none /dev/hugepages, or add --in-memory to \
         dpdk.eal_args, or set dpdk.hugepages to `auto`"
    )]
    NotMounted,
    /// There is not enough memory of either kind.
    #[error(
        "the packet buffers need {needed} MiB, and {free} MiB of memory are free: lower buffer.pool, or raise \
         buffer.lossless_min_frame if frames are larger"
    )]
    Memory {
        /// MiB free.
        free: u64,
        /// MiB needed.
        needed: u64,
    },
}

/// Memory of the machine, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Free {
    /// Bytes in free hugepages.
    pub hugepages: u64,
    /// Bytes in hugepages left behind by processes that are gone: EAL frees them as it starts, unless it is to use no files.
    pub stale: u64,
    /// True if a hugetlbfs is mounted, without which EAL reaches hugepages only with `--in-memory`.
    pub mounted: bool,
    /// Bytes in ordinary pages, without swapping.
    pub ordinary: u64,
}

impl Free {
    /// Reads the free memory; a value that the system does not report counts as plenty, and EAL will find out.
    #[must_use]
    pub fn now() -> Free {
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let available = meminfo
            .lines()
            .find_map(|line| line.strip_prefix("MemAvailable:"));
        let kib = available.and_then(|rest| {
            rest.trim()
                .trim_end_matches("kB")
                .trim()
                .parse::<u64>()
                .ok()
        });
        Free {
            hugepages: npcc_dpdk::hugepages_available(),
            stale: npcc_dpdk::hugepages_stale(),
            mounted: npcc_dpdk::hugepages_mounted(),
            ordinary: kib.map_or(u64::MAX, |kib| kib << 10),
        }
    }
}

/// Arguments for EAL, and what the operator should know about them.
#[derive(Debug, PartialEq, Eq)]
pub struct EalSetup {
    /// Arguments, without a program name.
    pub args: Vec<String>,
    /// True if packet memory is in ordinary pages, which is slower.
    pub no_huge: bool,
}

/// Returns EAL's number for the thread of a worker: its core's, unless the control thread shares a core with a worker.
#[must_use]
pub fn worker_lcore(config: &Config, worker: usize) -> Option<u32> {
    let core = *config.cores.workers.get(worker)?;
    let number = if shares(config) { worker } else { core };
    u32::try_from(number).ok()
}

/// Returns true if the control thread has a core that a worker polls.
#[must_use]
pub fn shares(config: &Config) -> bool {
    config.cores.workers.contains(&config.cores.control)
}

/// Returns EAL's arguments for its threads and their cores.
fn lcores(config: &Config) -> [String; 3] {
    let cores = &config.cores;
    let joined = |all: Vec<String>| all.join(",");
    if shares(config) {
        let main = cores.workers.len();
        let threads = cores.workers.iter().chain([&cores.control]).enumerate();
        let threads = threads.map(|(number, core)| format!("{number}@{core}"));
        return [
            "--lcores".to_owned(),
            joined(threads.collect()),
            format!("--main-lcore={main}"),
        ];
    }
    let used = std::iter::once(cores.control).chain(cores.workers.iter().copied());
    [
        "-l".to_owned(),
        joined(used.map(|core| core.to_string()).collect()),
        format!("--main-lcore={}", cores.control),
    ]
}

/// Returns the allow list of PCI devices: those of the ports, with their arguments, and no others. EAL would otherwise open every device
/// that is bound to it, and arguments that come later would be lost.
fn devices(config: &Config) -> impl Iterator<Item = String> {
    config.ports.iter().flat_map(|port| match &port.device {
        Device::Pci { .. } => vec!["-a".to_owned(), port.device.to_string()],
        Device::Virtual { .. } => Vec::new(),
    })
}

/// Returns the prefix of EAL's files, hugepages among them: always the same for a management socket, which no two switches use at a time,
/// so that a start finds the files of the last run. EAL's folder of that name in `/run/dpdk` outlives the switch.
#[must_use]
pub fn file_prefix(socket: &str) -> String {
    let path = std::path::absolute(socket).unwrap_or_else(|_| Path::new(socket).to_owned());
    // FNV-1a: short enough for EAL's own sockets, whose paths are limited to 107 bytes.
    let hash = path
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("npcc-{hash:016x}")
}

/// Operator's arguments for EAL.
struct EalArgs<'a>(&'a [String]);

impl EalArgs<'_> {
    /// Returns true if an option is among them, with a value or without: `--name`, `--name=value`, `-m`, `-m512`.
    fn has(&self, option: &str) -> bool {
        let is_long = option.starts_with("--");
        self.0.iter().any(|arg| {
            let rest = arg.strip_prefix(option);
            rest.is_some_and(|rest| !is_long || rest.is_empty() || rest.starts_with('='))
        })
    }
}

/// Chooses the arguments.
///
/// # Errors
/// Fails if hugepages are required and too few, or memory is short altogether.
pub fn setup(config: &Config, sizing: &Sizing, free: Free) -> Result<EalSetup, EalError> {
    let requested = EalArgs(&config.dpdk.eal_args);
    let sizing = sizing.clone().on_nodes(super::pools::nodes(config).len());
    let no_huge = !uses_hugepages(config, sizing.hugepage_bytes(), free)?;
    let ordinary = sizing.ordinary_bytes();
    if no_huge && free.ordinary < ordinary {
        return Err(EalError::Memory {
            free: free.ordinary >> 20,
            needed: ordinary >> 20,
        });
    }

    let mut args = Vec::from(lcores(config));
    let mut add = |missing: bool, option: &str| {
        if missing {
            args.push(option.to_owned());
        }
    };
    add(!requested.has("--log-level"), "--log-level=lib.eal:warning");
    // DPDK's own telemetry socket is opened only on request.
    let asks = requested.has("--telemetry") || requested.has("--no-telemetry");
    add(!asks, "--no-telemetry");
    // 22.11 refuses --no-huge together with --in-memory.
    for arg in requested.0 {
        add(!no_huge || arg != "--in-memory", arg);
    }
    add(no_huge && !requested.has("--no-huge"), "--no-huge");
    add(no_huge && !requested.has("--no-shconf"), "--no-shconf");
    if no_huge && !requested.has("-m") {
        add(true, "-m");
        add(true, &(ordinary >> 20).to_string());
    }
    let in_memory = !no_huge && requested.has("--in-memory");
    let prefix = format!("--file-prefix={}", file_prefix(&config.telemetry.socket));
    add(!requested.has("--file-prefix") && !in_memory, &prefix);
    // No other process maps this memory: without files its pages are free again when the process ends, however it does.
    let unlinks = requested.has("--huge-unlink") || requested.has("--single-file-segments");
    add(!no_huge && !in_memory && !unlinks, "--huge-unlink=always");
    let devices: Vec<String> = devices(config).collect();
    add(devices.is_empty() && !requested.has("--no-pci"), "--no-pci");
    args.extend(devices);
    Ok(EalSetup { args, no_huge })
}

/// Returns true if packet memory of `needed` bytes is to be in hugepages.
fn uses_hugepages(config: &Config, needed: u64, free: Free) -> Result<bool, EalError> {
    let requested = EalArgs(&config.dpdk.eal_args);
    // With `--in-memory` EAL does not free hugepages of other processes.
    let in_memory = requested.has("--in-memory");
    let stale = if in_memory { 0 } else { free.stale };
    let hugepages = free.hugepages.saturating_add(stale);
    let reached = free.mounted || in_memory;
    let enough = reached && hugepages >= needed;
    match config.dpdk.hugepages {
        Hugepages::On if !reached => Err(EalError::NotMounted),
        Hugepages::On if !enough => Err(EalError::Hugepages {
            free: hugepages >> 20,
            needed: needed >> 20,
            pages: needed.div_ceil(HUGEPAGE),
        }),
        Hugepages::Off => Ok(false),
        Hugepages::On | Hugepages::Auto => Ok(enough && !requested.has("--no-huge")),
    }
}

#[cfg(test)]
#[path = "eal_tests.rs"]
mod tests;
