use super::*;
use crate::detector::Reading;

const G: u64 = 1_000_000_000;
/// Depth of a queue that is not empty and below the set-point.
const PLATEAU: u64 = 50_000;
/// The largest pull: a quarter of the drain rate.
const MOST: u64 = 25 * G;

fn at(depth: u64) -> QueueContext {
    QueueContext {
        reading: Reading::default(),
        fresh: true,
        depth,
        deep: 1_500_000,
        drain: BitRate(100 * G),
        arrival: BitRate(100 * G),
        mtu: 4_200,
        rates_known: true,
    }
}

/// Looks every 4 us at a depth that begins at `depth` and grows by `step` bytes a look.
fn looks(policy: &mut Model, from: Nanos, depth: u64, step: i64, n: u64) -> (Decision, Nanos) {
    let mut now = from;
    let mut decision = Decision::none(Amount::None, Reason::Idle);
    for look in 0..n {
        now += NIC_MIN_CNP_INTERVAL;
        let depth = depth.saturating_add_signed(step * i64::try_from(look).unwrap());
        decision = policy.decide(&at(depth), now);
    }
    (decision, now)
}

/// Default configuration except for a set-point of 15 us, for which depths and rates here are chosen.
fn config() -> ModelConfig {
    ModelConfig {
        set_point: Nanos::from_micros(15),
        ..ModelConfig::default()
    }
}

/// Pull of a depth down to the set-point of [`config`].
fn pull(depth: u64) -> u64 {
    per_second(depth, 187_500, Nanos::from_micros(300))
        .unsigned_abs()
        .min(MOST)
}

fn cut(decision: &Decision) -> u64 {
    match decision.choice {
        Choice::Cut(sum) if decision.amount == Amount::Many => sum.0,
        _ => 0,
    }
}

/// A queue that was empty 60 us ago, so that it is not new: from the next look on it grows by `step` bytes a look.
fn held(policy: &mut Model, step: i64, n: u64) -> (Decision, Nanos) {
    let (_, now) = looks(policy, Nanos::ZERO, PLATEAU, 0, 16);
    looks(policy, now, PLATEAU.saturating_add_signed(step), step, n)
}

#[test]
fn it_signals_at_once_from_deep_on_and_scales_a_growth_that_began_between_evaluations() {
    let mut policy = Model::new(config());
    policy.decide(&at(0), Nanos::ZERO);
    // 400G into 100G that began 1 us before the look: 37 KB, and 150 KB more at each. Below 1.5 MB it may be a microburst.
    let (decision, now) = looks(&mut policy, Nanos::ZERO, 37_500, 150_000, 10);
    assert_eq!(
        (decision.amount, decision.reason),
        (Amount::None, Reason::Jitter)
    );
    let (decision, _) = looks(&mut policy, now, 1_537_500, 0, 1);
    assert_eq!(cut(&decision), 300 * G + MOST);
}

#[test]
fn a_queue_that_was_empty_is_left_alone_for_the_filter_below_deep() {
    // 50G too much: 25 KB a look, 412.5 KB after 60 us.
    let first = NIC_MIN_CNP_INTERVAL;
    for (age, depth, reason) in [
        (59_999, 412_500, Reason::Jitter),
        (60_000, 412_500, Reason::Overload),
        (59_999, 1_499_999, Reason::Jitter),
        (59_999, 1_500_000, Reason::Overload),
    ] {
        let mut policy = Model::new(config());
        policy.decide(&at(0), Nanos::ZERO);
        for look in 1..=15 {
            let decision = policy.decide(&at(12_500 + look * 25_000), Nanos(first.0 * look));
            assert_eq!(decision.reason, Reason::Jitter, "{look}");
        }
        let decision = policy.decide(&at(depth), first + Nanos(age));
        assert_eq!(decision.reason, reason, "{age} {depth}: {decision:?}");
        assert_eq!(cut(&decision) > 0, reason == Reason::Overload);
    }
}

#[test]
fn a_queue_is_new_only_after_it_was_empty() {
    for (lowest, reason) in [
        (4 * 4_200, Reason::Overload),
        (4 * 4_200 - 1, Reason::Jitter),
    ] {
        let mut policy = Model::new(config());
        let (_, now) = held(&mut policy, 0, 20);
        let (_, now) = looks(&mut policy, now, lowest, 0, 1);
        let (decision, _) = looks(&mut policy, now, 316_800, 300_000, 2);
        assert_eq!(decision.reason, reason, "{lowest}");
    }
}

/// Regression: the queue's age was that of the oldest evaluation remembered, so that under a longer filter it was new for ever.
#[test]
fn a_filter_longer_than_the_evaluations_remembered_ends() {
    let config = ModelConfig {
        filter: Nanos::from_micros(400),
        ..config()
    };
    for (n, amount) in [(100, Amount::None), (101, Amount::Many)] {
        let mut policy = Model::new(config);
        let (decision, _) = looks(&mut policy, Nanos::ZERO, PLATEAU, 12_500, n);
        assert_eq!(decision.amount, amount, "{n}");
    }
}

/// Growth in bit/s of a queue that lay at 1 MB for one look, and at this depth `over` a time later.
fn growth(context: QueueContext, over: Nanos) -> Option<i64> {
    let mut policy = Model::new(config());
    let from = Nanos::from_millis(1);
    policy.remember(1_000_000, context.mtu, from);
    policy.remember(context.depth, context.mtu, from + over);
    policy.growth(&context).map(|growth| growth.rate)
}

#[test]
fn a_movement_of_less_than_eight_frames_and_16_us_is_no_growth_before_128_us() {
    // 16 us of 100G are 200 KB. At 10G they are 20 KB, less than eight frames of 4,200 bytes.
    for (drain, counts) in [(100, 200_000), (10, 33_600)] {
        let moved = |bytes: i64| QueueContext {
            drain: BitRate(drain * G),
            ..at(1_000_000u64.saturating_add_signed(bytes))
        };
        let (soon, late) = (Nanos(127_999), Nanos::from_micros(128));
        for sign in [1, -1] {
            let rate = |bytes: i64, over| {
                Some(per_second(1_000_000 + bytes.unsigned_abs(), 1_000_000, over) * sign)
            };
            let (less, enough) = ((counts - 1) * sign, counts * sign);
            assert_eq!(growth(moved(less), soon), None, "{drain}");
            assert_eq!(growth(moved(less), late), rate(less, late), "{drain}");
            assert_eq!(growth(moved(enough), soon), rate(enough, soon), "{drain}");
            let shortest = Nanos::from_micros(2);
            assert_eq!(growth(moved(enough), Nanos(1_999)), None, "{drain}");
            assert_eq!(growth(moved(enough), shortest), rate(enough, shortest));
        }
    }
}

#[test]
fn the_set_point_is_200_us_of_the_drain_rate_and_a_quarter_of_the_pool_at_most() {
    const MB: u64 = 1_000_000;
    for (gigabits, pool, micros) in [
        (100, Some(64 * MB), 200),
        (100, Some(16 * MB), 200),
        (100, Some(10 * MB), 200),
        (100, Some(9 * MB), 180),
        (100, Some(4 * MB), 80),
        (100, None, 40),
        (25, Some(64 * MB), 200),
        (25, Some(16 * MB), 200),
        (25, Some(4 * MB), 200),
        (25, Some(2 * MB), 160),
        (25, None, 40),
    ] {
        let drain = BitRate(gigabits * G);
        let inputs = PolicyInputs {
            pool,
            drain,
            shallow: drain.bytes_in(Nanos::from_micros(30)),
            ..PolicyInputs::default()
        };
        let config = ModelConfig::from(&inputs);
        assert_eq!(
            config.set_point,
            Nanos::from_micros(micros),
            "{gigabits}G {pool:?}"
        );
        assert_eq!(Model::new(config).holds(), config.set_point);
    }
}

/// Regression: a burst between two looks 0.2 us offset is a rate of terabits: everybody was signalled.
#[test]
fn evaluations_less_than_2_us_apart_are_measured_from_the_one_before() {
    for (after, over) in [(200, 4_200), (1_999, 5_999), (2_000, 2_000)] {
        let mut policy = Model::new(config());
        let depth = 187_500;
        let (_, now) = looks(&mut policy, Nanos::ZERO, depth, 0, 20);
        let burst = depth + 200_000;
        let soon = policy.decide(&at(burst), now + Nanos(after));
        let growth = per_second(burst, depth, Nanos(over)).unsigned_abs();
        assert_eq!(cut(&soon), growth + pull(burst), "{soon:?}");
    }
}

#[test]
fn a_balanced_queue_at_its_set_point_is_left_alone() {
    let mut policy = Model::new(config());
    let (decision, _) = looks(&mut policy, Nanos::ZERO, 187_500, 0, 40);
    assert_eq!(
        (decision.amount, decision.reason),
        (Amount::None, Reason::Balanced)
    );
    let (decision, _) = looks(&mut policy, Nanos::from_millis(1), 0, 0, 5);
    assert_eq!(decision.reason, Reason::Idle);
}

#[test]
fn a_depth_above_the_set_point_is_taken_down_over_the_horizon() {
    let mut policy = Model::new(config());
    let (decision, _) = looks(&mut policy, Nanos::ZERO, 187_500 + 375_000, 0, 40);
    assert_eq!(cut(&decision), 10 * G);
}

/// Reports a round whose flows would give up this many gigabits together, 12 us from `now`.
fn signalled(policy: &mut Model, decision: &Decision, gigabits: u64, now: Nanos) {
    let round = RoundOutcome {
        sent: 4,
        cut: BitRate(gigabits * G),
        feedback: Nanos::from_micros(12),
        ..RoundOutcome::default()
    };
    policy.sent(&at(0), decision, &round, now);
}

#[test]
fn cuts_in_flight_are_not_requested_again() {
    let mut policy = Model::new(config());
    let (decision, now) = held(&mut policy, 150_000, 2);
    assert_eq!(cut(&decision), 300 * G + pull(350_000));
    signalled(&mut policy, &decision, 200, now);
    let (decision, now) = looks(&mut policy, now, 500_000, 0, 1);
    let wanted = cut(&decision);
    assert_eq!(wanted, 100 * G + pull(500_000));
    signalled(&mut policy, &decision, wanted / G, now);
    let (decision, now) = looks(&mut policy, now, 650_000, 0, 1);
    assert!(
        cut(&decision) < 10 * G,
        "no more than the set-point asks for: {decision:?}"
    );
    // Nobody slowed down: once the effect should show, the cut is wanted again.
    let (decision, _) = looks(&mut policy, now, 800_000, 150_000, 6);
    assert_eq!(cut(&decision), 300 * G + MOST, "{decision:?}");
}

#[test]
fn what_the_growth_shows_before_its_time_is_not_on_its_way_any_more() {
    let mut policy = Model::new(config());
    let (decision, mut now) = held(&mut policy, 150_000, 2);
    signalled(&mut policy, &decision, 200, now);
    // Growth falls from 300G to 100G within one look, as near senders answer in 1 us. It is measured over longer and longer, up to the
    // four looks in which 200 KB come: the part that shows and the part on its way make the same sum at each.
    for depth in [400_000, 450_000, 500_000, 550_000] {
        let decision;
        (decision, now) = looks(&mut policy, now, depth, 0, 1);
        let wanted = cut(&decision);
        assert!(
            wanted.abs_diff(100 * G + pull(depth)) <= 1,
            "{depth}: {decision:?}"
        );
    }
    assert_eq!(policy.grew, i64::try_from(100 * G).unwrap());
}

#[test]
fn no_cut_while_growth_falls_faster_than_requested() {
    // 100G of 800G are to go. 25G more may: a quarter of the drain rate.
    for (step, is_cut) in [(337_500, true), (337_499, false)] {
        let mut policy = Model::new(config());
        let (decision, now) = held(&mut policy, 400_000, 2);
        assert_eq!(cut(&decision), 800 * G + pull(850_000));
        signalled(&mut policy, &decision, 100, now);
        let (decision, now) = looks(&mut policy, now, 850_000 + step, 0, 1);
        assert_eq!(cut(&decision) > 0, is_cut, "{decision:?}");
        if is_cut {
            continue;
        }
        // There may be more to come.
        assert_eq!(
            (decision.amount, decision.reason),
            (Amount::None, Reason::Feedback)
        );
        let (decision, _) = looks(&mut policy, now, 850_000 + 2 * step, 0, 1);
        let grew = 2_000_000 * step;
        assert_eq!(
            cut(&decision),
            grew + MOST,
            "it fell no further: {decision:?}"
        );
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a depth in bytes, never negative"
)]
const fn bytes(depth: f64) -> u64 {
    depth as u64
}

/// Four flows send exactly the drain rate in bursts of 64 KiB at the line rate, spread or all at once. Those signalled give up the cut 12 us later
/// for 300 us.
#[test]
fn bursts_of_limiters_that_send_the_drain_rate_are_not_cut() {
    const BURST: u64 = 64 << 10;
    const END: u64 = 10_000_000;
    for offset in [0, 1_000, 2_621, 5_242] {
        let mut policy = Model::new(ModelConfig::from(&PolicyInputs {
            pool: Some(64_000_000),
            ..PolicyInputs::default()
        }));
        let mut cuts: Vec<(u64, u64)> = Vec::new();
        let mut depth = 2_500_000.0f64;
        let mut given = 0.0f64;
        let mut flows = [0u64, 1, 2, 3].map(|n| -(25.0 / 8.0) * (n * offset) as f64);
        let mut bursting = [0.0f64; 4];
        let (step, mut next_look) = (100, 0);
        for now in (0..END).step_by(step) {
            let given_up: u64 = cuts
                .iter()
                .filter(|(at, _)| (at + 12_000..at + 312_000).contains(&now))
                .map(|(_, rate)| rate)
                .sum();
            let rate = (100.0 - given_up as f64 / 1e9).max(0.0) / 4.0;
            given += given_up as f64 / 1e9 * step as f64;
            for (credit, burst) in flows.iter_mut().zip(&mut bursting) {
                *credit += rate * step as f64 / 8.0;
                if *credit >= BURST as f64 {
                    *credit -= BURST as f64;
                    *burst += BURST as f64;
                }
                let bytes = burst.min(100.0 * step as f64 / 8.0);
                *burst -= bytes;
                depth += bytes;
            }
            depth = (depth - 100.0 * step as f64 / 8.0).max(0.0);
            if now >= next_look {
                next_look += 4_000;
                let decision = policy.decide(&at(bytes(depth)), Nanos(now));
                let cut = cut(&decision);
                if cut > 0 {
                    cuts.push((now, cut));
                    let round = RoundOutcome {
                        sent: 1,
                        cut: BitRate(cut),
                        feedback: Nanos::from_micros(12),
                        ..RoundOutcome::default()
                    };
                    policy.sent(&at(bytes(depth)), &decision, &round, Nanos(now));
                }
            }
        }
        let part = given / (100.0 * END as f64);
        assert!(part < 0.03, "{offset}: {part}");
    }
}

#[test]
fn without_known_rates_the_table_decides() {
    let mut policy = Model::new(config());
    let mut table = Npcc::new(NpccConfig::default());
    for (step, depth) in [(0u64, 0), (1, 500_000), (2, 1_000_000), (3, 3_000_000)] {
        let mut detector = crate::detector::Detector::new(crate::detector::DetectorConfig {
            shallow: 375_000,
            deep: 1_500_000,
            hard: 3_000_000,
            filter: 2,
            tick: Nanos::from_micros(20),
            drain: BitRate(100 * G),
            mtu: 4_200,
        });
        let context = QueueContext {
            rates_known: false,
            reading: detector.tick(depth),
            ..at(depth)
        };
        let now = Nanos::from_micros(step * 20);
        assert_eq!(policy.decide(&context, now), table.decide(&context, now));
    }
}
