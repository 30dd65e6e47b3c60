use super::*;
use crate::control::config::EcnMode;
use crate::control::tests::{data, warm};
use crate::detector::Reading;
use crate::host_rules::HostRules;
use crate::policy::{Amount, PolicyKind, PolicyName, Reason};
use crate::response::Outcome;
use crate::traffic_tests::rig::{QUEUE, RATE, Rig, WAN, config, with};
use npcc_pipeline::tap::FlowTap;

const STEP: Nanos = Nanos::from_micros(10);
const G: u64 = 1_000_000_000;

/// A sender that hears no CNP is found by its first, whatever the policy, and keeps its marks; it is told once in 100 ms to see whether it
/// still does not.
#[test]
fn a_deaf_stranger_is_found_by_its_first_cnp_and_keeps_its_marks() {
    let few = PolicyName::Npcc.defaults();
    let pi = PolicyName::Pi.defaults();
    // Shallow and rising slowly again and again; standing above the set-point.
    for (policy, depth, rise) in [(few, 200_000, 2_000), (pi, 700_000, 0)] {
        let mut config = config(STEP);
        config.settings.queues[0].policy = policy;
        config.settings.hosts = HostRules::default();
        let mut rig = warm(1, &config);
        let mut unmarked = 0;
        for step in 0..6_000u64 {
            let slot = rig.out(&data(0x1_0018, 0x11));
            rig.tick(STEP, depth + step % 100 * rise);
            unmarked += u64::from(step > 100 && rig.cache.notified(slot, rig.now));
        }
        let flow = rig.core.tracker.flows.get(0).unwrap();
        assert!(
            (1..=2).contains(&flow.cnps),
            "{policy:?} told {}",
            flow.cnps
        );
        assert!(unmarked < 60, "{policy:?} unmarked {unmarked} of 6000");
        assert_eq!(rig.core.tracker.standing(0), Standing::Doubted);
    }
}

/// How long a flow signalled at these depths, one after the other, counts as signalled: in steps of 100 us.
fn unmarked(worked: Option<bool>, depths: &[u64], ecn: EcnMode) -> u64 {
    let mut rig = warm(
        1,
        &with(STEP, |settings| {
            settings.ecn = ecn;
            settings.hosts = HostRules::default();
        }),
    );
    rig.tick(STEP, worked.map_or(0, |_| 500_000));
    let mut slot = rig.out(&data(0x1_0018, 0x11));
    rig.core.tracker.teach(0, worked, rig.now);
    if worked != Some(true) {
        // One that is not known is told when it is known how fast it sends, one that fell back once in 100 ms.
        for wait in [Nanos::from_millis(101), STEP, STEP] {
            rig.tick(wait, 0);
            slot = rig.out(&data(0x1_0018, 0x11));
        }
    }
    for depth in depths {
        assert_eq!(rig.tick(STEP, *depth), 1);
    }
    let told = |time: &u64| {
        rig.cache
            .notified(slot, rig.now + Nanos::from_micros(time * 100 + 50))
    };
    (0..300).take_while(told).count() as u64
}

/// A published card's alpha fades in 10 ms, where that of others is gone in one.
#[test]
fn a_cut_is_as_deep_as_that_of_the_kind_of_card_the_host_showed() {
    let mut rig = warm(1, &config(STEP));
    assert_eq!(rig.tick(STEP, 500_000), 1);
    let tracker = &mut rig.core.tracker;
    let told = tracker.flows.get(0).unwrap().dcqcn.cards.told().unwrap();
    let later = told + Nanos::from_millis(2);
    assert!(tracker.cut_share(0, later) < 1 << 10);
    tracker.remember_host(0);
    tracker.learn_response(0, &Outcome::of_published(), rig.now);
    assert!(tracker.cut_share(0, later) > 1 << 14);
}

/// Marks of the first moments come back from 300 km as CNPs when the queue has long drained.
#[test]
fn below_hard_a_told_flow_is_left_to_our_own_cnps() {
    let (hold, clear) = (EcnMode::MarkUnlessNotified, EcnMode::ClearAfterCnp);
    let answers = Some(true);
    assert_eq!(unmarked(answers, &[600_000], hold), 200);
    assert_eq!(unmarked(answers, &[900_000], hold), 1, "hard");
    assert_eq!(
        unmarked(answers, &[600_000, 900_000], hold),
        1,
        "hard meanwhile"
    );
    assert_eq!(
        unmarked(answers, &[600_000], clear),
        1,
        "upstream's marks are not hidden longer"
    );
    assert_eq!(
        unmarked(None, &[600_000], hold),
        3,
        "nothing is known of its host"
    );
    assert_eq!(
        unmarked(Some(false), &[600_000], hold),
        0,
        "its host fell back"
    );
    assert_eq!(unmarked(Some(false), &[600_000], clear), 0);
}

/// `model` looks every 4 us.
#[test]
fn flows_of_a_quiet_queue_are_read_by_ticks_however_often_its_policy_looks() {
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
fn an_urgent_policy_is_asked_between_two_ticks() {
    let mut rig = warm(1, &config(STEP));
    let mut sent = Vec::new();
    let mut depth = 600_000;
    for _ in 0..6 {
        rig.out(&data(0x1_0018, 0x11));
        depth += 400_000;
        sent.push((rig.tick(rig.core.period(), depth), rig.core.period().0));
    }
    // Ticks of 10 us: one round, which is given time; then two, 4 us apart.
    let us = 1_000;
    let (first, rising) = sent.split_at(3);
    assert_eq!(first, [(1, 10 * us); 3]);
    assert_eq!(rising, [(1, 4 * us), (1, 6 * us), (1, 4 * us)]);
}

#[test]
fn a_flow_never_told_sends_at_least_its_share_of_what_comes_in() {
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
    let asked = |now| Asked {
        deadline: &deadline,
        decision: Decision::none(Amount::Many, Reason::Overload),
        context: &context,
        now,
        dry: false,
        given_up: false,
        total: 4_000,
        mean: 1_000,
    };
    assert_eq!(rig.core.rate(0, 1_000, &asked(now)), 100 * G);
    rig.core.record_cnp_sent(0, 100 * G, now);
    rig.core.open_episode((WAN, QUEUE), 0, 1_000, now);
    let later = now + STEP;
    assert_eq!(rig.core.rate(0, 1_000, &asked(later)), 50 * G);
}

#[test]
fn who_sends_less_is_spared_only_where_a_sum_is_to_be_reached() {
    let cut = BitRate(G);
    let none = BitRate(0);
    let cut_of = |spare| Choice::Cut {
        sum: BitRate(10 * G),
        spare,
    };
    let wanted = cut_of(true);
    let (full, light, feather) = (Weight::Full, Weight::Light, Weight::Feather);
    assert!(chosen(wanted, 30 * G, cut, none, full));
    assert!(!chosen(wanted, 10 * G, cut, none, light));
    assert!(chosen(cut_of(false), 10 * G, cut, none, light));
    assert!(!chosen(cut_of(false), 10 * G, cut, none, feather));
    assert!(chosen(Choice::All, 10 * G, cut, none, feather));
    assert!(chosen(Choice::Above(cut), 10 * G, cut, none, feather));
    // Nobody gives up more than twice what is left.
    assert!(!chosen(wanted, 60 * G, BitRate(30 * G), none, full));
    assert!(!chosen(wanted, 30 * G, cut, BitRate(10 * G), full));
}
