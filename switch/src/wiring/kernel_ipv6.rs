//! IPv6 of the kernel on the interfaces under ports, which is off while the switch runs.
//!
//! The kernel keeps its stack on an interface whose frames a port of `net_af_packet` or `net_af_xdp` takes. With IPv6 it has the link-local
//! address of the interface's MAC address, which is the port's, and answers for it beside Linux on the port's TAP: pings are answered
//! twice, and connections such as BGP's are refused.
//!
//! Law: a value that somebody else set is not changed, at the end neither.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use npcc_config::Config;

use crate::saved::SavedState;
use npcc_engine::log::note;

/// Guard: as long as it lives, the kernel has IPv6 off on the interfaces under ports.
#[derive(Debug)]
pub struct Ipv6Off {
    /// `disable_ipv6` of each interface, open, as the sandbox leaves no way into another network namespace.
    held: BTreeMap<String, File>,
    saved: Arc<SavedState>,
}

impl Ipv6Off {
    /// Disables IPv6 on the interfaces under the configuration's ports, in the network namespace of the calling thread. An interface that
    /// does not exist, a kernel without IPv6, and one where IPv6 is off already are left as they are, except that what a killed process
    /// disabled is enabled at the end, where the service manager keeps its state.
    #[must_use]
    pub fn under_ports(config: &Config, saved: &Arc<SavedState>) -> Ipv6Off {
        let before = saved.facts().ipv6_off;
        let mut held = BTreeMap::new();
        for port in &config.ports {
            let Some(interface) = port.device.kernel_interface() else {
                continue;
            };
            match disable(interface, before.iter().any(|one| one == interface)) {
                Ok(Some(file)) => _ = held.insert(interface.to_owned(), file),
                Ok(None) => {}
                Err(error) => note(&format!(
                    "note: the kernel answers beside port {} with IPv6 on {interface}, which cannot be disabled: {error}; on the host: sysctl -w {}=1",
                    port.name,
                    key(interface)
                )),
            }
        }
        // An interface that no port uses any more is as it was before, at once.
        for interface in before.iter().filter(|one| !held.contains_key(*one)) {
            // It may have been deleted meanwhile.
            let _ = fs::write(format!("/proc/sys/{}", key(interface)), "0");
        }
        saved.change(|facts| facts.ipv6_off = held.keys().cloned().collect());
        Ipv6Off {
            held,
            saved: Arc::clone(saved),
        }
    }
}

impl Drop for Ipv6Off {
    fn drop(&mut self) {
        for (interface, file) in &self.held {
            // The interface may have been deleted meanwhile.
            if let Err(error) = file.write_all_at(b"0", 0)
                && error.kind() != io::ErrorKind::NotFound
            {
                let key = key(interface);
                note(&format!(
                    "note: IPv6 of the kernel stays off on {interface}: {error}; sysctl -w {key}=0"
                ));
            }
        }
        self.saved.change(|facts| facts.ipv6_off.clear());
    }
}

/// Returns the name of the sysctl; slashes, as the name of an interface may have a dot.
fn key(interface: &str) -> String {
    format!("net/ipv6/conf/{interface}/disable_ipv6")
}

/// Disables IPv6 on an interface; returns the file by which it is enabled again, `None` if it must not be. `ours` if it was a previous
/// process that disabled it.
fn disable(interface: &str, ours: bool) -> io::Result<Option<File>> {
    // `all` and `default` are sysctls, and no interfaces; the loopback has no MAC address, and others need its ::1.
    if if_nametoindex(interface).is_err() || is_loopback(interface) {
        return Ok(None);
    }
    let open = OpenOptions::new()
        .read(true)
        .write(true)
        .open(format!("/proc/sys/{}", key(interface)));
    let mut file = match open {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut now = String::new();
    file.read_to_string(&mut now)?;
    if now.trim() != "0" {
        return Ok(Some(file).filter(|_| ours));
    }
    let lost = routed_addresses(interface);
    file.write_all_at(b"1", 0)?;
    if !lost.is_empty() {
        note(&format!(
            "note: the kernel's IPv6 is off on {interface} while a port uses it, and the interface has lost {}: give a port the address, not the interface under it",
            lost.join(", ")
        ));
    }
    Ok(Some(file))
}

fn is_loopback(interface: &str) -> bool {
    let mut all = getifaddrs().into_iter().flatten();
    all.any(|one| {
        one.interface_name == interface && one.flags.contains(InterfaceFlags::IFF_LOOPBACK)
    })
}

/// Returns the IPv6 addresses of an interface that the kernel does not form again by itself.
fn routed_addresses(interface: &str) -> Vec<String> {
    let all = getifaddrs().into_iter().flatten();
    let of = all.filter(|one| one.interface_name == interface);
    let addresses = of.filter_map(|one| Some(one.address?.as_sockaddr_in6()?.ip()));
    let routed = addresses.filter(|address| !address.is_unicast_link_local());
    routed.map(|address| address.to_string()).collect()
}
