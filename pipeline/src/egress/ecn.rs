//! RED on the instantaneous depth, as DCQCN's congestion point: CE for ECT, early drop for lossy Not-ECT.
//!
//! Probability 0 up to `kmin`, rising to `pmax` at `kmax`, 1 above (SIGCOMM'15 section 3.1).

use super::rng::Xorshift;
use crate::wire::checksum;

/// Certainty (probability 1), in the unit of [`Red::probability`].
pub const CERTAIN: u64 = 1 << 32;

/// A RED curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Red {
    /// Depth in wire bytes up to which the probability is 0.
    pub kmin: u64,
    /// Depth in wire bytes above which the probability is 1.
    pub kmax: u64,
    /// Probability just below `kmax`, in units of 1/[`CERTAIN`].
    pub pmax: u64,
}

impl Red {
    /// Returns the probability at `depth`, in units of 1/[`CERTAIN`].
    #[inline]
    #[must_use]
    pub fn probability(&self, depth: u64) -> u64 {
        if depth <= self.kmin {
            return 0;
        }
        if depth > self.kmax {
            return CERTAIN;
        }
        let span = self.kmax - self.kmin;
        let part = u128::from(self.pmax.min(CERTAIN)) * u128::from(depth - self.kmin)
            / u128::from(span.max(1));
        u64::try_from(part).unwrap_or(CERTAIN)
    }

    /// Returns true with the [probability](Red::probability) at `depth`, without its division. A random number is drawn if it is not 0.
    #[inline]
    pub fn strikes(&self, depth: u64, rng: &mut Xorshift) -> bool {
        if depth <= self.kmin {
            return false;
        }
        if depth > self.kmax {
            rng.next_u32();
            return true;
        }
        let span = u128::from(self.kmax - self.kmin);
        let part = u128::from(self.pmax.min(CERTAIN)) * u128::from(depth - self.kmin);
        part >= span && (u128::from(rng.next_u32()) + 1) * span <= part
    }
}

/// Sets CE in an IP header and updates the IPv4 checksum. The ICRC masks the field (IBTA annex A17.3.3).
#[inline]
pub fn set_ce(l3: &mut [u8], ipv6: bool) {
    set(l3, ipv6, 3);
}

/// Replaces CE by ECT(0); the sender may have set ECT(1), which is not known any more.
#[inline]
pub fn clear_ce(l3: &mut [u8], ipv6: bool) {
    set(l3, ipv6, 2);
}

#[inline]
fn set(l3: &mut [u8], ipv6: bool, ecn: u8) {
    if ipv6 {
        // The traffic class lies in the low nibble of octet 0 and the high nibble of octet 1.
        if let Some(octet) = l3.get_mut(1) {
            *octet = *octet & !0x30 | ecn << 4;
        }
        return;
    }
    if let [
        version_ihl,
        tos,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        check_high,
        check_low,
        ..,
    ] = l3
    {
        let old = u16::from_be_bytes([*version_ihl, *tos]);
        *tos = *tos & !3 | ecn;
        let new = u16::from_be_bytes([*version_ihl, *tos]);
        let check = checksum::update(u16::from_be_bytes([*check_high, *check_low]), old, new);
        [*check_high, *check_low] = check.to_be_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn probability_rises_with_depth(kmin in 0u64..1_000_000, span in 0u64..1_000_000, pmax in 0u64..=CERTAIN,
                                        a in 0u64..3_000_000, b in 0u64..3_000_000) {
            let red = Red { kmin, kmax: kmin + span, pmax };
            let (low, high) = (a.min(b), a.max(b));
            prop_assert!(red.probability(low) <= red.probability(high));
            prop_assert_eq!(red.probability(kmin), 0);
            prop_assert_eq!(red.probability(kmin + span + 1), CERTAIN);
        }

        /// A strike is a random number below the probability, and none is drawn where that is 0.
        #[test]
        fn strikes_equal_the_probability(kmin in 0u64..1_000_000, span in 0u64..1_000_000, pmax in prop_oneof![0u64..=CERTAIN, 0u64..3],
                                         depth in 0u64..3_000_000, seed: u64) {
            let red = Red { kmin, kmax: kmin + span, pmax };
            let (mut rng, mut other) = (Xorshift::new(seed), Xorshift::new(seed));
            for _ in 0..4 {
                let expected = match red.probability(depth) {
                    0 => false,
                    probability => u64::from(other.next_u32()) < probability,
                };
                prop_assert_eq!(red.strikes(depth, &mut rng), expected);
            }
            prop_assert_eq!(rng.next_u32(), other.next_u32());
        }

        #[test]
        fn ce_keeps_the_checksum_true(mut header in prop::array::uniform20(any::<u8>())) {
            header[0] = 0x45;
            header[10..12].fill(0);
            let check = !checksum::sum(&header);
            header[10..12].copy_from_slice(&check.to_be_bytes());
            set_ce(&mut header, false);
            prop_assert_eq!(header[1] & 3, 3);
            prop_assert_eq!(checksum::sum(&header), 0xffff);
            clear_ce(&mut header, false);
            prop_assert_eq!(header[1] & 3, 2);
            prop_assert_eq!(checksum::sum(&header), 0xffff);
        }
    }

    #[test]
    fn half_the_coins_fall_at_half_probability() {
        let red = Red {
            kmin: 0,
            kmax: 1000,
            pmax: CERTAIN,
        };
        let mut rng = Xorshift::new(7);
        let tosses = 40_000;
        let struck = (0..tosses).filter(|_| red.strikes(500, &mut rng)).count();
        // Binomial: sigma = sqrt(n/4) = 100; the bound is 4 sigma.
        assert!(struck.abs_diff(tosses / 2) < 400, "{struck}");
    }

    #[test]
    fn ce_in_ipv6_leaves_the_rest_alone() {
        let mut l3 = [0x6c, 0x2f, 0xab, 0xcd];
        set_ce(&mut l3, true);
        assert_eq!(l3, [0x6c, 0x3f, 0xab, 0xcd]);
        clear_ce(&mut l3, true);
        assert_eq!(l3, [0x6c, 0x2f, 0xab, 0xcd]);
    }
}
