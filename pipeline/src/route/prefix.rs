//! Prefixes of either address family, as left-aligned bits.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IPv4: at most 32 bits.
    V4,
    /// IPv6: at most 128 bits.
    V6,
}

/// Returns the family and the bits of an address, first bit highest; IPv4 in the top 32.
#[must_use]
pub fn bits_of(address: IpAddr) -> (Family, u128) {
    match address {
        IpAddr::V4(v4) => (Family::V4, u128::from(v4.to_bits()) << 96),
        IpAddr::V6(v6) => (Family::V6, v6.to_bits()),
    }
}

/// A prefix with its host bits zero.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, derive_more::Debug, derive_more::Display,
)]
#[debug("{self}")]
#[display("{}/{len}", self.first())]
pub struct Prefix {
    family: Family,
    bits: u128,
    len: u8,
}

impl Prefix {
    /// Returns the prefix of `len` bits that contains `address`; `None` if `len` exceeds the family's.
    #[must_use]
    pub fn new(address: IpAddr, len: u8) -> Option<Prefix> {
        let (family, bits) = bits_of(address);
        (len <= max_len(family)).then(|| Prefix {
            family,
            bits: bits & mask(len),
            len,
        })
    }

    /// Returns the prefix that contains one address only.
    #[must_use]
    pub fn host(address: IpAddr) -> Prefix {
        let (family, bits) = bits_of(address);
        Prefix {
            family,
            bits,
            len: max_len(family),
        }
    }

    /// Returns the address family.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Returns the bits, first bit highest.
    #[must_use]
    pub const fn bits(&self) -> u128 {
        self.bits
    }

    /// Returns the first address in it.
    #[must_use]
    pub fn first(&self) -> IpAddr {
        address_of(self.family, self.bits)
    }

    /// Returns the last address in it.
    #[must_use]
    pub fn last(&self) -> IpAddr {
        address_of(self.family, self.bits | !mask(self.len))
    }

    /// Returns the length in bits.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a length in bits, not a collection's"
    )]
    #[must_use]
    pub const fn len(&self) -> u8 {
        self.len
    }

    /// Returns true for the default route's prefix.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        self.len == 0
    }

    /// Returns the prefix cut to `len` bits (itself, if it is not longer).
    #[must_use]
    pub fn covering(&self, len: u8) -> Prefix {
        let len = len.min(self.len);
        Prefix {
            family: self.family,
            bits: self.bits & mask(len),
            len,
        }
    }

    /// Returns true if `address` lies in it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let (family, bits) = bits_of(address);
        family == self.family && bits & mask(self.len) == self.bits
    }
}

/// Returns the address with these bits, first bit highest.
fn address_of(family: Family, bits: u128) -> IpAddr {
    match family {
        Family::V4 => {
            let top = u32::try_from(bits >> 96).unwrap_or_default();
            Ipv4Addr::from_bits(top).into()
        }
        Family::V6 => Ipv6Addr::from_bits(bits).into(),
    }
}

const fn max_len(family: Family) -> u8 {
    match family {
        Family::V4 => 32,
        Family::V6 => 128,
    }
}

fn mask(len: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_bits_are_cleared() {
        let prefix = Prefix::new("10.1.2.3".parse().unwrap(), 8).unwrap();
        assert_eq!(prefix.to_string(), "10.0.0.0/8");
        assert_eq!(prefix.last().to_string(), "10.255.255.255");
        assert!(prefix.contains("10.255.0.1".parse().unwrap()));
        assert!(!prefix.contains("11.0.0.1".parse().unwrap()));
        assert!(Prefix::new("10.0.0.0".parse().unwrap(), 33).is_none());
        assert_eq!(Prefix::new("::".parse().unwrap(), 0).unwrap().bits(), 0);
    }
}
