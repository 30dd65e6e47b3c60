//! ECN curves of the baselines: thresholds as shipped, as published, and as an operator of a long link would set them.
//!
//! | scheme | `kmin`, `kmax`, `pmax` | source |
//! |---|---|---|
//! | `ecn` | the scenario's `thresholds` | |
//! | `ecn-nvidia` | 150 KB, 1,500 KB, 100 %, at any rate | NVIDIA's RoCE profile: Onyx 3.10, `show roce` ("ecn, absolute, Min 150, Max 1500"); Cumulus Linux, `nv show qos roce` (probability 100) |
//! | `ecn-hpcc` | 400 KB, 1,600 KB, 20 % at 100 Gb/s; scaled with the rate | HPCC (SIGCOMM'19), section 5.1, and `run.py` of its simulator |
//! | `ecn-tuned` | [`Curve::Tuned`] | the rule below |

use npcc_config::units::{BitRate, Bytes, Nanos, Percent};
use npcc_pipeline::egress::ecn::{CERTAIN, Red};

use super::Thresholds;

/// Part of the pool below which `ecn-tuned` begins to mark, and part from which it marks all. With a dynamic threshold of alpha 1 the first
/// pause comes when a single port's frames fill half of the pool; from a quarter on, a full curve has a quarter of the pool left for what
/// arrives before its first marks have an effect.
const BEGIN: u64 = 8;
const ALL: u64 = 4;

/// ECN curve of a scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Curve {
    /// The scenario's thresholds.
    #[default]
    Scenario,
    /// NVIDIA's RoCE profile.
    Nvidia,
    /// The HPCC paper's DCQCN.
    Hpcc,
    /// Thresholds from round trip and pool. `kmin` is one bandwidth-delay product of the longest path through the queue, `kmax` two, so that
    /// the queue bridges the time in which senders that were cut too far recover; both at least those of HPCC. With a pool, at most an
    /// eighth and a quarter of it, so that marking begins before pauses. `pmax` is 10 %.
    Tuned,
}

/// Surroundings of a queue, which its curve may depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) rate: BitRate,
    /// Round trip of the longest path through the queue, on idle links.
    pub(crate) round_trip: Nanos,
    pub(crate) pool: Option<Bytes>,
    pub(crate) mtu: u16,
}

impl Curve {
    /// All curves that are a baseline's.
    pub const ALL: [Curve; 4] = [Curve::Scenario, Curve::Nvidia, Curve::Hpcc, Curve::Tuned];

    /// Returns the name of the scheme that marks by this curve alone.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Curve::Scenario => "ecn",
            Curve::Nvidia => "ecn-nvidia",
            Curve::Hpcc => "ecn-hpcc",
            Curve::Tuned => "ecn-tuned",
        }
    }

    /// Returns the curve of a queue.
    pub(crate) fn red(self, thresholds: &Thresholds, place: Place) -> Red {
        let bytes = |of: npcc_config::units::Threshold| of.bytes_floored(place.rate, place.mtu);
        let percent = |percent| Percent::new(percent).unwrap_or(Percent::FULL).of(CERTAIN);
        match self {
            Curve::Scenario => Red {
                kmin: bytes(thresholds.kmin),
                kmax: bytes(thresholds.kmax),
                pmax: thresholds.pmax.of(CERTAIN),
            },
            Curve::Nvidia => Red {
                kmin: 150_000,
                kmax: 1_500_000,
                pmax: CERTAIN,
            },
            Curve::Hpcc => hpcc(place.rate, percent(20)),
            Curve::Tuned => {
                let least = hpcc(place.rate, percent(10));
                let product = place.rate.bytes_in(place.round_trip);
                let share = |part| place.pool.map_or(u64::MAX, |pool| pool.0 / part);
                Red {
                    kmin: least.kmin.max(product).min(share(BEGIN)),
                    kmax: least.kmax.max(2 * product).min(share(ALL)),
                    ..least
                }
            }
        }
    }
}

/// Returns HPCC's thresholds at this rate: 4 and 16 KB for each Gb/s.
const fn hpcc(rate: BitRate, pmax: u64) -> Red {
    Red {
        kmin: rate.0 / 250_000,
        kmax: rate.0 / 62_500,
        pmax,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(gbps: u64, micros: u64, pool: Option<u64>) -> Place {
        Place {
            rate: BitRate(gbps * 1_000_000_000),
            round_trip: Nanos::from_micros(micros),
            pool: pool.map(Bytes),
            mtu: 4_096,
        }
    }

    fn kilobytes(curve: Curve, place: Place) -> [u64; 2] {
        let red = curve.red(&Thresholds::default(), place);
        [red.kmin / 1_000, red.kmax / 1_000]
    }

    #[test]
    fn published_curves_are_as_published() {
        let near = place(100, 10, None);
        assert_eq!(kilobytes(Curve::Nvidia, near), [150, 1_500]);
        assert_eq!(kilobytes(Curve::Hpcc, near), [400, 1_600]);
        assert_eq!(kilobytes(Curve::Hpcc, place(400, 10, None)), [1_600, 6_400]);
        let pmax = |curve: Curve| {
            curve.red(&Thresholds::default(), near).pmax as f64 * 100.0 / CERTAIN as f64
        };
        assert_eq!(
            Curve::ALL.map(|curve| pmax(curve).round()),
            [10.0, 100.0, 20.0, 10.0]
        );
    }

    /// Guards the rule of `ecn-tuned`: one and two bandwidth-delay products, never below HPCC's, and a share of the pool at most.
    #[test]
    fn the_tuned_curve_follows_distance_and_pool() {
        let tuned = |place| kilobytes(Curve::Tuned, place);
        // The review's 12 and 25 MB at 100 km.
        assert_eq!(tuned(place(100, 1_000, None)), [12_500, 25_000]);
        assert_eq!(tuned(place(100, 5_000, None)), [62_500, 125_000]);
        assert_eq!(tuned(place(100, 10, None)), [400, 1_600], "HPCC's");
        let pool = |bytes| tuned(place(100, 1_000, Some(bytes)));
        assert_eq!(pool(64_000_000), [8_000, 16_000]);
        assert_eq!(pool(16_000_000), [2_000, 4_000]);
        assert_eq!(pool(1_000_000_000), [12_500, 25_000]);
        for pool in [2_000_000, 16_000_000, 64_000_000] {
            for micros in [0, 10, 1_000, 5_000] {
                for gbps in [25, 100, 400] {
                    let red =
                        Curve::Tuned.red(&Thresholds::default(), place(gbps, micros, Some(pool)));
                    assert!(red.kmin < red.kmax && red.kmax <= pool / 4, "{red:?}");
                }
            }
        }
    }
}
