//! Two addresses as words, in which pairs and ends are left.

use std::net::{IpAddr, Ipv6Addr};

/// Words of two addresses.
pub(super) const ADDRESSES: usize = 4;

/// Two addresses of one family.
pub(super) struct Addresses {
    pub(super) src: IpAddr,
    pub(super) dst: IpAddr,
}

/// Both addresses as words.
pub(super) fn words(src: IpAddr, dst: IpAddr) -> [u64; ADDRESSES] {
    let [a, b] = halves(src);
    let [c, d] = halves(dst);
    [a, b, c, d]
}

/// The addresses that words hold.
pub(super) fn addresses([a, b, c, d]: [u64; ADDRESSES]) -> Addresses {
    let address = |high: u64, low: u64| {
        let bits = u128::from(high) << 64 | u128::from(low);
        IpAddr::V6(Ipv6Addr::from_bits(bits)).to_canonical()
    };
    Addresses {
        src: address(a, b),
        dst: address(c, d),
    }
}

fn halves(address: IpAddr) -> [u64; 2] {
    let bits = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
    .to_bits();
    [low(bits >> 64), low(bits)]
}

/// The low half.
const fn low(bits: u128) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
    {
        bits as u64
    }
}
