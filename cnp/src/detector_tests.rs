use super::*;
use crate::policy::npcc::table;
use crate::policy::{Amount, Reason};
use proptest::prelude::*;

const MTU: u64 = 1_000;

/// 100 KB shallow, 400 KB deep, 800 KB hard; drains 250 KB a tick, so growth by more than 125 KB to deep is hard.
fn config() -> DetectorConfig {
    DetectorConfig {
        shallow: 100_000,
        deep: 400_000,
        hard: 800_000,
        filter: 2,
        tick: Nanos::from_micros(20),
        drain: BitRate(100_000_000_000),
        mtu: MTU,
    }
}

fn run(depths: &[u64]) -> Vec<(Zone, Trend, Amount)> {
    let mut detector = Detector::new(config());
    let look = |depth: &u64| {
        let reading = detector.tick(*depth);
        (reading.zone, reading.trend, table(&reading).0)
    };
    depths.iter().map(look).collect()
}

#[test]
fn every_cell_of_the_table() {
    use Amount::{Few, Many, None};
    use Trend::{Falling, Rising};
    use Zone::{Deep, Hard, Idle, Shallow};
    // Up through every zone by less than the growth that is hard, and down again.
    let up = [
        50_000, 90_000, 150_000, 250_000, 350_000, 450_000, 550_000, 650_000, 750_000, 850_000,
    ];
    let down = [
        700_000, 600_000, 450_000, 330_000, 300_000, 90_000, 70_000, 10_000,
    ];
    let steps: Vec<u64> = up.into_iter().chain(down).collect();
    let expected = [
        (Idle, Rising, None),
        (Idle, Rising, None),
        (Shallow, Rising, None), // one tick: may be jitter
        (Shallow, Rising, Few),
        (Shallow, Rising, Few),
        (Deep, Rising, Few), // counts as shallow for one tick more
        (Deep, Rising, Many),
        (Deep, Rising, Many),
        (Deep, Rising, Many),
        (Hard, Rising, Many),
        (Hard, Falling, Few), // 640 KB is where hard ends downward
        (Deep, Falling, Few),
        (Deep, Falling, Few),
        (Deep, Falling, Few), // 320 KB is where deep ends downward
        (Shallow, Falling, None),
        (Shallow, Falling, None), // 80 KB is where shallow ends downward
        (Idle, Falling, None),
        (Idle, Falling, None),
    ];
    assert_eq!(run(&steps), expected);
}

#[test]
fn a_microburst_is_nothing_up_and_down() {
    // One tick up (less than hard growth), then back over several ticks.
    for (zone, _, amount) in run(&[20_000, 120_000, 110_000, 105_000, 90_000, 60_000]) {
        assert_eq!(amount, Amount::None, "in {zone:?}");
    }
    let mut detector = Detector::new(config());
    detector.tick(20_000);
    let spike = detector.tick(120_000);
    assert!(spike.is_jitter());
    assert_eq!(table(&spike), (Amount::None, Reason::Jitter));
}

#[test]
fn a_spike_out_of_a_shallow_queue_is_as_good_as_shallow() {
    let amounts: Vec<_> = run(&[
        100_000, 200_000, 300_000, 390_000, 410_000, 330_000, 300_000,
    ])
    .into_iter()
    .map(|step| step.2)
    .collect();
    assert_eq!(amounts[4..], [Amount::Few, Amount::None, Amount::None]);
}

#[test]
fn fast_growth_above_deep_waits_for_nothing() {
    let last = |depths: &[u64]| run(depths).pop().unwrap();
    let hard = (Zone::Hard, Trend::Rising, Amount::Many);
    assert_eq!(last(&[0, 400_000]), hard);
    assert_eq!(
        last(&[0, 399_999]),
        (Zone::Shallow, Trend::Rising, Amount::None),
        "below deep it is not looked at"
    );
    assert_eq!(last(&[280_000, 405_001]), hard);
    assert_eq!(last(&[280_000, 405_000]).0, Zone::Deep, "half of the drain");
}

#[test]
fn on_a_slow_link_a_frame_is_not_fast_growth() {
    let slow = DetectorConfig {
        drain: BitRate(10_000_000),
        shallow: 20_000,
        deep: 100_000,
        hard: 200_000,
        ..config()
    };
    let mut detector = Detector::new(slow);
    let zones: Vec<_> = (1..=140u64)
        .map(|tick| detector.tick(tick * 1_000).zone)
        .collect();
    assert_eq!(zones.last(), Some(&Zone::Deep));
    assert!(!zones.contains(&Zone::Hard));
}

#[test]
fn a_standing_queue_keeps_the_trend_it_came_with() {
    let mut detector = Detector::new(config());
    for depth in [100_000, 150_000, 200_000] {
        detector.tick(depth);
    }
    assert!((0..100u64).all(|tick| detector.tick(200_000 + tick % 2 * MTU).trend == Trend::Rising));
    detector.tick(150_000);
    assert!(
        (0..100u64).all(|tick| detector.tick(150_000 - tick % 2 * MTU).trend == Trend::Falling)
    );
}

/// Depths that wander: up to 200 KB a tick either way.
fn walk() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(-200_000i64..200_000, 1..80).prop_map(|steps| {
        let mut depth = 0i64;
        steps
            .into_iter()
            .map(|step| {
                depth = (depth + step).clamp(0, 1_200_000);
                depth.unsigned_abs()
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn idle_shallow_falling_and_jitter_never_signal(depths in walk()) {
        let mut detector = Detector::new(config());
        for depth in depths {
            let reading = detector.tick(depth);
            let (amount, _) = table(&reading);
            if reading.zone == Zone::Idle || (reading.zone == Zone::Shallow && reading.trend == Trend::Falling) {
                prop_assert_eq!(amount, Amount::None);
            }
            if reading.confirmed == Zone::Idle {
                prop_assert_eq!(amount, Amount::None);
            }
            if depth < 80_000 {
                prop_assert_eq!(reading.zone, Zone::Idle);
            }
        }
    }

    #[test]
    fn a_deeper_queue_never_signals_fewer_flows(depths in walk(), a in 0u64..1_200_000, b in 0u64..1_200_000) {
        let mut detector = Detector::new(config());
        depths.iter().for_each(|depth| { detector.tick(*depth); });
        let amount = |depth| table(&detector.clone().tick(depth)).0;
        prop_assert!(amount(a.min(b)) <= amount(a.max(b)));
    }

    #[test]
    fn a_depth_near_an_edge_does_not_chatter(
        edge in prop::sample::select(vec![100_000u64, 400_000, 800_000]), noise in prop::collection::vec(0u64..14, 2..200),
    ) {
        let mut detector = Detector::new(config());
        (0..edge * 9 / 10).step_by(50_000).for_each(|depth| { detector.tick(depth); });
        // Seven percent about the edge: never past the hysteresis, never fast.
        let mut zones: Vec<Zone> = noise.iter().map(|percent| detector.tick(edge * (93 + percent) / 100).zone).collect();
        zones.dedup();
        prop_assert!(zones.len() <= 2 && zones.is_sorted(), "{:?}", zones);
    }

    #[test]
    fn a_rise_shorter_than_the_filter_below_deep_is_nothing(filter in 2u32..6, lasts in 1u32..5, peak in 101_000u64..400_000) {
        prop_assume!(lasts < filter);
        let mut detector = Detector::new(DetectorConfig { filter, ..config() });
        detector.tick(99_000);
        for _ in 0..lasts {
            prop_assert_eq!(table(&detector.tick(peak)).0, Amount::None);
        }
        for depth in [99_000, 90_000, 85_000, 50_000] {
            prop_assert_eq!(table(&detector.tick(depth)).0, Amount::None);
        }
    }
}

/// A quarter of the drained bytes comes in too much; 1 ms late that is 3 MB, more than half of what drains in a tick.
#[test]
fn a_late_evaluation_is_not_taken_for_fast_growth() {
    let mut detector = Detector::new(config());
    detector.observe(310_000, Nanos::from_micros(20));
    let late = detector.observe(560_000, Nanos::from_micros(1_020));
    assert_eq!((late.zone, late.trend), (Zone::Deep, Trend::Rising));
    // On time as much is fast.
    let mut detector = Detector::new(config());
    detector.observe(310_000, Nanos::from_micros(20));
    let soon = detector.observe(560_000, Nanos::from_micros(40));
    assert_eq!(soon.zone, Zone::Hard);
}

#[test]
fn early_evaluations_do_not_confirm_a_rise_before_its_time() {
    let mut detector = Detector::new(config());
    let mut at = |ns, depth| detector.observe(depth, Nanos(ns)).confirmed;
    at(20_000, 50_000);
    assert_eq!(at(40_000, 120_000), Zone::Idle);
    assert_eq!(at(42_500, 125_000), Zone::Idle, "2.5 us later");
    assert_eq!(at(45_000, 130_000), Zone::Idle);
    assert_eq!(
        at(58_000, 135_000),
        Zone::Shallow,
        "a tick, an eighth early"
    );
}
