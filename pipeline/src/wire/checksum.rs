//! The Internet checksum (RFC 1071) and its incremental update (RFC 1624).

use crate::bits::{low16, low32};

/// Returns the one's complement sum of `bytes` as big-endian words, folded to 16 bits, not inverted.
#[inline]
#[must_use]
pub fn sum(bytes: &[u8]) -> u16 {
    let mut words = bytes.chunks_exact(4);
    // 32-bit words into 64 bits: no carry is lost below 2^32 words.
    let mut total: u64 = 0;
    for word in &mut words {
        if let [a, b, c, d] = *word {
            total += u64::from(u32::from_be_bytes([a, b, c, d]));
        }
    }
    let tail = match *words.remainder() {
        [a] => u32::from_be_bytes([a, 0, 0, 0]),
        [a, b] => u32::from_be_bytes([a, b, 0, 0]),
        [a, b, c] => u32::from_be_bytes([a, b, c, 0]),
        _ => 0,
    };
    fold(total + u64::from(tail))
}

/// Adds two folded sums in one's complement.
#[inline]
#[must_use]
pub const fn add(a: u16, b: u16) -> u16 {
    let total = a as u32 + b as u32;
    low16((total as usize & 0xffff) + (total as usize >> 16))
}

/// Returns the checksum after a 16-bit word of the covered bytes changed from `old` to `new`.
///
/// RFC 1624 equation 3: `HC' = ~(~HC + ~m + m')`.
#[inline]
#[must_use]
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    !add(add(!checksum, !old), new)
}

/// Returns TTL, protocol and checksum of an IPv4 header, as one little-endian word, after the TTL (at least 1) is decremented:
/// [`update`] for this one change.
#[inline]
#[must_use]
pub const fn ttl_less_one(word: u32) -> u32 {
    // The covered word falls by 0x0100, so the checksum rises by it, modulo 2^16 - 1; its octets are swapped here, which a
    // one's complement sum does not mind: it rises by 1.
    let around = (word as u64 + 0x2_0000) >> 32 << 16;
    low32(word as u64 + 0xffff + around)
}

#[inline]
const fn fold(total: u64) -> u16 {
    let total = (total >> 32) + (total & 0xffff_ffff);
    let total = (total >> 16) + (total & 0xffff);
    let total = (total >> 16) + (total & 0xffff);
    let total = (total >> 16) + (total & 0xffff);
    (total & 0xffff) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum_by_words(bytes: &[u8]) -> u16 {
        bytes.chunks(2).fold(0, |acc, pair| {
            add(
                acc,
                u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]),
            )
        })
    }

    #[test]
    fn one_hop_less_is_the_update_of_that_change() {
        for ttl_protocol in [0x0100u16, 0x0111, 0x40ff, 0xff00, 0xffff] {
            for check in 0..=u16::MAX {
                let word = |ttl_protocol: u16, check: u16| {
                    (u32::from(ttl_protocol) << 16 | u32::from(check)).swap_bytes()
                };
                let less = ttl_protocol - 0x0100;
                let expected = word(less, update(check, ttl_protocol, less));
                let word = word(ttl_protocol, check);
                assert_eq!(ttl_less_one(word), expected, "{word:#x}");
            }
        }
    }

    proptest! {
        #[test]
        fn sum_equals_the_word_by_word_definition(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(sum(&bytes), sum_by_words(&bytes));
        }

        #[test]
        fn update_equals_a_fresh_checksum(mut header in prop::array::uniform20(any::<u8>()), ttl in any::<u8>()) {
            header[0] = 0x45; // A real header is never all zero: RFC 1624 section 3.
            header[10..12].fill(0);
            let old = !sum(&header);
            let before = u16::from_be_bytes([header[8], header[9]]);
            header[8] = ttl;
            let after = u16::from_be_bytes([header[8], header[9]]);
            prop_assert_eq!(update(old, before, after), !sum(&header));
        }
    }
}
