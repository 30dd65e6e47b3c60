//! Checks of hugepages: enough of them, on the ports' NUMA nodes, mounted, and none held by dead processes.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use npcc_config::model::Hugepages;
use npcc_config::resolved::Device;
use npcc_config::sizing::HUGEPAGE as PAGE;
use npcc_config::{Config, Sizing};

use crate::finding::{Check, Finding, Mend, Severity};
use crate::host::Host;

/// Folder in which the kernel shows its hugepages.
const POOLS: &str = "/sys/kernel/mm/hugepages";
/// Bytes of a block as `stat` counts them.
const BLOCK: u64 = 512;
/// File that keeps the number of pages over restarts of the host.
const SYSCTL: &str = "/etc/sysctl.d/80-npcc-switch.conf";

pub(crate) fn examine(host: &Host, config: Option<&Config>, found: &mut Vec<Finding>) {
    let mounts = host.read("/proc/self/mounts").unwrap_or_default();
    let mounted: Vec<&str> = mounts.lines().filter_map(hugetlbfs).collect();
    let (total, free) = pages(host);
    let (files, stale) = leftover(host, &mounted);
    if !files.is_empty() {
        found.push(Finding {
            check: Check::HugepagesLeftover,
            severity: Severity::Warning,
            place: mounted.join(", "),
            what: format!(
                "{} files of processes that are gone keep {} MiB of hugepages; a start of the switch without --in-memory frees them",
                files.len(),
                stale >> 20
            ),
            mend: Mend::Now(format!("rm -f {}", files.join(" "))),
        });
    }
    let Some(config) = config else {
        if total == 0 {
            found.push(few(
                Severity::Warning,
                "none are reserved: packet memory is in ordinary pages, which costs speed",
                Mend::ByHand("npcc-switch check -c FILE".to_owned()),
            ));
        }
        return;
    };
    let asks = |name: &str| config.dpdk.eal_args.iter().any(|arg| arg == name);
    if config.dpdk.hugepages == Hugepages::Off || asks("--no-huge") {
        return;
    }
    let severity = match config.dpdk.hugepages {
        Hugepages::On => Severity::Error,
        _ => Severity::Warning,
    };
    if mounted.is_empty() && !asks("--in-memory") {
        found.push(Finding {
            check: Check::HugepagesUnmounted,
            severity,
            place: "/dev/hugepages".to_owned(),
            what: "no hugetlbfs is mounted, without which hugepages cannot be reached".to_owned(),
            mend: Mend::Now(
                "mkdir -p /dev/hugepages && mount -t hugetlbfs none /dev/hugepages".to_owned(),
            ),
        });
    }
    let nodes = nodes(host, config);
    let sizing = Sizing::of(config).on_nodes(nodes.len());
    let stale = if asks("--in-memory") { 0 } else { stale };
    let all = sizing.hugepage_bytes();
    if free + stale < all {
        let pages = (total - free.min(total) + all).div_ceil(PAGE);
        let what = format!(
            "{} MiB of hugepages are free and {} MiB are needed{}",
            (free + stale) >> 20,
            all >> 20,
            match severity {
                Severity::Error => ": the switch does not start (dpdk.hugepages: on)",
                _ => ": packet memory would be in ordinary pages, which costs speed",
            }
        );
        let mend = format!("echo 'vm.nr_hugepages = {pages}' > {SYSCTL} && sysctl -q -p {SYSCTL}");
        found.push(few(severity, &what, Mend::Now(mend)));
        return;
    }
    on_nodes(host, &nodes, sizing.on_nodes(1).hugepage_bytes(), found);
}

fn few(severity: Severity, what: &str, mend: Mend) -> Finding {
    Finding {
        check: Check::HugepagesFew,
        severity,
        place: POOLS.to_owned(),
        what: what.to_owned(),
        mend,
    }
}

/// Requires free hugepages for the packets on each NUMA node of a port.
fn on_nodes(host: &Host, nodes: &[u64], needed: u64, found: &mut Vec<Finding>) {
    for node in nodes {
        let folder = format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB");
        let Some(free) = host.number(format!("{folder}/free_hugepages")) else {
            continue;
        };
        let total = host
            .number(format!("{folder}/nr_hugepages"))
            .unwrap_or(free);
        if free * PAGE >= needed {
            continue;
        }
        let pages = total - free.min(total) + needed.div_ceil(PAGE);
        found.push(Finding {
            check: Check::HugepagesNode,
            severity: Severity::Warning,
            place: format!("NUMA node {node}"),
            what: format!(
                "{} MiB of hugepages are free on the node of a port, and {} MiB are needed there: packets would lie on another node",
                (free * PAGE) >> 20,
                needed >> 20
            ),
            mend: Mend::Now(format!("echo {pages} > {folder}/nr_hugepages")),
        });
    }
}

/// NUMA nodes of the PCI ports, each once.
#[must_use]
pub fn nodes(host: &Host, config: &Config) -> Vec<u64> {
    let mut nodes: Vec<u64> = config
        .ports
        .iter()
        .filter(|port| matches!(port.device, Device::Pci { .. }))
        .filter_map(|port| {
            // Written -1 where there is one node only.
            host.number(format!(
                "/sys/bus/pci/devices/{}/numa_node",
                port.device.id()
            ))
        })
        .collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Returns the bytes reserved, and the bytes that no process has mapped.
fn pages(host: &Host) -> (u64, u64) {
    let mut sums = (0, 0);
    for pool in host.list(POOLS) {
        let size = pool
            .strip_prefix("hugepages-")
            .and_then(|size| size.strip_suffix("kB")?.parse::<u64>().ok());
        let Some(size) = size else { continue };
        let count = |file| host.number(format!("{POOLS}/{pool}/{file}")).unwrap_or(0);
        sums.0 += (size << 10) * count("nr_hugepages");
        sums.1 += (size << 10) * count("free_hugepages");
    }
    sums
}

/// Returns the mount point if this line of the mounts is a hugetlbfs.
fn hugetlbfs(line: &str) -> Option<&str> {
    let mut fields = line.split(' ').skip(1);
    let (folder, kind) = (fields.next()?, fields.next()?);
    (kind == "hugetlbfs").then_some(folder)
}

/// Returns files that have EAL's name for pages and are not locked, which is how EAL recognises leftovers, and their bytes.
fn leftover(host: &Host, mounted: &[&str]) -> (Vec<String>, u64) {
    let (mut files, mut bytes) = (Vec::new(), 0);
    for folder in mounted {
        for name in host.list(folder) {
            let path = format!("{folder}/{name}");
            let Ok(file) = File::open(host.path(&path)) else {
                continue;
            };
            let Ok(metadata) = file.metadata() else {
                continue;
            };
            // A process that uses the file shares its lock, so only an exclusive one shows that nobody does. Closing the file ends it.
            if name.contains("map_") && metadata.is_file() && file.try_lock().is_ok() {
                bytes += metadata.blocks() * BLOCK;
                files.push(path);
            }
        }
    }
    (files, bytes)
}
