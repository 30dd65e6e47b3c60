//! Check of the file that `net_ice` loads into an E810 or E82x card: the DDP package.

use npcc_config::resolved::Port;

use crate::finding::{Check, Finding, Mend, Severity};
use crate::host::Host;

/// Folders in which the driver looks (drivers/net/ice/ice_ethdev.h).
const FOLDERS: [&str; 2] = [
    "/lib/firmware/updates/intel/ice/ddp",
    "/lib/firmware/intel/ice/ddp",
];
/// Arguments of the device with which the driver starts without that file, or takes another.
const WITHOUT: [&str; 2] = ["safe-mode-support=1", "ddp_pkg_file="];

/// Returns true if the driver takes a file of this name, for any card or for one by its serial number. EAL unpacks xz and zstd.
fn is_package(name: &str) -> bool {
    let name = name
        .strip_suffix(".xz")
        .or_else(|| name.strip_suffix(".zst"))
        .unwrap_or(name);
    let Some(name) = name.strip_suffix(".pkg") else {
        return false;
    };
    let serial = name.strip_prefix("ice-");
    name == "ice"
        || serial
            .is_some_and(|text| text.len() == 16 && text.bytes().all(|one| one.is_ascii_hexdigit()))
}

/// Reports that the DDP package is missing, without which the driver does not open the card.
pub(crate) fn examine(host: &Host, port: &Port, place: &str, found: &mut Vec<Finding>) {
    let device = port.device.to_string();
    let without = device
        .split(',')
        .any(|word| WITHOUT.iter().any(|one| word.starts_with(one)));
    let mut names = FOLDERS.iter().flat_map(|folder| host.list(folder));
    if without || names.any(|name| is_package(&name)) {
        return;
    }
    let release = host.read("/etc/os-release").unwrap_or_default();
    // Debian 13 took Intel's files out of the older package.
    let package = if release.contains("VERSION_ID=\"12\"") {
        "firmware-misc-nonfree"
    } else {
        "firmware-intel-misc"
    };
    found.push(Finding {
        check: Check::FirmwareMissing,
        severity: Severity::Error,
        place: place.to_owned(),
        what: format!("the card's DDP package {}/ice.pkg is missing: DPDK's driver does not open the card without it", FOLDERS[1]),
        mend: Mend::ByHand(format!("apt-get install {package}   # of Debian's section non-free-firmware")),
    });
}
