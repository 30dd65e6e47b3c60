//! Netlink attributes: the part of a message after its fixed header, each a length, a kind and a value.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::NlasIterator;

/// `AF_INET`, in one octet.
pub const INET: u8 = 2;
/// `AF_INET6`, in one octet.
pub const INET6: u8 = 10;

/// Iterates over the kinds and values of a run of attributes, up to the first that is truncated.
///
/// Each takes at least its four octets of the run, so the iteration ends.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let whole = NlasIterator::new(bytes).map_while(Result::ok);
    whole.map(|attribute| {
        let kind = attribute.kind();
        let len = attribute.value_length();
        let value = attribute.into_inner().get(4..4 + len);
        (kind, value.unwrap_or_default())
    })
}

/// Returns the first `N` octets, if there are so many.
pub fn array<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.first_chunk().copied()
}

/// Reads a 16-bit number at an offset, in host byte order.
pub fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    array(bytes.get(offset..)?).map(u16::from_ne_bytes)
}

/// Reads a 32-bit number at an offset, in host byte order.
pub fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    array(bytes.get(offset..)?).map(u32::from_ne_bytes)
}

/// Reads an attribute that is a 32-bit number.
pub fn number(value: &[u8]) -> Option<u32> {
    u32_at(value, 0)
}

/// Reads an attribute that is an address of 4 or 16 octets.
pub fn address(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => array::<4>(value).map(|octets| IpAddr::V4(Ipv4Addr::from(octets))),
        16 => array::<16>(value).map(|octets| IpAddr::V6(Ipv6Addr::from(octets))),
        _ => None,
    }
}

/// Reads an attribute that is an address after its family (`RTA_VIA`).
pub fn address_of_family(value: &[u8]) -> Option<IpAddr> {
    let family = u16_at(value, 0)?;
    let found = address(value.get(2..)?)?;
    (family == u16::from(family_of(found))).then_some(found)
}

/// Reads an attribute that is zero-terminated text.
pub fn text(value: &[u8]) -> Option<&str> {
    let end = value
        .iter()
        .position(|octet| *octet == 0)
        .unwrap_or(value.len());
    std::str::from_utf8(value.get(..end)?).ok()
}

/// Returns the address family of an address, in one octet.
#[must_use]
pub const fn family_of(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => INET,
        IpAddr::V6(_) => INET6,
    }
}

/// Returns the all-zero address of a family.
#[must_use]
pub const fn unspecified(family: u8) -> Option<IpAddr> {
    match family {
        INET => Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        INET6 => Some(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_attributes_ends_at_the_first_that_is_not_whole() {
        let bytes = [
            8, 0, 4, 0, 1, 2, 3, 4, 5, 0, 7, 0, 9, 0, 0, 0, 12, 0, 1, 0, 1,
        ];
        let found: Vec<_> = attributes(&bytes).collect();
        assert_eq!(found, [(4, &[1u8, 2, 3, 4][..]), (7, &[9][..])]);
        assert_eq!(attributes(&[0, 0, 1, 0]).count(), 0, "of no length");
        assert_eq!(
            attributes(&[3, 0, 1, 0]).count(),
            0,
            "shorter than its head"
        );
    }

    #[test]
    fn an_address_has_the_length_of_its_family() {
        assert_eq!(address(&[10, 0, 0, 1]), Some("10.0.0.1".parse().unwrap()));
        assert_eq!(address(&[10, 0, 0]), None);
        assert_eq!(address_of_family(&[10, 0, 10, 0, 0, 1]), None);
        let via = [&[10, 0][..], &[0xfe, 0x80], &[0; 13], &[1]].concat();
        assert_eq!(address_of_family(&via), Some("fe80::1".parse().unwrap()));
    }
}
