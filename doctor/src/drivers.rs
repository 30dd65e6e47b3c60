//! Check of DPDK's drivers: installed where DPDK looks for them.

use std::path::PathBuf;

use crate::finding::{Check, Finding, Mend, Severity};
use crate::host::Host;

/// File that DPDK needs for a port's device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverFile {
    /// Name of the port.
    pub port: String,
    /// Name of the driver, or of the plug-in with the driver of a card, such as `net_ice`.
    pub driver: String,
    /// Folder of DPDK's drivers; one that does not exist means drivers that are linked in.
    pub folder: PathBuf,
    /// Name of the file in the folder.
    pub file: String,
    /// Debian package that has the file.
    pub package: String,
    /// Kernel driver that a card must have for DPDK: `vfio-pci`, or its own where the two share it. Says nothing of a virtual device.
    pub kernel: String,
}

pub(crate) fn examine(host: &Host, drivers: &[DriverFile], found: &mut Vec<Finding>) {
    for driver in drivers {
        if host.exists(&driver.folder) && !host.exists(driver.folder.join(&driver.file)) {
            found.push(Finding {
                check: Check::DriverMissing,
                severity: Severity::Error,
                place: format!("port {}", driver.port),
                what: format!("DPDK's driver {} is not installed", driver.driver),
                mend: Mend::Now(format!("apt-get install {}", driver.package)),
            });
        }
    }
}
