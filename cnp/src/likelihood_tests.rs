use super::*;
use proptest::prelude::*;

const fn seen(seen: f64) -> Observation {
    Observation { seen, frames: 40.0 }
}

/// Evidence of a cut by half, after which this share of the rate before is seen.
fn after_half(left: f64) -> MilliNats {
    let half = 0.5f64.ln();
    seen(left.ln()).weigh((half, half))
}

/// Computes the worked example of docs/npcc.md.
#[test]
fn a_clear_miss_and_a_clear_hit() {
    assert_eq!([after_half(0.97), after_half(0.55)], [-4_287, 651]);
    // As if it were half a cut: says nothing.
    assert!(after_half(0.7).abs() < 500, "{}", after_half(0.7));
    assert!(after_half(0.02).abs() < 100, "a fall of another cause");
}

#[test]
fn logarithms_are_those_of_the_library() {
    for power in -3_000..=300 {
        let x = f64::from(power) / 100.0;
        let error = ln(x.exp()) - x;
        assert!(error.abs() < 1e-12, "ln of e^{x}: {error}");
        if x <= 0.0 {
            let ratio = exp(x) / x.exp();
            assert!((ratio - 1.0).abs() < 1e-10, "e^{x}: {ratio}");
        }
    }
    for (z, share) in [
        (0.0, 0.5),
        (1.0, 0.841_345),
        (-1.96, 0.024_998),
        (-8.0, 0.0),
    ] {
        assert!((cumulative(z) - share).abs() < 1e-6, "{z}");
    }
}

proptest! {
    /// Law: each density is normalised: it sums up to 1 over everything that can be seen, except beyond its edges.
    #[test]
    fn densities_sum_up_to_one(low in -3.5f64..0.0, width in 0.0f64..3.0, deviation in 0.1f64..0.7) {
        let high = (low + width).min(0.0);
        let steps = (-9_000..=4_000).map(|step| f64::from(step) / 1_000.0);
        let sum: f64 = steps.map(|x| between(x, low, high, deviation)).sum::<f64>() / 1_000.0;
        prop_assert!((sum - 1.0).abs() < 2e-3, "{sum}");
    }

    /// Law: the weight of a single measurement is bounded.
    #[test]
    fn what_is_seen_once_is_bounded(
        x in -40.0f64..0.4, low in -8.0f64..1.0, high in -8.0f64..1.0, frames in 0.0f64..1e6,
    ) {
        let observation = Observation { seen: x, frames };
        let weight = observation.weigh((low, high));
        prop_assert!((-5_200..=900).contains(&weight), "{weight}");
    }

    /// Law: an observation says nothing about a card that is expected to change nothing.
    #[test]
    fn where_both_should_do_the_same_nothing_is_said(x in -4.0f64..0.4, frames in 1.0f64..1e3) {
        prop_assert_eq!(Observation { seen: x, frames }.weigh((0.0, 0.0)), 0);
    }
}
