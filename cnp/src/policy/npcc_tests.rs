use super::*;
use crate::policy::Unit;
use proptest::prelude::*;

fn reading(zone: Zone, trend: Trend) -> QueueContext {
    QueueContext {
        reading: Reading {
            depth: 0,
            zone,
            confirmed: zone,
            trend,
        },
        fresh: true,
        depth: 0,
        deep: 1_500_000,
        drain: npcc_pipeline::units::BitRate(100_000_000_000),
        arrival: npcc_pipeline::units::BitRate(100_000_000_000),
        mtu: 4_200,
        rates_known: true,
    }
}

fn sent(count: u32) -> RoundOutcome {
    RoundOutcome {
        sent: count,
        ..RoundOutcome::default()
    }
}

fn decide(policy: &mut Npcc, zone: Zone, trend: Trend, us: u64) -> Decision {
    let now = Nanos::from_micros(us);
    let decision = policy.decide(&reading(zone, trend), now);
    policy.sent(
        &reading(zone, trend),
        &decision,
        &sent(u32::from(decision.amount != Amount::None)),
        now,
    );
    decision
}

#[test]
fn few_waits_for_recovery_and_many_does_not() {
    let mut policy = Npcc::new(NpccConfig::default());
    assert_eq!(
        decide(&mut policy, Zone::Deep, Trend::Falling, 0).amount,
        Amount::Few
    );
    let wait = decide(&mut policy, Zone::Deep, Trend::Falling, 299);
    assert_eq!(
        (wait.amount, wait.wanted, wait.reason),
        (Amount::None, Amount::Few, Reason::Recovery)
    );
    assert_eq!(
        decide(&mut policy, Zone::Deep, Trend::Rising, 299).amount,
        Amount::Many
    );
    assert_eq!(
        decide(&mut policy, Zone::Deep, Trend::Rising, 319).amount,
        Amount::Many
    );
    assert_eq!(
        decide(&mut policy, Zone::Deep, Trend::Falling, 320).amount,
        Amount::Few
    );
}

#[test]
fn after_a_shallow_round_one_feedback_delay_passes() {
    let mut policy = Npcc::new(NpccConfig {
        feedback: Nanos::from_micros(50),
        ..NpccConfig::default()
    });
    assert_eq!(
        decide(&mut policy, Zone::Shallow, Trend::Rising, 0).amount,
        Amount::Few
    );
    assert_eq!(
        decide(&mut policy, Zone::Deep, Trend::Rising, 40).reason,
        Reason::Feedback
    );
    assert_eq!(
        decide(&mut policy, Zone::Hard, Trend::Rising, 40).amount,
        Amount::Many
    );
    assert_eq!(
        decide(&mut policy, Zone::Deep, Trend::Rising, 50).amount,
        Amount::Many
    );
}

#[test]
fn a_round_nobody_got_is_no_round() {
    let mut policy = Npcc::new(NpccConfig::default());
    let shallow = reading(Zone::Shallow, Trend::Rising);
    let decision = policy.decide(&shallow, Nanos::ZERO);
    policy.sent(&shallow, &decision, &sent(0), Nanos::ZERO);
    assert_eq!(
        policy.decide(&shallow, Nanos::from_micros(20)).amount,
        Amount::Few
    );
}

#[test]
fn parameters_change_within_their_range() {
    let mut policy = Npcc::new(NpccConfig::default());
    assert_eq!(policy.set("few", 200), Ok(()));
    let shallow = reading(Zone::Shallow, Trend::Rising);
    assert_eq!(policy.decide(&shallow, Nanos::ZERO).few, 200);
    assert_eq!(
        policy.set("few", 0),
        Err(BadParameter::Range(Unit::PerMille, 1, 1_000))
    );
    assert_eq!(policy.set("colour", 1), Err(BadParameter::Unknown));
    // The configuration requires a tick; with 0 the excess had no bound.
    let tick = NpccConfig::default().tick.0;
    assert_eq!(
        policy.set("recovery", tick - 1),
        Err(BadParameter::Range(Unit::Nanos, tick, 1_000_000_000))
    );
    assert_eq!(policy.set("recovery", tick), Ok(()));
}

/// Regression: eight frames between two early looks 0.2 us apart are 1.3 Tb/s: everybody was signalled again and again.
#[test]
fn evaluations_close_together_find_no_rate_above_the_link() {
    let mut policy = Npcc::new(NpccConfig::default());
    let mut tick = |depth, now| {
        let context = QueueContext {
            depth,
            ..reading(Zone::Deep, Trend::Rising)
        };
        let decision = policy.decide(&context, Nanos(now));
        policy.sent(&context, &decision, &sent(4), Nanos(now));
        policy.excess
    };
    tick(1_500_000, 20_000);
    // 33.6 KB and the pull of what is above deep, over two microseconds and not over 0.2.
    let bits = 33_600 * 8;
    assert_eq!(
        tick(1_533_600, 20_200),
        bits * 500_000 + bits * 1_000_000 / 300
    );
}

/// Number of rounds in each of `ticks` ticks in which the queue grows by `step` bytes a tick, a round costing `cut`.
fn rounds(policy: &mut Npcc, ticks: u64, step: u64, cut: u64) -> Vec<u32> {
    let mut rounds = Vec::new();
    for tick in 1..=ticks {
        let mut count = 0;
        for look in 0..5 {
            let now = Nanos::from_micros(tick * 20 + look * 4);
            let depth = 1_500_000 + tick * step;
            let context = QueueContext {
                fresh: look == 0,
                depth,
                ..reading(Zone::Deep, Trend::Rising)
            };
            if look > 0 && !policy.urgent() {
                continue;
            }
            let decision = policy.decide(&context, now);
            assert!(look == 0 || decision.spacing == NIC_MIN_CNP_INTERVAL);
            count += u32::from(decision.amount == Amount::Many);
            let round = RoundOutcome {
                cut: npcc_pipeline::units::BitRate(cut),
                feedback: Nanos::from_micros(10),
                ..sent(4)
            };
            policy.sent(&context, &decision, &round, now);
        }
        rounds.push(count);
    }
    rounds
}

#[test]
fn a_rise_that_goes_on_gets_one_round_more_each_tick() {
    let g = 1_000_000_000;
    let mut policy = Npcc::new(NpccConfig::default());
    // 20G too much; a round costs 1G.
    let steady = rounds(&mut policy, 8, 50_000, g);
    assert_eq!(steady, [1, 2, 3, 4, 5, 5, 5, 5]);
    // A round that gives up all of it is the only one of its tick.
    let mut policy = Npcc::new(NpccConfig::default());
    assert_eq!(rounds(&mut policy, 4, 50_000, 40 * g), [1, 1, 1, 1]);
}

#[test]
fn a_fall_ends_the_row() {
    let mut policy = Npcc::new(NpccConfig::default());
    rounds(&mut policy, 6, 50_000, 0);
    decide(&mut policy, Zone::Deep, Trend::Falling, 160);
    assert!(!policy.urgent());
    assert_eq!(rounds(&mut policy, 2, 50_000, 0), [1, 2]);
}

proptest! {
    #[test]
    fn spacing_is_never_under_four_microseconds(tick in 0u64..100_000, interval in 0u64..100_000, zone in 1usize..4, rising in any::<bool>()) {
        let config = NpccConfig { tick: Nanos(tick), min_cnp_interval: Nanos(interval), ..NpccConfig::default() };
        let trend = if rising { Trend::Rising } else { Trend::Falling };
        let decision = Npcc::new(config).decide(&reading(Zone::ALL[zone], trend), Nanos::ZERO);
        prop_assert!(decision.amount == Amount::None || decision.spacing >= NIC_MIN_CNP_INTERVAL);
    }
}
