use super::*;
use crate::detector::Reading;

const G: u64 = 1_000_000_000;

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

fn cut(decision: &Decision) -> u64 {
    match decision.choice {
        Choice::Cut(sum) if decision.amount == Amount::Many => sum.0,
        _ => 0,
    }
}

#[test]
fn it_signals_long_before_shallow_and_scales_a_growth_that_began_between_evaluations() {
    let mut policy = Model::new(config());
    policy.decide(&at(0), Nanos::ZERO);
    // 400G into 100G that began 1 us before the look: 37 KB now, 150 KB more at the next, where shallow is 375 KB.
    let (decision, now) = looks(&mut policy, Nanos::ZERO, 37_500, 0, 1);
    assert_eq!(decision.amount, Amount::None, "{decision:?}");
    let (decision, _) = looks(&mut policy, now, 187_500, 0, 1);
    assert_eq!(cut(&decision), 300 * G);
}

/// Regression: eight frames between two early looks 0.2 us apart are 1.3 Tb/s: everybody was signalled.
#[test]
fn evaluations_close_together_find_no_rate_above_the_link() {
    let mut policy = Model::new(config());
    let depth = 187_500;
    looks(&mut policy, Nanos::ZERO, depth, 0, 3);
    let burst = depth + 8 * 4_200;
    let now = Nanos::from_micros(12);
    let soon = policy.decide(&at(burst), now + Nanos(200));
    // Over the look before that one: 33.6 KB in 4.2 us.
    assert_eq!(cut(&soon) / G, 64, "{soon:?}");
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
    let (decision, now) = looks(&mut policy, Nanos::ZERO, 50_000, 150_000, 2);
    assert!(cut(&decision) >= 299 * G, "{decision:?}");
    signalled(&mut policy, &decision, 200, now);
    let (decision, now) = looks(&mut policy, now, 350_000, 0, 1);
    let wanted = cut(&decision);
    assert!((100 * G..110 * G).contains(&wanted), "{wanted}");
    signalled(&mut policy, &decision, wanted / G, now);
    let (decision, now) = looks(&mut policy, now, 500_000, 0, 1);
    assert!(
        cut(&decision) < 10 * G,
        "no more than the set-point asks for: {decision:?}"
    );
    // Nobody slowed down: once the effect should show, the cut is wanted again.
    let (decision, _) = looks(&mut policy, now, 650_000, 150_000, 6);
    assert!(cut(&decision) > 290 * G, "{decision:?}");
}

#[test]
fn what_the_growth_shows_before_its_time_is_not_on_its_way_any_more() {
    let mut policy = Model::new(config());
    let (decision, now) = looks(&mut policy, Nanos::ZERO, 50_000, 150_000, 2);
    signalled(&mut policy, &decision, 200, now);
    // Growth falls from 300G to 100G within one look, as near senders answer in 1 us.
    let (decision, _) = looks(&mut policy, now, 250_000, 0, 1);
    let wanted = cut(&decision);
    assert!((100 * G..105 * G).contains(&wanted), "{wanted}");
}

#[test]
fn no_cut_while_growth_falls_faster_than_requested() {
    let mut policy = Model::new(config());
    let (decision, now) = looks(&mut policy, Nanos::ZERO, 50_000, 150_000, 2);
    signalled(&mut policy, &decision, 100, now);
    // From 300G to 100G: twice the foreseen fall, so that there may be more to come.
    let (decision, now) = looks(&mut policy, now, 250_000, 0, 1);
    assert_eq!(
        (decision.amount, decision.reason),
        (Amount::None, Reason::Feedback)
    );
    let (decision, _) = looks(&mut policy, now, 300_000, 0, 1);
    assert!(
        cut(&decision) >= 100 * G,
        "it fell no further: {decision:?}"
    );
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
            hysteresis: 2_000,
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
