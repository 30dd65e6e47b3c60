//! Laws of `model`, as those of `npcc` are tested beside it: more depth never wants less of a cut, an idle queue
//! and one that empties below the set-point are left alone, noise of a frame starts nothing, and nobody is signalled twice within
//! the interval.
//!
//! "More depth" is a queue that went the same way, deeper by the same everywhere: a single deeper look is another trend too,
//! and `model` reads its growth over the shortest time in which the depth moved by 16 us of the drain rate, so that there a byte more
//! may be a longer time and a smaller growth. Not shown here: the response of the senders (`closed_loop.rs`).

use npcc_cnp::detector::Reading;
use npcc_cnp::policy::model::ModelConfig;
use npcc_cnp::policy::{
    Amount, Choice, Decision, NIC_MIN_CNP_INTERVAL, Policy, PolicyName, QueueContext,
};
use npcc_pipeline::units::{BitRate, Nanos};
use proptest::prelude::*;

const DRAIN: BitRate = BitRate(100_000_000_000);
const MTU: u64 = 4_200;
const TICK: Nanos = Nanos::from_micros(20);

fn context(depth: u64) -> QueueContext {
    QueueContext {
        reading: Reading::default(),
        fresh: true,
        depth,
        drain: DRAIN,
        arrival: DRAIN,
        mtu: MTU,
        rates_known: true,
        deep: 1_500_000,
    }
}

const fn model() -> PolicyName {
    PolicyName::Model
}

fn set_point(policy: PolicyName) -> u64 {
    match policy {
        PolicyName::Model => DRAIN.bytes_in(ModelConfig::default().set_point),
        _ => 0,
    }
}

/// Decisions at these depths, one a look, with nobody signalled.
fn decisions(policy: PolicyName, depths: &[u64]) -> Vec<Decision> {
    decisions_of(&mut *policy.defaults().slot(), depths)
}

fn decisions_of(policy: &mut dyn Policy, depths: &[u64]) -> Vec<Decision> {
    let look = policy.interval().unwrap_or(TICK);
    let mut now = Nanos::ZERO;
    let decide = |depth: &u64| {
        now += look;
        policy.decide(&context(*depth), now)
    };
    depths.iter().map(decide).collect()
}

/// Strength of a decision: bits per second to be given up, or that a sender may not exceed.
fn asks(decision: &Decision) -> u64 {
    match (decision.amount, decision.choice) {
        (Amount::None, _) => 0,
        (_, Choice::Cut(sum)) => sum.0,
        (_, Choice::All) => u64::MAX,
    }
}

/// Depths of a queue that moves by up to 100 KB a look.
fn walk() -> impl Strategy<Value = Vec<u64>> {
    let steps = prop::collection::vec(-100_000i64..100_000, 1..40);
    (0u64..3_000_000, steps).prop_map(|(start, steps)| {
        let mut depth = start;
        steps
            .into_iter()
            .map(|step| {
                depth = depth.saturating_add_signed(step);
                depth
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn deeper_by_the_same_never_asks_for_less(depths in walk(), more in 0u64..2_000_000) {
        let deeper: Vec<_> = depths.iter().map(|depth| depth + more).collect();
        for (low, high) in decisions(model(), &depths).iter().zip(decisions(model(), &deeper)) {
            prop_assert!(asks(low) <= asks(&high), "{low:?} {high:?}");
            prop_assert!(low.wanted <= high.wanted, "{low:?} {high:?}");
        }
    }

    #[test]
    fn growing_faster_never_asks_model_for_less(depths in walk(), more in 48u64..100, faster in 0u64..100) {
        let last = *depths.last().unwrap();
        let grown = |frames: u64| {
            let mut all = depths.clone();
            all.push(last + frames * MTU);
            asks(decisions(model(), &all).last().unwrap())
        };
        prop_assert!(grown(more) <= grown(more + faster));
    }

    #[test]
    fn an_idle_queue_is_left_alone(depths in walk(), part in 0u64..=1_000) {
        let mut depths = depths.clone();
        depths.push((4 * MTU - 1) * part / 1_000);
        let last = *decisions(model(), &depths).last().unwrap();
        prop_assert_eq!((last.amount, last.wanted), (Amount::None, Amount::None));
    }

    #[test]
    fn a_queue_that_empties_below_the_set_point_is_left_alone(steps in prop::collection::vec(0u64..40_000, 1..40)) {
        let mut depth = set_point(model());
        let depths: Vec<_> = steps.iter().map(|step| { depth = depth.saturating_sub(*step); depth }).collect();
        for decision in decisions(model(), &depths) {
            prop_assert_eq!(decision.amount, Amount::None);
        }
    }

    /// Law: a frame more or less is the order of packets; the link is not slowed for it.
    #[test]
    fn noise_of_a_frame_about_the_set_point_starts_nothing(noise in prop::collection::vec(0u64..=2 * MTU, 100)) {
        let about = |kind| {
            let middle = set_point(kind) - MTU;
            // A queue that came there a frame at a time, and stays.
            let rise = (0..=middle / MTU).map(|frames| middle / 2 + frames * MTU / 2);
            let come = rise.chain(std::iter::repeat_n(middle + MTU, 33));
            let depths: Vec<_> = come.chain(noise.iter().map(|noise| middle + noise)).collect();
            decisions(kind, &depths).split_off(depths.len() - noise.len())
        };
        for decision in about(model()) {
            prop_assert_eq!(decision.amount, Amount::None, "{:?}", decision);
        }
    }

    #[test]
    fn spacing_is_never_under_the_time_between_two_cuts(depths in walk()) {
        for decision in decisions(model(), &depths) {
            prop_assert!(decision.amount == Amount::None || decision.spacing >= NIC_MIN_CNP_INTERVAL);
        }
    }
}
