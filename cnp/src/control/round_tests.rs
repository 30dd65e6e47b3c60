use super::*;
use crate::control::tests::{data, warm};
use crate::detector::Reading;
use crate::host_response::Standing;
use crate::host_rules::HostRules;
use crate::policy::{Amount, PolicyKind, PolicyName, Reason};
use crate::response::Measured;
use crate::tracker::FlowTracker;
use crate::traffic_tests::rig::{RATE, Rig, config};

const STEP: Nanos = Nanos::from_micros(10);
const G: u64 = 1_000_000_000;

/// A sender that hears no CNP is found by its first, whatever the policy, and strikes on it stay CE; it is signalled once in 100 ms to
/// see whether it still does not.
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
        let mut owed = 0;
        for step in 0..6_000u64 {
            let slot = rig.out(&data(0x1_0018, 0x11));
            rig.tick(STEP, depth + step % 100 * rise);
            owed += u64::from(step > 100 && rig.owes(slot, false));
        }
        let flow = rig.core.tracker.flows.get(0).unwrap();
        assert!(
            (1..=2).contains(&flow.cnps),
            "{policy:?} signalled {}",
            flow.cnps
        );
        assert!(owed < 60, "{policy:?} owed {owed} of 6000");
        assert_eq!(rig.core.tracker.standing(0), Standing::Doubted);
    }
}

/// A sender comes back every 300 us as fast as small cuts took it down: that is no disobedience. Three of four senders
/// judged so once left all cuts to the fourth, and the queue grew without end.
#[test]
fn a_sender_that_recovers_from_small_cuts_is_not_unresponsive() {
    let mut watch = crate::response::ResponseWatch::default();
    let config = crate::response::ResponseConfig {
        feedback: Nanos::from_micros(20),
        window: Nanos::from_micros(100),
    };
    // 3 % each.
    for step in 0..10_000u64 {
        let now = Nanos::from_micros(step * 10);
        if step % 30 == 0 {
            watch.record_cnp_sent(now, 1_000, 2_000, 1 << 16);
        }
        watch.observe(now, step * 100, &config, |_, _| 1 << 16);
    }
    assert!(!watch.is_unresponsive());
}

/// A card whose alpha fades slowly is cut by half also 2 ms after the CNP before, where a few thousandths are usual. Sooner several CNPs are on
/// their way at once, and what one of them does is not to be told apart.
#[test]
fn from_a_millisecond_on_a_cut_is_as_deep_as_the_host_showed() {
    let mut rig = warm(1, &config(STEP));
    assert_eq!(rig.tick(STEP, 500_000), 1);
    let tracker = &mut rig.core.tracker;
    let told = tracker.flows.get(0).unwrap().dcqcn.last_told().unwrap();
    let shares = |tracker: &FlowTracker| {
        [500, 2_000].map(|us| tracker.cut_share(0, told + Nanos::from_micros(us)))
    };
    let usual = shares(tracker);
    tracker.remember_host(0);
    for gap in [500, 2_000] {
        let measured = Measured {
            worked: true,
            expected: 1 << 15,
            seen: 1 << 15,
            after: Some((Nanos::from_micros(gap), 1)),
        };
        tracker.learn_response(0, &measured, rig.now);
    }
    assert_eq!(shares(tracker), [usual[0], 1 << 15], "{usual:?}");
    assert!(usual[1] < 1 << 10, "{usual:?}");
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
        cause: Cause {
            decision: Decision::none(Amount::Many, Reason::Overload),
            context: &context,
            now,
        },
        dry: false,
        given_up: false,
        total: 4_000,
        mean: 1_000,
    };
    assert_eq!(rig.core.rate(0, 1_000, &asked(now)), 100 * G);
    rig.core.record_cnp_sent(0, 100 * G, now);
    rig.core.open_episode(0, 1_000, now);
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
