//! Ports, resolved.

use std::fmt;

use ipnet::IpNet;

use crate::model::{Action, PeerResponse, PolicyName, PortPfc, UpstreamCe};
use crate::resolved::{ResolvedQos, Thresholds};
use crate::units::{BitRate, Length, Mac, Threshold};

/// Port, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Name, unique.
    pub name: String,
    /// DPDK device.
    pub device: Device,
    /// MAC address; `None` takes the device's.
    pub mac: Option<Mac>,
    /// IP MTU in bytes, 576 to 9198.
    pub mtu: u16,
    /// Addresses of the untagged interface, each with its subnet's length.
    pub addresses: Vec<IpNet>,
    /// Tagged interfaces.
    pub vlans: Vec<Vlan>,
    /// Index in `cores.workers` of the worker that owns the port's queues and its pause state.
    pub worker: usize,
    /// Egress shaper; `None` takes 99.9 % of a physical link's rate and leaves a virtual device unlimited.
    pub speed: Option<BitRate>,
    /// Speed of the link; `None` reads it from a physical device.
    pub link_speed: Option<BitRate>,
    /// Number of descriptors of each receive ring; `None` for as many as one worker iteration needs.
    pub rx_descriptors: Option<u16>,
    /// Maximum that may wait in the device's transmit ring; `None` takes the larger of two full frames
    /// and 2 us of the link.
    pub tx_outstanding: Option<Threshold>,
    /// Length of the cable.
    pub cable: Length,
    /// Time in which the peer stops sending after a pause frame.
    pub peer_response: PeerResponse,
    /// Priority flow control.
    pub pfc: PortPfc,
    /// Classification of received packets, and the port's queues: profile and explicit keys merged.
    pub qos: ResolvedQos,
    /// Proactive congestion notification, if it is enabled.
    pub npcc: Option<ResolvedPortNpcc>,
}

/// Tagged (802.1Q) interface of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vlan {
    /// VLAN ID, 1 to 4094.
    pub id: u16,
    /// Addresses, each with its subnet's length.
    pub addresses: Vec<IpNet>,
}

/// Interface of a port with its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface<'a> {
    /// VLAN ID; `None` is untagged.
    pub vlan: Option<u16>,
    /// Addresses, each with its subnet's length.
    pub addresses: &'a [IpNet],
}

impl Port {
    /// Iterates over the untagged interface, then the tagged ones.
    pub fn interfaces(&self) -> impl Iterator<Item = Interface<'_>> {
        let untagged = Interface {
            vlan: None,
            addresses: &self.addresses,
        };
        let tagged = self.vlans.iter().map(|vlan| Interface {
            vlan: Some(vlan.id),
            addresses: &vlan.addresses,
        });
        std::iter::once(untagged).chain(tagged)
    }
}

/// Returns the name of a port's interface in Linux: the port's name, with the VLAN behind a dot.
#[must_use]
pub fn linux_link(port: &str, vlan: Option<u16>) -> String {
    vlan.map_or_else(|| port.to_owned(), |vlan| format!("{port}.{vlan}"))
}

/// Proactive congestion notification on a port where it is enabled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedPortNpcc {
    /// Watched egress queues; bit n: priority n.
    pub queues: u8,
    /// Action on CNP decisions by priority: the most restrictive of the port's and the queue's.
    pub actions: [Action; 8],
    /// Policy that selects the flows to signal, by priority.
    pub policies: [PolicyName; 8],
    /// Configured parameters of the policy, by priority: name, and value in the parameter's unit.
    pub parameters: [Vec<(&'static str, u64)>; 8],
    /// Treatment of frames that an upstream switch has marked CE.
    pub upstream_ce: UpstreamCe,
    /// Thresholds of this port, the general ones where it has none of its own.
    pub thresholds: Thresholds,
}

impl ResolvedPortNpcc {
    /// Iterates over the watched priorities, ascending.
    pub fn priorities(&self) -> impl Iterator<Item = u8> + '_ {
        (0..8).filter(|p| self.queues & (1 << p) != 0)
    }
}

/// Bytes of a ring frame of `net_af_packet` in front of the packet of an untagged frame: the kernel's header, an address and the alignment
/// (`TPACKET_V2`). The Ethernet header is the last part of them.
pub const RING_HEADER: u64 = 80;

/// DPDK device by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Device {
    /// PCI function.
    Pci {
        /// Address with domain, lower case, such as `0000:3b:00.0`.
        address: String,
        /// Driver arguments: the text after the first comma; may be empty.
        args: String,
    },
    /// Virtual device.
    Virtual {
        /// Name, which also selects the driver, such as `net_af_packet0`.
        name: String,
        /// Driver arguments: the text after the first comma; may be empty.
        args: String,
    },
}

impl Device {
    /// Parses a device; `None` when it is neither a PCI address nor a known kind of virtual device.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (id, args) = text.split_once(',').unwrap_or((text, ""));
        let args = args.to_owned();
        if let Some(address) = pci(id) {
            return Some(Self::Pci { address, args });
        }
        let known = ["net_", "eth_", "virtio_user"]
            .iter()
            .any(|start| id.starts_with(start));
        let plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        (known && plain).then(|| Self::Virtual {
            name: id.to_owned(),
            args,
        })
    }

    /// Returns the kernel interface under a virtual device (`net_af_packet`, `net_af_xdp`), if there is one.
    #[must_use]
    pub fn kernel_interface(&self) -> Option<&str> {
        self.interface()
            .filter(|_| self.id().starts_with("net_af_"))
    }

    /// Returns the kernel interface that a virtual device opens or makes, whatever its driver.
    #[must_use]
    pub fn interface(&self) -> Option<&str> {
        match self {
            Self::Pci { .. } => None,
            Self::Virtual { args, .. } => args
                .split(',')
                .find_map(|arg| arg.strip_prefix("iface="))
                .filter(|interface| !interface.is_empty()),
        }
    }

    /// Unique identifier of the device: its PCI address or its name.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Pci { address, .. } => address,
            Self::Virtual { name, .. } => name,
        }
    }

    /// Frame size of the device's packet ring in bytes, for `net_af_packet`, which silently drops longer frames and requires packet
    /// buffers that hold a whole ring frame.
    #[must_use]
    pub fn ring_frame(&self) -> Option<u64> {
        let Self::Virtual { name, args } = self else {
            return None;
        };
        let given = args
            .split(',')
            .find_map(|arg| arg.strip_prefix("framesz=")?.parse().ok());
        name.starts_with("net_af_packet")
            .then(|| given.unwrap_or(2048))
    }

    /// Returns true for a virtual device, whose reported link speed means nothing.
    #[must_use]
    pub const fn is_virtual(&self) -> bool {
        matches!(self, Self::Virtual { .. })
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Pci { args, .. } | Self::Virtual { args, .. }) = self;
        f.write_str(self.id())?;
        if args.is_empty() {
            Ok(())
        } else {
            write!(f, ",{args}")
        }
    }
}

/// Returns `[domain:]bus:device.function` in full and lower case.
fn pci(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (domain, bus, slot) = match parts.as_slice() {
        [bus, slot] => ("0000", *bus, *slot),
        [domain, bus, slot] => (*domain, *bus, *slot),
        _ => return None,
    };
    let (device, function) = slot.split_once('.')?;
    let hex = |s: &str, lengths: std::ops::RangeInclusive<usize>| {
        lengths.contains(&s.len()) && s.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let good = hex(domain, 4..=8)
        && hex(bus, 2..=2)
        && hex(device, 2..=2)
        && u8::from_str_radix(device, 16).is_ok_and(|d| d < 32)
        && matches!(function.as_bytes(), [b'0'..=b'7']);
    good.then(|| format!("{domain}:{bus}:{device}.{function}").to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices() {
        let pci = Device::parse("3B:00.1,dv_flow_en=2").unwrap();
        assert_eq!(pci.id(), "0000:3b:00.1");
        assert_eq!(pci.to_string(), "0000:3b:00.1,dv_flow_en=2");
        assert!(!pci.is_virtual());
        let vdev = Device::parse("net_pcap0,rx_pcap=a.pcap,tx_pcap=b.pcap").unwrap();
        assert_eq!(vdev.id(), "net_pcap0");
        assert!(vdev.is_virtual());
        for bad in ["eth0", "3b:00.8", "3b:20.0", "", "0000:3b:00", "enp3s0f0"] {
            assert_eq!(Device::parse(bad), None, "{bad}");
        }
    }
}
