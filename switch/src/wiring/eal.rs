//! Arguments for EAL.

use std::path::Path;

use npcc_config::model::Hugepages;
use npcc_config::plan::Device;
use npcc_config::sizing::EAL_MARGIN;
use npcc_config::{Config, Sizing};

/// Reason why EAL cannot be started as configured.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum EalPlanError {
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
pub struct EalPlan {
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
/// so that a start finds the files of the last run.
fn file_prefix(socket: &str) -> String {
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

/// Chooses the arguments.
///
/// # Errors
/// Fails if hugepages are required and too few, or memory is short altogether.
pub fn plan(config: &Config, sizing: &Sizing, free: Free) -> Result<EalPlan, EalPlanError> {
    let nodes = u64::try_from(super::pools::nodes(config).len()).unwrap_or(u64::MAX);
    let with = |pools: u64| {
        pools
            .saturating_mul(nodes.max(1))
            .saturating_add(EAL_MARGIN)
    };
    let needed = with(sizing.mempool_bytes);
    let requested = &config.dpdk.eal_args;
    let asks = |name: &str| {
        requested
            .iter()
            .any(|arg| arg == name || arg.starts_with(&format!("{name}=")))
    };
    // With `--in-memory` EAL does not free hugepages of other processes.
    let stale = if asks("--in-memory") { 0 } else { free.stale };
    let hugepages = free.hugepages.saturating_add(stale);
    let reached = free.mounted || asks("--in-memory");
    if config.dpdk.hugepages == Hugepages::On && !reached {
        return Err(EalPlanError::NotMounted);
    }
    let enough = hugepages >= needed && reached;
    if config.dpdk.hugepages == Hugepages::On && !enough {
        return Err(EalPlanError::Hugepages {
            free: hugepages >> 20,
            needed: needed >> 20,
            pages: needed.div_ceil(2 << 20),
        });
    }
    let no_huge = asks("--no-huge") || config.dpdk.hugepages == Hugepages::Off || !enough;

    let ordinary = with(sizing.mempool_bytes_ordinary);
    if no_huge && free.ordinary < ordinary {
        return Err(EalPlanError::Memory {
            free: free.ordinary >> 20,
            needed: ordinary >> 20,
        });
    }

    let mut args = Vec::from(lcores(config));
    if !asks("--log-level") {
        args.push("--log-level=lib.eal:warning".to_owned());
    }
    if !asks("--telemetry") && !asks("--no-telemetry") {
        // DPDK's own telemetry socket is opened only on request.
        args.push("--no-telemetry".to_owned());
    }
    // 22.11 refuses --no-huge together with --in-memory.
    args.extend(
        requested
            .iter()
            .filter(|arg| !(no_huge && *arg == "--in-memory"))
            .cloned(),
    );
    if no_huge {
        for flag in ["--no-huge", "--no-shconf"] {
            if !asks(flag) {
                args.push(flag.to_owned());
            }
        }
        if !requested
            .iter()
            .any(|arg| arg == "-m" || arg.starts_with("-m"))
        {
            args.extend(["-m".to_owned(), (ordinary >> 20).to_string()]);
        }
    }
    if !asks("--file-prefix") && !args.iter().any(|arg| arg == "--in-memory") {
        args.push(format!(
            "--file-prefix={}",
            file_prefix(&config.telemetry.socket)
        ));
    }
    let before = args.len();
    args.extend(devices(config));
    if args.len() == before && !asks("--no-pci") {
        args.push("--no-pci".to_owned());
    }
    Ok(EalPlan { args, no_huge })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(dpdk: &str) -> Config {
        let text = format!(
            "version: 1\n{dpdk}ports:\n  - {{ name: p0, device: net_null0, addresses: [10.0.1.1/24] }}\nbuffer: {{ pool: 16MB }}\n"
        );
        npcc_config::parse("test.yaml", &text).unwrap().config
    }

    fn planned(dpdk: &str, hugepages: u64) -> Result<EalPlan, EalPlanError> {
        planned_with(&config(dpdk), hugepages, 0)
    }

    fn planned_with(config: &Config, hugepages: u64, stale: u64) -> Result<EalPlan, EalPlanError> {
        let free = Free {
            hugepages,
            stale,
            mounted: true,
            ordinary: 1 << 30,
        };
        plan(config, &Sizing::of(config), free)
    }

    fn with_devices(devices: [&str; 2]) -> Config {
        let ports: String = (0..)
            .zip(devices)
            .map(|(at, device)| {
                format!(
                    "  - {{ name: p{at}, device: \"{device}\", speed: 10G, addresses: [10.0.{at}.1/24] }}\n"
                )
            })
            .collect();
        let text = format!("version: 1\nports:\n{ports}buffer: {{ pool: 16MB }}\n");
        npcc_config::parse("test.yaml", &text).unwrap().config
    }

    #[test]
    fn each_pci_port_is_allowed_with_its_arguments_and_nothing_else_is_probed() {
        let args = |devices| {
            planned_with(&with_devices(devices), 8 << 30, 0)
                .unwrap()
                .args
                .join(" ")
        };
        let both = args(["0000:3b:00.0,dv_flow_en=2,mprq_en=1", "3b:00.1"]);
        assert!(
            both.contains("-a 0000:3b:00.0,dv_flow_en=2,mprq_en=1 -a 0000:3b:00.1")
                && !both.contains("--no-pci"),
            "{both}"
        );
        let one = args(["0000:3b:00.0", "net_null0"]);
        assert!(
            one.matches("-a ").count() == 1 && !one.contains("net_null"),
            "{one}"
        );
        let none = args(["net_null0", "net_null1"]);
        assert!(none.contains("--no-pci") && !none.contains("-a "), "{none}");
        let twice = planned("dpdk: { eal_args: [\"--no-pci\"] }\n", 0).unwrap();
        assert_eq!(
            twice.args.iter().filter(|arg| *arg == "--no-pci").count(),
            1
        );
    }

    #[test]
    fn the_program_name_is_no_argument() {
        let args = planned("", 0).unwrap().args;
        assert!(args[0].starts_with('-'), "options would end here: {args:?}");
    }

    #[test]
    fn hugepages_of_a_dead_process_count_where_eal_frees_them() {
        let config = config("dpdk: { hugepages: on }\n");
        assert!(planned_with(&config, 1 << 20, 0).is_err());
        assert!(!planned_with(&config, 1 << 20, 8 << 30).unwrap().no_huge);
        let in_memory = self::config("dpdk: { eal_args: [--in-memory] }\n");
        assert!(planned_with(&in_memory, 1 << 20, 8 << 30).unwrap().no_huge);
    }

    #[test]
    fn files_are_named_by_the_socket() {
        let one = file_prefix("/run/npcc-switch.sock");
        assert_eq!(one, file_prefix("/run/npcc-switch.sock"));
        assert_ne!(one, file_prefix("/run/npcc-switcn.sock"));
        let long = file_prefix(&format!("/run/{}", "x".repeat(90)));
        assert!("/var/run/dpdk//mp_socket".len() + long.len() < 107);
        let said = planned("telemetry: { socket: /run/other.sock }\n", 0).unwrap();
        let wanted = format!("--file-prefix={}", file_prefix("/run/other.sock"));
        assert!(said.args.contains(&wanted), "{:?}", said.args);
    }

    #[test]
    fn without_hugepages_ordinary_memory_is_used_and_in_memory_dropped() {
        let plan = planned("dpdk: { eal_args: [\"--no-pci\", \"--in-memory\"] }\n", 0).unwrap();
        assert!(plan.no_huge);
        let args = plan.args.join(" ");
        assert!(!args.contains("--in-memory"), "{args}");
        for flag in [
            "-l 0,1",
            "--no-pci",
            "--no-huge",
            "--no-shconf",
            "-m ",
            "--file-prefix=npcc-",
        ] {
            assert!(args.contains(flag), "{flag} in {args}");
        }
    }

    #[test]
    fn a_shared_core_has_two_threads() {
        let shared =
            config("cores: { control: 0, workers: [1, 0] }\nnpcc: { tick: 2ms, recovery: 4ms }\n");
        let free = Free {
            hugepages: 0,
            stale: 0,
            mounted: true,
            ordinary: 1 << 30,
        };
        let args = plan(&shared, &Sizing::of(&shared), free)
            .unwrap()
            .args
            .join(" ");
        assert!(
            args.contains("--lcores 0@1,1@0,2@0 --main-lcore=2"),
            "{args}"
        );
        assert_eq!(worker_lcore(&shared, 1), Some(1));
        assert_eq!(worker_lcore(&config(""), 0), Some(1));
    }

    #[test]
    fn with_hugepages_the_operators_arguments_stand() {
        let plan = planned(
            "dpdk: { eal_args: [\"--no-pci\", \"--in-memory\"] }\n",
            8 << 30,
        )
        .unwrap();
        assert!(!plan.no_huge);
        let args = plan.args.join(" ");
        assert!(
            args.contains("--in-memory") && !args.contains("--file-prefix"),
            "{args}"
        );
    }

    #[test]
    fn a_pool_larger_than_the_machine_is_refused_before_eal_tries() {
        let config = config("");
        let free = Free {
            hugepages: 0,
            stale: 0,
            mounted: true,
            ordinary: 1 << 20,
        };
        let error = plan(&config, &Sizing::of(&config), free)
            .unwrap_err()
            .to_string();
        assert!(error.contains("buffer.pool"), "{error}");
    }

    #[test]
    fn hugepages_that_eal_cannot_reach_are_not_counted_on() {
        let of = |dpdk: &str| {
            let config = config(dpdk);
            let free = Free {
                hugepages: 1 << 30,
                stale: 0,
                mounted: false,
                ordinary: 1 << 30,
            };
            plan(&config, &Sizing::of(&config), free)
        };
        assert_eq!(of("").map(|plan| plan.no_huge), Ok(true));
        let in_memory = "dpdk: { eal_args: [--in-memory] }\n";
        assert_eq!(of(in_memory).map(|plan| plan.no_huge), Ok(false));
        let required = of("dpdk: { hugepages: on }\n").unwrap_err();
        assert!(
            required.to_string().contains("mount -t hugetlbfs"),
            "{required}"
        );
    }

    #[test]
    fn required_hugepages_that_are_missing_are_an_error_with_the_command() {
        let error = planned("dpdk: { hugepages: on }\n", 0)
            .unwrap_err()
            .to_string();
        assert!(error.contains("/proc/sys/vm/nr_hugepages"), "{error}");
    }
}
