//! Finding and attaching a device, and explaining failures.
//!
//! DPDK answers most failures with one code and explains itself only in its log, so failures that can be
//! detected beforehand are.

use std::ffi::{CStr, CString};
use std::fs;
use std::path::{Path, PathBuf};

use super::cards;
use super::device::Device;
use super::error::PortError;
use crate::errno::Errno;
use crate::log;

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
    let (rc, said) = log::during(|| {
        // SAFETY: EAL is up (callers hold it) and the string lives through the call, which copies it.
        unsafe { dpdk_sys::rte_dev_probe(devargs.as_ptr()) }
    });
    if let Err(errno) = Errno::check(rc) {
        return Err(explain(device, errno, &said));
    }
    find(device.name()).ok_or_else(|| {
        // A PCI device whose driver did not take it is not an error of the probe.
        avoidable(device).unwrap_or(PortError::NotEthernet { device: text })
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
    if folder(device).exists() {
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

/// Returns the reason of a failed probe: one that is seen on this host, else DPDK's own with the last lines that it logged.
fn explain(device: &Device, errno: Errno, said: &[String]) -> PortError {
    avoidable(device).unwrap_or_else(|| PortError::Attach {
        device: device.to_string(),
        errno,
        said: match said {
            [] => "the lines EAL printed say why".to_owned(),
            lines => format!("DPDK: {}", lines.join("; ")),
        },
        hint: match device.driver() {
            Some("net_af_packet") => FANOUT_TAKEN,
            _ => "",
        },
    })
}

/// Returns what this host lacks for the device: DPDK's driver, or the kernel driver that a card must have.
fn avoidable(device: &Device) -> Option<PortError> {
    let plugin = device.plugin().or_else(|| card(device));
    let missing = plugin
        .as_ref()
        .and_then(|plugin| missing_driver(device, plugin));
    missing.or_else(|| kernel_driver(device, plugin.as_ref().map(|plugin| plugin.driver.as_str())))
}

/// Folder of a PCI device in sysfs.
fn folder(device: &Device) -> PathBuf {
    Path::new("/sys/bus/pci/devices").join(device.name())
}

/// Returns the plug-in of a PCI device, if its card is listed.
fn card(device: &Device) -> Option<Plugin> {
    let number = |file: &str| {
        let text = fs::read_to_string(folder(device).join(file)).ok()?;
        u16::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
    };
    Plugin::of_card(number("vendor")?, number("device")?)
}

/// Returns an error if a PCI device has a kernel driver with which DPDK cannot use it.
fn kernel_driver(device: &Device, plugin: Option<&str>) -> Option<PortError> {
    if device.is_vdev() {
        return None;
    }
    let driver = fs::read_link(folder(device).join("driver")).ok();
    let driver = driver.and_then(|target| Some(target.file_name()?.to_string_lossy().into_owned()));
    bound_to(device, plugin, driver.as_deref().unwrap_or("none"))
}

fn bound_to(device: &Device, plugin: Option<&str>, driver: &str) -> Option<PortError> {
    if cards::is_usable(plugin, driver) {
        return None;
    }
    Some(PortError::KernelDriver {
        device: device.to_string(),
        address: device.name().to_owned(),
        driver: driver.to_owned(),
        wanted: cards::kernel_driver(plugin),
    })
}

fn missing_driver(device: &Device, plugin: &Plugin) -> Option<PortError> {
    // An empty path, or one that is not there, means drivers that were linked in: nothing can be
    // said of those.
    if !plugin.folder.is_dir() || plugin.folder.join(&plugin.file).exists() {
        return None;
    }
    Some(PortError::NoDriver {
        device: device.to_string(),
        driver: plugin.driver.clone(),
        package: plugin.package.clone(),
        folder: plugin.folder.clone(),
    })
}

/// File with the driver of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    /// Name of the driver, such as `net_af_packet`; of a card, that of its plug-in, such as `net_ice`.
    pub driver: String,
    /// Folder of DPDK's drivers; empty where they are linked in.
    pub folder: PathBuf,
    /// Name of the file in the folder.
    pub file: String,
    /// Debian package that has the file.
    pub package: String,
    /// Kernel driver that a card must have for DPDK: `vfio-pci`, or its own where the two share it. Says nothing of a virtual device.
    pub kernel: &'static str,
}

impl Device {
    /// Returns the file with the driver of a virtual device; `None` for a PCI device, whose driver depends on the card.
    #[must_use]
    pub fn plugin(&self) -> Option<Plugin> {
        Some(Plugin::of_driver(self.driver()?))
    }
}

impl Plugin {
    /// Returns the file with the driver of a card by its PCI vendor and device numbers; `None` for a card that is not listed.
    #[must_use]
    pub fn of_card(vendor: u16, device: u16) -> Option<Plugin> {
        cards::plugin(vendor, device).map(Plugin::of_driver)
    }

    fn of_driver(driver: &str) -> Plugin {
        let folder = PathBuf::from(dpdk_sys::RTE_EAL_PMD_PATH.to_string_lossy().into_owned());
        let plugin = plugin(driver);
        Plugin {
            driver: driver.to_owned(),
            file: format!("librte_{plugin}.so"),
            package: debian_package(&plugin, &folder),
            kernel: cards::kernel_driver(Some(&plugin)),
            folder,
        }
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

    /// Earlier defect: each failed probe of a ConnectX was reported as "the kernel's driver mlx5_core holds it ... bind to vfio-pci".
    #[test]
    fn only_a_card_that_dpdk_takes_over_is_to_be_bound_to_vfio() {
        let device = "0000:3b:00.0".parse::<Device>().unwrap();
        let says =
            |plugin, driver| bound_to(&device, plugin, driver).map(|error| error.to_string());
        assert_eq!(says(Some("net_mlx5"), "mlx5_core"), None);
        assert_eq!(says(None, "mana"), None);
        assert_eq!(says(Some("net_ice"), "vfio-pci"), None);
        for (plugin, driver, wanted) in [
            ("net_mlx5", "vfio-pci", "mlx5_core"),
            ("net_mlx4", "none", "mlx4_core"),
            ("net_ice", "ice", "vfio-pci"),
        ] {
            let text = says(Some(plugin), driver).unwrap();
            assert!(
                text.contains(&format!("kernel's driver {driver}")),
                "{text}"
            );
            assert!(
                text.ends_with(&format!("dpdk-devbind.py --bind={wanted} 0000:3b:00.0")),
                "{text}"
            );
        }
    }

    #[test]
    fn a_missing_plugin_of_a_card_is_named_with_its_package() {
        let device = "0000:3b:00.0".parse::<Device>().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut plugin = Plugin::of_card(0x15b3, 0x1017).unwrap();
        assert_eq!(plugin.kernel, "mlx5_core");
        plugin.folder = folder.path().to_owned();
        let text = missing_driver(&device, &plugin).unwrap().to_string();
        assert!(
            text.contains("no driver \"net_mlx5\"")
                && text.contains("apt-get install librte-net-mlx5-"),
            "{text}"
        );
        fs::write(folder.path().join("librte_net_mlx5.so"), "").unwrap();
        assert_eq!(missing_driver(&device, &plugin), None);
    }
}
