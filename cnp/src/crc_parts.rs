//! The CRC-32 of a packet that differs from a template in a few octets: a table look-up for each of these.
//!
//! The CRC's register is linear: that of a message is that of the template, exclusive-or what every changed octet adds, and
//! an octet adds the same wherever the message begins, by its distance from the end. All of it is computed when compiling.

/// Distances for which there is a table: the longest CNP from its ICRC's masked route header on, less one.
pub(crate) const REACH: usize = 84;
const POLYNOMIAL: u32 = 0xedb8_8320;

const fn of_octet(mut value: u32) -> u32 {
    let mut bit = 0;
    while bit < 8 {
        value = if value & 1 == 1 {
            value >> 1 ^ POLYNOMIAL
        } else {
            value >> 1
        };
        bit += 1;
    }
    value
}

/// By distance from the end and octet: what it adds to the register.
static ADDS: [[u32; 256]; REACH] = adds();

#[expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "evaluated by the compiler, which refuses an index out of bounds; the octet is below 256"
)]
const fn adds() -> [[u32; 256]; REACH] {
    let mut tables = [[0; 256]; REACH];
    let mut octet = 0;
    while octet < 256 {
        let mut value = of_octet(octet as u32);
        let mut distance = 0;
        while distance < REACH {
            tables[distance][octet] = value;
            // One more octet of zeros behind it.
            value = value >> 8 ^ of_octet(value & 0xff);
            distance += 1;
        }
        octet += 1;
    }
    tables
}

/// The register after a template of which no octet has been changed.
#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, which refuses an index out of bounds"
)]
pub(crate) const fn register<const LEN: usize>(template: &[u8; LEN]) -> u32 {
    let mut value = u32::MAX;
    let mut at = 0;
    while at < LEN {
        value = value >> 8 ^ of_octet((value ^ template[at] as u32) & 0xff);
        at += 1;
    }
    value
}

/// What `N` octets add, the last of which has `DISTANCE` octets behind it.
#[inline]
pub(crate) fn add<const N: usize, const DISTANCE: usize>(octets: [u8; N]) -> u32 {
    let tables = const { DISTANCE..DISTANCE + N };
    let tables = ADDS.get(tables).unwrap_or_default();
    let parts = octets.iter().rev().zip(tables);
    parts.fold(0, |sum, (octet, table)| {
        sum ^ table.get(usize::from(*octet)).copied().unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_make_the_whole(octets in any::<[u8; 5]>(), rest in any::<[u8; 3]>()) {
            let message: Vec<u8> = [&[7, 9][..], &octets, &rest].concat();
            let template = [7, 9, 0, 0, 0, 0, 0, rest[0], rest[1], rest[2]];
            let whole = !crc32fast::hash(&message);
            prop_assert_eq!(register(&template) ^ add::<5, 3>(octets), whole);
        }
    }
}
