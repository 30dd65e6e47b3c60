//! Interfaces of a port in Linux, one without a tag and one for each VLAN, and their addresses.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::units::Mac;

/// One interface of a port.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PuntInterface {
    /// VLAN id of the interface; 0 for the one without a tag.
    pub vlan: u16,
    /// Source address of ICMP errors.
    pub v4: Option<Ipv4Addr>,
    /// Source address of ICMPv6 errors.
    pub v6: Option<Ipv6Addr>,
    /// Link-local addresses of the interface.
    pub link_locals: Vec<Ipv6Addr>,
}

impl PuntInterface {
    /// Returns an interface with no address except the link-local one that Linux derives from the port's MAC address.
    #[must_use]
    pub fn new(vlan: u16, mac: Mac) -> PuntInterface {
        PuntInterface {
            vlan,
            link_locals: vec![link_local(mac)],
            ..PuntInterface::default()
        }
    }
}

/// Returns the link-local address that Linux derives from a MAC address (RFC 4291, appendix A).
#[must_use]
pub fn link_local(mac: Mac) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    let id = [a ^ 2, b, c, 0xff, 0xfe, d, e, f];
    Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(u64::from_be_bytes(id)))
}

/// The interfaces of one port.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PuntPort {
    /// Interfaces of the port, each VLAN once.
    pub interfaces: Vec<PuntInterface>,
    /// MAC addresses beside the port's own that are the switch's too, by VLAN: those of Linux's macvlans, such as VRRP's.
    pub macs: Vec<(u16, Mac)>,
}

impl PuntPort {
    /// Returns the interface of a VLAN.
    #[must_use]
    pub fn of(&self, vlan: u16) -> Option<&PuntInterface> {
        self.interfaces.iter().find(|one| one.vlan == vlan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_address_is_made_of_the_mac_address() {
        let address = link_local(Mac([0x02, 0, 0, 0, 0x01, 0x01]));
        assert_eq!(address, "fe80::ff:fe00:101".parse::<Ipv6Addr>().unwrap());
    }
}
