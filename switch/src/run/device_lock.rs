//! Lock of the ports' devices: no two switches of a network namespace have the same one, whatever their sockets and files are called.
//!
//! Decision: a lock is an abstract Unix socket named by the device. It has no file that a cleaner removes, ends with the process however that
//! ends, and belongs to a network namespace, as interfaces do.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use anyhow::anyhow;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use npcc_config::Config;
use npcc_config::resolved::Device;

use npcc_engine::log::note;

/// Locks of all ports; they are free again once this is dropped.
#[derive(Debug)]
pub(super) struct DeviceLocks {
    _held: Vec<UnixListener>,
}

impl DeviceLocks {
    /// Takes the locks of all ports that have a device of the host: a card, or a kernel interface.
    ///
    /// # Errors
    /// Another switch has one of them; names its process.
    pub(super) fn take(config: &Config) -> anyhow::Result<DeviceLocks> {
        let mut held = Vec::new();
        for port in &config.ports {
            let Some(device) = device(&port.device) else {
                continue;
            };
            let address = SocketAddr::from_abstract_name(format!("npcc-switch/device/{device}"))?;
            match UnixListener::bind_addr(&address) {
                Ok(lock) => held.push(lock),
                Err(error) if error.kind() == ErrorKind::AddrInUse => {
                    let name = &port.name;
                    let Some(pid) = owner(&address) else {
                        note(&format!(
                            "note: port {name}: a program of another user keeps the lock of {device}: whether a switch runs there is not known"
                        ));
                        continue;
                    };
                    return Err(anyhow!(
                        "port {name}: {device} belongs to the switch that runs as process {pid}: stop that first, or give the port \
                         another device"
                    ));
                }
                Err(error) => note(&format!("note: no lock of {device}: {error}")),
            }
        }
        Ok(DeviceLocks { _held: held })
    }
}

/// Returns the name of what a device occupies on the host; `None` for a device of this process's own.
fn device(device: &Device) -> Option<&str> {
    match device {
        Device::Pci { address, .. } => Some(address),
        Device::Virtual { .. } => device.interface(),
    }
}

/// Returns the process that has a lock; `None` if it is not of root or of this user, so that no other user keeps a switch from starting.
fn owner(address: &SocketAddr) -> Option<i32> {
    let other = UnixStream::connect_addr(address).ok()?;
    let other = getsockopt(&other, PeerCredentials).ok()?;
    let own = nix::unistd::geteuid().as_raw();
    [0, own].contains(&other.uid()).then(|| other.pid())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: a device has one switch, which is named, until that ends; devices without a counterpart on the host have no lock.
    #[test]
    fn a_device_has_one_switch_at_a_time() {
        let config = |device: &str| {
            let text = format!(
                "ports: [{{ name: wan0, device: '{device}', mtu: 1500 }}]\nqos: {{ profile: lossy }}\n"
            );
            npcc_config::parse("t", &text).unwrap().config
        };
        let one = "net_af_packet0,iface=lock-test";
        let first = DeviceLocks::take(&config(one)).unwrap();
        let again = DeviceLocks::take(&config("net_tap3,iface=lock-test"));
        let refused = again.unwrap_err().to_string();
        let words = format!("process {}", std::process::id());
        assert!(
            refused.contains("port wan0: lock-test") && refused.contains(&words),
            "{refused}"
        );
        let none = [config("net_null0"), config("net_null0")];
        let both = none.map(|config| DeviceLocks::take(&config).unwrap());
        assert!(both.iter().all(|one| one._held.is_empty()));
        drop(first);
        DeviceLocks::take(&config(one)).unwrap();
    }
}
