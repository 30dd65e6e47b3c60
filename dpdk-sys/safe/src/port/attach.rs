//! Finding and attaching a device, and explaining failures.
//!
//! DPDK answers most failures with one code and explains itself only in its log, so failures that can be
//! detected beforehand are.

use std::ffi::{CStr, CString};
use std::fs;
use std::path::{Path, PathBuf};

use super::device::Device;
use super::error::PortError;
use crate::errno::Errno;

/// Result of attaching a device.
pub(super) struct Attached {
    pub(super) port: u16,
    pub(super) device: *mut dpdk_sys::rte_device,
    pub(super) driver: String,
}

/// Attaches the device unless it is attached already, and finds its port.
pub(super) fn attach(device: &Device) -> Result<Attached, PortError> {
    if let Some(found) = find(device.name()) {
        return Ok(found);
    }
    check_arguments(device)?;
    if !device.is_vdev() {
        check_pci(device)?;
    }
    let text = device.to_string();
    let Ok(devargs) = CString::new(text.as_str()) else {
        let reason = super::device::DeviceError::BadCharacter;
        return Err(PortError::BadDevice {
            device: text,
            reason,
        });
    };
    // SAFETY: EAL is up (callers hold it) and the string lives through the call, which copies it.
    if let Err(errno) = Errno::check(unsafe { dpdk_sys::rte_dev_probe(devargs.as_ptr()) }) {
        return Err(explain(device, errno));
    }
    find(device.name()).ok_or_else(|| {
        // A PCI device whose driver did not take it is not an error of the probe.
        kernel_driver(device).unwrap_or(PortError::NotEthernet { device: text })
    })
}

/// Reads the device's capabilities; an error when the driver does not report them.
pub(super) fn info(port: u16) -> Result<dpdk_sys::rte_eth_dev_info, Errno> {
    let mut info = dpdk_sys::rte_eth_dev_info::default();
    // SAFETY: the port number is checked by the callee, which fills the structure it is given.
    Errno::check(unsafe { dpdk_sys::rte_eth_dev_info_get(port, &raw mut info) })?;
    Ok(info)
}

/// Finds the first port whose device has this name.
pub(super) fn find(name: &str) -> Option<Attached> {
    // SAFETY: looks for the first port at or after the one given, and ends with RTE_MAX_ETHPORTS.
    let next = |port: u16| unsafe { dpdk_sys::rte_eth_find_next(port) };
    std::iter::successors(Some(next(0)), |&port| Some(next(port.saturating_add(1))))
        .take_while(|&port| u32::from(port) < dpdk_sys::RTE_MAX_ETHPORTS)
        .find_map(|port| {
            let info = info(port).ok()?;
            if info.device.is_null() {
                return None;
            }
            // SAFETY: the device of an existing port; its name lives as long as it is attached.
            let found = unsafe { CStr::from_ptr(dpdk_sys::rte_dev_name(info.device)) };
            let driver = if info.driver_name.is_null() {
                String::new()
            } else {
                // SAFETY: not null, so a static string in the driver's plug-in.
                unsafe { CStr::from_ptr(info.driver_name) }
                    .to_string_lossy()
                    .into_owned()
            };
            (found.to_bytes() == name.as_bytes()).then_some(Attached {
                port,
                device: info.device,
                driver,
            })
        })
}

/// Checks the files and interfaces among a software driver's arguments.
fn check_arguments(device: &Device) -> Result<(), PortError> {
    if let Some(path) = device
        .values("rx_pcap")
        .map(Path::new)
        .find(|path| !path.is_file())
    {
        return Err(PortError::NoFile {
            device: device.to_string(),
            key: "rx_pcap",
            path: path.to_owned(),
        });
    }
    let folder_missing = |path: &&Path| {
        path.parent()
            .is_some_and(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
    };
    if let Some(path) = device.values("tx_pcap").map(Path::new).find(folder_missing) {
        let path = path.parent().unwrap_or(path).to_owned();
        return Err(PortError::NoFile {
            device: device.to_string(),
            key: "tx_pcap",
            path,
        });
    }
    let on_kernel = matches!(
        device.driver(),
        Some("net_af_packet" | "net_af_xdp" | "net_pcap")
    );
    let missing = |name: &&str| on_kernel && !interface_exists(name);
    match device.values("iface").find(missing) {
        Some(interface) => Err(PortError::NoInterface {
            device: device.to_string(),
            interface: interface.to_owned(),
        }),
        None => Ok(()),
    }
}

/// Returns true if the interface exists in the network namespace of this process. Not read from
/// /sys/class/net, which shows the namespace it was mounted in.
fn interface_exists(name: &str) -> bool {
    let table = fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    table
        .lines()
        .filter_map(|line| line.split_once(':'))
        .any(|(found, _)| found.trim() == name)
}

fn check_pci(device: &Device) -> Result<(), PortError> {
    if Path::new("/sys/bus/pci/devices")
        .join(device.name())
        .exists()
    {
        return Ok(());
    }
    Err(PortError::NoPciDevice {
        device: device.to_string(),
        address: device.name().to_owned(),
    })
}

/// Hint for `net_af_packet`, whose log says no more than the quoted line.
const FANOUT_TAKEN: &str = ", or, after \"could not set PACKET_FANOUT\", start again: another process of this network \
                            namespace has a socket group of the same number, which the driver makes of the process id \
                            and the interface's index";

fn explain(device: &Device, errno: Errno) -> PortError {
    missing_driver(device)
        .or_else(|| kernel_driver(device))
        .unwrap_or_else(|| PortError::Attach {
            device: device.to_string(),
            errno,
            hint: match device.driver() {
                Some("net_af_packet") => FANOUT_TAKEN,
                _ => "",
            },
        })
}

/// Returns an error if a PCI device is held by a kernel driver that does not pass devices to user space.
fn kernel_driver(device: &Device) -> Option<PortError> {
    if device.is_vdev() {
        return None;
    }
    let link = Path::new("/sys/bus/pci/devices")
        .join(device.name())
        .join("driver");
    let driver = fs::read_link(link)
        .ok()
        .and_then(|target| Some(target.file_name()?.to_string_lossy().into_owned()))
        .unwrap_or_else(|| "none".to_owned());
    if ["vfio-pci", "igb_uio", "uio_pci_generic"].contains(&driver.as_str()) {
        return None;
    }
    Some(PortError::KernelDriver {
        device: device.to_string(),
        address: device.name().to_owned(),
        driver,
    })
}

fn missing_driver(device: &Device) -> Option<PortError> {
    let plugin = device.plugin()?;
    // An empty path, or one that is not there, means drivers that were linked in: nothing can be
    // said of those.
    if !plugin.folder.is_dir() || plugin.folder.join(&plugin.file).exists() {
        return None;
    }
    Some(PortError::NoDriver {
        device: device.to_string(),
        driver: plugin.driver,
        package: plugin.package,
        folder: plugin.folder,
    })
}

/// File with the driver of a virtual device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    /// Name of the driver, such as `net_af_packet`.
    pub driver: String,
    /// Folder of DPDK's drivers; empty where they are linked in.
    pub folder: PathBuf,
    /// Name of the file in the folder.
    pub file: String,
    /// Debian package that has the file.
    pub package: String,
}

impl Device {
    /// Returns the file with the device's driver; `None` for a PCI device, whose driver depends on the card.
    #[must_use]
    pub fn plugin(&self) -> Option<Plugin> {
        let driver = self.driver()?;
        let folder = PathBuf::from(dpdk_sys::RTE_EAL_PMD_PATH.to_string_lossy().into_owned());
        let plugin = plugin(driver);
        Some(Plugin {
            driver: driver.to_owned(),
            file: format!("librte_{plugin}.so"),
            package: debian_package(&plugin, &folder),
            folder,
        })
    }
}

/// Returns the name of the plug-in that holds a driver: its own, except for those that share one or were renamed.
fn plugin(driver: &str) -> String {
    match driver
        .strip_prefix("eth_")
        .or_else(|| driver.strip_prefix("net_"))
        .unwrap_or(driver)
    {
        "tun" => "net_tap".to_owned(),
        "bonding" => "net_bond".to_owned(),
        "virtio_user" => "net_virtio".to_owned(),
        own => format!("net_{own}"),
    }
}

/// Returns Debian's package name, `librte-net-pcap23`, or `librte-net-mlx5-23` where the name ends in a digit; the number is the
/// ABI's, as in `pmds-23.0`.
fn debian_package(plugin: &str, folder: &Path) -> String {
    let abi = folder
        .file_name()
        .and_then(|name| name.to_str()?.strip_prefix("pmds-")?.split('.').next())
        .unwrap_or("");
    let dash = if plugin.ends_with(|c: char| c.is_ascii_digit()) {
        "-"
    } else {
        ""
    };
    format!("librte-{}{dash}{abi}", plugin.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_as_debian_names_them() {
        let folder = Path::new("/usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0");
        assert_eq!(
            debian_package(&plugin("net_pcap"), folder),
            "librte-net-pcap23"
        );
        assert_eq!(
            debian_package(&plugin("net_af_packet"), folder),
            "librte-net-af-packet23"
        );
        assert_eq!(
            debian_package(&plugin("net_mlx5"), folder),
            "librte-net-mlx5-23"
        );
        assert_eq!(
            debian_package(&plugin("net_tun"), folder),
            "librte-net-tap23"
        );
        assert_eq!(
            debian_package(&plugin("eth_bonding"), folder),
            "librte-net-bond23"
        );
    }

    #[test]
    fn a_missing_capture_is_named() {
        let device = "net_pcap0,rx_pcap=/nonexistent/in.pcap"
            .parse::<Device>()
            .unwrap();
        let error = check_arguments(&device).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("rx_pcap=/nonexistent/in.pcap: no such file"),
            "{error}"
        );
        let device = "net_pcap0,tx_pcap=/nonexistent/out.pcap"
            .parse::<Device>()
            .unwrap();
        let error = check_arguments(&device).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("tx_pcap=/nonexistent: no such file"),
            "{error}"
        );
    }

    #[test]
    fn a_missing_interface_is_named() {
        let device = "net_af_packet0,iface=nosuchif".parse::<Device>().unwrap();
        let error = check_arguments(&device).unwrap_err();
        assert!(
            matches!(&error, PortError::NoInterface { interface, .. } if interface == "nosuchif")
        );
        assert!(interface_exists("lo"));
        let tap = "net_tap0,iface=tobemade".parse::<Device>().unwrap();
        assert_eq!(check_arguments(&tap), Ok(()));
    }

    #[test]
    fn a_missing_pci_device_is_named() {
        let device = "ffff:ff:1f.7".parse::<Device>().unwrap();
        assert!(matches!(
            check_pci(&device),
            Err(PortError::NoPciDevice { .. })
        ));
    }
}
