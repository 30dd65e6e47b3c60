use super::super::rate::max_min_rate;
use super::*;
use crate::admission::CnpRequest;
use crate::control::config::ControlConfig;
use crate::control::tests::{data, warm};
use crate::detector::Reading;
use crate::host_rules::HostRules;
use crate::policy::{Amount, PolicyKind, PolicyName, Reason};
use crate::traffic_tests::rig::{RATE, Rig, config};
use proptest::prelude::*;

const STEP: Nanos = Nanos::from_micros(10);
const G: u64 = 1_000_000_000;

/// Law: an unresponsive host gets no CNP of a policy, whichever it is, and strikes on its flows stay CE.
#[test]
fn an_unresponsive_sender_is_left_to_its_marks() {
    let few = PolicyName::Npcc.defaults();
    let model = PolicyName::Model.defaults();
    // Shallow and rising slowly again and again; standing above the set-point.
    for (policy, depth, rise) in [(few, 200_000, 2_000), (model, 700_000, 0)] {
        for is_unresponsive in [false, true] {
            let mut config = config(STEP);
            config.settings.queues[0].policy = policy;
            config.settings.hosts = HostRules::default();
            let mut rig = warm(1, &config);
            if is_unresponsive {
                rig.core.tracker.doubt(0, rig.now);
            }
            let mut owed = 0;
            for step in 0..1_000u64 {
                let slot = rig.out(&data(0x1_0018, 0x11));
                rig.tick(STEP, depth + step % 100 * rise);
                owed += u64::from(step > 100 && rig.owes(slot));
            }
            let cnps = rig.core.tracker.flows.get(0).unwrap().cnps;
            assert_eq!(cnps > 0, !is_unresponsive, "{policy:?} signalled {cnps}");
            assert_eq!(owed > 0, !is_unresponsive, "{policy:?} owed {owed}");
        }
    }
}

/// `model` looks every 4 us.
#[test]
fn flows_of_a_quiet_queue_are_read_per_tick_however_often_its_policy_is_evaluated() {
    let tick = Nanos::from_micros(20);
    let reads = |policy: Option<PolicyKind>| {
        let mut config = config(tick);
        if let Some(policy) = policy {
            config.settings.queues[0].policy = policy;
        }
        let mut rig = Rig::new(&config);
        for qp in 0..2_000 {
            rig.out(&data(0x1_0000 + qp, 0x1000 + qp));
        }
        (0..500).for_each(|_| {
            rig.tick(tick, 0);
        });
        let (every, before) = (rig.core.period(), rig.core.status().flows_read.get());
        for _ in 0..Nanos::from_millis(10).0 / every.0 {
            rig.tick(every, 0);
        }
        (every, rig.core.status().flows_read.get() - before)
    };
    let (every, seldom) = reads(None);
    assert_eq!(every, tick);
    let (every, often) = reads(Some(PolicyName::Model.defaults()));
    assert_eq!(every, Nanos::from_micros(4));
    assert!(
        (seldom * 9 / 10..=seldom * 11 / 10).contains(&often),
        "{often}, not {seldom}"
    );
}

/// While a rise goes on, the core asks to be called between two ticks, and the tick keeps its time.
#[test]
fn an_urgent_policy_is_evaluated_between_two_ticks() {
    let mut rig = warm(1, &config(STEP));
    let mut sent = Vec::new();
    let mut depth = 600_000;
    for _ in 0..7 {
        rig.out(&data(0x1_0018, 0x11));
        depth += 400_000;
        sent.push((rig.tick(rig.core.period(), depth), rig.core.period().0));
    }
    // Ticks of 10 us: one round, which is given time until the flow's rate is known; then two, 4 us apart.
    let us = 1_000;
    let (first, rising) = sent.split_at(4);
    assert_eq!(first, [(1, 10 * us); 4]);
    assert_eq!(rising, [(1, 4 * us), (1, 6 * us), (1, 4 * us)]);
}

/// Three flows send 80, 15 and 5 % of 1 Tb/s, and each gives up half at its first CNP. Returns the flows that a round signals to reach this cut (in
/// Gb/s) with `budget` CNPs a tick, and the number of contributors that it left for want of them.
fn signalled_for(cut: u64, budget: usize) -> (Vec<u32>, u64) {
    let mut rig = warm(
        3,
        &ControlConfig {
            cnps_per_tick: budget,
            ..config(STEP)
        },
    );
    for (n, frames) in [(0, 79), (1, 14), (2, 4)] {
        (0..frames).for_each(|_| {
            rig.out(&data(0x1_0018 + n, 0x11 + n));
        });
    }
    rig.tick(STEP, 0);
    let context = QueueContext {
        arrival: BitRate(1_000 * G),
        ..QueueContext::unseen()
    };
    let decision = Decision {
        amount: Amount::Many,
        choice: Choice::Cut(BitRate(cut * G)),
        ..Decision::none(Amount::Many, Reason::Overload)
    };
    let now = rig.now;
    let clock = || now;
    let deadline = Deadline::new(&clock, now, Nanos(1));
    let mut signalled = Vec::new();
    let core = &mut rig.core;
    core.tracker.read_queue(0, Some(64), now, &deadline);
    core.signal_round(
        0,
        &decision,
        &context,
        (now, &deadline),
        &mut |order: CnpRequest| {
            signalled.push(order.flow.dest_qp().get());
            Ok(())
        },
    );
    (
        signalled,
        core.status().cnps_suppressed(Suppressed::CapTick),
    )
}

/// Law: a cut spares the flows at or below the max-min fair rate, though what the others give up at once is less than it asks for.
#[test]
fn a_cut_spares_flows_at_or_below_their_fair_rate() {
    // All above 125 Gb/s give up 700 together: 800 and 150 are halved, and 50 is spared.
    assert_eq!(signalled_for(700, 128), (vec![0x11, 0x12], 0));
}

/// Law: a round ends with the CNP by which its cut is reached; flows that it does not need are not short of CNPs.
#[test]
fn a_round_ends_when_its_cut_is_reached() {
    assert_eq!(signalled_for(400, 1), (vec![0x11], 0));
    assert_eq!(signalled_for(700, 1), (vec![0x11], 2));
}

#[test]
fn a_flow_never_signalled_has_at_least_its_share_of_the_arrival_rate() {
    let mut rig = warm(1, &config(STEP));
    let context = QueueContext {
        reading: Reading::default(),
        fresh: true,
        depth: 150_000,
        deep: 1_500_000,
        drain: RATE,
        arrival: BitRate(400 * G),
        mtu: 4_200,
        rates_known: true,
    };
    let now = rig.now;
    let clock = || now;
    let deadline = Deadline::new(&clock, now, Nanos(1));
    let request = |now| RoundRequest {
        deadline: &deadline,
        cause: Cause {
            decision: Decision::none(Amount::Many, Reason::Overload),
            context: &context,
            now,
        },
        dry: false,
        total: 4_000,
        fair_rate: BitRate(0),
    };
    assert_eq!(rig.core.rate(0, 1_000, &request(now)), 100 * G);
    rig.core.record_cnp_sent(0, 100 * G, now);
    rig.core.note_cnp(0, now);
    let later = now + STEP;
    assert_eq!(rig.core.rate(0, 1_000, &request(later)), 50 * G);
}

proptest! {
    /// Law: the sum of the rates above it is the excess, and no rate is left below 0.
    #[test]
    fn the_fair_rate_takes_the_excess_off_the_fastest(
        mut rates in prop::collection::vec(1u64..1_000_000, 1..50),
        part in 0u64..=100,
    ) {
        rates.sort_unstable_by(|a, b| b.cmp(a));
        let excess = rates.iter().sum::<u64>() / 100 * part;
        let level = max_min_rate(rates.iter().copied(), excess);
        let taken: u64 = rates.iter().map(|rate| rate.saturating_sub(level)).sum();
        prop_assert!(taken.abs_diff(excess) <= rates.len() as u64, "{taken} of {excess}");
    }
}
