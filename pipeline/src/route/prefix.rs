//! A prefix of either family as left-aligned bits.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IPv4: at most 32 bits.
    V4,
    /// IPv6: at most 128 bits.
    V6,
}

/// The address as bits, first bit highest; IPv4 in the top 32.
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
    /// The prefix of `len` bits that holds `address`; `None` when `len` exceeds the family's.
    #[must_use]
    pub fn new(address: IpAddr, len: u8) -> Option<Prefix> {
        let (family, bits) = bits_of(address);
        (len <= max_len(family)).then(|| Prefix {
            family,
            bits: bits & mask(len),
            len,
        })
    }

    /// The prefix of one address.
    #[must_use]
    pub fn host(address: IpAddr) -> Prefix {
        let (family, bits) = bits_of(address);
        Prefix {
            family,
            bits,
            len: max_len(family),
        }
    }

    /// Its family.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Its bits, first bit highest.
    #[must_use]
    pub const fn bits(&self) -> u128 {
        self.bits
    }

    /// The first address in it.
    #[must_use]
    pub fn first(&self) -> IpAddr {
        address_of(self.family, self.bits)
    }

    /// The last address in it.
    #[must_use]
    pub fn last(&self) -> IpAddr {
        address_of(self.family, self.bits | !mask(self.len))
    }

    /// Its length in bits.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a length in bits, not a collection's"
    )]
    #[must_use]
    pub const fn len(&self) -> u8 {
        self.len
    }

    /// The default route's prefix.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        self.len == 0
    }

    /// The prefix cut to `len` bits (itself, when not shorter).
    #[must_use]
    pub fn covering(&self, len: u8) -> Prefix {
        let len = len.min(self.len);
        Prefix {
            family: self.family,
            bits: self.bits & mask(len),
            len,
        }
    }

    /// Whether `address` lies in it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let (family, bits) = bits_of(address);
        family == self.family && bits & mask(self.len) == self.bits
    }
}

/// The address of these bits, first bit highest.
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
