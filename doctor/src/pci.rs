//! Checks of PCI ports: present, bound to a driver DPDK can use, behind an IOMMU, near their worker, with all PCIe lanes.

use npcc_config::resolved::{Device, Port};
use npcc_config::{Config, cpu_list};

use crate::drivers::DriverFile;
use crate::finding::{Check, Finding, Mend, Severity};
use crate::host::{DEVICES, Host};
use crate::{firmware, interfaces, shared};

/// Drivers that hand a whole device over to DPDK.
const HANDED: [&str; 3] = ["vfio-pci", "uio_pci_generic", "igb_uio"];
/// Drivers that keep the device in the kernel and let DPDK use it too.
const SHARED: [&str; 3] = ["mlx5_core", "mlx4_core", "mana"];

pub(crate) fn examine(
    host: &Host,
    config: &Config,
    drivers: &[DriverFile],
    found: &mut Vec<Finding>,
) {
    for port in &config.ports {
        let Device::Pci { address, .. } = &port.device else {
            continue;
        };
        let place = format!("port {} ({address})", port.name);
        if !host.exists(format!("{DEVICES}/{address}")) {
            found.push(Finding {
                check: Check::DeviceMissing,
                severity: Severity::Error,
                place,
                what: "there is no such PCI device".to_owned(),
                mend: Mend::ByHand("lspci -Dnn | grep -i -e ethernet -e network".to_owned()),
            });
            continue;
        }
        let driver = host.target(format!("{DEVICES}/{address}/driver"));
        let driver = driver.as_deref();
        let plugin = drivers.iter().find(|one| one.port == port.name);
        let wanted = plugin.map_or_else(
            || driver.filter(|driver| SHARED.contains(driver)),
            |plugin| Some(plugin.kernel.as_str()),
        );
        let wanted = wanted.unwrap_or("vfio-pci");
        binding(host, (address, &place), (driver, wanted), found);
        if SHARED.contains(&wanted) {
            if driver == Some(wanted) {
                shared::examine(host, (config, port), address, found);
            }
        } else {
            iommu(host, (address, &place), found);
        }
        if plugin.is_some_and(|plugin| plugin.driver == "net_ice") {
            firmware::examine(host, port, &place, found);
        }
        numa(host, (config, port), (address, &place), found);
        width(host, (address, &place), found);
    }
}

/// Returns the commands that bind a device to a kernel driver: persistently if driverctl is installed.
fn bind(host: &Host, address: &str, driver: &str) -> String {
    if host.exists("/usr/sbin/driverctl") {
        return format!("driverctl set-override {address} {driver}");
    }
    let device = format!("{DEVICES}/{address}");
    format!(
        "modprobe {driver} && echo {driver} > {device}/driver_override && \
         {{ [ ! -e {device}/driver ] || echo {address} > {device}/driver/unbind; }} && echo {address} > /sys/bus/pci/drivers_probe"
    )
}

/// Checks that a device has the kernel driver `wanted` for DPDK, or one of its kind.
fn binding(
    host: &Host,
    (address, place): (&str, &str),
    (driver, wanted): (Option<&str>, &str),
    found: &mut Vec<Finding>,
) {
    let handed = HANDED.contains(&wanted);
    if driver.is_some_and(|driver| driver == wanted || handed && HANDED.contains(&driver)) {
        return;
    }
    let interfaces = host.list(format!("{DEVICES}/{address}/net"));
    let used = interfaces.iter().find(|name| {
        interfaces::addresses(host, None, name)
            .iter()
            .any(|address| address.routed)
    });
    let what = match driver {
        Some(driver) => {
            format!("it is bound to the kernel's driver {driver}, with which DPDK cannot use it")
        }
        None => "it is bound to no driver".to_owned(),
    };
    let (what, mend) = match used {
        Some(name) => (
            format!(
                "{what}; its interface {name} has addresses, which would be lost: is it the right device?"
            ),
            Mend::ByHand(bind(host, address, wanted)),
        ),
        None => (what, Mend::Now(bind(host, address, wanted))),
    };
    found.push(Finding {
        check: Check::DriverBinding,
        severity: Severity::Error,
        place: place.to_owned(),
        what,
        mend,
    });
}

fn iommu(host: &Host, (address, place): (&str, &str), found: &mut Vec<Finding>) {
    let unsafe_mode = host
        .read("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode")
        .is_some_and(|mode| mode == "Y" || mode == "1");
    let Some(group) = host.target(format!("{DEVICES}/{address}/iommu_group")) else {
        found.push(no_iommu(host, place, unsafe_mode));
        return;
    };
    let folder = format!("/sys/kernel/iommu_groups/{group}/devices");
    for other in host.list(&folder) {
        let driver = host.target(format!("{DEVICES}/{other}/driver"));
        let Some(driver) = driver.filter(|_| other != address) else {
            continue;
        };
        // A bridge is part of the path to the device.
        if HANDED.contains(&driver.as_str()) || driver == "pcieport" {
            continue;
        }
        found.push(Finding {
            check: Check::IommuGroup,
            severity: Severity::Error,
            place: place.to_owned(),
            what: format!(
                "{other} is in the same IOMMU group ({group}) and has the driver {driver}: vfio gives a group as a whole or not at all"
            ),
            mend: Mend::ByHand(bind(host, &other, "vfio-pci")),
        });
    }
}

fn no_iommu(host: &Host, place: &str, unsafe_mode: bool) -> Finding {
    if unsafe_mode {
        return Finding {
            check: Check::IommuUnsafe,
            severity: Severity::Warning,
            place: place.to_owned(),
            what: "vfio runs without an IOMMU: the device may write to all memory of this host"
                .to_owned(),
            mend: Mend::Reboot(kernel_words(host, "intel_iommu=on iommu=pt")),
        };
    }
    Finding {
        check: Check::IommuOff,
        severity: Severity::Error,
        place: place.to_owned(),
        what: "the device has no IOMMU group, so vfio refuses it: the IOMMU is off, in the firmware (VT-d, AMD-Vi) or in the kernel's command line".to_owned(),
        mend: Mend::Reboot(kernel_words(host, "intel_iommu=on iommu=pt")),
    }
}

/// Returns the command that adds words to the kernel's command line, as Debian's boot loader has it.
pub(crate) fn kernel_words(host: &Host, words: &str) -> String {
    let amd = host
        .read("/proc/cpuinfo")
        .is_some_and(|info| info.contains("AuthenticAMD"));
    let words = if amd {
        words.replace("intel_iommu=on", "amd_iommu=on")
    } else {
        words.to_owned()
    };
    format!(
        "mkdir -p /etc/default/grub.d && echo 'GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {words}\"' >> /etc/default/grub.d/npcc-switch.cfg && update-grub"
    )
}

fn numa(
    host: &Host,
    (config, port): (&Config, &Port),
    (address, place): (&str, &str),
    found: &mut Vec<Finding>,
) {
    // Written -1 where there is one node only.
    let Some(node) = host.number(format!("{DEVICES}/{address}/numa_node")) else {
        return;
    };
    let Some(&core) = config.cores.workers.get(port.worker) else {
        return;
    };
    let near = host.read(format!("/sys/devices/system/node/node{node}/cpulist"));
    let near = cpu_list::read(&near.unwrap_or_default());
    if near.is_empty() || near.contains(&core) {
        return;
    }
    found.push(Finding {
        check: Check::Numa,
        severity: Severity::Warning,
        place: place.to_owned(),
        what: format!(
            "the card is on NUMA node {node}, its worker on core {core} of another: every frame crosses between them; cores {} are near",
            cpu_list::write(&near)
        ),
        mend: Mend::ByHand(format!("cat /sys/devices/system/node/node{node}/cpulist   # for cores.workers or ports[].worker")),
    });
}

fn width(host: &Host, (address, place): (&str, &str), found: &mut Vec<Finding>) {
    let lanes = |file: &str| host.number(format!("{DEVICES}/{address}/{file}"));
    let (Some(now), Some(most)) = (lanes("current_link_width"), lanes("max_link_width")) else {
        return;
    };
    if now > 0 && now < most {
        found.push(Finding {
            check: Check::PcieWidth,
            severity: Severity::Warning,
            place: place.to_owned(),
            what: format!("the card has {now} PCIe lanes of the {most} it can use: another slot may give it all"),
            mend: Mend::ByHand(format!("lspci -vv -s {address} | grep -e LnkCap -e LnkSta")),
        });
    }
}
